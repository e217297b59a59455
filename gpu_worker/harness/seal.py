"""Notices when a solution exchanges what the harness stands on.

`close` remembers the functions of torch, the clocks, the channel and the harness itself before
a solution is imported; `broken` says what is another one since, or what was left behind that
runs code of the solution inside the harness. A process can undo what it did before anybody
looks, or take this apart too: the daemon does not rely on it (docs/integrity.md). What it
catches is what programs do in practice.
"""

from __future__ import annotations

import builtins
import gc
import json
import os
import signal
import socket
import struct
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.overrides
import torch.testing
import torch.utils._python_dispatch
from torch.utils._device import DeviceContext

# Exchanged by torch itself (importing torch._dynamo wraps it) or for no advantage.
_FREE = {("torch", "manual_seed"), ("builtins", "print")}

_MODULES: tuple[types.ModuleType, ...] = (
    builtins,
    gc,
    json,
    json.decoder,
    json.encoder,
    os,
    signal,
    socket,
    struct,
    time,
    torch,
    torch.cuda,
    torch.testing,
)
_CLASSES: tuple[type, ...] = (
    torch.Tensor,
    torch.UntypedStorage,
    torch.overrides.TorchFunctionMode,
    socket.socket,
    json.JSONEncoder,
)


_DESCRIPTORS = (property, staticmethod, classmethod, types.GetSetDescriptorType)


class Tampered(Exception):
    """A value or a process that a solution prepared to mislead the harness."""


def _owners() -> Iterator[tuple[str, Any]]:
    for module in _MODULES:
        yield module.__name__, module
    for kind in (*_CLASSES, torch.cuda.Event, torch.cuda.Stream):
        yield f"{kind.__module__}.{kind.__qualname__}", kind
    for name, module in list(sys.modules.items()):
        if name != "harness" and not name.startswith("harness."):
            continue
        yield name, module
        for kind in list(vars(module).values()):
            if isinstance(kind, type) and kind.__module__ == name:
                yield f"{name}.{kind.__qualname__}", kind


def _codes(value: Any) -> Any:
    """The code that a function runs; it can be exchanged under the same function."""
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    return getattr(function, "__code__", None)


def _spaces(owner: Any) -> list[Any]:
    """Dictionaries in which a name of `owner` is looked for, in order."""
    if isinstance(owner, type):
        return [vars(kind) for kind in owner.__mro__ if kind is not object]
    return [vars(owner)]


@dataclass(frozen=True)
class _Remembered:
    path: str
    spaces: list[Any]
    entries: dict[str, tuple[Any, Any]]  # value and code


def _remember() -> list[_Remembered]:
    remembered = []
    for path, owner in _owners():
        spaces = _spaces(owner)
        entries: dict[str, tuple[Any, Any]] = {}
        for space in reversed(spaces):
            for name, value in list(space.items()):
                if not (callable(value) or isinstance(value, _DESCRIPTORS)):
                    entries.pop(name, None)
                elif (path, name) not in _FREE:
                    entries[name] = (value, _codes(value))
        remembered.append(_Remembered(path, spaces, entries))
    return remembered


def _modes() -> list[Any]:
    function_modes: Any = torch.overrides._get_current_function_mode_stack
    stack: list[Any] = list(function_modes())
    stack += torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    return stack


def _make() -> tuple[Callable[[], None], Callable[[], str | None], Callable[[], None]]:
    """`close`, `broken` and `release`; what they share is in no module's dictionary."""
    remembered: list[_Remembered] = []
    modes: list[Any] = []
    hooks: list[Any] = []
    # As they are before anybody could exchange them.
    missing = object()
    trace, profile, timer = sys.gettrace, sys.getprofile, signal.getitimer
    code_of, mode_stack, is_instance = _codes, _modes, isinstance

    def close() -> None:
        remembered[:] = _remember()
        modes[:] = _modes()
        hooks[:] = gc.callbacks

    def broken() -> str | None:
        if not remembered:
            return None
        for owner in remembered:
            for name, (value, code) in owner.entries.items():
                found = missing
                for space in owner.spaces:
                    if name in space:
                        found = space[name]
                        break
                if found is not value:
                    return f"{owner.path}.{name} was replaced"
                if code is not None and code_of(found) is not code:
                    return f"the code of {owner.path}.{name} was replaced"
        if trace() is not None or profile() is not None:
            return "a trace or profile function was left in place"
        for mode in mode_stack():
            known = any(mode is other for other in modes)
            if not known and not is_instance(mode, DeviceContext):
                return f"the torch mode {type(mode).__name__} was left in place"
        if any(all(hook is not known for known in hooks) for hook in gc.callbacks):
            return "a hook of the garbage collector was left in place"
        for which in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            if timer(which)[0] > 0:
                return "a timer that interrupts the process was left running"
        return None

    def release() -> None:
        remembered.clear()

    return close, broken, release


# broken: None where all is as it was, or nothing is remembered (before close, after release).
close, broken, release = _make()


def judged(answer: dict[str, Any]) -> dict[str, Any]:
    """`answer`, or what to send in its place. Times of single calls are passed through: looking
    takes time that the daemon would see."""
    if "event_us" in answer:
        return answer
    what = broken()
    if what is None:
        return answer
    return {
        "ok": False,
        "verdict": "TAMPERING",
        "error": f"{what}; a solution must leave torch, clocks and the harness as they are",
    }
