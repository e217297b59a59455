"""BatchNorm, GroupNorm and InstanceNorm over (batch, channels, ...)."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda import line
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.line import LineProgram, Pass, line_function
from kernelmosaic.generate.cuda.source import Extent, HostFunction
from kernelmosaic.generate.ops.base import Context, Op, extent_product, parameter, tensor
from kernelmosaic.generate.values import Value


class ChannelNorm(Op):
    """`form`: "batch" (statistics of the batch, as in training), "group", "instance"."""

    styles = line.STYLES

    def __init__(self, context: Context, x: Value, form: str, groups: int = 1) -> None:
        super().__init__(context, [x])
        self.kind = f"{form}_norm"
        self._form = form
        channels = x.sizes[1]
        spatial = x.rank - 2
        self._attribute = context.names.unique(
            context.draw.choice(
                [f"{form}_norm", "norm", {"batch": "bn", "group": "gn"}.get(form, "inorm")]
            )
        )
        self.constructor.append(channels)
        self._eps = 1e-5
        if form == "group":
            self._groups = context.constant("num_groups", groups)
            if self._groups.is_argument:
                self.constructor.append(self._groups)
            count = self._groups.name if self._groups.is_argument else groups
            module = f"nn.GroupNorm({count}, {channels.name})"
        else:
            affine = ", affine=True" if form == "instance" else ""
            kind = "Batch" if form == "batch" else "Instance"
            module = f"nn.{kind}Norm{max(spatial, 1)}d({channels.name}{affine})"
        self.init.append(f"self.{self._attribute} = {module}")
        if context.draw.chance(0.5):
            self.init.append(f"nn.init.normal_(self.{self._attribute}.weight, 1.0, 0.2)")
            self.init.append(f"nn.init.normal_(self.{self._attribute}.bias, 0.0, 0.2)")

    def torch(self, names: Sequence[str]) -> str:
        return f"self.{self._attribute}({names[0]})"

    def english(self, names: Sequence[str]) -> str:
        over = {
            "batch": "each channel (over the batch and all positions)",
            "group": (
                f"each sample and group of channels "
                f"({getattr(self, '_groups', None) and self._groups.value} groups)"
            ),
            "instance": "each sample and channel (over all positions)",
        }[self._form]
        return (
            f"Normalise {names[0]} over {over}: subtract the mean, divide by the square "
            f"root of the "
            f"variance (divided by the number of elements) plus {self._eps}; then multiply by "
            f"`self.{self._attribute}.weight` and add `self.{self._attribute}.bias`, one "
            f"for each channel"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        x = names[0]
        sets = {
            "batch": r"\{(n', c, s')\}\ \text{(all } n', s')",
            "group": r"\{(n, c', s') : c' \text{ in the group of } c\}",
            "instance": r"\{(n, c, s')\}\ \text{(all } s')",
        }[self._form]
        if self._form == "group":
            sets += rf",\ {self._groups.value}\text{{ groups of adjacent channels}}"
        return (
            rf"{out}_{{ncs}} = "
            rf"\gamma_c\,\frac{{{x}_{{ncs}} - \mu}}{{\sqrt{{\sigma^2 + 10^{{-5}}}}}} + \beta_c,"
            rf"\quad \mu, \sigma^2 \text{{ mean and (biased) variance of }} {x} "
            rf"\text{{ over }} {sets}"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        spatial = extent_product("x", 2, x.rank)
        extents = [Extent("channels", "x.size(1)"), Extent("spatial", spatial)]
        if self._form == "batch":
            index = "((int64_t)(r / spatial) * channels + line) * spatial + r % spatial"
            channel, lines, length = "line", "x.size(1)", f"x.size(0) * {spatial}"
        elif self._form == "instance":
            index, channel = "line * length + r", "line % channels"
            lines, length = "x.size(0) * x.size(1)", spatial
        else:
            extents.append(Extent("per_group", "x.size(1) / num_groups"))
            index = "line * length + r"
            channel = "line * per_group % channels + r / spatial"
            lines, length = "x.size(0) * num_groups", f"x.size(1) / num_groups * {spatial}"
        arguments = [
            tensor("x", x),
            parameter("gain", f"self.{self._attribute}.weight", "float32"),
            parameter("shift", f"self.{self._attribute}.bias", "float32"),
        ]
        launch = self.launch(name, out, arguments, extents, epilogue)
        if self._form == "group":
            # The host needs the number of groups, the kernel does not.
            launch.host_only.append(("num_groups", f"self.{self._attribute}.num_groups"))
        program = LineProgram(
            (f"float v = x[{index}];",),
            index,
            (
                Pass("mean", "sum", "v", ("mean /= length;",)),
                Pass(
                    "squares",
                    "sum",
                    "(v - mean) * (v - mean)",
                    (f"const float factor = 1.0f / sqrtf(squares / length + {self._eps}f);",),
                ),
            ),
            f"(v - mean) * factor * gain[{channel}] + shift[{channel}]",
            True,
        )
        return line_function(
            launch, "torch::empty_like(x)", lines, length, program, epilogue, style
        )
