"""Pooling over windows and over all positions."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda.cell import cell_function, coordinates
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.line import LineProgram, Pass, line_function
from kernelmosaic.generate.cuda.source import Argument, Extent, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, extent_product, like, tensor
from kernelmosaic.generate.ops.windows import output_extent
from kernelmosaic.generate.values import Constant, Size, Value


class Pool(Op):
    """Max or average pooling."""

    styles = 2

    def __init__(
        self,
        context: Context,
        x: Value,
        form: str,
        kernel_size: int,
        stride: int,
        padding: int = 0,
        dilation: int = 1,
    ) -> None:
        super().__init__(context, [x])
        self._rank, self._form = x.rank - 2, form
        self.kind = f"{form}_pool{self._rank}d"
        numbers = [("kernel_size", kernel_size), ("stride", stride), ("padding", padding)]
        if form == "max" and dilation != 1:
            numbers.append(("dilation", dilation))
        self._kernel, self._stride, self._padding = kernel_size, stride, padding
        self._dilation = dilation if form == "max" else 1
        self._constants = {
            name: context.constant(name, value)
            for name, value in numbers
            if name == "kernel_size" or value != 0
        }
        self.constructor += [c for c in self._constants.values() if c.is_argument]
        self._attribute = ""
        if not context.functional or (form == "avg" and self._rank == 3):
            self._attribute = context.names.unique(context.draw.choice(["pool", self.kind]))
            parts = [
                f"{n}={c.name if c.is_argument else c.value}" for n, c in self._constants.items()
            ]
            module = "nn.MaxPool" if form == "max" else "nn.AvgPool"
            self.init.append(f"self.{self._attribute} = {module}{self._rank}d({', '.join(parts)})")

    @property
    def sizes(self) -> tuple[Size, ...]:
        x = self.inputs[0]

        def extent(value: int) -> int:
            return output_extent(value, self._kernel, self._stride, self._padding, self._dilation)

        return (
            *x.sizes[:2],
            *[Size(f"{s.name}_out", extent(s.full), extent(s.scaled)) for s in x.sizes[2:]],
        )

    def torch(self, names: Sequence[str]) -> str:
        if self._attribute:
            return f"self.{self._attribute}({names[0]})"
        parts = [f"{n}={c.in_python}" for n, c in self._constants.items()]
        return f"F.{self.kind}({names[0]}, {', '.join(parts)})"

    def english(self, names: Sequence[str]) -> str:
        what = "maximum" if self._form == "max" else "average (padding counts as zeros)"
        dilation = f", dilation {self._dilation}" if self._dilation != 1 else ""
        return (
            f"Take the {what} of {names[0]} over windows of {self._kernel} in each of the last "
            f"{self._rank} dimension{'s' if self._rank > 1 else ''}, stride {self._stride}, "
            f"padding {self._padding}{dilation}"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        x = names[0]
        index = f"nc,\\,{self._stride}t + {self._dilation}k - {self._padding}"
        range_ = rf"k \in \{{0..{self._kernel - 1}\}}^{self._rank}"
        if self._form == "max":
            return (
                rf"{out}_{{nct}} = \max_{{{range_}}} {x}_{{{index}}} "
                rf"\quad\text{{(places outside do not count)}}"
            )
        share = self._kernel**self._rank
        return (
            rf"{out}_{{nct}} = \frac{{1}}{{{share}}}\sum_{{{range_}}} {x}_{{{index}}} "
            rf"\quad\text{{(0 outside)}}"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        rank = self._rank
        arguments = [tensor("x", self.inputs[0])]
        for key, value in (
            ("kernel_size", self._kernel),
            ("stride", self._stride),
            ("padding", self._padding),
            ("dilation", self._dilation),
        ):
            constant = self._constants.get(key, Constant(key, value))
            arguments.append(Argument("int", key, constant.in_python))
        extents = [Extent(f"in{d}", f"x.size({2 + d})") for d in range(rank)]
        rule = (
            "(in{d} + 2 * (int)padding - (int)dilation * ((int)kernel_size - 1) - 1) / "
            "(int)stride + 1"
        )
        extents += [Extent(f"out{d}", rule.format(d=d)) for d in range(rank)]
        launch = self.launch(name, out, arguments, extents, epilogue)
        names = ["plane", *[f"p{d}" for d in range(rank)]]
        lines = coordinates(names, ["", *[f"out{d}" for d in range(rank)]])
        lines.append(f"float v = {'-INFINITY' if self._form == 'max' else '0.0f'};")
        depth = 0
        for d in range(rank):
            lines.append("    " * depth + f"for (int k{d} = 0; k{d} < kernel_size; ++k{d}) {{")
            depth += 1
            lines.append(
                "    " * depth + f"const int q{d} = p{d} * stride - padding + k{d} * dilation;"
            )
            lines.append("    " * depth + f"if (q{d} < 0 || q{d} >= in{d}) continue;")
        place = "(int64_t)plane"
        for d in range(rank):
            place = f"({place} * in{d} + q{d})"
        element = f"x[{place[1:-1]}]"
        update = f"v = fmaxf(v, {element});" if self._form == "max" else f"v += {element};"
        lines.append("    " * depth + update)
        lines += ["    " * d + "}" for d in range(depth - 1, -1, -1)]
        if self._form == "avg":
            lines.append(f"v = v / ({' * '.join(['kernel_size'] * rank)});")
        shape = ["x.size(0)", "x.size(1)", *[f"out{d}" for d in range(rank)]]
        return cell_function(launch, like("x", shape), lines, epilogue, style)


class GlobalPool(Op):
    """Mean or maximum over all positions of each channel."""

    styles = 3

    def __init__(self, context: Context, x: Value, form: str, keep: bool) -> None:
        super().__init__(context, [x])
        self._form, self._keep = form, keep
        self.kind = f"global_{form}_pool"
        self._rank = x.rank - 2
        self._adaptive = context.draw.chance(0.5) and form != "max"

    @property
    def sizes(self) -> tuple[Size, ...]:
        ones = (Size("1", 1, 1),) * self._rank if self._keep else ()
        return (*self.inputs[0].sizes[:2], *ones)

    def torch(self, names: Sequence[str]) -> str:
        x = names[0]
        dims = ", ".join(str(2 + d) for d in range(self._rank))
        dims = f"({dims})" if self._rank > 1 else dims
        keep = ", keepdim=True" if self._keep else ""
        if self._form == "max":
            return f"torch.amax({x}, dim={dims}{keep})"
        if self._adaptive:
            text = f"F.adaptive_avg_pool{self._rank}d({x}, 1)"
            return text if self._keep else f"{text}.flatten(1)"
        return f"{x}.mean(dim={dims}{keep})"

    def english(self, names: Sequence[str]) -> str:
        what = "mean" if self._form == "avg" else "maximum"
        keep = ", keeping them with extent 1" if self._keep else ""
        return (
            f"Take the {what} of {names[0]} over its last {self._rank} "
            f"dimension{'s' if self._rank > 1 else ''}{keep}"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        what = r"\frac1S\sum_s" if self._form == "avg" else r"\max_s"
        return (
            rf"{out}_{{nc}} = {what} {names[0]}_{{ncs}} \quad\text{{($s$ runs over all positions)}}"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        launch = self.launch(name, out, [tensor("x", x)], [], epilogue)
        mean = self._form == "avg"
        step = Pass("total", "sum", "v") if mean else Pass("largest", "max", "v")
        program = LineProgram(
            ("float v = x[line * length + r];",),
            "line * length + r",
            (step,),
            "total / length" if mean else "largest",
            False,
        )
        ones = ["1"] * self._rank if self._keep else []
        output = like("x", ["x.size(0)", "x.size(1)", *ones])
        length = extent_product("x", 2, x.rank)
        return line_function(
            launch, output, "x.size(0) * x.size(1)", length, program, epilogue, style
        )
