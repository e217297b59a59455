"""Cases of samples that reduce, scan, normalise or sort rows."""

# mypy: disable-error-code="untyped-decorator"

import torch
from sample_case import Call, case, integers, normal

F = torch.nn.functional


@case(
    "row_mean",
    "void run(const float* x, float* y, int64_t rows, int64_t cols)",
    "  row_mean<<<rows, kThreads>>>(x, y, cols);",
)
def row_mean() -> list[Call]:
    x = normal(4, 777) + 1
    return [Call({"x": x}, {"y": x.mean(1)}, {"rows": 4, "cols": 777})]


@case(
    "chunk_maximum",
    "void run(const float* x, float* y, int64_t n)",
    "  chunk_maximum<<<(n + kThreads - 1) / kThreads, kThreads>>>(x, y, n);",
)
def chunk_maximum() -> list[Call]:
    x = normal(300) - 9  # all negative: zeros in the last chunk would show
    return [Call({"x": x}, {"y": torch.stack([c.max() for c in x.split(128)])}, {"n": 300})]


@case(
    "warp_sums",
    "void run(const float* x, float* y, int n)",
    "  warp_sums<<<(n + 127) / 128, 128>>>(x, y, n);",
)
def warp_sums() -> list[Call]:
    x = normal(300)
    return [Call({"x": x}, {"y": torch.stack([c.sum() for c in x.split(32)])}, {"n": 300})]


@case(
    "portable_last_warp",
    "void run(const float* x, float* y)",
    "  sum256<<<1, 256>>>(x, y);",
)
def portable_last_warp() -> list[Call]:
    x = normal(256) + 1
    return [Call({"x": x}, {"y": x.sum()})]


@case("grid_sum", "void squared_norm(const float* x, float* y, int64_t n, cudaStream_t stream)")
def grid_sum() -> list[Call]:
    return [
        Call({"x": normal(n)}, {"y": normal(n).double().square().sum().float()}, {"n": n})
        for n in (1, 3000, 3000, 140000)
    ]


@case(
    "compensated_sum",
    "void run(const float* x, float* y, int64_t rows, int64_t cols)",
    "  row_sums<<<(rows + 3) / 4, 128>>>(x, y, rows, cols);",
)
def compensated_sum() -> list[Call]:
    # A plain sum of these is off by 1e-5 and more.
    x = normal(5, 40000).abs() * 1000
    expected = x.double().sum(1).float()
    return [Call({"x": x}, {"y": expected}, {"rows": 5, "cols": 40000}, tolerance=1.3e-7)]


@case(
    "tile_row_norms",
    "void run(const float* x, float* y, int64_t rows, int cols)",
    "  row_norms<<<(rows * kLanes + 63) / 64, 64>>>(x, y, rows, cols);",
)
def tile_row_norms() -> list[Call]:
    x = normal(21, 13)
    return [Call({"x": x}, {"y": x.square().sum(1)}, {"rows": 21, "cols": 13})]


@case(
    "scan_rows",
    "void run(const float* x, float* y, int64_t rows, int64_t cols)",
    "  scan_rows<<<rows, kThreads>>>(x, y, cols);",
)
def scan_rows() -> list[Call]:
    x = normal(3, 1000)
    return [Call({"x": x}, {"y": x.double().cumsum(1).float()}, {"rows": 3, "cols": 1000})]


@case(
    "warp_softmax",
    "void run(const float* x, float* y, int rows, int cols)",
    "  softmax_warp_per_row<<<(rows + 3) / 4, dim3(32, 4)>>>(x, y, rows, cols);",
)
def warp_softmax() -> list[Call]:
    def call(rows: int, cols: int) -> Call:
        x = 50 * normal(rows, cols) - 300  # fewer columns than lanes: some see nothing
        return Call({"x": x}, {"y": x.softmax(1)}, {"rows": rows, "cols": cols}, tolerance=2e-5)

    return [call(7, 100), call(2, 5)]


@case(
    "merged_moments",
    "void run(const float* x, float* mean, float* variance)",
    "  warp_moments<<<1, 32>>>(x, mean, variance);",
    kernels="""
__global__ void warp_moments(const float* x, float* mean, float* variance) {
  const Moments m = warp_merge({1.0f, x[threadIdx.x], 0.0f});
  if (threadIdx.x != 0) return;
  *mean = m.mean;
  *variance = m.m2 / m.count;
}
""",
)
def merged_moments() -> list[Call]:
    x = normal(32) + 1000
    exact = x.double()
    outputs = {"mean": exact.mean().float(), "variance": exact.var(correction=0).float()}
    return [Call({"x": x}, outputs, tolerance=1e-4)]


@case(
    "register_layer_norm",
    "void run(const float* x, const float* gain, const float* bias, float* y, int64_t rows,"
    " int cols, float eps)",
    "  layer_norm<<<rows, kThreads>>>(x, gain, bias, y, cols, eps);",
)
def register_layer_norm() -> list[Call]:
    def call(rows: int, cols: int) -> Call:
        x, gain, bias = normal(rows, cols) + 20, normal(cols), normal(cols, seed=9)
        y = F.layer_norm(x.double(), (cols,), gain.double(), bias.double(), 1e-5).float()
        inputs = {"x": x, "gain": gain, "bias": bias}
        return Call(inputs, {"y": y}, {"rows": rows, "cols": cols, "eps": 1e-5}, tolerance=1e-5)

    return [call(3, 1500), call(2, 2048), call(2, 31)]


@case(
    "cross_entropy",
    "void run(const float* x, const int64_t* target, float* row_loss, float* y, int64_t rows,"
    " int64_t classes)",
    "  cross_entropy_rows<<<(rows + kWarps - 1) / kWarps, 32 * kWarps>>>"
    "(x, target, row_loss, rows, classes);\n"
    "  mean<<<1, 256>>>(row_loss, y, rows);",
)
def cross_entropy() -> list[Call]:
    x, target = 30 * normal(21, 77), integers(0, 77, 21)
    loss = F.cross_entropy(x.double(), target, reduction="none").float()
    outputs = {"row_loss": loss, "y": loss.mean()}
    return [Call({"x": x, "target": target}, outputs, {"rows": 21, "classes": 77})]


@case(
    "bitonic_rows",
    "void run(const float* x, float* y, int64_t* index, int64_t rows, int cols)",
    "  sort_rows<<<rows, kThreads>>>(x, y, index, cols);",
)
def bitonic_rows() -> list[Call]:
    x = integers(-40, 40, 3, 300).float()  # many ties
    y, index = x.sort(dim=1, stable=True)
    return [Call({"x": x}, {"y": y, "index": index}, {"rows": 3, "cols": 300})]
