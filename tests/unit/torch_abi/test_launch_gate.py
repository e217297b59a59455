"""The gate of a GPU's launches, over a stand-in for the CUDA runtime."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import launch_gate

GATE = Path(__file__).resolve().parents[3] / (
    "gpu_worker/torch_abi/include/kmosaic_torch/launch_gate.c"
)
# Launches through a name that the stand-in has, one that nothing has, and one looked up.
SOLUTION = """
#include <dlfcn.h>
struct Dim3 { unsigned x, y, z; };
int cudaLaunchKernel(const void *, struct Dim3, struct Dim3, void **, unsigned long, void *);
int cuGraphLaunch(void *, void *);
int launch(int *out) {
  struct Dim3 one = {1, 2, 3};
  void *arguments[] = {out};
  return cudaLaunchKernel(0, one, one, arguments, 7, 0);
}
int launch_graph(void) { return cuGraphLaunch(0, 0); }
int look_up(const char *name) { return dlsym(RTLD_DEFAULT, name) != 0; }
"""
RUNTIME = """
struct Dim3 { unsigned x, y, z; };
int cudaLaunchKernel(const void *f, struct Dim3 g, struct Dim3 b, void **a, unsigned long n,
                     void *s) {
  *(int *)a[0] = (int)(g.x + b.y + b.z + n);
  return 9;
}
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc: nothing to compile with")

    def build(source: str, name: str, *more: str) -> Path:
        (tmp_path / f"{name}.c").write_text(source)
        out = tmp_path / f"lib{name}.so"
        command = [compiler, "-shared", "-fPIC", str(tmp_path / f"{name}.c"), "-o", str(out)]
        subprocess.run([*command, *more], check=True)
        return out

    runtime = build(RUNTIME, "runtime")
    wraps = [
        f"-Wl,--wrap={name}"
        for name in ("cudaLaunchKernel", "cuGraphLaunch", "dlsym", "cuLaunchKernel")
    ]
    gate = ["-x", "c", "-w", str(GATE), "-x", "none"]
    needed = ["-Wl,--no-as-needed", str(runtime), f"-Wl,-rpath,{tmp_path}"]
    solution = build(SOLUTION, "solution", *gate, *wraps, *needed)
    # Torch brought a runtime into this process, which would be found first.
    ctypes.CDLL(str(solution), mode=os.RTLD_DEEPBIND)
    return solution


def launched(library: ctypes.CDLL) -> tuple[int, int]:
    out = ctypes.c_int(0)
    return library.launch(ctypes.byref(out)), out.value


def test_launches_are_counted_and_pass(library: Path) -> None:
    gate = launch_gate.LaunchGate(str(library))
    assert gate.launches() == 0
    assert gate.refused() == 0
    assert launched(ctypes.CDLL(str(library))) == (9, 1 + 2 + 3 + 7)
    assert gate.launches() == 1
    assert gate.refused() == 9
    assert launch_gate.total([gate, gate]) == 2


def test_a_closed_gate_lets_none_pass(library: Path) -> None:
    gate = launch_gate.LaunchGate(str(library))
    gate.close()
    assert launched(ctypes.CDLL(str(library))) == (0, 0)
    assert gate.launches() == 1


def test_what_the_process_does_not_have_is_an_error_of_cuda(library: Path) -> None:
    assert ctypes.CDLL(str(library)).launch_graph() == 500


def test_a_launching_function_that_is_looked_up_makes_the_count_unknown(library: Path) -> None:
    gate = launch_gate.LaunchGate(str(library))
    solution = ctypes.CDLL(str(library))
    assert solution.look_up(b"malloc")
    assert gate.launches() == 0
    solution.look_up(b"cuLaunchKernel")
    assert gate.launches() is None
    assert launch_gate.total([gate]) is None


def test_a_library_that_does_not_load_is_an_import_error(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="cannot load the extension"):
        launch_gate.LaunchGate(str(tmp_path / "none.so"))
