"""Memory of a GPU that processes hand to each other as descriptors.

A block is made with the driver's virtual memory management (CUDA Driver API, "Virtual Memory
Management") and exported as a file descriptor, which another process maps into its own
addresses. Unlike the handles of CUDA IPC it crosses the namespaces of the sandbox. A block lives
as long as anything refers to it: a descriptor, or a mapping in some process. Who has the
descriptor can write the block too.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import torch

from harness import device_kernels, wire

# cuda.h
_HANDLE_TYPE_DESCRIPTOR = 1
_ALLOCATION_PINNED = 1
_LOCATION_DEVICE = 1
_ACCESS_READ_WRITE = 3
_DESCRIPTORS_SUPPORTED = 103


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _AllocationFlags(ctypes.Structure):
    _fields_ = [
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    ]


class _AllocationProperties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32", ctypes.c_void_p),
        ("flags", _AllocationFlags),
    ]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


# Taken before a program could exchange them.
_VIEW: Callable[..., torch.Tensor] = torch.Tensor.view
_PART: Callable[..., torch.Tensor] = torch.Tensor.__getitem__
_COPY: Callable[..., torch.Tensor] = torch.Tensor.copy_


class BadDescriptor(Exception):
    """What came as a block is none, or a smaller one than was said."""


class OutOfMemory(RuntimeError):
    """The GPU has no room for a block."""

    def __init__(self, size: int) -> None:
        super().__init__(f"CUDA out of memory: no room for a block of {size} bytes")


class _View:
    """What torch needs to see memory that it did not allocate."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 2,
        }


def is_supported(driver: device_kernels.Driver) -> bool:
    """Whether blocks can be made here. Needs a CUDA context."""
    return driver.attribute(_DESCRIPTORS_SUPPORTED) != 0


class Block:
    """A mapping of a block in this process. Not thread-safe."""

    def __init__(self, driver: device_kernels.Driver, handle: ctypes.c_uint64, size: int) -> None:
        """Maps and takes over `handle`; `size` is a multiple of the granularity."""
        self._driver = driver
        self._handle = handle
        self._size = size
        self._address = ctypes.c_uint64()
        pointer = ctypes.byref(self._address)
        driver.call("cuMemAddressReserve", pointer, size, 0, 0, 0)
        access = _Access(_location(driver), _ACCESS_READ_WRITE)
        try:
            driver.call("cuMemMap", self._address, size, 0, handle, 0)
            driver.call("cuMemSetAccess", self._address, size, ctypes.byref(access), 1)
        except Exception:
            driver.call("cuMemAddressFree", self._address, size)
            driver.call("cuMemRelease", handle)
            raise

    @classmethod
    def make(cls, driver: device_kernels.Driver, size: int) -> tuple[Block, int]:
        """A new block of at least `size` bytes, and its descriptor, which is the caller's.
        OutOfMemory."""
        properties = _properties(driver)
        rounded = _rounded(driver, properties, size)
        handle = ctypes.c_uint64()
        made = ctypes.byref(handle)
        if not driver.optional("cuMemCreate", made, rounded, ctypes.byref(properties), 0):
            # What torch keeps for later may be what is missing.
            torch.cuda.empty_cache()
            if not driver.optional("cuMemCreate", made, rounded, ctypes.byref(properties), 0):
                raise OutOfMemory(rounded)
        block = cls(driver, handle, rounded)
        descriptor = ctypes.c_int(-1)
        driver.call(
            "cuMemExportToShareableHandle",
            ctypes.byref(descriptor),
            handle,
            _HANDLE_TYPE_DESCRIPTOR,
            0,
        )
        return block, descriptor.value

    @classmethod
    def open(cls, driver: device_kernels.Driver, descriptor: int, size: int) -> Block:
        """Maps `size` bytes of a block that another process made; `descriptor` stays the
        caller's. BadDescriptor."""
        handle = ctypes.c_uint64()
        if not driver.optional(
            "cuMemImportFromShareableHandle",
            ctypes.byref(handle),
            ctypes.c_void_p(descriptor),
            _HANDLE_TYPE_DESCRIPTOR,
        ):
            torch.cuda.synchronize()  # raises where it is this process that is at fault
            raise BadDescriptor("a descriptor is no memory of this GPU")
        try:
            return cls(driver, handle, _rounded(driver, _properties(driver), size))
        except device_kernels.DriverError as error:
            raise BadDescriptor(f"a block is smaller than {size} bytes") from error

    def bytes(self) -> torch.Tensor:
        """The block as uint8 numbers; not to be used after close()."""
        return torch.as_tensor(_View(self._address.value, self._size), device="cuda")

    def close(self) -> None:
        """Waits for what uses it, and unmaps it here."""
        self._driver.call("cuCtxSynchronize")
        self._driver.call("cuMemUnmap", self._address, self._size)
        self._driver.call("cuMemAddressFree", self._address, self._size)
        self._driver.call("cuMemRelease", self._handle)


def _location(driver: device_kernels.Driver) -> _Location:
    return _Location(_LOCATION_DEVICE, driver.device())


def _properties(driver: device_kernels.Driver) -> _AllocationProperties:
    return _AllocationProperties(
        type=_ALLOCATION_PINNED, handle_types=_HANDLE_TYPE_DESCRIPTOR, location=_location(driver)
    )


def _rounded(driver: device_kernels.Driver, properties: _AllocationProperties, size: int) -> int:
    granularity = ctypes.c_size_t()
    driver.call(
        "cuMemGetAllocationGranularity", ctypes.byref(granularity), ctypes.byref(properties), 0
    )
    return max(1, -(-size // granularity.value)) * granularity.value


class DeviceStorage:
    """wire.Storage in a block that is made when all tensors are known."""

    def __init__(self, driver: device_kernels.Driver) -> None:
        self._driver = driver
        self._tensors: list[tuple[int, torch.Tensor]] = []
        self._size = 0

    def append(self, tensor: torch.Tensor) -> tuple[int, int]:
        plain = wire.plain(tensor)
        size = plain.numel() * plain.element_size()
        offset = wire.aligned(self._size)
        self._size = offset + size
        if size:
            self._tensors.append((offset, plain))
        return offset, size

    def finish(self) -> int:
        block, descriptor = Block.make(self._driver, self._size)
        try:
            memory = block.bytes()
            for offset, tensor in self._tensors:
                flat = _VIEW(_VIEW(tensor, -1), torch.uint8)
                _COPY(_PART(memory, slice(offset, offset + flat.numel())), flat)
            self._tensors.clear()
            del memory
        except BaseException:
            os.close(descriptor)
            raise
        finally:
            block.close()
        return descriptor


def decode(driver: device_kernels.Driver, node: wire.Node, descriptor: int) -> Any:
    """As wire.decode: private tensors on the GPU, `descriptor` is taken over and closed."""
    try:
        block = Block.open(driver, descriptor, wire.extent(node))
    finally:
        os.close(descriptor)
    try:
        memory = block.bytes()
        return wire.decode_with(
            node, lambda dtype, offset, size: memory[offset : offset + size].clone().view(dtype)
        )
    finally:
        block.close()
