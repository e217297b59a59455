"""A stand-in for libcuda that runs our kernels' source on the CPU, one thread after the other."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

SOURCE = Path(__file__).resolve().parents[3] / "gpu_worker/device/kernels/kernels.cu"
STAND_IN = r"""
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
using std::sqrt;
struct uint4 { unsigned x, y, z, w; };
struct Dim { unsigned x, y, z; };
static Dim blockIdx, blockDim, gridDim, threadIdx;
#define __global__
#define __device__
static void atomicAdd(double* place, double value) { *place += value; }
static void atomicOr(unsigned* place, unsigned value) { *place |= value; }
static void AtomicMax(double* place, double value) { if (value > *place) *place = value; }
#include "MEASURE"

static char text[1 << 16];
static void note(const char* what, unsigned long long number) {
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, "%s %llu\n", what, number);
}
static double now = 0;
// The kernels of comparisons by name; what is launched gets its parameters.
template <typename T, typename... Arguments, size_t... I>
static void apply(T (*kernel)(Arguments...), void** parameters, std::index_sequence<I...>) {
  kernel(*(Arguments*)parameters[I]...);
}
template <typename... Arguments>
static void apply(void (*kernel)(Arguments...), void** parameters) {
  apply(kernel, parameters, std::index_sequence_for<Arguments...>());
}
using Launch = void (*)(void**);
#define BOTH(name) \
  {"kmosaic_field_" #name, [](void** p) { apply(kmosaic_field_##name, p); }}, \
  {"kmosaic_check_" #name, [](void** p) { apply(kmosaic_check_##name, p); }}
static const std::map<std::string, Launch> comparisons = {
  BOTH(float32), BOTH(float32_wide), BOTH(float64)};
static double events[8];
static int fail_next = 0;

extern "C" {
const char* standin_log() { return text; }
void standin_fail(int code) { fail_next = code; }
int cuCtxSynchronize() { now += 1; return 0; }
int cuCtxSetLimit(int limit, size_t value) { note("limit", limit * 1000 + value); return 0; }
int cuCtxResetPersistingL2Cache() { note("reset", 0); return 0; }
int cuCtxGetDevice(int* device) { *device = 3; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = device != 3 ? -1 : attribute == 38 ? 1 << 20 : attribute == 103 ? 1 : -1;
  return 0;
}
int cuEventCreate(void** event, unsigned flags) {
  static size_t made = 0;
  *event = &events[made++];
  return flags;
}
int cuEventRecord(void* event, void* stream) {
  if (fail_next) { int code = fail_next; fail_next = 0; return code; }
  *static_cast<double*>(event) = now;
  now += 0.25;
  note("record on", reinterpret_cast<size_t>(stream));
  return 0;
}
int cuEventElapsedTime(float* ms, void* start, void* end) {
  *ms = static_cast<float>(*static_cast<double*>(end) - *static_cast<double*>(start));
  return 0;
}
int cuModuleLoadData(void** module, const char* image) {
  *module = const_cast<char*>(image);
  return memcmp(image, "image\0with zero", 15) == 0 ? 0 : 200;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto found = comparisons.find(name);
  *function = found != comparisons.end()          ? (void*)found->second
              : strcmp(name, "kmosaic_evict") == 0 ? (void*)1
              : strcmp(name, "kmosaic_poison") == 0 ? (void*)2
                                                    : nullptr;
  return *function == nullptr ? 500 : 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** parameters, void** extra) {
  if (gy * gz * by * bz != 1 || shared != 0 || extra != nullptr) return 1;
  gridDim = {gx, 1, 1};
  blockDim = {bx, 1, 1};
  for (blockIdx.x = 0; blockIdx.x < gx; ++blockIdx.x) {
    for (threadIdx.x = 0; threadIdx.x < bx; ++threadIdx.x) {
      if (function == (void*)1) {
        kmosaic_evict(*(const uint4**)parameters[0], *(unsigned long long*)parameters[1],
                      *(unsigned**)parameters[2]);
      } else if (function != (void*)2) {
        ((Launch)function)(parameters);
      } else {
        kmosaic_poison(*(unsigned char**)parameters[0], *(unsigned long long*)parameters[1],
                       *(unsigned char*)parameters[2]);
      }
    }
  }
  if (function == (void*)1 || function == (void*)2) {
    note(function == (void*)1 ? "evict" : "poison", *(unsigned long long*)parameters[1]);
  }
  return 0;
}
// Virtual memory management, with files for a GPU's memory.
static const size_t granularity = 1 << 16;
static size_t limit = 1 << 30;
int cuMemGetAllocationGranularity(size_t* size, const void*, int) { *size = granularity; return 0; }
int cuMemCreate(unsigned long long* handle, size_t size, const int* properties,
                unsigned long long) {
  // Pinned memory of device 3 behind a file descriptor.
  if (size % granularity != 0 || properties[0] != 1 || properties[1] != 1 || properties[2] != 1 ||
      properties[3] != 3) {
    return 1;
  }
  if (size > limit) return 2;
  int fd = memfd_create("memory", 0);
  if (ftruncate(fd, size) != 0) return 999;
  *handle = fd;
  note("create", size);
  return 0;
}
int cuMemExportToShareableHandle(int* fd, unsigned long long handle, int, unsigned long long) {
  *fd = dup(handle);
  return 0;
}
int cuMemImportFromShareableHandle(unsigned long long* handle, void* fd, int) {
  struct stat seen;
  if (fstat(static_cast<int>(reinterpret_cast<size_t>(fd)), &seen) != 0 || seen.st_nlink != 0) {
    return 1;
  }
  *handle = dup(static_cast<int>(reinterpret_cast<size_t>(fd)));
  return 0;
}
int cuMemAddressReserve(unsigned long long* address, size_t size, size_t, unsigned long long,
                        unsigned long long) {
  *address = reinterpret_cast<size_t>(
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return 0;
}
int cuMemMap(unsigned long long address, size_t size, size_t, unsigned long long handle,
             unsigned long long) {
  struct stat seen;
  if (fstat(handle, &seen) != 0 || static_cast<size_t>(seen.st_size) < size) return 1;
  mmap(reinterpret_cast<void*>(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, handle, 0);
  return 0;
}
int cuMemSetAccess(unsigned long long address, size_t size, const int* access, size_t count) {
  if (count != 1 || access[0] != 1 || access[1] != 3 || access[2] != 3) return 1;
  return mprotect(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE) == 0 ? 0 : 1;
}
int cuMemUnmap(unsigned long long address, size_t size) {
  mmap(reinterpret_cast<void*>(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
       -1, 0);
  return 0;
}
int cuMemAddressFree(unsigned long long address, size_t size) {
  note("free", size);
  return munmap(reinterpret_cast<void*>(address), size) == 0 ? 0 : 1;
}
int cuMemRelease(unsigned long long handle) { note("release", 0); return close(handle); }
void standin_limit(size_t bytes) { limit = bytes; }
}
"""


class StandIn:
    def __init__(self, library: Any) -> None:
        self.library = library
        library.standin_log.restype = ctypes.c_char_p

    def log(self) -> list[str]:
        text: bytes = self.library.standin_log()
        return text.decode().splitlines()


@functools.cache
def _compiled() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libstandin.so"
        _compile(Path(folder) / "standin.cc", library)
        return library.read_bytes()


def _compile(source: Path, library: Path) -> None:
    source.write_text(STAND_IN.replace("MEASURE", str(SOURCE)))
    command = [
        "g++",
        "-shared",
        "-fPIC",
        "-O1",
        "-fpermissive",
        "-w",
        "-o",
        str(library),
        str(source),
    ]
    subprocess.run(command, check=True)


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    # A file of its own has variables of its own.
    library = tmp_path / "libstandin.so"
    library.write_bytes(_compiled())
    loaded = ctypes.CDLL(str(library))
    real = ctypes.CDLL

    def load(name: str, *rest: Any) -> Any:
        return loaded if name == "libcuda.so.1" else real(name, *rest)

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=77))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *a, device=None, **k: zeros(*a, **k))
    return StandIn(loaded)
