"""Operators along a dimension: reductions, softmax, norms over trailing dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelmosaic.generate.cuda import line
from kernelmosaic.generate.cuda.cell import cell_function
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.line import LineProgram, Pass, line_function
from kernelmosaic.generate.cuda.source import ELEMENTS, Argument, Extent, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, extent_product, like, tensor
from kernelmosaic.generate.values import Constant, Size, Value


@dataclass(frozen=True)
class Reducer:
    english: str
    torch: tuple[str, ...]
    latex: str
    passes: tuple[Pass, ...]
    result: str


_MAXIMUM = Pass("largest", "max", "v")


_EXPONENTS = Pass("total", "sum", "expf(v - largest)")


MEAN = Pass("mean", "sum", "v", ("mean /= length;",))


_SQUARES = Pass("squares", "sum", "(v - mean) * (v - mean)")


REDUCERS: dict[str, Reducer] = {
    "sum": Reducer(
        "the sum",
        ("torch.sum({x}, dim={d}{k})", "{x}.sum(dim={d}{k})"),
        r"\sum_r {x}_r",
        (Pass("total", "sum", "v"),),
        "total",
    ),
    "mean": Reducer(
        "the mean",
        ("torch.mean({x}, dim={d}{k})", "{x}.mean(dim={d}{k})"),
        r"\frac1R\sum_r {x}_r",
        (MEAN,),
        "mean",
    ),
    "max": Reducer(
        "the maximum",
        ("torch.max({x}, dim={d}{k})[0]", "{x}.amax(dim={d}{k})", "{x}.max(dim={d}{k}).values"),
        r"\max_r {x}_r",
        (_MAXIMUM,),
        "largest",
    ),
    "min": Reducer(
        "the minimum",
        ("torch.min({x}, dim={d}{k})[0]", "{x}.amin(dim={d}{k})"),
        r"\min_r {x}_r",
        (Pass("smallest", "min", "v"),),
        "smallest",
    ),
    "l1": Reducer(
        "the sum of absolute values",
        ("torch.abs({x}).sum(dim={d}{k})", "torch.norm({x}, p=1, dim={d}{k})"),
        r"\sum_r |{x}_r|",
        (Pass("total", "sum", "fabsf(v)"),),
        "total",
    ),
    "l2": Reducer(
        "the Euclidean norm",
        ("torch.norm({x}, p=2, dim={d}{k})", "{x}.pow(2).sum(dim={d}{k}).sqrt()"),
        r"\sqrt{{\sum_r {x}_r^2}}",
        (Pass("total", "sum", "v * v"),),
        "sqrtf(total)",
    ),
    "mean_square": Reducer(
        "the mean of squares",
        ("torch.mean({x} * {x}, dim={d}{k})", "{x}.pow(2).mean(dim={d}{k})"),
        r"\frac1R\sum_r {x}_r^2",
        (Pass("total", "sum", "v * v"),),
        "total / length",
    ),
    "logsumexp": Reducer(
        "the logarithm of the sum of exponentials",
        ("torch.logsumexp({x}, dim={d}{k})",),
        r"\ln \sum_r e^{{{x}_r}}",
        (_MAXIMUM, _EXPONENTS),
        "largest + logf(total)",
    ),
    "variance": Reducer(
        "the variance (mean of squared differences from the mean)",
        ("torch.var({x}, dim={d}, unbiased=False{k})", "{x}.var(dim={d}, unbiased=False{k})"),
        r"\frac1R\sum_r \Bigl({x}_r - \frac1R\sum_s {x}_s\Bigr)^2",
        (MEAN, _SQUARES),
        "squares / length",
    ),
}


class LineOp(Op):
    """Base of operators along one dimension."""

    styles = line.STYLES

    def __init__(self, context: Context, x: Value, dim: int) -> None:
        super().__init__(context, [x])
        self.dim = dim
        # Some people count from the end.
        self.written = dim - x.rank if context.draw.chance(0.4) else dim
        self.dim_constant = Constant("dim", self.written)

    def as_argument(self) -> None:
        """Makes the dimension an argument of the constructor."""
        name = self.context.names.unique(self.context.draw.choice(["dim", "dim", "axis"]))
        self.dim_constant = Constant(name, self.written, True)
        self.constructor.append(self.dim_constant)

    @property
    def _index(self) -> str:
        if self.dim == self.inputs[0].rank - 1:
            return "line * length + r"
        return "(line / inner * length + r) * inner + line % inner"

    @property
    def _extents(self) -> list[Extent]:
        rank = self.inputs[0].rank
        if self.dim == rank - 1:
            return []
        return [Extent("inner", extent_product("x", self.dim + 1, rank))]

    def line_function(
        self,
        name: str,
        out: Value,
        program: LineProgram,
        output: str,
        epilogue: Epilogue,
        style: int,
        arguments: Sequence[Argument] = (),
    ) -> HostFunction:
        x = self.inputs[0]
        launch = self.launch(name, out, [tensor("x", x), *arguments], self._extents, epilogue)
        length = f"x.size({self.dim})"
        return line_function(
            launch, output, f"x.numel() / {length}", length, program, epilogue, style
        )

    def _load(self) -> tuple[str, ...]:
        value = ELEMENTS[self.inputs[0].dtype].load(f"x[{self._index}]")
        return (f"float v = {value};",)

    def _place(self, names: Sequence[str]) -> str:
        return f"dimension {self.dim} of {names[0]}"


class Reduce(LineOp):
    """One value per line. `keep`: the dimension stays, with extent 1."""

    def __init__(self, context: Context, x: Value, dim: int, reducer: str, keep: bool = False):
        super().__init__(context, x, dim)
        self.kind = f"reduce_{reducer}"
        self._reducer = REDUCERS[reducer]
        self._keep = keep
        self._torch = context.draw.choice(self._reducer.torch)
        if x.dtype != "float32":
            self._torch = self._reducer.torch[0]

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        return self._torch.count("{x}") > 1

    @property
    def sizes(self) -> tuple[Size, ...]:
        sizes = list(self.inputs[0].sizes)
        if self._keep:
            sizes[self.dim] = Size("1", 1, 1)
        else:
            del sizes[self.dim]
        return tuple(sizes)

    def torch(self, names: Sequence[str]) -> str:
        keep = ", keepdim=True" if self._keep else ""
        return self._torch.format(x=names[0], d=self.dim_constant.in_python, k=keep)

    def english(self, names: Sequence[str]) -> str:
        keep = "; the dimension stays, with extent 1" if self._keep else ""
        return f"Take {self._reducer.english} over {self._place(names)}{keep}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        formula = self._reducer.latex.format(x=names[0])
        return f"{out} = {formula} \\quad\\text{{($r$ runs over dimension {self.dim})}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        program = LineProgram(
            self._load(), self._index, self._reducer.passes, self._reducer.result, False
        )
        rank = self.inputs[0].rank
        extents = [f"x.size({d})" if d != self.dim else "1" for d in range(rank)]
        if not self._keep:
            del extents[self.dim]
        return self.line_function(name, out, program, like("x", extents), epilogue, style)


class ArgReduce(LineOp):
    """Place of the first largest or smallest element."""

    styles = 2
    fuses = False

    def __init__(self, context: Context, x: Value, dim: int, largest: bool) -> None:
        super().__init__(context, x, dim)
        self._largest = largest
        self.kind = "argmax" if largest else "argmin"
        self._method = context.draw.chance(0.3)

    @property
    def dtype(self) -> str:
        return "int64"

    @property
    def sizes(self) -> tuple[Size, ...]:
        sizes = list(self.inputs[0].sizes)
        del sizes[self.dim]
        return tuple(sizes)

    def torch(self, names: Sequence[str]) -> str:
        dim = self.dim_constant.in_python
        if self._method:
            return f"{names[0]}.{self.kind}(dim={dim})"
        return f"torch.{self.kind}({names[0]}, dim={dim})"

    def english(self, names: Sequence[str]) -> str:
        which = "largest" if self._largest else "smallest"
        return (
            f"Find the index (int64) of the {which} element along {self._place(names)}, "
            "the first where several are equal"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        which = r"\max" if self._largest else r"\min"
        return (
            rf"{out} = \min\{{r : {names[0]}_r = {which}_s {names[0]}_s\}}"
            rf" \quad\text{{($r, s$ run over dimension {self.dim})}}"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        extents = [*self._extents, Extent("length", f"x.size({self.dim})")]
        launch = self.launch(name, out, [tensor("x", x)], extents, epilogue)
        sign = ">" if self._largest else "<"
        load = ELEMENTS[x.dtype].load
        index = self._index.replace("line", "i")
        lines = [
            "int64_t v = 0;",
            f"float best = {load('x[' + index.replace(' + r', '') + ']')};",
            "for (int r = 1; r < length; ++r) {",
            f"    const float candidate = {load('x[' + index + ']')};",
            f"    if (candidate {sign} best) {{",
            "        best = candidate;",
            "        v = r;",
            "    }",
            "}",
        ]
        shape = [f"x.size({d})" for d in range(x.rank) if d != self.dim]
        return cell_function(launch, like("x", shape, "int64"), lines, epilogue, style)


class Softmax(LineOp):
    """Softmax or its logarithm."""

    def __init__(self, context: Context, x: Value, dim: int, logarithm: bool = False) -> None:
        super().__init__(context, x, dim)
        self._logarithm = logarithm
        self.kind = "log_softmax" if logarithm else "softmax"
        self._form = context.draw.choice(["torch", "F", "method"])
        self._attribute = ""
        if not context.functional and context.draw.chance(0.4):
            self._attribute = context.names.unique(self.kind)
            module = "nn.LogSoftmax" if logarithm else "nn.Softmax"
            self.init.append(f"self.{self._attribute} = {module}(dim={self.written})")

    def torch(self, names: Sequence[str]) -> str:
        if self._attribute:
            return f"self.{self._attribute}({names[0]})"
        dim = self.dim_constant.in_python
        if self._form == "method":
            return f"{names[0]}.{self.kind}(dim={dim})"
        return f"{self._form}.{self.kind}({names[0]}, dim={dim})"

    def english(self, names: Sequence[str]) -> str:
        what = "the logarithm of the softmax" if self._logarithm else "the softmax"
        return f"Take {what} over {self._place(names)}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        x = names[0]
        formula = (
            rf"{x}_r - \ln\sum_s e^{{{x}_s}}"
            if self._logarithm
            else rf"\frac{{e^{{{x}_r}}}}{{\sum_s e^{{{x}_s}}}}"
        )
        return rf"{out}_r = {formula} \quad\text{{($r, s$ run over dimension {self.dim})}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        result = "v - largest - logf(total)" if self._logarithm else "expf(v - largest) / total"
        program = LineProgram(self._load(), self._index, (_MAXIMUM, _EXPONENTS), result, True)
        return self.line_function(name, out, program, "torch::empty_like(x)", epilogue, style)
