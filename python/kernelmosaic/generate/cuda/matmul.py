"""Matrix products: C[b][m][n] = sum over k of A[b][m][k] * B[b][k][n]."""

from __future__ import annotations

from dataclasses import dataclass

from kernelmosaic.generate.cuda.epilogue import Epilogue
from kernelmosaic.generate.cuda.source import ELEMENTS, HostFunction, Launch, indent

STYLES = 3


@dataclass(frozen=True)
class MatmulShape:
    """Host expressions for `batch`, `rows`, `columns`, `inner`, and how operands are laid out."""

    rows: str
    columns: str
    inner: str
    batch: str = "1"
    a_transposed: bool = False
    b_transposed: bool = False
    b_batched: bool = False
    tile: int = 16


def _a(shape: MatmulShape, m: str, k: str) -> str:
    return f"a[{k} * rows + {m}]" if shape.a_transposed else f"a[{m} * inner + {k}]"


def _b(shape: MatmulShape, k: str, n: str) -> str:
    return f"b[{n} * inner + {k}]" if shape.b_transposed else f"b[{k} * columns + {n}]"


def _offsets(shape: MatmulShape) -> list[str]:
    if shape.batch == "1":
        return []
    lines = ["a += (int64_t)blockIdx.z * rows * inner;"]
    if shape.b_batched:
        lines.append("b += (int64_t)blockIdx.z * inner * columns;")
    return lines


def _place(shape: MatmulShape) -> str:
    batch = "" if shape.batch == "1" else "(int64_t)blockIdx.z * rows * columns + "
    return f"{batch}(int64_t)row * columns + column"


def _store(launch: Launch, shape: MatmulShape, epilogue: Epilogue) -> list[str]:
    return [
        f"const int64_t i = {_place(shape)};",
        *epilogue.lines("i"),
        f"y[i] = {launch.element.store('v')};",
    ]


def matmul_function(
    launch: Launch, output: str, shape: MatmulShape, epilogue: Epilogue, style: int
) -> HostFunction:
    """`a` and `b` are the first two arguments.

    Style 0: a thread walks over k for one element; 1: square tiles in shared memory; 2: tiles
    in shared memory, four elements for each thread.
    """
    load_a = ELEMENTS[launch.arguments[0].dtype].load
    load_b = ELEMENTS[launch.arguments[1].dtype].load
    name, tile = launch.name, shape.tile
    if style == 0:
        code = [
            *_offsets(shape),
            "const int column = blockIdx.x * blockDim.x + threadIdx.x;",
            "const int row = blockIdx.y * blockDim.y + threadIdx.y;",
            "if (row < rows && column < columns) {",
            "    float v = 0.0f;",
            "    for (int k = 0; k < inner; ++k) {",
            f"        v += {load_a(_a(shape, '(int64_t)row', '(int64_t)k'))} * "
            f"{load_b(_b(shape, '(int64_t)k', '(int64_t)column'))};",
            "    }",
            *["    " + line for line in _store(launch, shape, epilogue)],
            "}",
        ]
        grid = (tile, tile, tile, tile)
    elif style == 1:
        code = [
            f"__shared__ float tile_a[{tile}][{tile}];",
            f"__shared__ float tile_b[{tile}][{tile}];",
            *_offsets(shape),
            f"const int row = blockIdx.y * {tile} + threadIdx.y;",
            f"const int column = blockIdx.x * {tile} + threadIdx.x;",
            "float v = 0.0f;",
            f"for (int start = 0; start < inner; start += {tile}) {{",
            "    const int64_t ka = start + threadIdx.x;",
            "    const int64_t kb = start + threadIdx.y;",
            "    tile_a[threadIdx.y][threadIdx.x] = row < rows && ka < inner ? "
            f"{load_a(_a(shape, '(int64_t)row', 'ka'))} : 0.0f;",
            "    tile_b[threadIdx.y][threadIdx.x] = column < columns && kb < inner ? "
            f"{load_b(_b(shape, 'kb', '(int64_t)column'))} : 0.0f;",
            "    __syncthreads();",
            f"    for (int k = 0; k < {tile}; ++k) {{",
            "        v += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];",
            "    }",
            "    __syncthreads();",
            "}",
            "if (row < rows && column < columns) {",
            *["    " + line for line in _store(launch, shape, epilogue)],
            "}",
        ]
        grid = (tile, tile, tile, tile)
    else:
        # A block of 16 x 16 threads makes 64 x 16 elements, four rows for each thread.
        code = [
            "__shared__ float tile_a[64][17];",
            "__shared__ float tile_b[16][17];",
            *_offsets(shape),
            "const int column = blockIdx.x * 16 + threadIdx.x;",
            "const int top = blockIdx.y * 64;",
            "float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};",
            "for (int start = 0; start < inner; start += 16) {",
            "    const int64_t ka = start + threadIdx.x;",
            "    const int64_t kb = start + threadIdx.y;",
            "    for (int part = 0; part < 4; ++part) {",
            "        const int64_t row = top + part * 16 + threadIdx.y;",
            "        tile_a[part * 16 + threadIdx.y][threadIdx.x] = row < rows && ka < inner ? "
            f"{load_a(_a(shape, 'row', 'ka'))} : 0.0f;",
            "    }",
            "    tile_b[threadIdx.y][threadIdx.x] = column < columns && kb < inner ? "
            f"{load_b(_b(shape, 'kb', '(int64_t)column'))} : 0.0f;",
            "    __syncthreads();",
            "    for (int k = 0; k < 16; ++k) {",
            "        const float right = tile_b[k][threadIdx.x];",
            "        for (int part = 0; part < 4; ++part) {",
            "            sums[part] += tile_a[part * 16 + threadIdx.y][k] * right;",
            "        }",
            "    }",
            "    __syncthreads();",
            "}",
            "for (int part = 0; part < 4; ++part) {",
            "    const int row = top + part * 16 + threadIdx.y;",
            "    if (row < rows && column < columns) {",
            "        float v = sums[part];",
            *["        " + line for line in _store(launch, shape, epilogue)],
            "    }",
            "}",
        ]
        grid = (16, 16, 16, 64)
    device = f"__global__ void {name}_kernel({launch.parameters}) {{\n{indent(code, 1)}}}\n"
    threads_x, threads_y, tile_x, tile_y = grid
    batch = "" if shape.batch == "1" else f", {shape.batch}"
    host = [
        *launch.prologue(),
        *launch.allocate(output),
        f"const dim3 threads({threads_x}, {threads_y});",
        f"const dim3 blocks((columns + {tile_x} - 1) / {tile_x},"
        f" (rows + {tile_y} - 1) / {tile_y}{batch});",
        f"{name}_kernel<<<blocks, threads>>>({launch.passed});",
        "return y;",
    ]
    return launch.finish(device, host)
