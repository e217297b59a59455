"""Faults: each has to end bounded and typed, and to leave the worker as it was."""

from __future__ import annotations

from .candidates import BOTH, CUDA, EMULATED, Candidate, model
from .tasks import AFFINE, AFFINE_CUDA, AFFINE_FUNCTIONS, affine, affine_host, affine_kernel


def _fault(
    name: str, source: str, verdicts: tuple[str, ...], why: str, devices: tuple[str, ...] = BOTH
) -> Candidate:
    return Candidate(name, "fault", AFFINE, source, verdicts, why, devices=devices)


def _host(before: str, includes: str = "") -> str:
    return affine_host(
        f"""
torch::Tensor affine(torch::Tensor x) {{
  {before}
  auto y = torch::empty_like(x);
  size_t n = x.numel();
  affine_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}}
""",
        more=includes,
    )


CANDIDATES = [
    _fault(
        "hung-kernel",
        affine_kernel("while (atomicAdd(y, 0.0f) != 12345.0f) {} if (i < n) y[i] = x[i];").replace(
            "affine_kernel<<<(n + 255) / 256, 256>>>", "affine_kernel<<<1, 1>>>"
        ),
        ("TIME_LIMIT",),
        "one thread of the device never ends",
    ),
    _fault(
        "hung-grid",
        affine_kernel("while (atomicAdd(y, 0.0f) != 12345.0f) {}\n  if (i < n) y[i] = x[i];"),
        ("TIME_LIMIT",),
        "every multiprocessor is busy for ever",
        devices=(CUDA,),
    ),
    _fault(
        "barrier-that-not-all-reach",
        affine_kernel(
            "if (i < n && threadIdx.x < 100) __syncthreads();\n"
            "  if (threadIdx.x >= 100) while (atomicAdd(y, 0.0f) != 12345.0f) {}"
        ),
        ("TIME_LIMIT",),
        "a deadlock within a block",
    ),
    _fault(
        "endless-host-code",
        _host("for (volatile int i = 0;; i = i + 1) {}"),
        ("TIME_LIMIT",),
        "the CPU spins",
    ),
    _fault(
        "ignores-signals",
        affine("""
            import signal, time
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            while True:
                try:
                    time.sleep(1000)
                except BaseException:
                    pass
            """),
        ("TIME_LIMIT",),
        "cannot be asked to end",
    ),
    _fault(
        "stops-itself",
        affine("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
        ("TIME_LIMIT", "CRASHED"),
        "a stopped process never answers",
    ),
    _fault(
        "leaves-a-daemon",
        affine("""
            import os, time
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    while True:
                        pass
                os._exit(0)
            return kernels.affine(x)
            """),
        ("PASSED", "PROCESS_LIMIT", "DEFERRED_WORK", "ILLEGAL_ACCESS"),
        "a right result, and a process that goes on",
    ),
    _fault("abort", _host("std::abort();", "#include <cstdlib>\n"), ("CRASHED",), "SIGABRT"),
    _fault(
        "segmentation-fault",
        _host("*reinterpret_cast<int*>(size_t(x.dim()) * 4) = 1;"),
        ("CRASHED",),
        "SIGSEGV",
    ),
    _fault(
        "stack-overflow",
        _host(
            "if (descend(0) == 42) return x;",
            "#include <cstring>\n__attribute__((noinline)) static int descend(int depth) {\n"
            "  volatile char frame[65536]; frame[depth % 65536] = char(depth);\n"
            "  return descend(depth + 1) + frame[(depth * 7) % 65536];\n}\n",
        ),
        ("CRASHED",),
        "endless recursion in C++",
    ),
    _fault(
        "exception-in-a-thread",
        _host(
            'std::thread([] { throw std::runtime_error("unhandled"); }).join();',
            "#include <stdexcept>\n#include <thread>\n",
        ),
        ("CRASHED",),
        "std::terminate",
    ),
    _fault(
        "endless-recursion",
        affine("def descend(n): return descend(n + 1)\ndescend(0)"),
        ("RUNTIME_ERROR",),
        "RecursionError",
    ),
    _fault(
        "keyboard-interrupt",
        affine("raise KeyboardInterrupt"),
        ("RUNTIME_ERROR",),
        "an exception that is no Exception",
    ),
    _fault("kills-itself", affine("import os\nos.kill(os.getpid(), 9)"), ("CRASHED",), "SIGKILL"),
    _fault(
        "null-pointer-on-the-device",
        affine_kernel("if (i < n) ((float*)nullptr)[i] = x[i];"),
        ("ILLEGAL_ACCESS", "OUT_OF_BOUNDS"),
        "a sticky error",
    ),
    _fault(
        "misaligned-on-the-device",
        affine_kernel("if (i < 1) *(float2*)(y + 1) = make_float2(x[0], x[0]);"),
        ("ILLEGAL_ACCESS", "WRONG_OUTPUT"),
        "a sticky error",
    ),
    _fault(
        "trap-on-the-device",
        affine_kernel("if (i < n) __trap();"),
        ("RUNTIME_ERROR", "ILLEGAL_ACCESS"),
        "a sticky error",
    ),
    _fault(
        "assertion-on-the-device",
        affine_kernel("assert(i > n);").replace('r"""\n', 'r"""\n#include <cassert>\n', 1),
        ("RUNTIME_ERROR",),
        "a sticky error",
    ),
    _fault(
        "illegal-launch",
        affine().replace("<<<(n + 255) / 256, 256>>>", "<<<(n + 2047) / 2048, 2048>>>"),
        ("ILLEGAL_LAUNCH", "WRONG_OUTPUT"),
        "more threads in a block than there can be",
    ),
    _fault(
        "fork-bomb",
        affine("""
            import os, time
            while True:
                try:
                    if os.fork() == 0:
                        time.sleep(1000)
                except OSError:
                    pass
            """),
        ("PROCESS_LIMIT",),
        "as many processes as there may be",
    ),
    _fault(
        "thread-bomb",
        _host(
            "std::vector<std::thread> all;\n"
            "  for (;;) all.emplace_back([] { std::this_thread::sleep_for("
            "std::chrono::hours(1)); });",
            "#include <chrono>\n#include <thread>\n#include <vector>\n",
        ),
        ("PROCESS_LIMIT", "CRASHED"),
        "as many threads as there may be",
    ),
    _fault(
        "memory-bomb",
        affine("hoard = []\nwhile True: hoard.append(bytearray(64 << 20))"),
        ("HOST_MEMORY",),
        "all of the host's memory",
    ),
    _fault(
        "shared-memory-bomb",
        affine("""
            import os
            hoard = []
            while True:
                fd = os.memfd_create("x")
                for i in range(64):
                    os.write(fd, bytes(1 << 20))
                hoard.append(fd)
            """),
        ("HOST_MEMORY", "DISK_LIMIT", "RUNTIME_ERROR"),
        "memory that no mapping shows",
    ),
    _fault(
        "disk-bomb",
        affine("""
            n = 0
            while True:
                with open(f"/tmp/{n}", "wb") as file:
                    file.write(bytes(8 << 20))
                n += 1
            """),
        ("DISK_LIMIT",),
        "many files",
    ),
    _fault(
        "large-file",
        affine(
            'with open("/dev/shm/x", "wb") as file:\n    while True: file.write(bytes(8 << 20))'
        ),
        ("DISK_LIMIT", "HOST_MEMORY"),
        "one file without end",
    ),
    _fault(
        "output-bomb",
        affine('while True: print("1234567890" * 1000)'),
        ("OUTPUT_LIMIT",),
        "prints without end",
    ),
    _fault(
        "output-bomb-from-the-device",
        affine_kernel(
            'for (int k = 0; k < 1000000; ++k) printf("%d %d 12345678901234567890\\n", k, (int)i);'
        ).replace('r"""\n', 'r"""\n#include <cstdio>\n', 1),
        ("OUTPUT_LIMIT",),
        "the device prints without end",
        devices=(EMULATED,),
    ),
    _fault(
        "device-memory-bomb",
        _host(
            "void* p = nullptr;\n"
            "  while (cudaMalloc(&p, size_t(256) << 20) == cudaSuccess) "
            "cudaMemset(p, 1, size_t(256) << 20);\n"
            '  TORCH_CHECK(false, "CUDA error: out of memory");'
        ),
        ("DEVICE_MEMORY", "HOST_MEMORY"),
        "all of the device's memory",
    ),
    _fault(
        "leaks-device-memory",
        _host("void* p = nullptr;\n  cudaMalloc(&p, size_t(16) << 20);"),
        ("PASSED",),
        "frees nothing; its end does",
    ),
    _fault(
        "includes-an-endless-file",
        model(
            "return kernels.affine(x)",
            cuda=AFFINE_CUDA + '\n#include "/dev/zero"\n',
            functions=AFFINE_FUNCTIONS,
        ),
        ("COMPILE_ERROR", "COMPILE_TIMEOUT", "COMPILE_RESOURCES"),
        "a source without end",
    ),
    _fault(
        "template-bomb",
        model(
            "return kernels.affine(x)",
            cuda=AFFINE_CUDA
            + """
template <int N, int M> struct Bomb { static const int value = Bomb<N - 1, 2 * M>::value +
    Bomb<N - 1, 2 * M + 1>::value; };
template <int M> struct Bomb<0, M> { static const int value = 1; };
int boom() { return Bomb<25, 1>::value; }
""",
            functions=AFFINE_FUNCTIONS,
        ),
        ("COMPILE_RESOURCES", "COMPILE_TIMEOUT", "COMPILE_ERROR"),
        "the compiler eats the machine",
    ),
    _fault(
        "hundreds-of-errors",
        model(
            "return kernels.affine(x)",
            cuda=AFFINE_CUDA
            + "\n".join(
                f"template <class T> struct E{i} {{ undefined_{i} a; T b = missing_{i}<T>(); }}; "
                f"E{i}<int> e{i};"
                for i in range(300)
            ),
            functions=AFFINE_FUNCTIONS,
        ),
        ("COMPILE_ERROR",),
        "a log without end",
    ),
    _fault(
        "broken-import",
        "raise MemoryError('not really')\n",
        ("HOST_MEMORY", "LOAD_ERROR"),
        "ends before there is anything to build",
    ),
]
