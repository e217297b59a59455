"""Cases of samples that work element by element, count, pick or move."""

# mypy: disable-error-code="untyped-decorator"

import torch
from sample_case import Call, case, integers, normal

F = torch.nn.functional


@case("negate", "void negate(const float* x, float* y, int64_t count, cudaStream_t stream)")
def negate() -> list[Call]:
    return [Call({"x": normal(n)}, {"y": -normal(n)}, {"count": n}) for n in (1, 256, 1003)]


@case(
    "scale_columns",
    "void run(const float* x, const float* gain, float* y, int64_t rows, int64_t cols)",
    "  const dim3 grid((cols + 63) / 64, (rows + kRows - 1) / kRows);\n"
    "  scale_columns<<<grid, 64>>>(x, gain, y, rows, cols);",
)
def scale_columns() -> list[Call]:
    x, gain = normal(19, 131), normal(131)
    return [Call({"x": x, "gain": gain}, {"y": x * gain}, {"rows": 19, "cols": 131})]


@case(
    "tails",
    "void run(const float* x, float* a, float* b, float* c, int64_t n)",
    "  const unsigned blocks = (n + 255) / 256;\n"
    "  guard<<<blocks, 256>>>(x, a, n);\n"
    "  grid_stride<<<2, 64>>>(x, b, n);\n"
    "  chunk_reversed<<<blocks, 256>>>(x, c, n);",
)
def tails() -> list[Call]:
    x = normal(1000)
    turned = torch.cat([chunk.flip(0) for chunk in x.split(256)])
    return [Call({"x": x}, {"a": 2 * x, "b": 2 * x, "c": turned}, {"n": 1000})]


@case(
    "relu",
    "void run(const float* x, float* y, float* z, int64_t n, cudaStream_t stream)",
    "  relu(x, y, n, stream);\n  relu(x + 1, z, n - 1, stream);  // not aligned to 16 bytes",
)
def relu() -> list[Call]:
    def call(n: int) -> Call:
        y = normal(n).relu()
        return Call({"x": normal(n)}, {"y": y, "z": y[1:].clone()}, {"n": n})

    return [call(3), call(1024), call(1030)]


@case(
    "scaled_copy",
    "void run(const float* x, float* y, float factor, int64_t n)",
    "  scaled_copy<<<(n + 1023) / 1024, kThreads>>>(x, y, factor, n);",
)
def scaled_copy() -> list[Call]:
    x = normal(2500)
    return [Call({"x": x}, {"y": 1.5 * x}, {"factor": 1.5, "n": 2500})]


@case(
    "scale",
    "void scale(const float* x, const float* gain, float* y, int64_t rows, int64_t cols,"
    " cudaStream_t stream)",
)
def scale() -> list[Call]:
    def call(rows: int, cols: int) -> Call:
        x, gain = normal(rows, cols), normal(rows)
        return Call({"x": x, "gain": gain}, {"y": x * gain[:, None]}, {"rows": rows, "cols": cols})

    return [call(3, 2500), call(7, 40)]


@case(
    "bias_gelu_residual",
    "void run(const float* x, const float* bias, const float* residual, float* y, float scale,"
    " int64_t rows, int64_t cols)",
    "  bias_gelu_residual<<<dim3((cols + 63) / 64, 4), 64>>>"
    "(x, bias, residual, y, scale, rows, cols);",
)
def bias_gelu_residual() -> list[Call]:
    x, bias, residual = normal(11, 100), normal(100), normal(11, 100, seed=8)
    return [
        Call(
            {"x": x, "bias": bias, "residual": residual},
            {"y": residual + 0.3 * F.gelu(x + bias)},
            {"scale": 0.3, "rows": 11, "cols": 100},
        )
    ]


@case(
    "half_axpy",
    "void half_axpy(const half* x, const half* y0, half* y, float a, int64_t n,"
    " cudaStream_t stream)",
)
def half_axpy() -> list[Call]:
    def call(n: int) -> Call:
        x, y0 = normal(n, dtype=torch.float16), normal(n, dtype=torch.float16, seed=9)
        expected = (0.7 * x.double() + y0.double()).half()
        return Call({"x": x, "y0": y0}, {"y": expected}, {"a": 0.7, "n": n}, tolerance=1e-3)

    return [call(1), call(600), call(513)]


@case(
    "philox_dropout",
    "void run(const float* x, float* y, float p, uint64_t seed, int64_t n)",
    "  dropout<<<(n + 511) / 512, 128>>>(x, y, p, seed, n);",
)
def philox_dropout() -> list[Call]:
    # The generator's published test vector (Random123, kat_vectors).
    assert philox((0, 0, 0, 0), 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    x, seed = normal(1001), 0x1234567890ABCDEF
    words = [w for group in range(251) for w in philox((group, 0, 0, 0), seed)][:1001]
    kept = torch.tensor([(word >> 8) / 2**24 >= 0.25 for word in words])
    assert 600 < kept.sum() < 850
    expected = torch.where(kept, x / 0.75, torch.zeros(()))
    return [Call({"x": x}, {"y": expected}, {"p": 0.25, "seed": seed, "n": 1001})]


def philox(counter: tuple[int, int, int, int], seed: int) -> tuple[int, int, int, int]:
    """Philox 4x32, ten rounds, over Python's integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        low, high = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            high >> 32 ^ c1 ^ k0,
            high & 0xFFFFFFFF,
            low >> 32 ^ c3 ^ k1,
            low & 0xFFFFFFFF,
        )
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c0, c1, c2, c3


@case(
    "count_values",
    "void count_values(const int32_t* values, int32_t* counts, int64_t n, int bins,"
    " cudaStream_t stream)",
)
def count_values() -> list[Call]:
    values = integers(0, 17, 3000, dtype=torch.int32)
    counts = torch.bincount(values, minlength=17).int()
    return [Call({"values": values}, {"counts": counts}, {"n": 3000, "bins": 17})]


@case(
    "embedding_bag",
    "void run(const float* table, const int64_t* index, const int64_t* offset, float* y,"
    " int64_t bags, int64_t cols)",
    "  bag_mean<<<dim3((cols + 31) / 32, bags), 32>>>(table, index, offset, y, cols);",
)
def embedding_bag() -> list[Call]:
    table, index = normal(50, 45), integers(0, 50, 40)
    offset = torch.tensor([0, 7, 7, 30, 40])
    y = F.embedding_bag(index, table, offset, mode="mean", include_last_offset=True)
    inputs = {"table": table, "index": index, "offset": offset}
    return [Call(inputs, {"y": y}, {"bags": 4, "cols": 45})]


@case(
    "reverse",
    "void reverse(const float* x, float* y, int n, cudaStream_t stream)",
)
def reverse() -> list[Call]:
    return [Call({"x": normal(n)}, {"y": normal(n).flip(0)}, {"n": n}) for n in (10, 20000)]


@case(
    "dynamic_arrays",
    "cudaError_t reverse_weighted(const double* x, const float* weight, double* y, int n,"
    " cudaStream_t stream)",
)
def dynamic_arrays() -> list[Call]:
    def call(n: int) -> Call:
        x, weight = normal(n, dtype=torch.float64), normal(n)
        return Call({"x": x, "weight": weight}, {"y": x.flip(0) * weight}, {"n": n})

    return [call(33), call(10000)]


@case(
    "tiled_transpose",
    "void transpose_batched(const float* x, float* y, int64_t batch, int64_t rows, int64_t cols,"
    " cudaStream_t stream)",
)
def tiled_transpose() -> list[Call]:
    x = normal(3, 70, 45)
    numbers: dict[str, int | float] = {"batch": 3, "rows": 70, "cols": 45}
    return [Call({"x": x}, {"y": x.transpose(1, 2).contiguous()}, numbers)]


@case(
    "swizzled_transpose",
    "void run(const float* x, float* y, int64_t rows, int64_t cols)",
    "  transpose_swizzled<<<dim3((cols + 31) / 32, (rows + 31) / 32), dim3(kTile, kRows)>>>"
    "(x, y, rows, cols);",
)
def swizzled_transpose() -> list[Call]:
    x = normal(70, 45)
    return [Call({"x": x}, {"y": x.t().contiguous()}, {"rows": 70, "cols": 45})]


@case(
    "fast_division",
    "void transpose_flat(const float* x, float* y, int n, int c, cudaStream_t stream)",
)
def fast_division() -> list[Call]:
    return [
        Call({"x": normal(n, c)}, {"y": normal(n, c).t().contiguous()}, {"n": n, "c": c})
        for n, c in ((1, 9), (7, 300), (64, 5), (1000, 3))
    ]


@case(
    "smooth",
    "void run(const float* x, float* y, int64_t rows, int64_t cols)",
    "  smooth<<<dim3((cols + 63) / 64, rows), 64>>>(x, y, rows, cols);",
)
def smooth() -> list[Call]:
    x = normal(5, 130)
    y = F.avg_pool1d(x[None], 3, stride=1, padding=1)[0]
    return [Call({"x": x}, {"y": y}, {"rows": 5, "cols": 130})]


@case(
    "box_average",
    "void run(const float* x, float* y, int planes, int H, int W)",
    "  box_average<<<dim3((W + 15) / 16, (H + 15) / 16, planes), dim3(kTile, kTile)>>>"
    "(x, y, H, W);",
)
def box_average() -> list[Call]:
    x = normal(2, 37, 21)
    y = F.avg_pool2d(x[None], 5, stride=1, padding=2)[0]
    return [Call({"x": x}, {"y": y}, {"planes": 2, "H": 37, "W": 21})]


@case("two_halves", "cudaError_t two_halves(float* y, int64_t n, cudaStream_t stream)")
def two_halves() -> list[Call]:
    def call(n: int) -> Call:
        y = torch.cat([torch.ones(n // 2), torch.full((n - n // 2,), 2.0)])
        return Call({}, {"y": y}, {"n": n})

    return [call(1), call(777)]
