"""Cases of samples that only a GPU can run (gpu=NAME)."""

# mypy: disable-error-code="untyped-decorator"

import torch
from sample_case import Call, case, normal


@case(
    "wmma_product",
    "void run(const half* a, const half* b, float* c, int m, int n, int k)",
    "  product<<<dim3(n / 32, m / 32), 128>>>(a, b, c, n, k);",
)
def wmma_product() -> list[Call]:
    a, b = normal(64, 80, dtype=torch.float16), normal(80, 96, dtype=torch.float16)
    c = (a.double() @ b.double()).float()
    return [Call({"a": a, "b": b}, {"c": c}, {"m": 64, "n": 96, "k": 80}, tolerance=1e-5)]


@case(
    "wgmma_step",
    "void run(const half* a, const half* b, float* d)",
    "  step<<<1, 128>>>(a, b, d);",
)
def wgmma_step() -> list[Call]:
    a, b = normal(64, 16, dtype=torch.float16), normal(8, 16, dtype=torch.float16)
    d = (a.double() @ b.double().t()).float()
    return [Call({"a": a, "b": b}, {"d": d}, tolerance=1e-5)]


@case(
    "async_row_sums",
    "void run(const float* x, float* y, int64_t rows, int64_t cols)",
    "  row_sums<<<static_cast<unsigned>(rows), kThreads>>>(x, y, cols);",
)
def async_row_sums() -> list[Call]:
    def call(cols: int) -> Call:
        x = normal(5, cols) + 1
        return Call({"x": x}, {"y": x.sum(1)}, {"rows": 5, "cols": cols}, tolerance=1e-5)

    return [call(4), call(3000), call(512)]


@case(
    "bulk_doubled",
    "void run(const float* x, float* y, int64_t n)",
    "  doubled<<<3, 256>>>(x, y, n);",
)
def bulk_doubled() -> list[Call]:
    # One chunk, and more than three blocks have stages.
    return [Call({"x": normal(n)}, {"y": 2 * normal(n)}, {"n": n}) for n in (2048, 2048 * 41)]


@case(
    "cluster_row_sums",
    "void run(const float* x, float* y, int64_t rows, int64_t cols)",
    "  row_sums<<<static_cast<unsigned>(4 * rows), 256>>>(x, y, cols);",
)
def cluster_row_sums() -> list[Call]:
    x = normal(7, 5001) + 1
    return [Call({"x": x}, {"y": x.sum(1)}, {"rows": 7, "cols": 5001}, tolerance=1e-5)]
