"""Messages between the daemon and its Python processes, and the value tree.

A frame is two little-endian u32 (bytes of JSON, number of descriptors), then the JSON;
the descriptors ride on the header. A value tree is JSON that names tensors by offset
into one block, which holds the bytes of all of them (C order, offsets multiples of 64): a
memfd, or memory of a GPU (device_memory.py).
"""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from harness import seal

MAX_JSON_BYTES = 64 << 20
MAX_DESCRIPTORS = 8
ALIGNMENT = 64

_HEADER = struct.Struct("<II")

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.uint16,
        torch.uint32,
        torch.uint64,
        torch.bool,
        torch.complex64,
        torch.complex128,
    )
}

Node = dict[str, Any]

# Taken before a program could exchange them.
_TO_HOST: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.cpu
_PLAIN_STEPS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    torch.Tensor.detach,
    torch.Tensor.resolve_conj,
    torch.Tensor.resolve_neg,
    torch.Tensor.contiguous,
)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers as plain bytes in C order, on the same device."""
    for step in _PLAIN_STEPS:
        tensor = step(tensor)
    return tensor


class ProtocolError(Exception):
    """The peer sent something that is not a frame or not a value tree."""


class UnsupportedValue(Exception):
    """A Python value that a value tree cannot hold."""


class Channel:
    """One end of a stream socket. Owned by one thread."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def receive(self) -> tuple[dict[str, Any], list[int]] | None:
        """The next message with its descriptors (now the caller's); None at the end."""
        header, descriptors = self._receive_header()
        if not header:
            return None
        size, count = _HEADER.unpack(header)
        if size > MAX_JSON_BYTES or count != len(descriptors):
            raise ProtocolError(f"frame of {size} bytes with {count} descriptors refused")
        message = json.loads(self._receive_exactly(size))
        if not isinstance(message, dict):
            raise ProtocolError("a message must be a JSON object")
        return message, descriptors

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        answer = seal.judged(message)
        if answer is not message:
            message, descriptors = answer, ()
        text = json.dumps(message, separators=(",", ":")).encode()
        if len(text) > MAX_JSON_BYTES:
            raise ProtocolError(f"message of {len(text)} bytes, at most {MAX_JSON_BYTES}")
        frame = memoryview(_HEADER.pack(len(text), len(descriptors)) + text)
        sent = socket.send_fds(self._socket, [frame], list(descriptors))
        self._socket.sendall(frame[sent:])

    def _receive_header(self) -> tuple[bytes, list[int]]:
        header, descriptors, _, _ = socket.recv_fds(self._socket, _HEADER.size, MAX_DESCRIPTORS)
        if header and len(header) < _HEADER.size:
            header += self._receive_exactly(_HEADER.size - len(header))
        return header, descriptors

    def _receive_exactly(self, size: int) -> bytes:
        received = bytearray(size)
        view = memoryview(received)
        while view:
            count = self._socket.recv_into(view)
            if count == 0:
                raise ProtocolError("the peer closed the connection inside a message")
            view = view[count:]
        return bytes(received)


def aligned(size: int) -> int:
    """Where the tensor after `size` bytes begins."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Storage(Protocol):
    """Where a tree's tensors go."""

    def append(self, tensor: torch.Tensor) -> tuple[int, int]:
        """Offset and size in bytes."""

    def finish(self) -> int:
        """The block's descriptor, which is the caller's. Nothing is appended any more."""


class FileStorage:
    """Storage in a memfd."""

    def __init__(self, name: str) -> None:
        self._descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
        self._size = 0

    def append(self, tensor: torch.Tensor) -> tuple[int, int]:
        host = plain(_TO_HOST(tensor))
        size = host.numel() * host.element_size()
        offset = aligned(self._size)
        self._size = offset + size
        if size:
            content = (ctypes.c_char * size).from_address(host.data_ptr())
            view = memoryview(content).cast("B")
            done = 0
            while done < size:
                done += os.pwrite(self._descriptor, view[done:], offset + done)
        return offset, size

    def finish(self) -> int:
        return self._descriptor


DeviceName = Callable[[torch.Tensor], str]


def _own_device(tensor: torch.Tensor) -> str:
    return str(tensor.device)


class TreeWriter:
    """Encodes values. `device_name` says what to report as a tensor's device."""

    def __init__(self, storage: Storage, device_name: DeviceName = _own_device) -> None:
        self._storage = storage
        self._device_name = device_name

    def finish(self) -> int:
        """The descriptor of the block that holds the bytes of all tensors met; the caller's."""
        return self._storage.finish()

    def encode(self, value: object, depth: int = 0) -> Node:
        """Raises UnsupportedValue for types that a tree has no node for."""
        if depth > 32:
            raise UnsupportedValue("values nested deeper than 32 levels")
        if value is None:
            return {"k": "none"}
        if isinstance(value, bool):
            return {"k": "bool", "v": value}
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise UnsupportedValue(f"integer {value} does not fit in 64 bits")
            return {"k": "int", "v": int(value)}
        if isinstance(value, float):
            number = float(value)
            return {"k": "float", "v": number if math.isfinite(number) else str(number)}
        if isinstance(value, str):
            return {"k": "str", "v": str(value)}
        if isinstance(value, torch.dtype):
            return {"k": "dtype", "v": str(value).removeprefix("torch.")}
        if isinstance(value, torch.Tensor):
            return self._encode_tensor(value)
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {"k": kind, "items": [self.encode(item, depth + 1) for item in value]}
        if isinstance(value, dict):
            items = []
            for key, item in value.items():
                if not isinstance(key, str):
                    raise UnsupportedValue(f"dictionary key of type {type(key).__name__}")
                items.append([key, self.encode(item, depth + 1)])
            return {"k": "dict", "items": items}
        raise UnsupportedValue(f"a value of type {type(value).__module__}.{type(value).__name__}")

    def _encode_tensor(self, value: torch.Tensor) -> Node:
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise UnsupportedValue(f"a tensor of class {type(value).__name__}")
        shadowed = [name for name in vars(value) if hasattr(torch.Tensor, name)]
        if shadowed:
            raise seal.Tampered(f"a tensor with its own {', '.join(sorted(shadowed))}")
        if value.layout is not torch.strided or value.is_quantized:
            raise UnsupportedValue(f"a tensor of layout {value.layout}")
        dtype = str(value.dtype).removeprefix("torch.")
        if dtype not in DTYPES:
            raise UnsupportedValue(f"a tensor of dtype {dtype}")
        node: Node = {
            "k": "tensor",
            "dtype": dtype,
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "device": self._device_name(value),
        }
        node["offset"], node["bytes"] = self._storage.append(value)
        return node


class Trees:
    """Trees of one answer, each finished as soon as it is encoded: what changes a tensor later
    changes nothing that was said."""

    def __init__(self, storage: Callable[[str], Storage], device_name: DeviceName = _own_device):
        self._storage = storage
        self._device_name = device_name
        self._descriptors: list[int] = []

    def add(self, name: str, value: object) -> Node:
        writer = TreeWriter(self._storage(name), self._device_name)
        node = writer.encode(value)
        self._descriptors.append(writer.finish())
        return node

    def take(self) -> list[int]:
        """The descriptors of all blocks in order; the caller's."""
        taken, self._descriptors = self._descriptors, []
        return taken

    def close(self) -> None:
        """Drops what was not taken."""
        for descriptor in self.take():
            os.close(descriptor)


# Gives the `size` bytes at `offset` of a block as a flat tensor of a dtype.
Flat = Callable[[torch.dtype, int, int], torch.Tensor]


def extent(node: Node) -> int:
    """Bytes of the block that a tree needs."""
    if node["k"] == "tensor":
        return int(node["offset"] + node["bytes"])
    items = node.get("items", [])
    if node["k"] == "dict":
        items = [item for _, item in items]
    return max((extent(item) for item in items), default=0)


def decode(node: Node, descriptor: int | None) -> Any:
    """The value of a tree. Its tensors are private: writing them changes nothing else.

    Takes over and closes `descriptor`.
    """
    data: mmap.mmap | None = None
    if descriptor is not None:
        try:
            size = os.fstat(descriptor).st_size
            if size:
                data = mmap.mmap(
                    descriptor, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE
                )
        finally:
            os.close(descriptor)

    def flat(dtype: torch.dtype, offset: int, size: int) -> torch.Tensor:
        if data is None:
            raise ProtocolError("a tensor without a descriptor that holds its bytes")
        return torch.frombuffer(data, dtype=dtype, count=size // dtype.itemsize, offset=offset)

    return decode_with(node, flat)


def decode_with(node: Node, flat: Flat) -> Any:
    """The value of a tree; `flat` is not asked for tensors without elements."""
    kind = node["k"]
    if kind == "none":
        return None
    if kind in ("bool", "int", "str"):
        return node["v"]
    if kind == "float":
        return float(node["v"])
    if kind == "dtype":
        return DTYPES[node["v"]]
    if kind == "list":
        return [decode_with(item, flat) for item in node["items"]]
    if kind == "tuple":
        return tuple(decode_with(item, flat) for item in node["items"])
    if kind == "dict":
        return {key: decode_with(item, flat) for key, item in node["items"]}
    if kind == "tensor":
        return _decode_tensor(node, flat)
    raise ProtocolError(f"unknown kind of node {kind!r}")


def _decode_tensor(node: Node, flat: Flat) -> torch.Tensor:
    dtype = DTYPES[node["dtype"]]
    shape = node["shape"]
    count = math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    tensor = flat(dtype, node["offset"], count * dtype.itemsize).reshape(shape)
    stride = node.get("stride")
    if stride is not None and len(stride) != len(shape):
        raise ProtocolError(f"a tensor of {len(shape)} dimensions with {len(stride)} strides")
    if stride is None or tuple(stride) == tensor.stride() or not _is_dense(shape, stride):
        return tensor
    return torch.empty_strided(shape, stride, dtype=dtype, device=tensor.device).copy_(tensor)


def _is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether no two elements share memory and the extent is not absurd; both as long."""
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, stride))
    if extent > 4 * math.prod(shape):
        return False
    reach = 1
    for s, n in sorted((s, n) for n, s in zip(shape, stride) if n > 1):
        if s < reach:
            return False
        reach = s * (n - 1) + reach
    return True
