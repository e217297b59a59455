"""Convolutions, transposed convolutions and pooling over one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from kernelmosaic.generate.cuda.cell import cell_function, coordinates
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.source import Argument, Extent, HostFunction, Launch, indent
from kernelmosaic.generate.ops.base import Context, Op, like, parameter, tensor
from kernelmosaic.generate.values import Size, Value

Window = Union[int, tuple[int, ...]]


def each(value: Window, rank: int) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,) * rank


def output_extent(extent: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def transposed_extent(
    extent: int, kernel: int, stride: int, padding: int, dilation: int, output_padding: int
) -> int:
    return (extent - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1


class Convolution(Op):
    """nn.ConvNd or nn.ConvTransposeNd. The window's numbers are ints or tuples."""

    def __init__(
        self,
        context: Context,
        x: Value,
        channels: Size,
        kernel_size: Window,
        stride: Window = 1,
        padding: Window = 0,
        dilation: Window = 1,
        groups: int = 1,
        bias: bool = True,
        transposed: bool = False,
        output_padding: int = 0,
    ) -> None:
        super().__init__(context, [x])
        self._rank = x.rank - 2
        self._channels, self._transposed, self._bias = channels, transposed, bias
        self._window = [each(w, self._rank) for w in (kernel_size, stride, padding, dilation)]
        self._output_padding, self._groups = output_padding, groups
        kind = "conv_transpose" if transposed else "conv"
        self.kind = f"{kind}{self._rank}d"
        self.styles = 2 if transposed else 3
        base = context.draw.choice(["conv", self.kind])
        self._attribute = context.names.unique(base)
        named: list[tuple[str, Window, Window]] = [
            ("kernel_size", kernel_size, 0),
            ("stride", stride, 1),
            ("padding", padding, 0),
            ("dilation", dilation, 1),
        ]
        if transposed:
            named.insert(3, ("output_padding", output_padding, 0))
        named.append(("groups", groups, 1))
        self.constructor += [x.sizes[1], channels]
        parts = [x.sizes[1].name, channels.name]
        for name, value, default in named:
            if value == default and not context.draw.chance(0.15):
                continue
            constant = context.constant(name, value)
            if constant.is_argument:
                self.constructor.append(constant)
            text = constant.name if constant.is_argument else repr(value)
            parts.append(text if name == "kernel_size" else f"{name}={text}")
        if not bias:
            parts.append("bias=False")
        module = f"nn.Conv{'Transpose' if transposed else ''}{self._rank}d"
        self.init.append(f"self.{self._attribute} = {module}({', '.join(parts)})")

    @property
    def sizes(self) -> tuple[Size, ...]:
        x = self.inputs[0]
        spatial = []
        for d, size in enumerate(x.sizes[2:]):
            full, scaled = (self._extent(value, d) for value in (size.full, size.scaled))
            spatial.append(Size(f"{size.name}_out", full, scaled))
        return (x.sizes[0], self._channels, *spatial)

    def _extent(self, value: int, d: int) -> int:
        """Of the output along spatial dimension `d`, for an input of `value`."""
        kernel, stride, padding, dilation = (w[d] for w in self._window)
        if not self._transposed:
            return output_extent(value, kernel, stride, padding, dilation)
        return transposed_extent(value, kernel, stride, padding, dilation, self._output_padding)

    def torch(self, names: Sequence[str]) -> str:
        return f"self.{self._attribute}({names[0]})"

    def english(self, names: Sequence[str]) -> str:
        kernel, stride, padding, dilation = self._window
        what = "transposed convolution" if self._transposed else "convolution"
        more = f", output padding {self._output_padding}" if self._output_padding else ""
        return (
            f"Apply a {self._rank}D {what} to {names[0]} with `self.{self._attribute}.weight`"
            f"{f' and `self.{self._attribute}.bias`' if self._bias else ', no bias'}: "
            f"kernel {_by(kernel)}, "
            f"stride {_by(stride)}, zero padding {_by(padding)}{more}, dilation {_by(dilation)}, "
            f"{self._groups} group{'' if self._groups == 1 else 's'} of channels"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        kernel, stride, padding, dilation = self._window
        x = names[0]
        bias = " + b_o" if self._bias else ""
        numbers = (
            rf"s = {_tex(stride)},\ p = {_tex(padding)},\ d = {_tex(dilation)},\ k \in "
            + r"\times".join(rf"\{{0..{k - 1}\}}" for k in kernel)
            + rf",\ {self._groups}\text{{ groups}}"
        )
        if self._transposed:
            rule = rf"\sum_{{c,\,q,\,k:\ q s + k d - p = t}} {x}_{{ncq}}\,W_{{cok}}{bias}"
            if self._output_padding:
                numbers += rf",\ \text{{output padding }}{self._output_padding}"
        else:
            rule = rf"\sum_{{c,\,k}} {x}_{{n,\,c,\,t s + k d - p}}\,W_{{ock}}{bias}"
        return rf"{out}_{{not}} = {rule}, \quad {numbers}, \quad {x} = 0 \text{{ outside}}"

    def _numbers(self) -> list[Argument]:
        """Stride, padding and dilation of each dimension, as the module holds them."""
        return [
            Argument("int", f"{name}{d}", f"self.{self._attribute}.{name}[{d}]")
            for name in ("stride", "padding", "dilation")
            for d in range(self._rank)
        ]

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x, rank = self.inputs[0], self._rank
        weight = parameter("weight", f"self.{self._attribute}.weight", x.dtype)
        arguments = [tensor("x", x), weight]
        if self._bias:
            arguments.append(parameter("layer_bias", f"self.{self._attribute}.bias", x.dtype))
        arguments += self._numbers()
        extents = [Extent("channels_in", "x.size(1)")]
        extents += [Extent(f"in{d}", f"x.size({2 + d})") for d in range(rank)]
        extents += [Extent(f"kernel{d}", f"weight.size({2 + d})") for d in range(rank)]
        shape = ["x.size(0)"]
        if self._transposed:
            extents.append(Extent("group_out", "weight.size(1)"))
            extents.append(Extent("channels_out", "weight.size(1) * groups"))
            shape.append("channels_out")
            for d in range(rank):
                rule = (
                    f"(in{d} - 1) * (int)stride{d} - 2 * (int)padding{d}"
                    f" + (int)dilation{d} * (kernel{d} - 1) + (int)output_padding{d} + 1"
                )
                extents.append(Extent(f"out{d}", rule))
        else:
            extents.append(Extent("group_in", "weight.size(1)"))
            extents.append(Extent("channels_out", "weight.size(0)"))
            shape.append("channels_out")
            for d in range(rank):
                rule = (
                    f"(in{d} + 2 * (int)padding{d} - (int)dilation{d} * (kernel{d} - 1) - 1)"
                    f" / (int)stride{d} + 1"
                )
                extents.append(Extent(f"out{d}", rule))
        shape += [f"out{d}" for d in range(rank)]
        launch = self.launch(name, out, arguments, extents, epilogue)
        if self._transposed:
            launch.host_only.append(("groups", f"self.{self._attribute}.groups"))
            for d in range(rank):
                source = f"self.{self._attribute}.output_padding[{d}]"
                launch.host_only.append((f"output_padding{d}", source))
        output = like("x", shape)
        if style == 2 and not self._transposed:
            return self._shared_weights(launch, output, epilogue)
        names = ["n_", "o", *[f"p{d}" for d in range(rank)]]
        bounds = ["", "channels_out", *[f"out{d}" for d in range(rank)]]
        start = "layer_bias[o]" if self._bias else "0.0f"
        lines = [*coordinates(names, bounds), f"float v = {start};"]
        lines += self._transposed_sum() if self._transposed else self._direct_sum("weight", True)
        return cell_function(launch, output, lines, epilogue, min(style, 1))

    def _direct_sum(self, weight: str, whole: bool) -> list[str]:
        """`whole`: weights are addressed by output channel, else they are one channel's."""
        rank = self._rank
        lines = [
            "const int first = o / (channels_out / (channels_in / group_in)) * group_in;",
            "for (int c = 0; c < group_in; ++c) {",
        ]
        depth = 1
        for d in range(rank):
            lines.append("    " * depth + f"for (int k{d} = 0; k{d} < kernel{d}; ++k{d}) {{")
            depth += 1
            position = f"p{d} * stride{d} - padding{d} + k{d} * dilation{d}"
            lines.append("    " * depth + f"const int q{d} = {position};")
            lines.append("    " * depth + f"if (q{d} < 0 || q{d} >= in{d}) continue;")
        place = "((int64_t)n_ * channels_in + first + c)"
        tap = "((int64_t)o * group_in + c)" if whole else "c"
        for d in range(rank):
            place = f"({place} * in{d} + q{d})"
            tap = f"({tap} * kernel{d} + k{d})"
        lines.append("    " * depth + f"v += x[{place[1:-1]}] * {weight}[{tap[1:-1]}];")
        return lines + ["    " * d + "}" for d in range(depth - 1, -1, -1)]

    def _transposed_sum(self) -> list[str]:
        rank = self._rank
        lines = [
            "const int group = o / group_out;",
            "const int group_in = channels_in / (channels_out / group_out);",
            "for (int c = group * group_in; c < (group + 1) * group_in; ++c) {",
        ]
        depth = 1
        for d in range(rank):
            lines.append("    " * depth + f"for (int k{d} = 0; k{d} < kernel{d}; ++k{d}) {{")
            depth += 1
            lines.append(
                "    " * depth + f"const int s{d} = p{d} + padding{d} - k{d} * dilation{d};"
            )
            lines.append(
                "    " * depth
                + f"if (s{d} < 0 || s{d} % stride{d} != 0 || s{d} / stride{d} >= in{d}) continue;"
            )
        place = "((int64_t)n_ * channels_in + c)"
        tap = "((int64_t)c * group_out + o - group * group_out)"
        for d in range(rank):
            place = f"({place} * in{d} + s{d} / stride{d})"
            tap = f"({tap} * kernel{d} + k{d})"
        lines.append("    " * depth + f"v += x[{place[1:-1]}] * weight[{tap[1:-1]}];")
        return lines + ["    " * d + "}" for d in range(depth - 1, -1, -1)]

    def _shared_weights(self, launch: Launch, output: str, epilogue: Epilogue) -> HostFunction:
        """A block makes one output channel of one sample; its weights are in shared memory."""
        rank = self._rank
        spatial = " * ".join(f"out{d}" for d in range(rank))
        taps = "group_in * " + " * ".join(f"kernel{d}" for d in range(rank))
        start = "layer_bias[o]" if self._bias else "0.0f"
        bounds = [f"out{d}" for d in range(rank)]
        body = [
            *coordinates([f"p{d}" for d in range(rank)], bounds, "s"),
            f"float v = {start};",
            *self._direct_sum("taps", False),
            "const int64_t i = (int64_t)blockIdx.x * positions + s;",
            *epilogue.lines("i"),
            f"y[i] = {launch.element.store('v')};",
        ]
        code = [
            "extern __shared__ float taps[];",
            "const int n_ = blockIdx.x / channels_out;",
            "const int o = blockIdx.x % channels_out;",
            f"const int count = {taps};",
            "for (int t = threadIdx.x; t < count; t += blockDim.x) {",
            "    taps[t] = weight[(int64_t)o * count + t];",
            "}",
            "__syncthreads();",
            f"const int positions = {spatial};",
            "for (int s = threadIdx.x; s < positions; s += blockDim.x) {",
            *["    " + line for line in body],
            "}",
        ]
        device = f"__global__ void {launch.name}_kernel({launch.parameters}) {{\n"
        device += indent(code, 1) + "}\n"
        host = [
            *launch.prologue(),
            *launch.allocate(output),
            "const int64_t blocks = x.size(0) * channels_out;",
            f"const size_t shared_bytes = sizeof(float) * {taps};",
            f"{launch.name}_kernel<<<blocks, {launch.threads}, shared_bytes>>>({launch.passed});",
            "return y;",
        ]
        return launch.finish(device, host)


def _by(window: tuple[int, ...]) -> str:
    return " x ".join(map(str, window)) if len(set(window)) > 1 else str(window[0])


def _tex(window: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, window))})" if len(set(window)) > 1 else str(window[0])
