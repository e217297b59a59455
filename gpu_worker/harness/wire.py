"""Messages between the daemon and its Python processes, and the value tree.

A frame is two little-endian u32 (bytes of JSON, number of descriptors), then the JSON;
the descriptors ride on the header. A value tree is JSON that names tensors by offset
into one memfd, which holds the bytes of all of them (C order, offsets multiples of 64).
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
from typing import Any

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

# To plain bytes in C order; taken before a program could exchange them.
_PLAIN_STEPS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    torch.Tensor.detach,
    torch.Tensor.cpu,
    torch.Tensor.resolve_conj,
    torch.Tensor.resolve_neg,
    torch.Tensor.contiguous,
)


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


class TreeWriter:
    """Encodes values; `descriptor` holds the bytes of all tensors met so far.

    `device_name` says what to report as a tensor's device.
    """

    def __init__(
        self, name: str, device_name: Callable[[torch.Tensor], str] = lambda t: str(t.device)
    ) -> None:
        self.descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
        self._size = 0
        self._device_name = device_name

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
        plain = value
        for step in _PLAIN_STEPS:
            plain = step(plain)
        size = plain.numel() * plain.element_size()
        node["offset"] = self._append(plain.data_ptr(), size)
        node["bytes"] = size
        return node

    def _append(self, address: int, size: int) -> int:
        offset = -(-self._size // ALIGNMENT) * ALIGNMENT
        self._size = offset + size
        if size:
            view = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
            done = 0
            while done < size:
                done += os.pwrite(self.descriptor, view[done:], offset + done)
        return offset


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
    return _decode(node, data)


def _decode(node: Node, data: mmap.mmap | None) -> Any:
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
        return [_decode(item, data) for item in node["items"]]
    if kind == "tuple":
        return tuple(_decode(item, data) for item in node["items"])
    if kind == "dict":
        return {key: _decode(item, data) for key, item in node["items"]}
    if kind == "tensor":
        return _decode_tensor(node, data)
    raise ProtocolError(f"unknown kind of node {kind!r}")


def _decode_tensor(node: Node, data: mmap.mmap | None) -> torch.Tensor:
    dtype = DTYPES[node["dtype"]]
    shape = node["shape"]
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=dtype)
    if data is None:
        raise ProtocolError("a tensor without a descriptor that holds its bytes")
    flat = torch.frombuffer(data, dtype=dtype, count=math.prod(shape), offset=node["offset"])
    tensor = flat.reshape(shape)
    stride = node.get("stride")
    if stride is not None and len(stride) != len(shape):
        raise ProtocolError(f"a tensor of {len(shape)} dimensions with {len(stride)} strides")
    if stride is None or tuple(stride) == tensor.stride() or not _is_dense(shape, stride):
        return tensor
    return torch.empty_strided(shape, stride, dtype=dtype).copy_(tensor)


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
