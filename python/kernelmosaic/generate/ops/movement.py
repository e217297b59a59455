"""Operators that move elements: permutations, joins, gathers, gates, masks, resampling."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda.cell import cell_function, coordinates
from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.source import ELEMENTS, Argument, Extent, HostFunction, indent
from kernelmosaic.generate.ops.base import Context, Op, extent_product, like, tensor
from kernelmosaic.generate.values import Constant, Size, Value


class Permute(Op):
    """Dimensions in another order, made contiguous."""

    def __init__(self, context: Context, x: Value, order: Sequence[int]) -> None:
        super().__init__(context, [x])
        self._order = tuple(order)
        self._last_two = self._order == (*range(x.rank - 2), x.rank - 1, x.rank - 2)
        self.kind = "transpose" if self._last_two else "permute"
        self.styles = 3 if self._last_two else 2
        self._form = context.draw.integer(0, 2)

    @property
    def sizes(self) -> tuple[Size, ...]:
        return tuple(self.inputs[0].sizes[d] for d in self._order)

    def torch(self, names: Sequence[str]) -> str:
        if self._last_two and self._form == 0:
            return f"{names[0]}.transpose(-2, -1).contiguous()"
        if self._form == 1:
            return f"torch.permute({names[0]}, {self._order}).contiguous()"
        return f"{names[0]}.permute({', '.join(map(str, self._order))}).contiguous()"

    def english(self, names: Sequence[str]) -> str:
        return (
            f"Reorder the dimensions of {names[0]}: dimension d of the result is "
            f"dimension {list(self._order)}[d] of {names[0]}; the result is contiguous"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        letters = "ijklm"[: len(self._order)]
        moved = "".join(letters[d] for d in self._order)
        return f"{out}_{{{moved}}} = {names[0]}_{{{letters}}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        rank = x.rank
        extents = [Extent(f"d{d}", f"x.size({d})") for d in range(rank)]
        launch = self.launch(name, out, [tensor("x", x)], extents, epilogue)
        output = like("x", [f"x.size({d})" for d in self._order])
        load = ELEMENTS[x.dtype].load
        if style == 2 and self._last_two:
            rows, columns = f"d{rank - 2}", f"d{rank - 1}"
            code = [
                "__shared__ float tile[32][33];",
                f"const int64_t start = (int64_t)blockIdx.z * {rows} * {columns};",
                "int row = blockIdx.y * 32 + threadIdx.y;",
                "int column = blockIdx.x * 32 + threadIdx.x;",
                "for (int k = 0; k < 32; k += 8) {",
                f"    if (row + k < {rows} && column < {columns}) {{",
                f"        tile[threadIdx.y + k][threadIdx.x] = "
                f"{load(f'x[start + (int64_t)(row + k) * {columns} + column]')};",
                "    }",
                "}",
                "__syncthreads();",
                "row = blockIdx.x * 32 + threadIdx.y;",
                "column = blockIdx.y * 32 + threadIdx.x;",
                "for (int k = 0; k < 32; k += 8) {",
                f"    if (row + k < {columns} && column < {rows}) {{",
                "        float v = tile[threadIdx.x][threadIdx.y + k];",
                f"        const int64_t i = start + (int64_t)(row + k) * {rows} + column;",
                *["        " + text for text in epilogue.lines("i")],
                f"        y[i] = {launch.element.store('v')};",
                "    }",
                "}",
            ]
            device = f"__global__ void {name}_kernel({launch.parameters}) {{\n{indent(code, 1)}}}\n"
            host = [
                *launch.prologue(),
                *launch.allocate(output),
                "const dim3 threads(32, 8);",
                f"const dim3 blocks(({columns} + 31) / 32, ({rows} + 31) / 32, "
                f"{extent_product('x', 0, rank - 2)});",
                f"{name}_kernel<<<blocks, threads>>>({launch.passed});",
                "return y;",
            ]
            return launch.finish(device, host)
        names = [f"c{d}" for d in self._order]
        place = "c0"
        for d in range(1, rank):
            place = f"({place} * (int64_t)d{d} + c{d})" if d == 1 else f"({place} * d{d} + c{d})"
        lines = coordinates(names, [f"d{d}" for d in self._order])
        lines.append(f"float v = {load(f'x[{place[1:-1]}]')};")
        return cell_function(launch, output, lines, epilogue, min(style, 1))


class Concat(Op):
    """Two values joined along a dimension."""

    kind = "concat"
    styles = 2

    def __init__(self, context: Context, a: Value, b: Value, dim: int) -> None:
        super().__init__(context, [a, b])
        self._dim = dim
        self._written = dim - a.rank if context.draw.chance(0.3) else dim

    @property
    def sizes(self) -> tuple[Size, ...]:
        a, b = (v.sizes[self._dim] for v in self.inputs)
        sizes = list(self.inputs[0].sizes)
        sizes[self._dim] = Size(
            f"{a.name}_joined",
            a.full + b.full,
            a.scaled + b.scaled,
            f"{a.name} + {b.name}",
            (a, b),
        )
        return tuple(sizes)

    def torch(self, names: Sequence[str]) -> str:
        return f"torch.cat([{names[0]}, {names[1]}], dim={self._written})"

    def english(self, names: Sequence[str]) -> str:
        return f"Join {names[0]} and {names[1]}, in this order, along dimension {self._dim}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        return (
            rf"{out} = [\,{names[0]}\;;\;{names[1]}\,] "
            rf"\quad\text{{(joined along dimension {self._dim})}}"
        )

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        a, b = self.inputs
        extents = [
            Extent("left", f"a.size({self._dim})"),
            Extent("right", f"b.size({self._dim})"),
            Extent("inner", extent_product("a", self._dim + 1, a.rank)),
        ]
        launch = self.launch(name, out, [tensor("a", a), tensor("b", b)], extents, epilogue)
        load = ELEMENTS[a.dtype].load
        lines = [
            "const int64_t inside = i % inner;",
            "const int64_t c = i / inner % (left + right);",
            "const int64_t outer = i / inner / (left + right);",
            f"float v = c < left ? {load('a[(outer * left + c) * inner + inside]')}",
            f"                   : {load('b[(outer * right + c - left) * inner + inside]')};",
        ]
        shape = [f"a.size({d})" for d in range(a.rank)]
        shape[self._dim] = "left + right"
        return cell_function(launch, like("a", shape), lines, epilogue, style)


class Upsample(Op):
    """Nearest-neighbour upsampling of (batch, channels, height, width) by a whole factor."""

    kind = "upsample"
    styles = 2

    def __init__(self, context: Context, x: Value, factor: int) -> None:
        super().__init__(context, [x])
        self._factor = context.constant("scale_factor", factor)
        if self._factor.is_argument:
            self.constructor.append(self._factor)

    @property
    def sizes(self) -> tuple[Size, ...]:
        factor = int(self._factor.value)  # type: ignore[arg-type]
        x = self.inputs[0]
        return (
            *x.sizes[:2],
            *[Size(f"{s.name}_out", s.full * factor, s.scaled * factor) for s in x.sizes[2:]],
        )

    def torch(self, names: Sequence[str]) -> str:
        return f'F.interpolate({names[0]}, scale_factor={self._factor.in_python}, mode="nearest")'

    def english(self, names: Sequence[str]) -> str:
        return (
            f"Repeat each element of {names[0]} {self._factor.value} times along both "
            f"height and width (nearest-neighbour upsampling)"
        )

    def latex(self, out: str, names: Sequence[str]) -> str:
        f = self._factor.value
        return rf"{out}_{{nchw}} = {names[0]}_{{n,c,\lfloor h/{f}\rfloor,\lfloor w/{f}\rfloor}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        factor = Argument("int", "factor", self._factor.in_python)
        extents = [Extent("height", "x.size(2)"), Extent("width", "x.size(3)")]
        launch = self.launch(name, out, [tensor("x", x), factor], extents, epilogue)
        lines = [
            "const int64_t w = i % (width * factor) / factor;",
            "const int64_t h = i / (width * factor) % (height * factor) / factor;",
            "const int64_t plane = i / (width * factor) / (height * factor);",
            "float v = x[(plane * height + h) * width + w];",
        ]
        shape = ["x.size(0)", "x.size(1)", "height * factor", "width * factor"]
        return cell_function(launch, like("x", shape), lines, epilogue, style)


class Rearrange(Op):
    """flip, roll and zero padding along the last dimension; pixel shuffle."""

    styles = 2

    def __init__(self, context: Context, x: Value, form: str, amount: int = 1) -> None:
        super().__init__(context, [x])
        self.kind = form
        names = {
            "roll": "shift_by",
            "pad": "padding",
            "pixel_shuffle": "upscale_factor",
            "flip": "n",
        }
        self._amount = Constant(names[form], amount)
        if form != "flip":
            self._amount = context.constant(names[form], amount)
            if self._amount.is_argument:
                self.constructor.append(self._amount)

    @property
    def sizes(self) -> tuple[Size, ...]:
        sizes = list(self.inputs[0].sizes)
        amount = int(self._amount.value)  # type: ignore[arg-type]
        if self.kind == "pad":
            last = sizes[-1]
            sizes[-1] = Size(f"{last.name}_out", last.full + 2 * amount, last.scaled + 2 * amount)
        if self.kind == "pixel_shuffle":
            c, h, w = sizes[1:]
            square = amount * amount
            sizes[1] = Size(f"{c.name}_out", c.full // square, c.scaled // square)
            sizes[2] = Size(f"{h.name}_out", h.full * amount, h.scaled * amount)
            sizes[3] = Size(f"{w.name}_out", w.full * amount, w.scaled * amount)
        return tuple(sizes)

    def torch(self, names: Sequence[str]) -> str:
        x, amount = names[0], self._amount.in_python
        return {
            "flip": f"torch.flip({x}, dims=[-1])",
            "roll": f"torch.roll({x}, shifts={amount}, dims=-1)",
            "pad": f"F.pad({x}, ({amount}, {amount}))",
            "pixel_shuffle": f"F.pixel_shuffle({x}, {amount})",
        }[self.kind]

    def english(self, names: Sequence[str]) -> str:
        x = names[0]
        amount = f"`{self._amount.name}`" if self._amount.is_argument else f"{self._amount.value}"
        return {
            "flip": f"Reverse the order of {x} along the last dimension",
            "roll": (
                f"Shift {x} along the last dimension by {amount} places to higher indices; "
                f"what leaves at the end comes in at the front"
            ),
            "pad": f"Put {amount} zeros before and after {x} along the last dimension",
            "pixel_shuffle": (
                f"Rearrange {x} (n, c r r, h, w) to (n, c, h r, w r) with r = {amount} (pixel "
                f"shuffle)"
            ),
        }[self.kind]

    def latex(self, out: str, names: Sequence[str]) -> str:
        x, a = names[0], self._amount.value
        return {
            "flip": rf"{out}_{{\cdot j}} = {x}_{{\cdot,\,N-1-j}}",
            "roll": rf"{out}_{{\cdot j}} = {x}_{{\cdot,\,(j - {a}) \bmod N}}",
            "pad": (
                rf"{out}_{{\cdot j}} = {x}_{{\cdot,\,j - {a}}} "
                rf"\text{{ where it exists, else }} 0"
            ),
            "pixel_shuffle": (
                rf"{out}_{{n,c,hr+a,wr+b}} = {x}_{{n,\,cr^2 + ar + b,\,h,\,w}},\quad r = "
                rf"{a},\ 0 \le a, b < r"
            ),
        }[self.kind]

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        load = ELEMENTS[x.dtype].load
        arguments = [tensor("x", x)]
        if self.kind != "flip":
            arguments.append(Argument("int", "amount", self._amount.in_python))
        if self.kind == "pixel_shuffle":
            extents = [
                Extent(e, f"x.size({d})") for d, e in enumerate(["depth", "height", "width"], 1)
            ]
            lines = [
                "const int64_t w = i % (width * amount);",
                "const int64_t h = i / (width * amount) % (height * amount);",
                "const int64_t plane = i / (width * amount) / (height * amount);",
                "const int64_t sample = plane / (depth / (amount * amount));",
                "const int64_t c = plane % (depth / (amount * amount));",
                "const int64_t source = (c * amount + h % amount) * amount + w % amount;",
                "const int64_t row = (sample * depth + source) * height + h / amount;",
                f"float v = {load('x[row * width + w / amount]')};",
            ]
            shape = ["x.size(0)", "depth / (amount * amount)", "height * amount", "width * amount"]
        else:
            extents = [Extent("width", f"x.size({x.rank - 1})")]
            lines = {
                "flip": [
                    f"float v = {load('x[i / width * width + (width - 1 - i % width)]')};",
                ],
                "roll": [
                    "const int64_t from = (i % width - amount % width + width) % width;",
                    f"float v = {load('x[i / width * width + from]')};",
                ],
                "pad": [
                    "const int64_t j = i % (width + 2 * amount) - amount;",
                    "const int64_t row = i / (width + 2 * amount);",
                    f"float v = j >= 0 && j < width ? {load('x[row * width + j]')} : 0.0f;",
                ],
            }[self.kind]
            shape = [f"x.size({d})" for d in range(x.rank - 1)]
            shape.append("width + 2 * amount" if self.kind == "pad" else "width")
        launch = self.launch(name, out, arguments, extents, epilogue)
        shape = [s.replace("amount", "(int)amount") for s in shape]
        return cell_function(launch, like("x", shape), lines, epilogue, style)


class View(Op):
    """Another shape over the same elements: nothing is computed."""

    kind = "view"
    fuses = False
    repeats = True

    def __init__(
        self, context: Context, x: Value, sizes: Sequence[Size], torch: str, words: str
    ) -> None:
        super().__init__(context, [x])
        self._sizes, self._torch, self._words = tuple(sizes), torch, words

    @property
    def sizes(self) -> tuple[Size, ...]:
        return self._sizes

    def torch(self, names: Sequence[str]) -> str:
        return self._torch.format(x=names[0])

    def english(self, names: Sequence[str]) -> str:
        return f"{self._words} of {names[0]}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        shape = r" \times ".join(str(s.name).replace("_", r"\_") for s in self._sizes)
        return rf"{out} = {names[0]} \text{{ seen as }} \text{{{shape}}} \text{{ (row-major)}}"
