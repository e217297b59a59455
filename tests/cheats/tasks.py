"""The tasks, and one honest extension for each, which most candidates vary."""

from __future__ import annotations

from .candidates import Task, model

_HEAD = "import torch\n"


def _task(name: str, body: str, sizes: dict[str, tuple[int, int]], **more: object) -> Task:
    return Task(name, _HEAD + body, sizes, **more)  # type: ignore[arg-type]


# y = 2 x + 1, with a tail for every block size.
AFFINE = _task(
    "affine",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x + 1

def get_inputs():
    return [torch.randn($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    {"ROWS": (50, 8209), "COLUMNS": (37, 2053)},
    entry={
        "prototype": "void affine(const float* x, float* y, size_t n, cudaStream_t stream)",
        "bindings": {"x": "input[0]", "y": "output[0]", "n": "input[0].numel"},
    },
)

MATMUL = _task(
    "matmul",
    """
class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)

def get_inputs():
    return [torch.randn($M, $K), torch.randn($K, $N)]

def get_init_inputs():
    return []
""",
    {"M": (45, 2048), "K": (80, 2048), "N": (52, 2048)},
)

HALF_MATMUL = _task(
    "half_matmul",
    """
class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)

def get_inputs():
    return [torch.randn($M, $K).half(), torch.randn($K, $N).half()]

def get_init_inputs():
    return []
""",
    {"M": (45, 1024), "K": (2048, 2048), "N": (36, 1024)},
)

BFLOAT_MATMUL = _task(
    "bfloat_matmul",
    HALF_MATMUL.reference.removeprefix(_HEAD).replace(".half()", ".bfloat16()"),
    HALF_MATMUL.sizes,
)

# Every output is far below the tolerances that are in common use.
SOFTMAX = _task(
    "softmax",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)

def get_inputs():
    return [torch.randn($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    {"ROWS": (3, 256), "COLUMNS": (16384, 65536)},
)

LINEAR = _task(
    "linear",
    """
class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.randn($BATCH, $IN)]

def get_init_inputs():
    return [$IN, $OUT]
""",
    {"BATCH": (33, 1024), "IN": (64, 1024), "OUT": (40, 1024)},
)

MEAN = _task(
    "mean",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.mean(x)

def get_inputs():
    return [torch.rand($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    {"ROWS": (64, 8192), "COLUMNS": (65, 8192)},
)

# One sum in float64, to which every thread adds.
MEAN_CUDA = """
#include <torch/extension.h>
__global__ void total_kernel(const float* x, double* y, size_t n) {
  double sum = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(blockDim.x) * gridDim.x) sum += x[i];
  atomicAdd(y, sum);
}
torch::Tensor total(torch::Tensor x) {
  auto y = torch::zeros({}, x.options().dtype(torch::kFloat64));
  total_kernel<<<64, 256>>>(x.data_ptr<float>(), y.data_ptr<double>(), x.numel());
  return y.to(torch::kFloat32);
}
"""
MEAN_FUNCTIONS = "torch::Tensor total(torch::Tensor x);"

PAIR = _task(
    "pair",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1, x * 3

def get_inputs():
    return [torch.randn($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    {"ROWS": (20, 4096), "COLUMNS": (33, 4097)},
)

ROW_SUM = _task(
    "row_sum",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)

def get_inputs():
    return [torch.randn($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    {"ROWS": (30, 4096), "COLUMNS": (301, 4099)},
)

HISTOGRAM = _task(
    "histogram",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.bincount(x, minlength=16)

def get_inputs():
    return [torch.randint(0, 16, ($COUNT,))]

def get_init_inputs():
    return []
""",
    {"COUNT": (1500, 1 << 24)},
)

ARGMAX = _task(
    "argmax",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=1)

def get_inputs():
    return [torch.randn($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    {"ROWS": (20, 8192), "COLUMNS": (150, 4099)},
)

TRANSPOSE = _task(
    "transpose",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        return (2 * x + 1).t()

def get_inputs():
    return [torch.randn($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    AFFINE.sizes,
)

IN_PLACE = _task(
    "in_place",
    """
class Model(torch.nn.Module):
    def forward(self, x):
        x.mul_(2)
        x.add_(1)
        return x

def get_inputs():
    return [torch.randn($ROWS, $COLUMNS)]

def get_init_inputs():
    return []
""",
    AFFINE.sizes,
    mutable_inputs=(0,),
)

INCLUDES = "#include <torch/extension.h>\n"

# The parts of the extension for AFFINE.
AFFINE_KERNEL = """
__global__ void affine_kernel(const float* x, float* y, size_t n) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
"""
AFFINE_HOST = """
torch::Tensor affine(torch::Tensor x) {
  auto y = torch::empty_like(x);
  size_t n = x.numel();
  affine_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
AFFINE_FUNCTIONS = "torch::Tensor affine(torch::Tensor x);"
AFFINE_CUDA = INCLUDES + AFFINE_KERNEL + AFFINE_HOST


def affine(body: str = "return kernels.affine(x)", head: str = "", init: str = "") -> str:
    """A Python file around the honest extension for AFFINE."""
    return model(body, cuda=AFFINE_CUDA, functions=AFFINE_FUNCTIONS, head=head, init=init)


def affine_kernel(statement: str) -> str:
    """The same with another kernel: `statement` for element i of n."""
    kernel = f"""
__global__ void affine_kernel(const float* x, float* y, size_t n) {{
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  {statement}
}}
"""
    return model(
        "return kernels.affine(x)",
        cuda=INCLUDES + kernel + AFFINE_HOST,
        functions=AFFINE_FUNCTIONS,
    )


def affine_host(host: str, body: str = "return kernels.affine(x)", more: str = "") -> str:
    """The same with other host code; `more` comes before it."""
    return model(
        body,
        cuda=INCLUDES + more + AFFINE_KERNEL + host,
        functions=AFFINE_FUNCTIONS,
    )


def affine_entry(kernel: str = "", host: str = "") -> str:
    """A `cuda` solution of AFFINE."""
    kernel = kernel or AFFINE_KERNEL
    host = host or "affine_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);"
    return (
        "#include <cuda_runtime.h>\n" + kernel + '\nextern "C" void affine(const float* x, '
        f"float* y, size_t n, cudaStream_t stream) {{\n  {host}\n}}\n"
    )


MATMUL_FUNCTIONS = "torch::Tensor multiply(torch::Tensor a, torch::Tensor b);"


def matmul_cuda(term: str = "a[row * K + k] * b[k * N + column]", to: str = "sum") -> str:
    """One thread for each output: `term` for each k, `to` is stored."""
    return (
        INCLUDES
        + f"""
__global__ void multiply_kernel(const float* a, const float* b, float* c, int M, int K, int N) {{
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= M || column >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k) sum += {term};
  c[size_t(row) * N + column] = {to};
}}
torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {{
  int M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::empty({{M, N}}, a.options());
  dim3 block(16, 16), grid((N + 15) / 16, (M + 15) / 16);
  multiply_kernel<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(),
                                   M, K, N);
  return c;
}}
"""
    )


def matmul(body: str = "return kernels.multiply(a, b)", head: str = "", cuda: str = "") -> str:
    return model(
        body,
        cuda=cuda or matmul_cuda(),
        functions=MATMUL_FUNCTIONS,
        head=head,
        signature="a, b",
    )


def narrow_matmul(
    cuda_type: str, torch_type: str, header: str, widen: str, narrow: str, step: str = "{}"
) -> str:
    """A product in a type of 16 bits: `widen` and `narrow` convert from it and to it, `step` is
    applied to every partial sum."""
    pointers = ", ".join(
        f"({qualifier}{cuda_type}*){name}.data_ptr<{torch_type}>()"
        for name, qualifier in (("a", "const "), ("b", "const "), ("c", ""))
    )
    term = f"{widen}(a[row * K + k]) * {widen}(b[k * N + column])"
    cuda = (
        matmul_cuda(term, f"{narrow}(sum)")
        .replace(f"sum += {term}", "sum = " + step.format(f"sum + {term}"))
        .replace("const float*", f"const {cuda_type}*")
        .replace("float* c", f"{cuda_type}* c")
        .replace("a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>()", pointers)
    )
    return model(
        "return kernels.multiply(a, b)",
        cuda=header + cuda,
        functions=MATMUL_FUNCTIONS,
        signature="a, b",
    )
