"""Matrix products and fully connected layers."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda import matmul
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue, Step
from kernelmosaic.generate.cuda.matmul import MatmulShape, matmul_function
from kernelmosaic.generate.cuda.source import ELEMENTS, Extent, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, extent_product, like, parameter, tensor
from kernelmosaic.generate.values import Size, Value


class MatMul(Op):
    """Product of two values. Operands may be stored transposed; `b` may have no batch."""

    kind = "matmul"
    styles = matmul.STYLES

    def __init__(
        self, context: Context, a: Value, b: Value, a_transposed: bool, b_transposed: bool
    ) -> None:
        super().__init__(context, [a, b])
        self._ta, self._tb = a_transposed, b_transposed
        self._tile = context.draw.choice([8, 16, 16, 32]) if a.rank == 2 else 16
        self._form = context.draw.choice(["torch.matmul", "@", "torch.mm", "torch.bmm"])
        self._transpose = context.draw.choice([".transpose(-2, -1)", ".mT", ".T", ".t()"])
        if a.rank != 2:
            self._transpose = context.draw.choice([".transpose(-2, -1)", ".transpose(1, 2)", ".mT"])
            if a.rank == 4 and self._transpose == ".transpose(1, 2)":
                self._transpose = ".transpose(2, 3)"

    @property
    def sizes(self) -> tuple[Size, ...]:
        a, b = self.inputs
        rows = a.sizes[-1] if self._ta else a.sizes[-2]
        columns = b.sizes[-2] if self._tb else b.sizes[-1]
        return (*a.sizes[:-2], rows, columns)

    def torch(self, names: Sequence[str]) -> str:
        a, b = names
        if self._ta:
            a += self._transpose
        if self._tb:
            b += self._transpose
        ranks = self.inputs[0].rank, self.inputs[1].rank
        if self._form == "@":
            return f"{a} @ {b}"
        if (self._form == "torch.mm" and ranks == (2, 2)) or (
            self._form == "torch.bmm" and ranks == (3, 3)
        ):
            return f"{self._form}({a}, {b})"
        return f"torch.matmul({a}, {b})"

    def english(self, names: Sequence[str]) -> str:
        a, b = names
        left = f"the transpose (of the last two dimensions) of {a}" if self._ta else a
        right = f"the transpose (of the last two dimensions) of {b}" if self._tb else b
        batch = "" if self.inputs[0].rank == 2 else ", for each index of the leading dimensions"
        return f"Multiply the matrices {left} and {right}{batch}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        left = f"{names[0]}_{{km}}" if self._ta else f"{names[0]}_{{mk}}"
        right = f"{names[1]}_{{nk}}" if self._tb else f"{names[1]}_{{kn}}"
        batch = "" if self.inputs[0].rank == 2 else r" \quad\text{(for each leading index)}"
        return rf"{out}_{{mn}} = \sum_k {left}\,{right}{batch}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        a, b = self.inputs
        ra, rb = a.rank, b.rank
        rows, inner = f"a.size({ra - 2})", f"a.size({ra - 1})"
        if self._ta:
            rows, inner = inner, rows
        columns = f"b.size({rb - 2})" if self._tb else f"b.size({rb - 1})"
        shape = MatmulShape(
            rows,
            columns,
            inner,
            extent_product("a", 0, ra - 2),
            self._ta,
            self._tb,
            rb > 2,
            self._tile,
        )
        extents = [Extent("rows", rows), Extent("columns", columns), Extent("inner", inner)]
        launch = self.launch(name, out, [tensor("a", a), tensor("b", b)], extents, epilogue)
        lead = [f"a.size({d})" for d in range(ra - 2)]
        return matmul_function(
            launch, like("a", [*lead, "rows", "columns"]), shape, epilogue, style
        )


class Linear(Op):
    """nn.Linear over the last dimension."""

    kind = "linear"
    styles = matmul.STYLES

    def __init__(self, context: Context, x: Value, out: Size, bias: bool, base: str = "") -> None:
        super().__init__(context, [x])
        self._out, self._bias = out, bias
        name = base or context.draw.choice(["linear", "fc", "proj", "dense", "gemm"])
        self._attribute = context.names.unique(name)
        self.constructor += [x.sizes[-1], out]
        extra = "" if bias else ", bias=False"
        kind = "" if x.dtype == "float32" else f", dtype=torch.{x.dtype}"
        self.init.append(
            f"self.{self._attribute} = nn.Linear({x.sizes[-1].name}, {out.name}{extra}{kind})"
        )

    @property
    def sizes(self) -> tuple[Size, ...]:
        return (*self.inputs[0].sizes[:-1], self._out)

    def torch(self, names: Sequence[str]) -> str:
        return f"self.{self._attribute}({names[0]})"

    def english(self, names: Sequence[str]) -> str:
        weight = f"`self.{self._attribute}.weight`"
        bias = f" and add `self.{self._attribute}.bias`" if self._bias else " (no bias)"
        return (
            f"Multiply {names[0]}, along its last dimension, by the transpose of {weight} "
            f"({self._out.name}, {self.inputs[0].sizes[-1].name}){bias}"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        attribute = self._attribute.replace("_", r"\_")
        weight = rf"W^{{\text{{{attribute}}}}}_{{jk}}"
        bias = rf" + b^{{\text{{{attribute}}}}}_j" if self._bias else ""
        return rf"{out}_{{\cdot j}} = \sum_k {names[0]}_{{\cdot k}}\,{weight}{bias}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        steps = list(epilogue.steps)
        if self._bias:
            value = ELEMENTS[x.dtype].load("layer_bias[{i} % columns]")
            bias = parameter("layer_bias", f"self.{self._attribute}.bias", x.dtype)
            steps.insert(0, Step(f"{{v}} + {value}", (bias,)))
        whole = Epilogue(tuple(steps))
        rank = x.rank
        inner, columns = f"a.size({rank - 1})", "b.size(0)"
        extents = [
            Extent("rows", f"a.numel() / a.size({rank - 1})"),
            Extent("columns", columns),
            Extent("inner", inner),
        ]
        weight = parameter("b", f"self.{self._attribute}.weight", x.dtype)
        launch = self.launch(name, out, [tensor("a", x), weight], extents, whole)
        shape = MatmulShape("rows", columns, inner, b_transposed=True)
        lead = [f"a.size({d})" for d in range(rank - 1)]
        return matmul_function(launch, like("a", [*lead, "columns"]), shape, whole, style)
