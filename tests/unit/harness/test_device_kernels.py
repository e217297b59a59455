"""Our own kernels and the driver's interface, over a stand-in for libcuda that runs the kernels'
source on the CPU, one thread after the other."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from harness import device_kernels

SOURCE = Path(__file__).resolve().parents[3] / "gpu_worker/device/kernels/measure.cu"
STAND_IN = r"""
#include <cstdio>
#include <cstring>
struct uint4 { unsigned x, y, z, w; };
struct Dim { unsigned x, y, z; };
static Dim blockIdx, blockDim, gridDim, threadIdx;
#define __global__
#include "MEASURE"

static char text[1 << 16];
static void note(const char* what, unsigned long long number) {
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, "%s %llu\n", what, number);
}
static double now = 0;
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
  *value = attribute == 38 && device == 3 ? 1 << 20 : -1;
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
  *function = strcmp(name, "kmosaic_evict") == 0 ? (void*)1 : (void*)2;
  return 0;
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
      } else {
        kmosaic_poison(*(unsigned char**)parameters[0], *(unsigned long long*)parameters[1],
                       *(unsigned char*)parameters[2]);
      }
    }
  }
  note(function == (void*)1 ? "evict" : "poison", *(unsigned long long*)parameters[1]);
  return 0;
}
}
"""


class StandIn:
    def __init__(self, library: Any) -> None:
        self.library = library
        library.standin_log.restype = ctypes.c_char_p

    def log(self) -> list[str]:
        text: bytes = self.library.standin_log()
        return text.decode().splitlines()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    source = tmp_path / "standin.cc"
    source.write_text(STAND_IN.replace("MEASURE", str(SOURCE)))
    library = tmp_path / "libstandin.so"
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


def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> device_kernels.Kernels:
    image = tmp_path / "measure.fatbin"
    image.write_bytes(b"image\0with zeros")
    monkeypatch.setenv(device_kernels.KERNELS_VARIABLE, str(image))
    loaded = device_kernels.load_kernels(device_kernels.Driver())
    assert loaded is not None
    return loaded


def test_poison_fills_what_it_is_given_and_nothing_else(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = kernels(tmp_path, monkeypatch)
    memory = torch.zeros(5_000_000, dtype=torch.uint8)
    loaded.poison(memory.data_ptr() + 3, 4_900_001, 0xFF)
    assert int(memory[:3].sum()) == 0
    assert bool((memory[3:4_900_004] == 0xFF).all())
    assert int(memory[4_900_004:].sum()) == 0


def test_evict_reads_all_and_writes_nothing(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = kernels(tmp_path, monkeypatch)
    buffer = torch.zeros(1 << 20, dtype=torch.uint8)
    sink = torch.zeros(4, dtype=torch.uint8)
    loaded.evict(buffer, sink)
    assert int(sink.sum()) == 0
    # That every word was read shows in what a single bit does.
    for place in (0, 524_301, (1 << 20) - 1):
        buffer[place] = 1
        loaded.evict(buffer, sink)
        assert int(sink.sum()) > 0
        buffer[place] = 0
        sink.zero_()


def test_the_clock_takes_back_persisting_cache_and_empties_the_rest(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = device_kernels.CudaClock(device_kernels.Driver(), kernels(tmp_path, monkeypatch))
    assert clock.l2_bytes == 1 << 20
    clock.empty_cache()
    words = 4 * (1 << 20) // 16
    assert stand_in.log() == ["limit 6000", "reset 0", f"evict {words}"]


def test_events_are_recorded_on_the_current_stream_in_microseconds(stand_in: StandIn) -> None:
    clock = device_kernels.CudaClock(device_kernels.Driver(), None)
    clock.record(0)
    clock.record(1)
    clock.join()
    clock.record(2)
    assert clock.elapsed_us(0, 1) == 250
    assert clock.elapsed_us(0, 2) == 1500
    assert stand_in.log() == ["record on 77"] * 3


def test_an_error_of_the_driver_names_its_call(stand_in: StandIn) -> None:
    clock = device_kernels.CudaClock(device_kernels.Driver(), None)
    stand_in.library.standin_fail(700)
    with pytest.raises(device_kernels.DriverError, match="cuEventRecord: CUDA driver error 700"):
        clock.record(0)


def test_without_a_fat_binary_there_are_no_kernels(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(device_kernels.KERNELS_VARIABLE, raising=False)
    assert device_kernels.load_kernels(device_kernels.Driver()) is None
