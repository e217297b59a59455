"""The emulated device as the harness sees it: its memory, findings and counters.

The runtime is one shared library per process (libkmosaic_emulation_runtime.so). It is loaded by
`load_runtime`, or on first use from the path in KMOSAIC_EMULATION_RUNTIME; emulated extensions
then find it by its name. One thread at a time.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import weakref
from collections.abc import Sequence

import torch

RUNTIME_VARIABLE = "KMOSAIC_EMULATION_RUNTIME"

_ERROR_TEXTS = {
    1: "invalid argument",
    2: "out of memory",
    9: "invalid configuration argument",
    12: "invalid pitch argument",
    101: "invalid device ordinal",
    700: "an illegal memory access was encountered",
    701: "too many resources requested for launch",
    710: "device-side assert triggered",
    716: "misaligned address",
    719: "unspecified launch failure",
    801: "operation not supported",
}


_COUNTER_NAMES = (
    "launches",
    "blocks",
    "threads",
    "barriers",
    "warp_operations",
    "instrumented",
    "global_loads",
    "global_load_bytes",
    "global_stores",
    "global_store_bytes",
    "shared_loads",
    "shared_load_bytes",
    "shared_stores",
    "shared_store_bytes",
    "other_accesses",
    "atomics",
)


class _Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in _COUNTER_NAMES]


_runtime: ctypes.CDLL | None = None


def load_runtime(path: str) -> None:
    """Loads the runtime library; once per process (a second path is ignored).

    Raises OSError when it cannot be loaded.
    """
    global _runtime
    if _runtime is not None:
        return
    library = ctypes.CDLL(path)
    library.kmosaic_emu_allocate.argtypes = [ctypes.c_size_t]
    library.kmosaic_emu_allocate.restype = ctypes.c_void_p
    library.kmosaic_emu_free.argtypes = [ctypes.c_void_p]
    library.kmosaic_emu_find.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    library.kmosaic_emu_configure.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    library.kmosaic_emu_findings.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.kmosaic_emu_findings.restype = ctypes.c_size_t
    library.kmosaic_emu_counters.argtypes = [ctypes.POINTER(_Counters)]
    library.kmosaic_emu_last_error.argtypes = [ctypes.c_int]
    _runtime = library


def ensure_runtime() -> None:
    """Loads the runtime unless that was done; RuntimeError when no path is known."""
    _library()


def _library() -> ctypes.CDLL:
    if _runtime is None:
        path = os.environ.get(RUNTIME_VARIABLE)
        if not path:
            raise RuntimeError(
                "the emulation runtime is not loaded: call load_runtime(path) or set "
                + RUNTIME_VARIABLE
            )
        load_runtime(path)
    assert _runtime is not None
    return _runtime


def configure(schedule: str, poison: int, report_fd: int) -> None:
    """Starts afresh: forgets findings, counters and errors.

    schedule: "forward", "reverse", "random:SEED" or "ablated" (no kernel runs). poison: the
    byte (0..255) that memory without content holds. report_fd: findings are appended
    there as JSON lines when they are made; -1 for none. Raises ValueError for a schedule that
    is none of these.
    """
    if _library().kmosaic_emu_configure(schedule.encode(), poison & 0xFF, report_fd) != 0:
        raise ValueError(f"unknown schedule {schedule!r}: forward, reverse, random:SEED, ablated")


def findings() -> list[dict[str, object]]:
    """What the device noticed since `configure`, oldest first; see runtime/findings.h."""
    library = _library()
    size = library.kmosaic_emu_findings(None, 0) + 1
    buffer = ctypes.create_string_buffer(size)
    library.kmosaic_emu_findings(buffer, size)
    found: list[dict[str, object]] = json.loads(buffer.value)
    return found


def clear_findings() -> None:
    _library().kmosaic_emu_clear_findings()


def counters() -> dict[str, int]:
    """Work since `configure` or `reset_counters`. The load and store counts are 0, and
    `instrumented` too, unless the extension was built to count."""
    counts = _Counters()
    _library().kmosaic_emu_counters(ctypes.byref(counts))
    return {name: int(getattr(counts, name)) for name in _COUNTER_NAMES}


def reset_counters() -> None:
    _library().kmosaic_emu_reset_counters()


def take_error() -> str | None:
    """The device's last error in words (None for none), cleared unless it is sticky."""
    code = _library().kmosaic_emu_last_error(1)
    if code == 0:
        return None
    return "CUDA error: " + _ERROR_TEXTS.get(code, f"unknown error {code}")


def is_guarded(address: int) -> bool:
    """Does `address` lie in the emulated device's memory?"""
    return bool(_library().kmosaic_emu_find(address, None, None))


class _Memory(ctypes.Array):  # type: ignore[type-arg]
    """A buffer that can be weakly referenced."""

    _type_ = ctypes.c_ubyte
    _length_ = 1 << 46  # only addresses below the real size are ever used


# Blocks of inputs that are gone, by size, and how much they may hold: the next input of a size
# takes the block of the one before, as on a GPU, so that the same address comes with other
# content.
_spare: dict[int, int] = {}
_SPARE_BYTES = 64 << 20


def _give_back(address: int, size: int) -> None:
    if size not in _spare and sum(_spare) + size <= _SPARE_BYTES:
        _spare[size] = address
    else:
        _library().kmosaic_emu_free(address)


def _allocate(size: int, input_of_a_call: bool = False) -> torch.Tensor:
    """`size` > 0 bytes of device memory; freed when the last tensor over it is gone."""
    library = _library()
    spare = _spare.pop(size, None) if input_of_a_call else None
    address = spare or library.kmosaic_emu_allocate(size)
    if not address:
        raise MemoryError(f"the emulated device has no {size} bytes left")
    memory = _Memory.from_address(address)
    if input_of_a_call:
        weakref.finalize(memory, _give_back, address, size)
    else:
        weakref.finalize(memory, library.kmosaic_emu_free, address)
    return torch.frombuffer(memory, dtype=torch.uint8, count=size)


def empty_guarded(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A contiguous, poisoned tensor that ends at a guard page."""
    with torch._C.DisableTorchFunction():
        count = math.prod(shape)
        if count == 0:
            return torch.empty(tuple(shape), dtype=dtype)
        flat = _allocate(count * dtype.itemsize).view(dtype)
        return flat.view(tuple(shape))


def guarded(t: torch.Tensor) -> torch.Tensor:
    """A copy with the same shape and strides in memory that ends at a guard page."""
    with torch._C.DisableTorchFunction():
        source = t.detach()
        if source.numel() == 0:
            return torch.empty_strided(source.shape, source.stride(), dtype=source.dtype)
        span = 1 + sum((source.size(i) - 1) * source.stride(i) for i in range(source.dim()))
        flat = _allocate(span * source.dtype.itemsize, input_of_a_call=True).view(source.dtype)
        flat.copy_(source.as_strided((span,), (1,)))
        return flat.as_strided(source.shape, source.stride())


def guarded_storage(t: torch.Tensor) -> torch.Tensor:
    """A copy of the tensor's whole storage, as bytes, that ends at a guard page."""
    with torch._C.DisableTorchFunction():
        flat = storage_bytes(t)
        copy = _allocate(flat.numel())
        copy.copy_(flat)
        return copy


def storage_bytes(t: torch.Tensor) -> torch.Tensor:
    """The tensor's storage as a tensor of bytes, sharing memory."""
    with torch._C.DisableTorchFunction():
        storage = t.untyped_storage()
        return torch.empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,))


def raw_entry(library: str, name: str) -> ctypes._FuncPointer:
    """The extern "C" function `name` of a library built for the `cuda` contract.

    Raises AttributeError when there is none, OSError when the library cannot be loaded.
    """
    _library()
    function: ctypes._FuncPointer = getattr(ctypes.CDLL(library), name)
    return function
