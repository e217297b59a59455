"""Kernels that compute each element of the output by itself."""

from __future__ import annotations

from collections.abc import Sequence

from kernelmosaic.generate.cuda.epilogue import Epilogue
from kernelmosaic.generate.cuda.source import HostFunction, Launch, grid_lines, indent

STYLES = 2


def coordinates(names: Sequence[str], extents: Sequence[str], place: str = "i") -> list[str]:
    """Lines that take the flat place apart, last coordinate first."""
    lines = [f"int64_t rest = {place};"] if len(names) > 1 else []
    for number in range(len(names) - 1, -1, -1):
        if len(names) == 1:
            lines.append(f"const int {names[0]} = {place};")
        elif number == 0:
            lines.append(f"const int {names[0]} = rest;")
        else:
            lines.append(f"const int {names[number]} = rest % {extents[number]};")
            lines.append(f"rest /= {extents[number]};")
    return lines


def cell_function(
    launch: Launch, output: str, lines: Sequence[str], epilogue: Epilogue, style: int
) -> HostFunction:
    """`lines` compute `v` (a float, or an integer for integer outputs) for the place `i`.

    `output` is the host expression that allocates `y`. Style 0: a thread per element; 1: a
    grid-stride loop.
    """
    store = f"y[i] = {launch.element.store('v')};"
    body = [*lines, *epilogue.lines("i"), store]
    if style == 0:
        loop = "const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;"
        code = indent([loop, "if (i < n) {"], 1) + indent(body, 2) + indent(["}"], 1)
    else:
        code = (
            indent(
                [
                    "const int64_t all_threads = (int64_t)gridDim.x * blockDim.x;",
                    "int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;",
                    "for (; i < n; i += all_threads) {",
                ],
                1,
            )
            + indent(body, 2)
            + indent(["}"], 1)
        )
    device = f"__global__ void {launch.name}_kernel({launch.parameters}, int64_t n) {{\n{code}}}\n"
    host = [*launch.prologue(), *launch.allocate(output), *grid_lines()]
    if style > 0:
        host[-1] = "const int64_t blocks = std::min<int64_t>((n + threads - 1) / threads, 4096);"
    host.append(f"{launch.name}_kernel<<<blocks, threads>>>({launch.passed}, n);")
    host.append("return y;")
    return launch.finish(device, host)


def vector_function(launch: Launch, first: str, epilogue: Epilogue) -> HostFunction:
    """Four floats at a time. The output has the place and size of the input `first`."""
    apply = [
        f"__device__ __forceinline__ float {launch.name}_apply(float v, int64_t i"
        + "".join(
            f", {a.kernel}"
            for a in launch.arguments
            if not (a.kind == "tensor" and a.name == first)
        )
        + "".join(f", int {e.name}" for e in [*launch.extents, *launch.late])
        + ") {",
        *["    " + line for line in epilogue.lines("i")],
        "    return v;",
        "}",
        "",
    ]
    rest = [a.name for a in launch.arguments if not (a.kind == "tensor" and a.name == first)]
    rest += [e.name for e in [*launch.extents, *launch.late]]
    tail = "".join(f", {name}" for name in rest)
    components = [
        f"value.{c} = {launch.name}_apply(value.{c}, 4 * i + {k}{tail});"
        for k, c in enumerate("xyzw")
    ]
    kernel = [
        f"__global__ void {launch.name}_kernel({launch.parameters}, int64_t n) {{",
        "    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;",
        "    if (4 * i + 3 < n) {",
        f"        float4 value = reinterpret_cast<const float4*>({first})[i];",
        *["        " + line for line in components],
        "        reinterpret_cast<float4*>(y)[i] = value;",
        "    } else {",
        "        for (int64_t j = 4 * i; j < n; ++j) {",
        f"            y[j] = {launch.name}_apply({first}[j], j{tail});",
        "        }",
        "    }",
        "}",
    ]
    host = [
        *launch.prologue(),
        *launch.allocate(f"torch::empty_like({first})"),
        "const int64_t n = y.numel();",
        f"const int threads = {launch.threads};",
        "const int64_t quads = (n + 3) / 4;",
        "const int64_t blocks = (quads + threads - 1) / threads;",
        f"{launch.name}_kernel<<<blocks, threads>>>({launch.passed}, n);",
        "return y;",
    ]
    return launch.finish("\n".join(apply + kernel) + "\n", host)
