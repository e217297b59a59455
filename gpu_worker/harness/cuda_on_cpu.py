"""Lets Python code that asks for "cuda" run on the CPU, for the emulated device.

Two parts: a torch function mode, which sends every "cuda" device argument to the CPU and
lets every tensor say that it is on cuda:0, and stand-ins for torch.cuda's functions.
"""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CPU = torch.device("cpu")
_CUDA = torch.device("cuda", 0)
# What the emulated device says it is (compute capability 9.0).
_CAPABILITY = (9, 0)
_MEMORY_BYTES = 80 << 30


def _is_cuda(value: object) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


def _to_cpu(value: Any) -> Any:
    return _CPU if _is_cuda(value) else value


class _CudaOnCpu(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        tensor = torch.Tensor
        self._answers: dict[Any, Callable[..., Any]] = {
            tensor.device.__get__: lambda _tensor: _CUDA,
            tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            lambda _tensor: True,
            tensor.is_cpu.__get__:  # type: ignore[attr-defined]
            lambda _tensor: False,
            tensor.get_device: lambda _tensor: 0,
            tensor.cuda: lambda tensor, *_args, **_kwargs: tensor,
            tensor.pin_memory: lambda tensor, *_args, **_kwargs: tensor,
            tensor.is_pinned: lambda _tensor, *_args, **_kwargs: False,
            tensor.record_stream: lambda *_args: None,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = self._answers.get(func)
        if answer is not None:
            return answer(*args, **(kwargs or {}))
        if func is torch.device:  # naming a device is no use of it
            return func(*args, **(kwargs or {}))
        if any(_is_cuda(a) for a in args):
            args = tuple(_to_cpu(a) for a in args)
        if kwargs:
            kwargs = {k: _to_cpu(v) for k, v in kwargs.items()}
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False
            return func(*args, **kwargs)
        return func(*args)


class _Stream:
    """Everything is done in order on the CPU, so a stream has nothing to do."""

    cuda_stream = 0
    device = _CUDA
    device_index = 0

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait_stream(self, _stream: object) -> None:
        pass

    def wait_event(self, _event: object) -> None:
        pass

    def record_event(self, event: _Event | None = None) -> _Event:
        event = event or _Event()
        event.record(self)
        return event

    def query(self) -> bool:
        return True

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_args: object) -> None:
        pass


class _Event:
    def __init__(self, *_args: object, **_kwargs: object) -> None:
        self._recorded = 0.0

    def record(self, _stream: object = None) -> None:
        self._recorded = time.perf_counter()

    def wait(self, _stream: object = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: _Event) -> float:
        return (end._recorded - self._recorded) * 1e3


class _Unsupported:
    def __init__(self, *_args: object, **_kwargs: object) -> None:
        raise RuntimeError(f"{type(self).__name__} is not supported on the emulated device")


class CUDAGraph(_Unsupported):
    pass


class _Generator(torch.Generator):
    def __new__(cls, device: object = "cpu") -> _Generator:
        return super().__new__(cls, _to_cpu(device))  # type: ignore[call-arg]


def _properties(_device: object = None) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        name="KernelMosaic emulated device",
        major=_CAPABILITY[0],
        minor=_CAPABILITY[1],
        total_memory=_MEMORY_BYTES,
        multi_processor_count=132,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=227 << 10,
        shared_memory_per_multiprocessor=228 << 10,
        regs_per_multiprocessor=65536,
        L2_cache_size=50 << 20,
        is_integrated=False,
        is_multi_gpu_board=False,
    )


def _nothing() -> Callable[..., None]:
    """A function of its own each time: torch.compile takes two names for one as a mistake."""

    def nothing(*_args: object, **_kwargs: object) -> None:
        return None

    return nothing


def _stand_ins() -> dict[str, object]:
    stream = _Stream()
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": _nothing(),
        "_lazy_init": _nothing(),
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": _nothing(),
        "get_device_name": lambda _device=None: _properties().name,
        "get_device_capability": lambda _device=None: _CAPABILITY,
        "get_device_properties": _properties,
        "get_arch_list": lambda: ["sm_90"],
        "is_bf16_supported": lambda *_args, **_kwargs: True,
        "synchronize": _nothing(),
        "empty_cache": _nothing(),
        "ipc_collect": _nothing(),
        "reset_peak_memory_stats": _nothing(),
        "memory_allocated": lambda _device=None: 0,
        "max_memory_allocated": lambda _device=None: 0,
        "memory_reserved": lambda _device=None: 0,
        "max_memory_reserved": lambda _device=None: 0,
        "mem_get_info": lambda _device=None: (_MEMORY_BYTES, _MEMORY_BYTES),
        "manual_seed": lambda seed: torch.default_generator.manual_seed(int(seed)),
        "manual_seed_all": lambda seed: torch.default_generator.manual_seed(int(seed)),
        "current_stream": lambda _device=None: stream,
        "default_stream": lambda _device=None: stream,
        "stream": lambda _stream=None: contextlib.nullcontext(),
        "set_stream": _nothing(),
        "device": lambda _device=None: contextlib.nullcontext(),
        "device_of": lambda _tensor=None: contextlib.nullcontext(),
        "_exchange_device": lambda _device: 0,
        "_maybe_exchange_device": lambda _device: 0,
        "Stream": _Stream,
        "ExternalStream": _Stream,
        "Event": _Event,
        "CUDAGraph": CUDAGraph,
    }


@contextlib.contextmanager
def emulated() -> Iterator[None]:
    """While inside, "cuda" is the CPU. Not re-entrant; for the process's only thread."""
    stand_ins = _stand_ins()
    missing = object()
    before = {name: getattr(torch.cuda, name, missing) for name in stand_ins}
    generator = torch.Generator
    is_acceptable = torch.backends.cudnn.is_acceptable
    torch.backends.cudnn.is_acceptable = lambda _tensor: False  # RNN modules ask it
    for name, value in stand_ins.items():
        setattr(torch.cuda, name, value)
    torch.Generator = _Generator  # type: ignore[misc]
    try:
        with _CudaOnCpu():
            yield
    finally:
        torch.Generator = generator  # type: ignore[misc]
        torch.backends.cudnn.is_acceptable = is_acceptable
        for name, value in before.items():
            if value is missing:
                delattr(torch.cuda, name)
            else:
                setattr(torch.cuda, name, value)
