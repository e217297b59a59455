"""Operators on each element by itself: they can end another operator's kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kernelmosaic.generate.cuda.cell import cell_function, vector_function
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue, Step
from kernelmosaic.generate.cuda.source import ELEMENTS, Extent, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, extent_product, parameter, tensor
from kernelmosaic.generate.units import UNITS
from kernelmosaic.generate.values import Constant, Value


class Pointwise(Op):
    """Base: kernels read the first input and apply the operator's own step."""

    styles = 3

    def _own_step(self) -> Step:
        raise NotImplementedError

    def step(self) -> Step:
        return self._own_step()

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        whole = Epilogue((self._own_step(), *epilogue.steps))
        launch = self.launch(name, out, [tensor("x", self.inputs[0])], [], whole)
        if style == 2 and out.dtype == "float32":
            return vector_function(launch, "x", whole)
        load = ELEMENTS[self.inputs[0].dtype].load("x[i]")
        lines = [f"float v = {load};"]
        return cell_function(launch, "torch::empty_like(x)", lines, whole, min(style, 1))


class UnitOp(Pointwise):
    """A function of one number (`units.py`)."""

    def __init__(self, context: Context, x: Value, key: str) -> None:
        super().__init__(context, [x])
        self.kind = key
        self._unit = UNITS[key]
        self._constants = {
            name: context.constant(name, context.draw.number(low, high))
            for name, (low, high) in self._unit.constants
        }
        self.constructor += [c for c in self._constants.values() if c.is_argument]
        self._attribute = ""
        if self._unit.module and not context.functional and context.draw.chance(0.7):
            self._attribute = context.names.unique(key)
            arguments = {
                n: c.name if c.is_argument else c.value for n, c in self._constants.items()
            }
            self.init.append(f"self.{self._attribute} = {self._unit.module.format(**arguments)}")
        self._torch = context.draw.choice(self._unit.torch)

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        return not self._attribute and self._torch.count("{x}") > 1

    def torch(self, names: Sequence[str]) -> str:
        if self._attribute:
            return f"self.{self._attribute}({names[0]})"
        return self._torch.format(
            x=names[0], **{n: c.in_python for n, c in self._constants.items()}
        )

    def english(self, names: Sequence[str]) -> str:
        numbers = ", ".join(
            f"{c.name} = {c.value}" if not c.is_argument else f"`{c.name}`"
            for c in self._constants.values()
        )
        return f"Apply {self._unit.english}{f' ({numbers})' if numbers else ''} to {names[0]}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        constants = {
            n: rf"\text{{{latex_name(c.name)}}}" if c.is_argument else f"{c.value:g}"
            for n, c in self._constants.items()
        }
        return f"{out}_i = {self._unit.latex.format(x=names[0] + '_i', **constants)}"

    def _own_step(self) -> Step:
        cuda = self._unit.cuda.format(
            x="{v}", **{n: _parenthesised(c) for n, c in self._constants.items()}
        )
        return Step(cuda, tuple(self.constant_arguments(list(self._constants.values()), "float")))


def latex_name(name: str) -> str:
    return name.replace("_", r"\_")


def _parenthesised(constant: Constant) -> str:
    text = constant.in_cuda
    return f"({text})" if text.startswith("-") else text


class ChannelOp(Pointwise):
    """Adds or multiplies a learned vector along one dimension."""

    def __init__(self, context: Context, x: Value, dim: int, operation: str) -> None:
        super().__init__(context, [x])
        self.kind = f"{operation}_vector"
        self._dim = dim
        self._operation = operation
        size = x.sizes[dim]
        base = context.draw.choice(
            ["bias", "shift_vector"] if operation == "add" else ["gain", "channel_scale"]
        )
        self._attribute = context.names.unique(base)
        after = ", 1" * (x.rank - dim - 1)
        self.constructor.append(size)
        make = "torch.randn" if operation == "add" else "1.0 + 0.1 * torch.randn"
        kind = "" if x.dtype == "float32" else f", dtype=torch.{x.dtype}"
        shape = f"{size.name}{after}"
        self.init.append(f"self.{self._attribute} = nn.Parameter({make}({shape}{kind}))")
        self._swapped = context.draw.chance(0.3)

    def torch(self, names: Sequence[str]) -> str:
        sides = [names[0], f"self.{self._attribute}"]
        if self._swapped:
            sides.reverse()
        return f"{sides[0]} {'+' if self._operation == 'add' else '*'} {sides[1]}"

    def english(self, names: Sequence[str]) -> str:
        verb = "Add" if self._operation == "add" else "Multiply by"
        to = f"to {names[0]}" if self._operation == "add" else f"{names[0]}"
        return (
            f"{verb} the parameter `{self._attribute}`"
            + (f" {to}" if self._operation == "add" else "")
            + f", one value for each index of dimension {self._dim}"
            + ("" if self._operation == "add" else f" of {names[0]}")
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        sign = "+" if self._operation == "add" else r"\cdot"
        index = rf"\text{{{latex_name(self._attribute)}}}_{{i_{self._dim}}}"
        return f"{out}_i = {names[0]}_i {sign} {index}"

    def _own_step(self) -> Step:
        x, name = self.inputs[0], self._attribute
        extents = [Extent(f"{name}_size", f"{name}.numel()")]
        place = "{i}"
        if self._dim + 1 < x.rank:
            extents.append(Extent(f"{name}_inner", extent_product("y", self._dim + 1, x.rank)))
            place = f"({{i}} / {name}_inner)"
        value = ELEMENTS[x.dtype].load(f"{name}[{place} % {name}_size]")
        sign = "+" if self._operation == "add" else "*"
        learned = parameter(name, f"self.{name}", x.dtype)
        return Step(f"{{v}} {sign} {value}", (learned,), tuple(extents))


class BinaryOp(Pointwise):
    """Two tensors of one shape, element by element; the second is a value of the graph."""

    SIGNS: ClassVar[dict[str, str]] = {"add": "+", "subtract": "-", "multiply": "*"}

    def __init__(self, context: Context, x: Value, other: Value, operation: str) -> None:
        super().__init__(context, [x, other])
        self.kind = operation
        self._operation = operation
        self._written = context.draw.chance(0.3)

    def torch(self, names: Sequence[str]) -> str:
        if self._operation in ("maximum", "minimum"):
            return f"torch.{self._operation}({names[0]}, {names[1]})"
        if self._written:
            function = {"add": "add", "subtract": "sub", "multiply": "mul"}[self._operation]
            return f"torch.{function}({names[0]}, {names[1]})"
        return f"{names[0]} {self.SIGNS[self._operation]} {names[1]}"

    def english(self, names: Sequence[str]) -> str:
        x, other = names
        return {
            "add": f"Add {x} and {other}",
            "subtract": f"Subtract {other} from {x}",
            "multiply": f"Multiply {x} and {other} element by element",
            "maximum": f"Take the larger of {x} and {other} for each element",
            "minimum": f"Take the smaller of {x} and {other} for each element",
        }[self._operation]

    def latex(self, out: str, names: Sequence[str]) -> str:
        x, other = (f"{n}_i" for n in names)
        if self._operation in ("maximum", "minimum"):
            return rf"{out}_i = \{self._operation[:3]}({x}, {other})"
        sign = {"add": "+", "subtract": "-", "multiply": r"\cdot"}[self._operation]
        return f"{out}_i = {x} {sign} {other}"

    def _own_step(self) -> Step:
        other = self.inputs[1]
        name = f"other_{other.name}"
        value = ELEMENTS[other.dtype].load(f"{name}[{{i}}]")
        if self._operation == "maximum":
            expression = f"fmaxf({{v}}, {value})"
        elif self._operation == "minimum":
            expression = f"fminf({{v}}, {value})"
        else:
            expression = f"{{v}} {self.SIGNS[self._operation]} {value}"
        return Step(expression, (tensor(name, other),))
