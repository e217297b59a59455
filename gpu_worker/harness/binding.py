"""Loads extensions that were built with the light torch headers and makes Python modules of them.

The C interface is torch_abi/include/kmosaic_torch/abi.h; the structures here mirror it. A tensor
is handed to the extension under a fresh id and stays in a table until the extension releases it.
On the emulated device a tensor that is not in guarded memory is copied there (with its whole
storage) for the time of the call, and copied back when it was written to.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import types
from collections.abc import Callable
from typing import Any

import torch

from harness import emulation

ABI_VERSION = 1
MAX_DIMENSIONS = 16

(
    _ABSENT,
    _NONE,
    _BOOL,
    _INT,
    _FLOAT,
    _STRING,
    _TENSOR,
    _LIST,
    _TUPLE,
    _DTYPE,
    _DEVICE,
    _MEMORY_FORMAT,
    _KEYWORD,
    _SLICE,
    _ELLIPSIS,
    _OTHER,
) = range(16)

_OK, _BAD_ARGUMENTS = 0, 1
_PYTHON_ERROR = 8
_EXCEPTIONS: dict[int, type[Exception]] = {
    2: RuntimeError,
    3: ValueError,
    4: IndexError,
    5: TypeError,
    6: MemoryError,
    7: NotImplementedError,
}

_DTYPES: dict[int, torch.dtype] = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    8: torch.complex32,
    9: torch.complex64,
    10: torch.complex128,
    11: torch.bool,
    15: torch.bfloat16,
    23: torch.float8_e5m2,
    24: torch.float8_e4m3fn,
    27: torch.uint16,
    28: torch.uint32,
    29: torch.uint64,
}
_DTYPE_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_MEMORY_FORMATS = {
    0: torch.contiguous_format,
    1: torch.preserve_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
}
_MEMORY_FORMAT_CODES = {value: code for code, value in _MEMORY_FORMATS.items()}
_CPU, _CUDA = 0, 1
_DEVICE_CODES = {"cpu": _CPU, "cuda": _CUDA, "meta": 9}


class _Value(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32),
        ("detail", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_int64),
    ]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("device_type", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("requires_grad", ctypes.c_int32),
        ("dimensions", ctypes.c_int64),
        ("sizes", ctypes.c_int64 * MAX_DIMENSIONS),
        ("strides", ctypes.c_int64 * MAX_DIMENSIONS),
    ]


_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_char_p,
    ctypes.POINTER(_Value),
    ctypes.c_int64,
    ctypes.POINTER(_Value),
)
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
_STREAM = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int32)


class _Host(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("call", _CALL),
        ("release", _RELEASE),
        ("stream", _STREAM),
    ]


class _Function(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("doc", ctypes.c_char_p),
        ("signatures", ctypes.c_char_p),
        ("self", ctypes.c_void_p),
    ]


class _Module(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("doc", ctypes.c_char_p),
        ("function_count", ctypes.c_int64),
        ("functions", ctypes.POINTER(_Function)),
    ]


class _Entry:
    """A tensor that an extension holds."""

    __slots__ = ("device_type", "given", "working")

    def __init__(self, given: torch.Tensor, working: torch.Tensor, device_type: int) -> None:
        self.given = given  # what Python gets when the tensor comes back
        self.working = working  # where its data is for the extension
        self.device_type = device_type  # as the extension sees it


class _Borrowed:
    """On the emulated device: storages copied to guarded memory for one call."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def view(self, tensor: torch.Tensor) -> torch.Tensor:
        key = tensor.untyped_storage().data_ptr()
        if key not in self._copies:
            self._copies[key] = (
                emulation.storage_bytes(tensor),
                emulation.guarded_storage(tensor),
            )
        copy = self._copies[key][1]
        return torch.empty(0, dtype=tensor.dtype).set_(
            copy.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride()
        )

    def write_back(self) -> None:
        for original, copy in self._copies.values():
            if not torch.equal(original, copy):
                original.copy_(copy)


class _Binding:
    """The harness's side of the C interface, for one device."""

    def __init__(self, device: str) -> None:
        self.emulated = device == "emulated"
        self._entries: dict[int, _Entry] = {}
        self._ids = itertools.count(1)
        self._pending: BaseException | None = None  # what a callback raised
        self._kept: list[Any] = []  # what the last callback's result points to
        self._borrowed: _Borrowed | None = None
        self.host = _Host(
            ABI_VERSION, 0, _CALL(self._call), _RELEASE(self._release), _STREAM(self._stream)
        )
        # Static tensors of an extension are released after the interpreter is gone.
        atexit.register(self._detach)

    def _detach(self) -> None:
        self.host.release = ctypes.cast(ctypes.CDLL(None).labs, _RELEASE)

    # ---- Python to C

    def encode(self, value: object, keep: list[Any], out: Any) -> None:
        """Fills the _Value `out`; what it points to is appended to `keep`."""
        if value is None:
            out.kind = _NONE
        elif isinstance(value, torch.Tensor):
            self._encode_tensor(value, None, keep, out)
        elif isinstance(value, bool):
            out.kind, out.integer = _BOOL, int(value)
        elif isinstance(value, int):
            if -(1 << 63) <= value < 1 << 63:
                out.kind, out.integer = _INT, value
            else:
                out.kind = _OTHER
        elif isinstance(value, float):
            out.kind, out.real = _FLOAT, value
        elif isinstance(value, (str, bytes)):
            text = value.encode() if isinstance(value, str) else value
            buffer = ctypes.create_string_buffer(text)
            keep.append(buffer)
            out.kind, out.data, out.size = _STRING, ctypes.addressof(buffer), len(text)
        elif isinstance(value, (list, tuple)):
            items = (_Value * max(len(value), 1))()
            keep.append(items)
            for i, item in enumerate(value):
                self.encode(item, keep, items[i])
            out.kind = _LIST if isinstance(value, list) else _TUPLE
            out.data, out.size = ctypes.addressof(items), len(value)
        elif isinstance(value, torch.dtype) and value in _DTYPE_CODES:
            out.kind, out.integer = _DTYPE, _DTYPE_CODES[value]
        elif isinstance(value, torch.device):
            out.kind = _DEVICE
            out.integer = _DEVICE_CODES.get(value.type, _CPU)
            out.detail = -1 if value.index is None else value.index
        elif isinstance(value, torch.memory_format):
            out.kind, out.integer = _MEMORY_FORMAT, _MEMORY_FORMAT_CODES[value]
        elif hasattr(value, "__index__"):
            out.kind, out.integer = _INT, int(value.__index__())
        elif hasattr(value, "__float__"):
            out.kind, out.real = _FLOAT, float(value)
        else:
            out.kind = _OTHER

    def _encode_tensor(
        self, tensor: torch.Tensor, device_type: int | None, keep: list[Any], out: Any
    ) -> None:
        if tensor.dim() > MAX_DIMENSIONS:
            raise ValueError(f"tensors of more than {MAX_DIMENSIONS} dimensions are not supported")
        if tensor.dtype not in _DTYPE_CODES:
            raise ValueError(f"tensors of type {tensor.dtype} are not supported")
        working = tensor
        index = 0
        if self.emulated:
            device_type = _CUDA if device_type is None else device_type
            if tensor.numel() > 0 and not emulation.is_guarded(tensor.data_ptr()):
                if self._borrowed is not None:
                    working = self._borrowed.view(tensor)
                else:
                    working = tensor = emulation.guarded(tensor)
            index = 0 if device_type == _CUDA else -1
        else:
            device_type = _DEVICE_CODES.get(tensor.device.type, _CPU)
            index = -1 if tensor.device.index is None else tensor.device.index
        identity = next(self._ids)
        self._entries[identity] = _Entry(tensor, working, device_type)
        described = _Tensor(
            identity,
            working.data_ptr(),
            _DTYPE_CODES[tensor.dtype],
            device_type,
            index,
            int(tensor.requires_grad),
            tensor.dim(),
        )
        for i in range(tensor.dim()):
            described.sizes[i] = tensor.size(i)
            described.strides[i] = tensor.stride(i)
        keep.append(described)
        out.kind, out.data = _TENSOR, ctypes.addressof(described)

    # ---- C to Python

    def decode(self, value: Any, working: bool) -> Any:
        """The Python object for a _Value. working: for an operation, not for the caller."""
        kind = value.kind
        if kind == _TENSOR:
            entry = self._entries[_Tensor.from_address(value.data).id]
            return entry.working if working else entry.given
        if kind == _BOOL:
            return bool(value.integer)
        if kind == _INT:
            return value.integer
        if kind == _FLOAT:
            return value.real
        if kind in (_STRING, _KEYWORD):
            return ctypes.string_at(value.data, value.size).decode(errors="replace")
        if kind in (_LIST, _TUPLE, _SLICE):
            count = 3 if kind == _SLICE else value.size
            array = (_Value * count).from_address(value.data) if count else ()
            items = [self.decode(item, working) for item in array]
            if kind == _SLICE:
                return slice(*items)
            return items if kind == _LIST else tuple(items)
        if kind == _DTYPE:
            return _DTYPES[value.integer]
        if kind == _DEVICE:
            if self.emulated:
                return _EmulatedDevice(value.integer)
            name = {code: text for text, code in _DEVICE_CODES.items()}[value.integer]
            return torch.device(name, value.detail) if value.detail >= 0 else torch.device(name)
        if kind == _MEMORY_FORMAT:
            return _MEMORY_FORMATS[value.integer]
        if kind == _ELLIPSIS:
            return Ellipsis
        return None

    # ---- callbacks

    def _call(self, name: bytes, arguments: Any, count: int, result: Any) -> int:
        self._kept = []
        out = result[0]
        borrowed, self._borrowed = self._borrowed, None  # a result is not the caller's tensor
        try:
            positional: list[Any] = []
            keywords: dict[str, Any] = {}
            device_types: list[int] = []
            i = 0
            while i < count:
                value = arguments[i]
                if value.kind == _KEYWORD:
                    keywords[self.decode(value, True)] = self.decode(arguments[i + 1], True)
                    i += 1
                else:
                    if value.kind == _TENSOR:
                        identity = _Tensor.from_address(value.data).id
                        device_types.append(self._entries[identity].device_type)
                    positional.append(self.decode(value, True))
                i += 1
            with torch._C.DisableTorchFunction(), torch.no_grad():
                outcome = self._run(name.decode(), positional, keywords, device_types)
                if self.emulated:
                    self._encode_outcome(outcome, out)
                else:
                    self.encode(outcome, self._kept, out)
            return _OK
        except BaseException as error:  # must not escape into C++
            self._pending = error
            self._kept = []
            self.encode(str(error), self._kept, out)
            return _PYTHON_ERROR
        finally:
            self._borrowed = borrowed

    def _encode_outcome(self, outcome: Any, out: Any) -> None:
        value, device_type = outcome
        if isinstance(value, torch.Tensor):
            self._encode_tensor(value, device_type, self._kept, out)
        else:
            self.encode(value, self._kept, out)

    def _run(
        self,
        name: str,
        positional: list[Any],
        keywords: dict[str, Any],
        device_types: list[int],
    ) -> Any:
        if not self.emulated:
            return _run_operation(name, positional, keywords)
        # The device of the result, as the extension is to see it: asked for, or the arguments'.
        asked = [v for v in (*positional, *keywords.values()) if isinstance(v, _EmulatedDevice)]
        if name in (".cuda", ".cpu"):
            device_type = _CUDA if name == ".cuda" else _CPU
            return positional[0].clone(), device_type
        if asked:
            device_type = asked[-1].type
        elif device_types:
            device_type = max(device_types)
        else:
            device_type = _CPU  # a factory without a device
        positional = [v for v in positional if not isinstance(v, _EmulatedDevice)]
        keywords.pop("device", None)
        if name == ".to" and len(positional) == 1 and not keywords:
            return positional[0].clone(), device_type
        if name == "empty" and "memory_format" not in keywords:
            dtype = keywords.get("dtype", torch.float32)
            return emulation.empty_guarded(positional[0], dtype), device_type
        if (
            name == "empty_like"
            and positional[0].is_contiguous()
            and not keywords.get("memory_format")
        ):
            dtype = keywords.get("dtype", positional[0].dtype)
            return emulation.empty_guarded(positional[0].shape, dtype), device_type
        return _run_operation(name, positional, keywords), device_type

    def _release(self, identity: int) -> None:
        self._entries.pop(identity, None)

    def _stream(self, device_index: int) -> int | None:
        if self.emulated:
            return None
        stream: int = torch.cuda.current_stream(device_index).cuda_stream
        return stream or None

    # ---- calls

    def invoke(
        self,
        library: ctypes.CDLL,
        function: Any,
        name: str,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        keep: list[Any] = []
        count = len(arguments) + 2 * len(keywords)
        values = (_Value * max(count, 1))()
        result = _Value()
        borrowed = _Borrowed() if self.emulated else None
        with torch._C.DisableTorchFunction(), torch.no_grad():
            self._borrowed = borrowed
            for i, argument in enumerate(arguments):
                self.encode(argument, keep, values[i])
            for i, (key, argument) in enumerate(keywords.items()):
                text = key.encode()
                keep.append(text)
                pair = values[len(arguments) + 2 * i]
                pair.kind, pair.size = _KEYWORD, len(text)
                pair.data = ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p)
                self.encode(argument, keep, values[len(arguments) + 2 * i + 1])
            self._pending = None
            status = library.kmosaic_torch_invoke(
                function.self, values, count, ctypes.byref(result)
            )
            self._borrowed = None
            if borrowed is not None:
                borrowed.write_back()
            outcome = self.decode(result, False)
            library.kmosaic_torch_finish()
        pending, self._pending = self._pending, None
        if status == _PYTHON_ERROR and pending is not None:
            raise pending
        if status == _BAD_ARGUMENTS:
            raise TypeError(_wrong_arguments(name, outcome, arguments, keywords))
        if status != _OK:
            raise _EXCEPTIONS.get(status, RuntimeError)(outcome)
        if self.emulated:
            error = emulation.take_error()
            if error is not None:
                raise RuntimeError(error)
        return outcome


class _EmulatedDevice:
    """A device that an extension named; everything lies in the CPU's memory."""

    def __init__(self, device_type: int) -> None:
        self.type = device_type


def _run_operation(name: str, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """Runs ATen's `name`, or the method for ".name"."""
    if name.startswith("."):
        return getattr(torch.Tensor, name[1:])(*positional, **keywords)
    if name == "tensor":
        return torch.tensor(*positional, **keywords)
    packet = getattr(torch.ops.aten, name, None)
    if packet is not None:
        try:
            return packet(*positional, **keywords)
        except (TypeError, RuntimeError) as error:
            # ATen's schema takes by keyword what the C++ function takes by position.
            if "schema" not in str(error) and not isinstance(error, TypeError):
                raise
    for owner in (torch, torch.nn.functional, torch.Tensor):
        function = getattr(owner, name, None)
        if function is not None:
            return function(*positional, **keywords)
    raise NotImplementedError(f"torch has no operation {name}")


def _wrong_arguments(
    name: str, signatures: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> str:
    def shown(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"tensor(shape={tuple(value.shape)}, dtype={value.dtype})"
        text = repr(value)
        return text if len(text) <= 200 else text[:200] + "..."

    text = (
        f"{name}(): incompatible function arguments. "
        f"The following argument types are supported:\n{signatures}\nInvoked with: "
    )
    text += ", ".join(shown(argument) for argument in arguments)
    if keywords:
        text += "; kwargs: " + ", ".join(f"{k}={shown(v)}" for k, v in keywords.items())
    return text


_bindings: dict[str, _Binding] = {}


def _make_callable(binding: _Binding, library: ctypes.CDLL, function: Any) -> Callable[..., Any]:
    name = function.name.decode()

    def call(*arguments: Any, **keywords: Any) -> Any:
        return binding.invoke(library, function, name, arguments, keywords)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (function.doc or b"").decode()
    return call


def load_extension(library: str, device: str) -> types.ModuleType:
    """Loads an extension built with the light headers.

    library: the shared library's path. device: "emulated" or "cuda". The module has a callable
    for every function that the extension defines. C++ exceptions become the Python ones that
    pybind11 makes of them (std::exception: RuntimeError with its text); arguments that no
    overload takes are a TypeError. Raises ImportError when the library cannot be loaded or is
    none of ours.
    """
    if device not in ("emulated", "cuda"):
        raise ValueError(f"unknown device {device!r}: emulated or cuda")
    binding = _bindings.get(device)
    if binding is None:
        if device == "emulated":
            emulation.ensure_runtime()
        binding = _bindings[device] = _Binding(device)
    try:
        loaded = ctypes.CDLL(library)
        entry = loaded.kmosaic_torch_open
        loaded.kmosaic_torch_finish.restype = None
    except (OSError, AttributeError) as error:
        raise ImportError(f"cannot load the extension: {error}") from error
    entry.restype = ctypes.POINTER(_Module)
    loaded.kmosaic_torch_invoke.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(_Value),
        ctypes.c_int64,
        ctypes.POINTER(_Value),
    ]
    error_text = ctypes.c_char_p()
    opened = entry(ctypes.byref(binding.host), ctypes.byref(error_text))
    if not opened:
        raise ImportError((error_text.value or b"the extension cannot be opened").decode())
    module = types.ModuleType("kmosaic_extension", (opened.contents.doc or b"").decode())
    for i in range(opened.contents.function_count):
        function = opened.contents.functions[i]
        setattr(module, function.name.decode(), _make_callable(binding, loaded, function))
    return module
