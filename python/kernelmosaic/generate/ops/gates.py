"""Operators that combine an element with another place or tensor: gates, masks, rotations."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda.cell import cell_function, coordinates
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.source import ELEMENTS, Extent, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, like, tensor
from kernelmosaic.generate.values import Size, Value

_GATES = {
    "glu": ("the logistic sigmoid", "torch.sigmoid({g})", "1.0f / (1.0f + expf(-g))", r"\sigma"),
    "swiglu": ("SiLU", "F.silu({g})", "g / (1.0f + expf(-g))", r"\operatorname{{SiLU}}"),
    "geglu": (
        "GELU (error function)",
        "F.gelu({g})",
        "0.5f * g * (1.0f + erff(g * 0.7071067811865475f))",
        r"\operatorname{{GELU}}",
    ),
    "reglu": ("ReLU", "torch.relu({g})", "fmaxf(g, 0.0f)", r"\max(0, \cdot)"),
}


class Gate(Op):
    """The last dimension in halves: the first times a function of the second, or vice versa."""

    styles = 2

    def __init__(self, context: Context, x: Value, form: str) -> None:
        super().__init__(context, [x])
        self.kind = form
        self._first = context.draw.chance(0.5)
        self._words, self._torch, self._cuda, self._latex = _GATES[form]
        self._slices = context.draw.chance(0.5)

    @property
    def sizes(self) -> tuple[Size, ...]:
        last = self.inputs[0].sizes[-1]
        half = Size(f"{last.name}_half", last.full // 2, last.scaled // 2)
        return (*self.inputs[0].sizes[:-1], half)

    repeats = True

    def torch(self, names: Sequence[str]) -> str:
        x = names[0]
        parts = [f"{x}.chunk(2, dim=-1)[{k}]" for k in (0, 1)]
        if self._slices:
            parts = [f"{x}[..., : {x}.shape[-1] // 2]", f"{x}[..., {x}.shape[-1] // 2 :]"]
        gate, value = parts if self._first else (parts[1], parts[0])
        return f"{value} * {self._torch.format(g=gate)}"

    def english(self, names: Sequence[str]) -> str:
        gate, value = ("first", "second") if self._first else ("second", "first")
        return (
            f"Split the last dimension of {names[0]} into two halves and multiply the "
            f"{value} half by {self._words} of the {gate} half"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        gate, value = ("j", "j + H") if self._first else ("j + H", "j")
        function = self._latex.replace("{{", "{").replace("}}", "}")
        return (
            rf"{out}_{{\cdot j}} = {names[0]}_{{\cdot, {value}}} \cdot "
            rf"{function}({names[0]}_{{\cdot, {gate}}}), \quad H \text{{ half of the last extent}}"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        extents = [Extent("half", f"x.size({x.rank - 1}) / 2")]
        launch = self.launch(name, out, [tensor("x", x)], extents, epilogue)
        load = ELEMENTS[x.dtype].load
        gate, value = ("", " + half") if self._first else (" + half", "")
        lines = [
            "const int64_t start = i / half * 2 * half + i % half;",
            f"const float g = {load(f'x[start{gate}]')};",
            f"float v = {load(f'x[start{value}]')} * ({self._cuda});",
        ]
        shape = [f"x.size({d})" for d in range(x.rank - 1)] + ["half"]
        return cell_function(launch, like("x", shape), lines, epilogue, style)


class Rotary(Op):
    """Rotary position embedding over (..., positions, width), halves rotated together."""

    kind = "rotary"
    styles = 2

    def __init__(self, context: Context, x: Value) -> None:
        super().__init__(context, [x])
        self._base = context.constant("base", context.draw.choice([10000.0, 500.0, 1000.0]))
        if self._base.is_argument:
            self.constructor.append(self._base)

    repeats = True

    def torch(self, names: Sequence[str]) -> str:
        x = names[0]
        return f"rotate({x}, {self._base.in_python})"

    # A function beside the class: see `preamble`.
    preamble = """def rotate(x, base):
    half = x.shape[-1] // 2
    steps = torch.arange(half, device=x.device, dtype=x.dtype) / half
    positions = torch.arange(x.shape[-2], device=x.device, dtype=x.dtype)
    speeds = torch.pow(torch.tensor(base, device=x.device, dtype=x.dtype), -steps)
    angles = positions[:, None] * speeds[None, :]
    first, second = x[..., :half], x[..., half:]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
"""

    def english(self, names: Sequence[str]) -> str:
        base = f"`{self._base.name}`" if self._base.is_argument else f"{self._base.value:g}"
        return (
            f"Rotate the halves of the last dimension of {names[0]} (rotary position "
            f"embedding): with position t (the "
            f"index of the second last dimension), half width H and angle a = t * {base} "
            f"** (-j / H), element j becomes "
            "x[j] cos a - x[j + H] sin a and element j + H becomes x[j + H] cos a + x[j] "
            "sin a, for j below H"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        x = names[0]
        return (
            rf"{out}_{{tj}} = {x}_{{tj}}\cos\theta_{{tj}} - {x}_{{t,j+H}}\sin\theta_{{tj}},\ "
            rf"{out}_{{t,j+H}} = {x}_{{t,j+H}}\cos\theta_{{tj}} + {x}_{{tj}}\sin\theta_{{tj}},\ "
            rf"\theta_{{tj}} = t\,{self._base.value:g}^{{-j/H}},\ 0 \le j < H = D/2"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        extents = [
            Extent("positions", f"x.size({x.rank - 2})"),
            Extent("half", f"x.size({x.rank - 1}) / 2"),
        ]
        arguments = [tensor("x", x), *self.constant_arguments([self._base], "float")]
        launch = self.launch(name, out, arguments, extents, epilogue)
        lines = [
            "const int column = i % (2 * half);",
            "const int position = i / (2 * half) % positions;",
            "const int j = column % half;",
            f"const float angle = position * powf({self._base.in_cuda}, -(float)j / half);",
            "const float other = column < half ? -x[i + half] : x[i - half];",
            "float v = x[i] * cosf(angle) + other * sinf(angle);",
        ]
        return cell_function(launch, "torch::empty_like(x)", lines, epilogue, style)


class Triangle(Op):
    """Keeps the lower or upper triangle of the last two dimensions.

    `fill`: what the rest becomes: 0, or minus infinity before a softmax.
    """

    styles = 2

    def __init__(self, context: Context, x: Value, lower: bool, infinite: bool = False) -> None:
        super().__init__(context, [x])
        self._lower, self._infinite = lower, infinite
        self.kind = "causal_mask" if infinite else ("tril" if lower else "triu")

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        return self._infinite

    def torch(self, names: Sequence[str]) -> str:
        x = names[0]
        if self._infinite:
            mask = f"torch.ones({x}.shape[-2:], device={x}.device).triu(1).bool()"
            return f'{x}.masked_fill({mask}, float("-inf"))'
        return f"torch.{self.kind}({x})"

    def english(self, names: Sequence[str]) -> str:
        x = names[0]
        if self._infinite:
            return (
                f"Replace the elements of {x} whose column is greater than their row by minus "
                f"infinity"
            )
        where = "greater" if self._lower else "smaller"
        return (
            f"Replace the elements of {x} whose column is {where} than their row (in the "
            f"last two dimensions) by zero"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        sign = r"\le" if self._lower else r"\ge"
        fill = r"-\infty" if self._infinite else "0"
        return rf"{out}_{{mn}} = {names[0]}_{{mn}} \text{{ if }} n {sign} m \text{{ else }} {fill}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        extents = [
            Extent("height", f"x.size({x.rank - 2})"),
            Extent("width", f"x.size({x.rank - 1})"),
        ]
        launch = self.launch(name, out, [tensor("x", x)], extents, epilogue)
        sign = "<=" if self._lower else ">="
        fill = "-INFINITY" if self._infinite else "0.0f"
        load = ELEMENTS[x.dtype].load("x[i]")
        lines = [
            "const int column = i % width;",
            "const int row = i / width % height;",
            f"float v = column {sign} row ? {load} : {fill};",
        ]
        return cell_function(launch, "torch::empty_like(x)", lines, epilogue, style)


class BroadcastOp(Op):
    """A value combined with another that has extent 1 where it is repeated, or lacks dimensions."""

    styles = 2

    def __init__(self, context: Context, x: Value, other: Value, operation: str) -> None:
        super().__init__(context, [x, other])
        self.kind = f"broadcast_{operation}"
        self._sign = {"add": "+", "multiply": "*", "subtract": "-"}[operation]
        self._operation = operation

    def torch(self, names: Sequence[str]) -> str:
        return f"{names[0]} {self._sign} {names[1]}"

    def english(self, names: Sequence[str]) -> str:
        x, other = names
        return {
            "add": f"Add {other} to {x}",
            "multiply": f"Multiply {x} by {other}",
            "subtract": f"Subtract {other} from {x}",
        }[self._operation] + f", {other} repeated where it has extent 1 or lacks leading dimensions"

    def latex(self, out: str, names: Sequence[str]) -> str:
        sign = {"+": "+", "-": "-", "*": r"\cdot"}[self._sign]
        return (
            rf"{out} = {names[0]} {sign} {names[1]} "
            rf"\quad\text{{({names[1]} repeated as in broadcasting)}}"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x, other = self.inputs
        offset = x.rank - other.rank
        extents = [Extent(f"d{d}", f"x.size({d})") for d in range(x.rank)]
        launch = self.launch(name, out, [tensor("x", x), tensor("other", other)], extents, epilogue)
        lines = coordinates([f"c{d}" for d in range(x.rank)], [f"d{d}" for d in range(x.rank)])
        place = "0"
        for d in range(other.rank):
            if other.sizes[d].full != 1:
                place = (
                    f"c{d + offset}"
                    if place == "0"
                    else f"({place}) * d{d + offset} + c{d + offset}"
                )
        lines.append(f"float v = x[i] {self._sign} other[{place}];")
        if x.rank == 1:
            lines = [f"float v = x[i] {self._sign} other[{place.replace('c0', 'i')}];"]
        return cell_function(launch, "torch::empty_like(x)", lines, epilogue, style)
