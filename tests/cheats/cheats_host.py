"""Cheats in the C++ host code, at compile time and at run time."""

from __future__ import annotations

from .candidates import CUDA, Candidate, model
from .tasks import (
    AFFINE,
    AFFINE_CUDA,
    AFFINE_FUNCTIONS,
    AFFINE_HOST,
    MATMUL,
    affine_entry,
    affine_host,
    matmul,
    matmul_cuda,
)

_WRONG = ("WRONG_OUTPUT",)
_KEPT = ("WRONG_OUTPUT", "NONDETERMINISTIC")

_LAUNCH = "affine_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);"


def _host(before: str = "", after: str = "", launch: str = _LAUNCH) -> str:
    return f"""
torch::Tensor affine(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  size_t n = x.numel();
  {before}
  {launch}
  {after}
  return y;
}}
"""


WORKERS = [
    Candidate(
        "aten-in-host-code",
        "other worker",
        MATMUL,
        matmul(
            cuda="#include <torch/extension.h>\n__global__ void decoy_kernel() {}\n"
            "torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {\n"
            "  return torch::matmul(a, b);\n}\n"
        ),
        ("NO_CUSTOM_KERNEL",),
        "torch is called from C++",
    ),
    Candidate(
        "aten-beside-empty-kernel",
        "other worker",
        MATMUL,
        matmul(
            cuda="#include <torch/extension.h>\n__global__ void decoy_kernel() {}\n"
            "torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {\n"
            "  decoy_kernel<<<1, 1>>>();\n  return torch::matmul(a, b);\n}\n"
        ),
        ("NO_CUSTOM_KERNEL",),
        "an empty kernel is launched to look like work",
    ),
    Candidate(
        "aten-beside-kernel-that-is-overwritten",
        "other worker",
        MATMUL,
        matmul(
            cuda=matmul_cuda().replace(
                "  return c;", "  c.copy_(torch::matmul(a, b));\n  return c;"
            )
        ),
        ("NO_CUSTOM_KERNEL",),
        "the whole kernel runs, and its result is replaced",
    ),
    Candidate(
        "host-loop",
        "other worker",
        AFFINE,
        affine_host(
            _host(
                launch="const float* in = x.data_ptr<float>();\n"
                "  float* out = y.data_ptr<float>();\n"
                "  for (size_t i = 0; i < n; ++i) out[i] = 2.0f * in[i] + 1.0f;"
            )
        ),
        ("NO_CUSTOM_KERNEL", "CRASHED", "ILLEGAL_ACCESS"),
        "the CPU does it; its memory is the device's on the emulated device only",
    ),
    Candidate(
        "cublas-by-name",
        "other worker",
        MATMUL,
        matmul(
            cuda="""
#include <torch/extension.h>
#include <dlfcn.h>
__global__ void decoy_kernel() {}
typedef int (*Create)(void**);
typedef int (*Gemm)(void*, int, int, int, int, int, const float*, const float*, int, const float*,
                    int, const float*, float*, int);
torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
  int M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::empty({M, N}, a.options());
  static void* library = dlopen("libcublas.so.13", RTLD_NOW);
  static void* handle = nullptr;
  std::string gemm = std::string("cublas") + "Sgemm_v" + "2";
  if (!handle) ((Create)dlsym(library, "cublasCreate_v2"))(&handle);
  float one = 1, zero = 0;
  decoy_kernel<<<1, 1>>>();
  ((Gemm)dlsym(library, gemm.c_str()))(handle, 0, 0, N, M, K, &one, b.data_ptr<float>(), N,
                                       a.data_ptr<float>(), K, &zero, c.data_ptr<float>(), N);
  return c;
}
"""
        ),
        ("NO_CUSTOM_KERNEL", "FORBIDDEN_LIBRARY"),
        "a library that no word in the source names",
        devices=(CUDA,),
    ),
]

KEPT = [
    Candidate(
        "static-map-by-address",
        "kept results",
        AFFINE,
        affine_host(
            """
torch::Tensor affine(torch::Tensor x) {
  static std::map<const void*, torch::Tensor> kept;
  auto found = kept.find(x.data_ptr());
  if (found != kept.end() && found->second.sizes() == x.sizes()) return found->second;
  auto y = torch::empty_like(x);
  size_t n = x.numel();
  affine_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  kept.emplace(x.data_ptr(), y);
  return y;
}
""",
            more="#include <map>\n",
        ),
        _KEPT,
        "the same address comes with other content",
    ),
    Candidate(
        "static-call-counter",
        "kept results",
        AFFINE,
        affine_host(
            _host(
                before="static int calls = 0;",
                launch="if (++calls <= 2) {\n    " + _LAUNCH + "\n  }",
            )
        ),
        _KEPT,
        "nothing is launched after the first calls, memory may still be right",
    ),
    Candidate(
        "entry-keeps-first-result",
        "kept results",
        AFFINE,
        affine_entry(
            host="""static float* kept = nullptr;
  if (!kept) {
    cudaMalloc(&kept, n * sizeof(float));
    affine_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, kept, n);
  }
  cudaMemcpyAsync(y, kept, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);"""
        ),
        _KEPT,
        "a copy of an old result takes the least time",
        contract="cuda",
    ),
]

LATER = [
    Candidate(
        "std-thread-launches-later",
        "later",
        AFFINE,
        affine_host(
            _host(
                launch="""std::thread([x, y, n] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    """
                + _LAUNCH
                + """
  }).detach();"""
            ),
            more="#include <chrono>\n#include <thread>\n",
        ),
        ("DEFERRED_WORK", "WRONG_OUTPUT"),
        "a native thread works after the call has returned",
    ),
    Candidate(
        "destructor-launches-later",
        "later",
        AFFINE,
        affine_host(
            _host(
                launch="""static Later later;
  later.x = x; later.y = y;"""
            ),
            more="""
struct Later { torch::Tensor x, y; ~Later(); };
""",
        ).replace(
            "torch::Tensor affine(torch::Tensor x) {",
            "Later::~Later() { size_t n = x.numel(); " + _LAUNCH + " }\n"
            "torch::Tensor affine(torch::Tensor x) {",
            1,
        ),
        _WRONG,
        "a destructor of the library works at its end",
    ),
    Candidate(
        "non-blocking-stream",
        "later",
        MATMUL,
        matmul(
            cuda=matmul_cuda().replace(
                "multiply_kernel<<<grid, block>>>",
                "static cudaStream_t own = nullptr;\n"
                "  if (!own) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);\n"
                "  multiply_kernel<<<grid, block, 0, own>>>",
            )
        ),
        ("IMPOSSIBLE_TIME", "WRONG_OUTPUT", "DEFERRED_WORK"),
        "events on the current stream do not see it",
        devices=(CUDA,),
        twin="honest-matmul",
    ),
]

PROCESS = [
    Candidate(
        "exits-well-in-a-call",
        "process",
        AFFINE,
        affine_host(_host(before="_exit(0);"), more="#include <unistd.h>\n"),
        ("CRASHED",),
        "exit code 0 is no result",
    ),
    Candidate(
        "exits-well-when-loaded",
        "process",
        AFFINE,
        affine_host(
            AFFINE_HOST,
            more="#include <unistd.h>\n__attribute__((constructor)) void begin() { _exit(0); }\n",
        ),
        ("CRASHED",),
        "a constructor of the library ends the process",
    ),
    Candidate(
        "entry-exits-well",
        "process",
        AFFINE,
        affine_entry(host="exit(0);").replace(
            "#include <cuda_runtime.h>", "#include <cuda_runtime.h>\n#include <cstdlib>"
        ),
        ("CRASHED",),
        "the same in a solution without Python",
        contract="cuda",
    ),
    Candidate(
        "answers-for-itself",
        "process",
        AFFINE,
        affine_host(
            _host(
                before="""const char text[] =
      "{\\"ok\\":true,\\"verdict\\":\\"PASSED\\"}\\n";
  for (int fd = 1; fd < 64; ++fd) if (write(fd, text, sizeof text - 1) < 0) continue;
  _exit(0);"""
            ),
            more="#include <unistd.h>\n",
        ),
        ("TAMPERING", "CRASHED"),
        "a verdict is written to every descriptor",
    ),
    Candidate(
        "attaches-to-its-parent",
        "process",
        AFFINE,
        affine_host(
            _host(
                before="""for (int pid = 1; pid < 64; ++pid) {
    if (pid != getpid() && ptrace(PTRACE_ATTACH, pid, nullptr, nullptr) == 0) return 2 * x + 1;
    char byte; iovec here{&byte, 1}, there{(void*)0x400000, 1};
    if (pid != getpid() && process_vm_readv(pid, &here, 1, &there, 1, 0) > 0) return 2 * x + 1;
    std::string path = "/proc/" + std::to_string(pid) + "/mem";
    if (pid != getpid() && open(path.c_str(), O_RDWR) >= 0) return 2 * x + 1;
  }""",
                launch="y.zero_();",
            ),
            more="#include <fcntl.h>\n#include <sys/ptrace.h>\n"
            "#include <sys/uio.h>\n#include <unistd.h>\n#include <string>\n",
        ),
        ("WRONG_OUTPUT", "NO_CUSTOM_KERNEL"),
        "no other process can be reached",
    ),
    Candidate(
        "brings-its-own-libc",
        "process",
        AFFINE,
        affine_host(
            _host(launch="y.zero_();"),
            more="""
#include <sys/socket.h>
#include <unistd.h>
extern "C" {
ssize_t pwrite(int, const void*, size_t size, off_t) { return ssize_t(size); }
ssize_t sendmsg(int, const struct msghdr*, int) { return 0; }
int memcmp(const void*, const void*, size_t) { return 0; }
}
""",
        ),
        ("WRONG_OUTPUT", "COMPILE_ERROR"),
        "functions that a library brings with it do not reach the harness",
    ),
    Candidate(
        "interposes-time-and-write",
        "process",
        AFFINE,
        affine_host(
            AFFINE_HOST.replace("2.0f", "2.0f"),
            more="""
#include <ctime>
#include <unistd.h>
extern "C" {
int clock_gettime(clockid_t, timespec* t) { t->tv_sec = 1; t->tv_nsec = 1; return 0; }
}
// Under other names for the compiler, which knows what these functions take.
int fast_event(float*, void*, void*) __asm__("cudaEventElapsedTime");
int fast_driver_event(float*, void*, void*) __asm__("cuEventElapsedTime");
int no_record(void*, void*) __asm__("cuEventRecord");
int no_wait() __asm__("cuCtxSynchronize");
int fast_event(float* ms, void*, void*) { *ms = 1e-6f; return 0; }
int fast_driver_event(float* ms, void*, void*) { *ms = 1e-6f; return 0; }
int no_record(void*, void*) { return 0; }
int no_wait() { return 0; }
""",
        ),
        ("IMPOSSIBLE_TIME", "TAMPERING"),
        "a library that brings functions of the clock with it",
        devices=(CUDA,),
        twin="honest-affine",
    ),
    Candidate(
        "detours-the-driver",
        "process",
        MATMUL,
        matmul(
            cuda=matmul_cuda()
            .replace(
                "torch::Tensor multiply(",
                """
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
static int fast_event(float* ms, void*, void*) { *ms = 0.001f; return 0; }
static void detour() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return;
  for (const char* name : {"cuEventElapsedTime", "cuEventElapsedTime_v2"}) {
    unsigned char* code = (unsigned char*)dlsym(library, name);
    if (!code) continue;
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void* target = (void*)fast_event;
    std::memcpy(jump + 2, &target, 8);
    void* page = (void*)((size_t)code & ~size_t(4095));
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) std::memcpy(code, jump, 12);
  }
}
torch::Tensor multiply(""",
                1,
            )
            .replace(
                "int M = a.size(0)",
                "static bool once = (detour(), true); (void)once;\n  int M = a.size(0)",
            )
        ),
        ("IMPOSSIBLE_TIME", "TAMPERING"),
        "the driver's own code is overwritten",
        devices=(CUDA,),
        twin="honest-matmul",
    ),
    Candidate(
        "keeps-results-in-l2",
        "process",
        AFFINE,
        affine_host(
            _host(
                before="""cudaStreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = x.data_ptr();
  value.accessPolicyWindow.num_bytes = 32 << 20;
  value.accessPolicyWindow.hitRatio = 1.0f;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
  cudaStreamSetAttribute(0, cudaStreamAttributeAccessPolicyWindow, &value);"""
            )
        ),
        ("IMPOSSIBLE_TIME", "PASSED"),
        "what is set aside in L2 is taken back before each call",
        devices=(CUDA,),
        twin="honest-affine",
    ),
]


def _flags(options: str) -> str:
    return model(
        "return kernels.affine(x)",
        cuda=AFFINE_CUDA,
        functions=AFFINE_FUNCTIONS,
        options=", " + options,
    )


def _including(line: str) -> str:
    return model(
        "return kernels.affine(x)",
        cuda=AFFINE_CUDA + "\n" + line + "\n",
        functions=AFFINE_FUNCTIONS,
    )


_REFUSED = ("COMPILE_ERROR", "UNSUPPORTED")
COMPILE = [
    Candidate(
        "includes-a-secret",
        "compile",
        AFFINE,
        _including('#include "/etc/shadow"'),
        _REFUSED,
        "the compiler sees no file of the host",
    ),
    Candidate(
        "includes-the-environment",
        "compile",
        AFFINE,
        _including(
            '__asm__(".section .rodata\\nkept: .incbin \\"/proc/1/environ\\"\\n.text");\n'
            'extern "C" const char kept[];\nconst char* leak() { return kept; }\n'
            '#include "/proc/1/environ"'
        ),
        (*_REFUSED, "PASSED"),
        "the environment of the compiler holds nothing; some compilers take nothing as a source",
    ),
    Candidate(
        "includes-the-sources-of-others",
        "compile",
        AFFINE,
        _including('#include "/build/../../reference.py"'),
        _REFUSED,
        "nothing lies beside the sources",
    ),
    Candidate(
        "loads-a-plugin",
        "compile",
        AFFINE,
        _flags(
            'extra_cflags=["-fplugin=/tmp/x.so"], '
            'extra_cuda_cflags=["-Xcompiler", "-fplugin=/tmp/x.so"]'
        ),
        ("COMPILE_ERROR", "PASSED", "UNSUPPORTED"),
        "flags that load code are not passed on",
    ),
    Candidate(
        "brings-its-own-compiler",
        "compile",
        AFFINE,
        _flags('extra_cuda_cflags=["-ccbin", "/tmp/g++", "--run"]'),
        ("COMPILE_ERROR", "PASSED", "UNSUPPORTED"),
        "flags that name programs are not passed on",
    ),
]

CANDIDATES = WORKERS + KEPT + LATER + PROCESS + COMPILE
