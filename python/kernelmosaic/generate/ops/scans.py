"""Running sums and products along a dimension."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda.epilogue import NOTHING, Epilogue
from kernelmosaic.generate.cuda.source import ELEMENTS, Extent, HostFunction, indent
from kernelmosaic.generate.ops.base import Context, extent_product, tensor
from kernelmosaic.generate.ops.lines import LineOp
from kernelmosaic.generate.values import Value

FORMS = ("cumsum", "cumprod", "reverse_cumsum", "exclusive_cumsum", "cummax")


class Scan(LineOp):
    styles = 2

    def __init__(self, context: Context, x: Value, dim: int, form: str) -> None:
        super().__init__(context, x, dim)
        self.kind = form
        self._method = context.draw.chance(0.4)

    def torch(self, names: Sequence[str]) -> str:
        x, d = names[0], self.dim_constant.in_python
        if self.kind == "reverse_cumsum":
            return f"torch.flip(torch.cumsum(torch.flip({x}, dims=[{d}]), dim={d}), dims=[{d}])"
        if self.kind == "exclusive_cumsum":
            return f"torch.cumsum({x}, dim={d}) - {x}"
        if self.kind == "cummax":
            return f"torch.cummax({x}, dim={d}).values"
        return f"{x}.{self.kind}(dim={d})" if self._method else f"torch.{self.kind}({x}, dim={d})"

    @property
    def repeats(self) -> bool:  # type: ignore[override]
        return self.kind == "exclusive_cumsum"

    def english(self, names: Sequence[str]) -> str:
        what = {
            "cumsum": "the running sum (the element itself included)",
            "cumprod": "the running product (the element itself included)",
            "reverse_cumsum": "the sum of each element and all that follow it",
            "exclusive_cumsum": "the sum of all elements before each element (the first gets 0)",
            "cummax": "the running maximum (the element itself included)",
        }[self.kind]
        return f"Compute {what} along {self._place(names)}"

    def latex(self, out: str, names: Sequence[str]) -> str:
        x = names[0]
        formula = {
            "cumsum": rf"\sum_{{s \le r}} {x}_s",
            "cumprod": rf"\prod_{{s \le r}} {x}_s",
            "reverse_cumsum": rf"\sum_{{s \ge r}} {x}_s",
            "exclusive_cumsum": rf"\sum_{{s < r}} {x}_s",
            "cummax": rf"\max_{{s \le r}} {x}_s",
        }[self.kind]
        return rf"{out}_r = {formula} \quad\text{{($r, s$ run over dimension {self.dim})}}"

    def function(
        self, name: str, out: Value, epilogue: Epilogue = NOTHING, style: int = 0
    ) -> HostFunction:
        x = self.inputs[0]
        extents = [
            Extent("length", f"x.size({self.dim})"),
            Extent("inner", extent_product("x", self.dim + 1, x.rank)),
        ]
        launch = self.launch(name, out, [tensor("x", x)], extents, epilogue)
        code = self._by_thread(launch.element.store("v"), epilogue)
        blocks, threads = "(lines + 255) / 256", "256"
        if style > 0:
            code = self._by_block(launch.element.store("v"), epilogue)
            blocks, threads = "lines", "256"
        device = f"__global__ void {name}_kernel({launch.parameters}, int64_t lines) {{\n"
        device += indent(code, 1) + "}\n"
        host = [
            *launch.prologue(),
            *launch.allocate("torch::empty_like(x)"),
            "const int64_t lines = x.numel() / length;",
            f"{name}_kernel<<<{blocks}, {threads}>>>({launch.passed}, lines);",
            "return y;",
        ]
        return launch.finish(device, host)

    @property
    def _combine(self) -> str:
        """Expression of `a` (earlier) and `b`."""
        return {"cumprod": "a * b", "cummax": "fmaxf(a, b)"}.get(self.kind, "a + b")

    @property
    def _neutral(self) -> str:
        return {"cumprod": "1.0f", "cummax": "-INFINITY"}.get(self.kind, "0.0f")

    def _element(self, step: str) -> list[str]:
        r = f"length - 1 - ({step})" if self.kind == "reverse_cumsum" else step
        load = ELEMENTS[self.inputs[0].dtype].load("x[i]")
        return [f"const int r = {r};", "const int64_t i = start + (int64_t)r * inner;", load]

    def _by_thread(self, store: str, epilogue: Epilogue) -> list[str]:
        r, place, load = self._element("step")
        combine = self._combine.replace("a ", "carry ").replace("(a", "(carry").replace("b", load)
        if self.kind == "exclusive_cumsum":
            write = ["float v = carry;", f"carry = {combine};"]
        else:
            write = [f"carry = {combine};", "float v = carry;"]
        return [
            "const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;",
            "if (line >= lines) return;",
            "const int64_t start = line / inner * length * inner + line % inner;",
            f"float carry = {self._neutral};",
            "for (int step = 0; step < length; ++step) {",
            *[
                "    " + text
                for text in [r, place, *write, *epilogue.lines("i"), f"y[i] = {store};"]
            ],
            "}",
        ]

    def _by_block(self, store: str, epilogue: Epilogue) -> list[str]:
        """A block scans chunks of its size and carries the total from one to the next."""
        r, place, load = self._element("step")
        body = [r, place]
        if self.kind == "exclusive_cumsum":
            body.append("float v = threadIdx.x == 0 ? carry : carry + shared[threadIdx.x - 1];")
        else:
            combine = self._combine.replace("a ", "carry ").replace("(a", "(carry")
            body.append(f"float v = {combine.replace('b', 'shared[threadIdx.x]')};")
        body += [*epilogue.lines("i"), f"y[i] = {store};"]
        final = self._combine.replace("a ", "carry ").replace("(a", "(carry")
        return [
            "__shared__ float shared[256];",
            "const int64_t line = blockIdx.x;",
            "const int64_t start = line / inner * length * inner + line % inner;",
            f"float carry = {self._neutral};",
            "for (int base = 0; base < length; base += blockDim.x) {",
            "    const int step = base + threadIdx.x;",
            f"    float value = {self._neutral};",
            "    if (step < length) {",
            f"        {r}",
            f"        {place}",
            f"        value = {load};",
            "    }",
            "    shared[threadIdx.x] = value;",
            "    __syncthreads();",
            "    for (int offset = 1; offset < blockDim.x; offset *= 2) {",
            "        const float b = shared[threadIdx.x];",
            f"        const float a = threadIdx.x >= offset ? shared[threadIdx.x - "
            f"offset] : {self._neutral};",
            "        __syncthreads();",
            f"        shared[threadIdx.x] = {self._combine};",
            "        __syncthreads();",
            "    }",
            "    if (step < length) {",
            *["        " + text for text in body],
            "    }",
            f"    carry = {final.replace('b', 'shared[blockDim.x - 1]')};",
            "    __syncthreads();",
            "}",
        ]
