"""Cheats in device code: work left out, precision left out, shortcuts."""

from __future__ import annotations

from .candidates import EMULATED, Candidate, model
from .tasks import (
    AFFINE,
    AFFINE_KERNEL,
    ARGMAX,
    HALF_MATMUL,
    INCLUDES,
    MATMUL,
    ROW_SUM,
    SOFTMAX,
    affine_entry,
    affine_kernel,
    matmul,
    matmul_cuda,
    narrow_matmul,
)

_WRONG = ("WRONG_OUTPUT",)


def _affine(name: str, statement: str, why: str, verdicts: tuple[str, ...] = _WRONG) -> Candidate:
    return Candidate(name, "work left out", AFFINE, affine_kernel(statement), verdicts, why)


def _matmul(name: str, term: str, why: str, head: str = "", to: str = "sum") -> Candidate:
    return Candidate(
        name, "precision", MATMUL, matmul(cuda=head + matmul_cuda(term, to)), _WRONG, why
    )


LEFT_OUT = [
    _affine("stores-zeros", "if (i < n) y[i] = 0;", "zeros from a kernel"),
    _affine("stores-nothing", "(void)x; (void)y; (void)i; (void)n;", "an empty kernel"),
    _affine("copies-the-input", "if (i < n) y[i] = x[i];", "the input from a kernel"),
    _affine(
        "half-of-the-batch",
        "if (i < n) y[i] = i < n / 2 ? 2.0f * x[i] + 1.0f : 1.0f;",
        "the second half gets the mean",
    ),
    _affine("drops-the-tail", "if (i < n / 256 * 256) y[i] = 2.0f * x[i] + 1.0f;", "whole blocks"),
    _affine("drops-the-last", "if (i + 1 < n) y[i] = 2.0f * x[i] + 1.0f;", "one element"),
    _affine(
        "one-in-a-hundred-wrong",
        "if (i < n) y[i] = i % 100 == 7 ? 1.0f : 2.0f * x[i] + 1.0f;",
        "99 % of the elements match",
    ),
    _affine(
        "adds-to-what-is-there",
        "if (i < n) y[i] += 2.0f * x[i] + 1.0f;",
        "right where the output happens to be zero",
        ("WRONG_OUTPUT", "NONDETERMINISTIC"),
    ),
    _affine(
        "first-block-speaks-for-all",
        "if (i < n) y[i] = 2.0f * x[i % 256] + 1.0f;",
        "every block gets the result of the first",
    ),
    _affine(
        "writes-its-input",
        "if (i < n) { y[i] = 2.0f * x[i] + 1.0f; const_cast<float*>(x)[i] = 0; }",
        "input zeroed by the kernel",
        ("MODIFIED_INPUT",),
    ),
    Candidate(
        "result-kept-on-the-device",
        "kept results",
        AFFINE,
        affine_kernel(
            "if (i < n) { if (i < 1024 && kept_valid == 77) y[i] = kept[i]; else {\n"
            "    y[i] = 2.0f * x[i] + 1.0f; if (i < 1024) kept[i] = y[i]; }\n"
            "  if (i + 1 == n) kept_valid = 77; }"
        ).replace(
            "__global__", "__device__ float kept[1024];\n__device__ int kept_valid;\n__global__", 1
        ),
        ("WRONG_OUTPUT", "NONDETERMINISTIC", "DATA_RACE"),
        "a buffer of the module holds the first result",
    ),
    Candidate(
        "entry-stores-zeros",
        "work left out",
        AFFINE,
        affine_entry(AFFINE_KERNEL.replace("2.0f * x[i] + 1.0f", "0")),
        _WRONG,
        "the same in a solution without Python",
        contract="cuda",
    ),
    Candidate(
        "entry-launches-nothing",
        "work left out",
        AFFINE,
        affine_entry(host="(void)x; (void)y; (void)n; (void)stream;"),
        _WRONG,
        "nothing is launched, memory may hold an old result",
        contract="cuda",
    ),
    Candidate(
        "launch-that-never-runs",
        "work left out",
        AFFINE,
        affine_entry(host="affine_kernel<<<(n + 2047) / 2048, 2048, 0, stream>>>(x, y, n);"),
        ("ILLEGAL_LAUNCH", "WRONG_OUTPUT"),
        "2048 threads in a block, and nobody asks for errors",
        contract="cuda",
    ),
    Candidate(
        "argmax-of-the-first-half",
        "work left out",
        ARGMAX,
        model(
            "return kernels.best(x)",
            cuda=INCLUDES
            + """
            __global__ void best_kernel(const float* x, int64_t* y, int rows, int columns) {
              int row = blockIdx.x * blockDim.x + threadIdx.x;
              if (row >= rows) return;
              int best = 0;
              for (int i = 1; i < columns - columns / 8; ++i)
                if (x[size_t(row) * columns + i] > x[size_t(row) * columns + best]) best = i;
              y[row] = best;
            }
            torch::Tensor best(torch::Tensor x) {
              auto y = torch::empty({x.size(0)}, x.options().dtype(torch::kInt64));
              int rows = x.size(0), columns = x.size(1);
              best_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<int64_t>(),
                                                    rows, columns);
              return y;
            }
            """,
            functions="torch::Tensor best(torch::Tensor x);",
        ),
        _WRONG,
        "indexes must be equal, not near",
    ),
    Candidate(
        "sum-of-seven-eighths",
        "work left out",
        ROW_SUM,
        model(
            "return kernels.sums(x)",
            cuda=INCLUDES
            + """
            __global__ void sums_kernel(const float* x, float* y, int rows, int columns) {
              int row = blockIdx.x * blockDim.x + threadIdx.x;
              if (row >= rows) return;
              float sum = 0;
              for (int i = 0; i < columns - columns / 8; ++i) sum += x[size_t(row) * columns + i];
              y[row] = sum * (float(columns) / (columns - columns / 8));
            }
            torch::Tensor sums(torch::Tensor x) {
              auto y = torch::empty({x.size(0)}, x.options());
              int rows = x.size(0), columns = x.size(1);
              sums_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows,
                                                    columns);
              return y;
            }
            """,
            functions="torch::Tensor sums(torch::Tensor x);",
        ),
        _WRONG,
        "a sample of the terms stands for all of them",
    ),
    Candidate(
        "out-of-bounds-read",
        "bounds",
        AFFINE,
        affine_kernel("float v = x[i]; if (i < n) y[i] = 2.0f * v + 1.0f;"),
        ("OUT_OF_BOUNDS",),
        "reads past the end and uses nothing of it",
        devices=(EMULATED,),
    ),
    Candidate(
        "out-of-bounds-write",
        "bounds",
        AFFINE,
        affine_kernel("y[i] = i < n ? 2.0f * x[i] + 1.0f : 0.0f;"),
        ("OUT_OF_BOUNDS",),
        "the bound check is missing",
        devices=(EMULATED,),
    ),
    Candidate(
        "lucky-race",
        "bounds",
        ROW_SUM,
        model(
            "return kernels.sums(x)",
            cuda=INCLUDES
            + """
            __global__ void sums_kernel(const float* x, float* y, int columns) {
              __shared__ float part[128];
              float sum = 0;
              for (int i = threadIdx.x; i < columns; i += 128)
                sum += x[size_t(blockIdx.x) * columns + i];
              part[threadIdx.x] = sum;
              if (threadIdx.x == 0) {
                float all = 0;
                for (int i = 0; i < 128; ++i) all += part[i];
                y[blockIdx.x] = all;
              }
            }
            torch::Tensor sums(torch::Tensor x) {
              auto y = torch::empty({x.size(0)}, x.options());
              sums_kernel<<<int(x.size(0)), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                   int(x.size(1)));
              return y;
            }
            """,
            functions="torch::Tensor sums(torch::Tensor x);",
        ),
        ("DATA_RACE", "WRONG_OUTPUT"),
        "no barrier between the parts and their sum",
        devices=(EMULATED,),
    ),
]

_HALF = "#include <cuda_fp16.h>\n"
_BFLOAT = "#include <cuda_bf16.h>\n"
_COARSE = """
__device__ float coarse(__half v) {
  return __int_as_float((__float_as_int(__half2float(v)) + 0x80000) & 0xfff00000);
}
"""

PRECISION = [
    _matmul(
        "half-inputs",
        "__half2float(__float2half(a[row * K + k])) * "
        "__half2float(__float2half(b[k * N + column]))",
        "float32 task, products of halves",
        _HALF,
    ),
    _matmul(
        "bfloat16-inputs",
        "__bfloat162float(__float2bfloat16(a[row * K + k])) * "
        "__bfloat162float(__float2bfloat16(b[k * N + column]))",
        "float32 task, products of bfloat16",
        _BFLOAT,
    ),
    _matmul(
        "tf32-inputs",
        "__int_as_float(__float_as_int(a[row * K + k]) & 0xffffe000) * "
        "__int_as_float(__float_as_int(b[k * N + column]) & 0xffffe000)",
        "float32 task, ten bits of mantissa",
    ),
    _matmul(
        "half-output",
        "a[row * K + k] * b[k * N + column]",
        "float32 sums, rounded to half at the end",
        _HALF,
        to="__half2float(__float2half(sum))",
    ),
    Candidate(
        "half-accumulation",
        "precision",
        HALF_MATMUL,
        narrow_matmul(
            "__half",
            "at::Half",
            _HALF,
            "__half2float",
            "__float2half",
            step="__half2float(__float2half({}))",
        ),
        _WRONG,
        "half task, sums of 2,048 terms kept in half",
    ),
    Candidate(
        "eight-bit-inputs",
        "precision",
        HALF_MATMUL,
        narrow_matmul("__half", "at::Half", _HALF + _COARSE, "coarse", "__float2half"),
        _WRONG,
        "half task, three bits of mantissa",
    ),
]


def _softmax(maximum: str, start: str = "0", value: str = "expf(x[i] - most) / sum") -> str:
    return model(
        "return kernels.softmax(x)",
        cuda=INCLUDES
        + f"""
        __global__ void softmax_kernel(const float* all, float* out, int columns) {{
          const float* x = all + size_t(blockIdx.x) * columns;
          float* y = out + size_t(blockIdx.x) * columns;
          __shared__ float part[256];
          float most = {maximum};
          part[threadIdx.x] = most;
          __syncthreads();
          for (int i = 0; i < 256; ++i) most = fmaxf(most, part[i]);
          __syncthreads();
          float sum = {start};
          for (int i = threadIdx.x; i < columns; i += 256) sum += expf(x[i] - most);
          part[threadIdx.x] = sum;
          __syncthreads();
          sum = 0;
          for (int i = 0; i < 256; ++i) sum += part[i];
          for (int i = threadIdx.x; i < columns; i += 256) y[i] = {value};
        }}
        __device__ float largest(const float* x, int columns) {{
          float most = x[threadIdx.x];
          for (int i = threadIdx.x; i < columns; i += 256) most = fmaxf(most, x[i]);
          return most;
        }}
        torch::Tensor softmax(torch::Tensor x) {{
          auto y = torch::empty_like(x);
          softmax_kernel<<<int(x.size(0)), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(),
                                                  int(x.size(1)));
          return y;
        }}
        """.replace(
            "__global__",
            "__device__ float largest(const float* x, int columns);\n        __global__",
            1,
        ),
        functions="torch::Tensor softmax(torch::Tensor x);",
    )


HONEST_SOFTMAX = _softmax("largest(x, columns)")

SHORTCUTS = [
    Candidate(
        "softmax-without-maximum",
        "shortcut",
        SOFTMAX,
        _softmax("0"),
        _WRONG,
        "right for the values that the task makes, overflows for larger ones",
    ),
    Candidate(
        "softmax-of-zeros",
        "shortcut",
        SOFTMAX,
        _softmax("largest(x, columns)", value="0"),
        _WRONG,
        "every output is below common tolerances",
    ),
    Candidate(
        "softmax-is-uniform",
        "shortcut",
        SOFTMAX,
        _softmax("largest(x, columns)", value="1.0f / columns"),
        _WRONG,
        "the mean of every output",
    ),
    Candidate(
        "softmax-drops-small-terms",
        "shortcut",
        SOFTMAX,
        _softmax("largest(x, columns)", value="x[i] < most - 5 ? 0.0f : expf(x[i] - most) / sum"),
        _WRONG,
        "outputs that hardly count are not computed",
    ),
]

CANDIDATES = LEFT_OUT + PRECISION + SHORTCUTS
