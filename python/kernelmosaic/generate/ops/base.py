"""What every operator of a graph offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue, Step
from kernelmosaic.generate.cuda.source import Argument, Extent, HostFunction, Launch
from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.values import Constant, Number, Size, Value

ConstructorArgument = Union[Size, Constant]


class Names:
    """Hands out names that differ from each other."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}

    def unique(self, name: str) -> str:
        count = self._uses[name] = self._uses.get(name, 0) + 1
        return name if count == 1 else f"{name}{count}"


class Context:
    """What an operator needs while a family puts it together."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.names = Names()
        self.functional = draw.chance(0.5)
        self.arguments = draw.chance(0.5)

    def constant(self, name: str, value: Number) -> Constant:
        """A number that is an argument of the constructor in some tasks."""
        return Constant(self.names.unique(name), value, self.arguments and self.draw.chance(0.8))


class Op:
    """An operator applied to values of a graph.

    `kind` names it in features. `constructor` are the arguments that it adds to the
    constructor, `init` the lines of `__init__`. It is either pointwise (it has a `step`,
    and can end another operator's kernel) or has `styles` kernels of its own.
    """

    kind = ""
    styles = 1
    # Whether pointwise operators may end its kernel.
    fuses = True
    # Whether the torch expression names its input more than once.
    repeats = False
    # Lines beside the reference's class that the torch expression needs.
    preamble = ""

    def __init__(self, context: Context, inputs: Sequence[Value]) -> None:
        self.context = context
        self.inputs = tuple(inputs)
        self.constructor: list[ConstructorArgument] = []
        self.init: list[str] = []

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Of the output."""
        return self.inputs[0].sizes

    @property
    def dtype(self) -> str:
        return self.inputs[0].dtype

    def torch(self, names: Sequence[str]) -> str:
        """An expression over the Python names of the inputs."""
        raise NotImplementedError

    def english(self, names: Sequence[str]) -> str:
        """A sentence without its full stop, in the imperative."""
        raise NotImplementedError

    def latex(self, out: str, names: Sequence[str]) -> str:
        """An equation that defines `out`."""
        raise NotImplementedError

    def step(self) -> Step | None:
        """For pointwise operators: what becomes of `v`, an element of the first input."""
        return None

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        """Kernels that compute `out`, with `epilogue` applied to each element."""
        raise NotImplementedError

    def launch(
        self,
        name: str,
        out: Value,
        arguments: Sequence[Argument],
        extents: Sequence[Extent],
        epilogue: Epilogue,
    ) -> Launch:
        threads = (128, 256, 256, 512)[len(name) % 4]
        return Launch(
            name,
            out,
            [*arguments, *epilogue.arguments],
            list(extents),
            epilogue.extents,
            threads,
        )

    def constant_arguments(self, constants: Sequence[Constant], kind: str) -> list[Argument]:
        return [Argument(kind, c.name, c.in_python) for c in constants if c.is_argument]


def tensor(name: str, value: Value) -> Argument:
    return Argument("tensor", name, value, value.dtype)


def parameter(name: str, source: str, dtype: str) -> Argument:
    return Argument("tensor", name, source, dtype)


def extent_product(name: str, first: int, last: int) -> str:
    """Host expression: the product of `name`'s extents from dimension `first` to `last - 1`."""
    return " * ".join(f"{name}.size({d})" for d in range(first, last)) or "1"


def like(name: str, extents: Sequence[str], dtype: str = "") -> str:
    """Host expression that allocates a tensor with the options of `name`."""
    options = f"{name}.options()"
    if dtype == "int64":
        options += ".dtype(torch::kInt64)"
    return f"torch::empty({{{', '.join(extents)}}}, {options})"
