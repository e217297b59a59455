"""Cases of samples that multiply matrices, convolve or attend."""

# mypy: disable-error-code="untyped-decorator"

import torch
from sample_case import Call, case, normal

F = torch.nn.functional
PRODUCT = "void run(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k)"


def products() -> list[Call]:
    def call(m: int, n: int, k: int) -> Call:
        a, b = normal(m, k), normal(k, n, seed=9)
        c = (a.double() @ b.double()).float()
        return Call({"a": a, "b": b}, {"c": c}, {"m": m, "n": n, "k": k})

    return [call(70, 45, 37), call(3, 130, 50)]


case(
    "tiled_product",
    PRODUCT,
    "  tiled_product<<<dim3((n + 31) / 32, (m + 31) / 32), dim3(kTile, kTile / kPer)>>>"
    "(a, b, c, m, n, k);",
)(products)
case(
    "register_tiled_product",
    PRODUCT,
    "  product<<<dim3((n + kN - 1) / kN, (m + kM - 1) / kM), 256>>>(a, b, c, m, n, k);",
)(products)
case(
    "double_buffered_product",
    PRODUCT,
    "  product<<<dim3((n + 15) / 16, (m + 15) / 16), dim3(kTile, kTile)>>>(a, b, c, m, n, k);",
)(products)


@case(
    "matrix_vector",
    "void run(const float* w, const float* x, const float* bias, float* y, int64_t rows,"
    " int64_t cols)",
    "  matrix_vector<<<(rows + 3) / 4, 128>>>(w, x, bias, y, rows, cols);",
)
def matrix_vector() -> list[Call]:
    def call(rows: int, cols: int) -> Call:
        w, x, bias = normal(rows, cols), normal(cols), normal(rows, seed=9)
        y = (w.double() @ x.double() + bias).float()
        return Call({"w": w, "x": x, "bias": bias}, {"y": y}, {"rows": rows, "cols": cols})

    return [call(9, 200), call(5, 131)]


@case(
    "direct_convolution",
    "void run(const float* x, const float* weight, const float* bias, float* y, int N, int C,"
    " int H, int W, int O, int K, int P, int Q, int stride, int padding)",
    "  convolve<<<dim3((P * Q + 63) / 64, (O + kOut - 1) / kOut, N), 64>>>"
    "(x, weight, bias, y, C, H, W, O, K, P, Q, stride, padding);",
)
def direct_convolution() -> list[Call]:
    def call(stride: int, padding: int, out: int) -> Call:
        x, weight, bias = normal(2, 3, 11, 14), normal(out, 3, 3, 3, seed=9), normal(out)
        y = F.conv2d(x.double(), weight.double(), bias.double(), stride, padding).float()
        numbers: dict[str, int | float] = {
            **dict(zip("NCHW", x.shape, strict=True)),
            **{"O": out, "K": 3, "P": y.shape[2], "Q": y.shape[3]},
            **{"stride": stride, "padding": padding},
        }
        return Call({"x": x, "weight": weight, "bias": bias}, {"y": y}, numbers)

    return [call(1, 1, 6), call(2, 0, 4)]


@case(
    "streaming_attention",
    "void run(const float* q, const float* k, const float* v, float* y, int heads, int L,"
    " int causal)",
    "  attend<<<dim3((L + kWarps - 1) / kWarps, heads), 32 * kWarps>>>(q, k, v, y, L, causal);",
)
def streaming_attention() -> list[Call]:
    def call(causal: bool) -> Call:
        q, k, v = (4 * normal(2, 75, 32, seed=s) for s in (3, 9, 15))
        scores = q.double() @ k.double().transpose(1, 2) / 32**0.5
        if causal:
            scores = scores.masked_fill(torch.ones(75, 75).triu(1).bool(), -torch.inf)
        y = (scores.softmax(2) @ v.double()).float()
        numbers: dict[str, int | float] = {"heads": 2, "L": 75, "causal": int(causal)}
        return Call({"q": q, "k": k, "v": v}, {"y": y}, numbers, tolerance=2e-5)

    return [call(False), call(True)]
