"""Kernels that work on lines: reductions, softmax, norms.

A line is a set of elements that are reduced together (a row, a channel, a group). In kernels
`line` is its number, `r` an element's place in it, `length` how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelmosaic.generate.cuda.epilogue import Epilogue
from kernelmosaic.generate.cuda.helpers import combined, neutral
from kernelmosaic.generate.cuda.source import HostFunction, Launch, indent

STYLES = 3


@dataclass(frozen=True)
class Pass:
    """A walk over the line: `name` becomes the `operation` of `term` over all its elements.

    `term` may use `v` and what earlier passes found; `then` are statements after it.
    """

    name: str
    operation: str  # "sum", "max", "min"
    term: str
    then: tuple[str, ...] = ()


@dataclass(frozen=True)
class LineProgram:
    """`load`: statements that declare `v` of element `r`. `index`: its place.

    `result` is an expression over what the passes found; with `per_element` also over `v`,
    and then each element of the line is written, else one value per line.
    """

    load: tuple[str, ...]
    index: str
    passes: tuple[Pass, ...]
    result: str
    per_element: bool


def _walk(program: LineProgram, step: Pass, first: str, stride: str) -> list[str]:
    return [
        f"float {step.name} = {neutral(step.operation)};",
        f"for (int r = {first}; r < length; r += {stride}) {{",
        *["    " + line for line in program.load],
        f"    {step.name} = {combined(step.operation, step.name, step.term)};",
        "}",
    ]


def _write(
    launch: Launch, program: LineProgram, epilogue: Epilogue, first: str, stride: str
) -> list[str]:
    store = launch.element.store("v")
    if not program.per_element:
        lines = [f"float v = {program.result};", *epilogue.lines("line"), f"y[line] = {store};"]
        if first == "0":
            return lines
        return [f"if ({first} == 0) {{", *["    " + line for line in lines], "}"]
    return [
        f"for (int r = {first}; r < length; r += {stride}) {{",
        *["    " + line for line in program.load],
        f"    const int64_t i = {program.index};",
        f"    v = {program.result};",
        *["    " + line for line in epilogue.lines("i")],
        f"    y[i] = {store};",
        "}",
    ]


def line_function(
    launch: Launch,
    output: str,
    lines: str,
    length: str,
    program: LineProgram,
    epilogue: Epilogue,
    style: int,
) -> HostFunction:
    """`lines` and `length` are host expressions.

    Style 0: a thread for a line; 1: a block for a line, which reduces in shared memory; 2: a
    warp for a line, which reduces by shuffles.
    """
    first, stride, kind = (
        ("0", "1", ""),
        ("threadIdx.x", "blockDim.x", "block"),
        ("lane", "32", "warp"),
    )[style]
    head = (
        [
            "const int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;",
            "if (line >= lines) return;",
        ],
        [f"__shared__ float shared[{launch.threads}];", "const int64_t line = blockIdx.x;"],
        [
            "const int lane = threadIdx.x % 32;",
            "const int64_t line = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;",
            "if (line >= lines) return;",
        ],
    )[style]
    code: list[str] = list(head)
    for step in program.passes:
        code += _walk(program, step, first, stride)
        if kind:
            name = f"{kind}_{step.operation}"
            launch.helpers.append(name)
            tail = ", shared" if kind == "block" else ""
            code.append(f"{step.name} = {name}({step.name}{tail});")
        code += step.then
    code += _write(launch, program, epilogue, first, stride)
    device = (
        f"__global__ void {launch.name}_kernel({launch.parameters}, int64_t lines, int length) {{\n"
        f"{indent(code, 1)}}}\n"
    )
    blocks = (
        "(lines + threads - 1) / threads",
        "lines",
        "(lines + threads / 32 - 1) / (threads / 32)",
    )[style]
    host = [
        *launch.prologue(),
        f"const int64_t lines = {lines};",
        f"const int length = {length};",
        *launch.allocate(output),
        f"const int threads = {launch.threads};",
        f"const int64_t blocks = {blocks};",
        f"{launch.name}_kernel<<<blocks, threads>>>({launch.passed}, lines, length);",
        "return y;",
    ]
    return launch.finish(device, host)


def whole_function(
    launch: Launch,
    n: str,
    term: str,
    load: Sequence[str],
    result: str,
    style: int,
) -> HostFunction:
    """One sum over everything; `load` declares `v` of element `i`, `result` uses `total`, `n`.

    Style 0: one block; 1: partial sums of many blocks, then one block over those.
    """
    launch.helpers.append("block_sum")
    walk = [
        "float total = 0.0f;",
        "for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;"
        " i += (int64_t)gridDim.x * blockDim.x) {",
        *["    " + line for line in load],
        f"    total += {term};",
        "}",
        "total = block_sum(total, shared);",
    ]
    shared = f"__shared__ float shared[{launch.threads}];"
    store = launch.element.store(result)
    host = [*launch.prologue(), f"const int64_t n = {n};"]
    first_name = launch.arguments[0].name
    if style == 0:
        code = [shared, *walk, f"if (threadIdx.x == 0) y[0] = {store};"]
        device = f"__global__ void {launch.name}_kernel({launch.parameters}, int64_t n) {{\n"
        device += indent(code, 1) + "}\n"
        host += [
            f"auto y = torch::empty({{}}, {first_name}.options());",
            f"{launch.name}_kernel<<<1, {launch.threads}>>>({launch.passed}, n);",
            "return y;",
        ]
        return launch.finish(device, host)
    partial = launch.parameters.replace(
        f"{launch.element.c}* __restrict__ y", "float* __restrict__ partial"
    )
    device = (
        f"__global__ void {launch.name}_partial_kernel({partial}, int64_t n) {{\n"
        + indent([shared, *walk, "if (threadIdx.x == 0) partial[blockIdx.x] = total;"], 1)
        + "}\n\n"
        + f"__global__ void {launch.name}_final_kernel(const float* __restrict__ partial,"
        + f" {launch.element.c}* __restrict__ y, int blocks, int64_t n) {{\n"
        + indent(
            [
                shared,
                "float total = 0.0f;",
                "for (int b = threadIdx.x; b < blocks; b += blockDim.x) total += partial[b];",
                "total = block_sum(total, shared);",
                f"if (threadIdx.x == 0) y[0] = {store};",
            ],
            1,
        )
        + "}\n"
    )
    passed = launch.passed.replace(
        launch.element.pointer("y", writable=True), "partial.data_ptr<float>()"
    )
    host += [
        f"const int threads = {launch.threads};",
        "const int blocks = std::min<int64_t>((n + threads - 1) / threads, 256);",
        f"auto partial = torch::empty({{blocks}}, {first_name}.options().dtype(torch::kFloat32));",
        f"auto y = torch::empty({{}}, {first_name}.options());",
        f"{launch.name}_partial_kernel<<<blocks, threads>>>({passed}, n);",
        f"{launch.name}_final_kernel<<<1, threads>>>(partial.data_ptr<float>(),"
        f" {launch.element.pointer('y', writable=True)}, blocks, n);",
        "return y;",
    ]
    return launch.finish(device, host)
