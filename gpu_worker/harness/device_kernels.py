"""Our own kernels on a GPU, and time on it, through the driver's C interface.

The functions of the driver are looked up when a Driver is made, before any program under
evaluation is imported.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import torch

# Path of the fat binary of device/kernels/, from the daemon; unset without one.
KERNELS_VARIABLE = "KMOSAIC_DEVICE_KERNELS"

# cuda.h
_L2_CACHE_SIZE = 38
_LIMIT_PERSISTING_L2 = 6

# Buffer that is read to empty L2, in sizes of L2: it does not replace strictly the oldest.
_FLUSH_FACTOR = 4
_BLOCK = 256
_MOST_BLOCKS = 4096


WITHOUT_KERNELS = (
    "L2 is emptied and memory poisoned by operations of torch: this installation has no kernels "
    "of its own"
)


class DriverError(RuntimeError):
    pass


class Driver:
    """Raises OSError where there is no driver."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libcuda.so.1")
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        wide, out = ctypes.c_uint64, ctypes.c_void_p
        self._functions: dict[str, Any] = {}
        signatures: dict[str, list[Any]] = {
            "cuCtxSynchronize": [],
            "cuCtxSetLimit": [ctypes.c_int, size],
            "cuCtxResetPersistingL2Cache": [],
            "cuCtxGetDevice": [ctypes.POINTER(ctypes.c_int)],
            "cuDeviceGetAttribute": [ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_int],
            "cuEventCreate": [ctypes.POINTER(pointer), ctypes.c_uint],
            "cuEventRecord": [pointer, pointer],
            "cuEventElapsedTime": [ctypes.POINTER(ctypes.c_float), pointer, pointer],
            "cuModuleLoadData": [ctypes.POINTER(pointer), ctypes.c_char_p],
            "cuModuleGetFunction": [ctypes.POINTER(pointer), pointer, ctypes.c_char_p],
            "cuLaunchKernel": [pointer, *[ctypes.c_uint] * 7, pointer, pointer, pointer],
            # device_memory.py; handles and addresses are 64 bits.
            "cuMemGetAllocationGranularity": [out, pointer, ctypes.c_int],
            "cuMemCreate": [out, size, pointer, wide],
            "cuMemExportToShareableHandle": [out, wide, ctypes.c_int, wide],
            "cuMemImportFromShareableHandle": [out, pointer, ctypes.c_int],
            "cuMemAddressReserve": [out, size, size, wide, wide],
            "cuMemMap": [wide, size, size, wide, wide],
            "cuMemSetAccess": [wide, size, pointer, size],
            "cuMemUnmap": [wide, size],
            "cuMemAddressFree": [wide, size],
            "cuMemRelease": [wide],
        }
        for name, arguments in signatures.items():
            function = library[name]
            function.argtypes = arguments
            function.restype = ctypes.c_int
            self._functions[name] = function

    def call(self, name: str, *arguments: Any) -> None:
        result = self._functions[name](*arguments)
        if result != 0:
            # torch's own words for the error that the context has, if it is a lasting one.
            torch.cuda.synchronize()
            raise DriverError(f"{name}: CUDA driver error {result}")

    def optional(self, name: str, *arguments: Any) -> bool:
        """For what not every GPU has."""
        return bool(self._functions[name](*arguments) == 0)

    def device(self) -> int:
        """Ordinal of the current context's device."""
        device = ctypes.c_int()
        self.call("cuCtxGetDevice", ctypes.byref(device))
        return device.value

    def attribute(self, attribute: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self.device())
        return value.value


class Kernels:
    """The kernels of a fat binary, on torch's context."""

    def __init__(self, driver: Driver, image: bytes) -> None:
        self._driver = driver
        self._image = image  # the driver may look at it for as long as the module lives
        self._module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(self._module), image)
        self._evict = self._function(self._module, b"kmosaic_evict")
        self._poison = self._function(self._module, b"kmosaic_poison")
        self._others: dict[str, ctypes.c_void_p] = {}

    def _function(self, module: ctypes.c_void_p, name: bytes) -> ctypes.c_void_p:
        function = ctypes.c_void_p()
        self._driver.call("cuModuleGetFunction", ctypes.byref(function), module, name)
        return function

    def launch(self, name: str, threads: int, *arguments: Any) -> None:
        """`name`: of a kernel, without its prefix; it is given at least one and not always as
        many threads as asked for. Arguments are of ctypes."""
        if name not in self._others:
            self._others[name] = self._function(self._module, b"kmosaic_" + name.encode())
        self._launch(self._others[name], threads, *arguments)

    def evict(self, buffer: torch.Tensor, sink: torch.Tensor) -> None:
        """Reads all of `buffer` (bytes, all zero)."""
        words = buffer.numel() // 16
        self._launch(
            self._evict,
            words,
            ctypes.c_void_p(buffer.data_ptr()),
            ctypes.c_uint64(words),
            ctypes.c_void_p(sink.data_ptr()),
        )

    def poison(self, address: int, size: int, value: int) -> None:
        self._launch(
            self._poison,
            size,
            ctypes.c_void_p(address),
            ctypes.c_uint64(size),
            ctypes.c_ubyte(value),
        )

    def _launch(self, function: ctypes.c_void_p, threads: int, *arguments: Any) -> None:
        blocks = max(1, min(_MOST_BLOCKS, -(-threads // _BLOCK)))
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        self._driver.call(
            "cuLaunchKernel", function, blocks, 1, 1, _BLOCK, 1, 1, 0, _stream(), pointers, None
        )


def load_kernels(driver: Driver) -> Kernels | None:
    """None where the installation has no fat binary. Needs a CUDA context."""
    path = os.environ.get(KERNELS_VARIABLE)
    if not path:
        return None
    with open(path, "rb") as file:
        return Kernels(driver, file.read())


def _stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


class CudaClock:
    """timing.Clock on a GPU. Needs a CUDA context."""

    def __init__(self, driver: Driver, kernels: Kernels | None) -> None:
        self._driver = driver
        self._kernels = kernels
        self._events = []
        for _ in range(3):
            event = ctypes.c_void_p()
            driver.call("cuEventCreate", ctypes.byref(event), 0)
            self._events.append(event)
        self.l2_bytes = driver.attribute(_L2_CACHE_SIZE)
        size = max(_FLUSH_FACTOR * self.l2_bytes, 1 << 20) // 16 * 16
        self._buffer = torch.zeros(size, dtype=torch.uint8, device="cuda")
        self._sink = torch.zeros(4, dtype=torch.uint8, device="cuda")
        self._now = time.perf_counter_ns

    def empty_cache(self) -> None:
        self._driver.optional("cuCtxSetLimit", _LIMIT_PERSISTING_L2, 0)
        self._driver.optional("cuCtxResetPersistingL2Cache")
        if self._kernels is not None:
            self._kernels.evict(self._buffer, self._sink)
        else:
            torch.any(self._buffer.view(torch.int64))

    def join(self) -> None:
        self._driver.call("cuCtxSynchronize")

    def record(self, event: int) -> None:
        self._driver.call("cuEventRecord", self._events[event], _stream())

    def elapsed_us(self, start: int, end: int) -> float:
        milliseconds = ctypes.c_float()
        self._driver.call(
            "cuEventElapsedTime",
            ctypes.byref(milliseconds),
            self._events[start],
            self._events[end],
        )
        return 1000.0 * milliseconds.value

    def now_us(self) -> float:
        return self._now() / 1000.0
