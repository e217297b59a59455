"""Turns what a program raised into a verdict and a text that helps to repair it."""

from __future__ import annotations

import errno
import traceback
from typing import Any

from harness import seal

MAX_TEXT = 4000
_MAX_FRAMES = 6

# What CUDA says (CUDA C++ Programming Guide and driver_types.h, cudaError), in torch's
# exceptions and in those that programs make of cudaGetErrorString.
_DEVICE_ERRORS = (
    ("an illegal memory access was encountered", "ILLEGAL_ACCESS"),
    ("misaligned address", "ILLEGAL_ACCESS"),
    ("invalid configuration argument", "ILLEGAL_LAUNCH"),
    ("too many resources requested for launch", "ILLEGAL_LAUNCH"),
    ("CUDA error: out of memory", "DEVICE_MEMORY"),
    ("CUDA out of memory", "DEVICE_MEMORY"),
)

# Words in torch's own messages when memory for a CPU tensor runs out.
_HOST_MEMORY = ("DefaultCPUAllocator: can't allocate memory", "DefaultCPUAllocator: not enough")


def describe(error: BaseException, program: str | None) -> str:
    """The frames of `program` (a path) that lead to the error, and its message.

    Without any, the innermost frames. Python's own layout, at most MAX_TEXT characters;
    the end, with the message, is kept.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if program is not None and f.filename == program]
    chosen = (own or list(frames))[-_MAX_FRAMES:]
    lines = []
    for frame in chosen:
        name = "solution.py" if frame.filename == program else _short(frame.filename)
        lines.append(f'File "{name}", line {frame.lineno}, in {frame.name}\n')
        if frame.line:
            lines.append(f"    {frame.line}\n")
    message = "".join(traceback.format_exception_only(type(error), error))
    if program is not None:
        message = message.replace(program, "solution.py")
    if len(message) > MAX_TEXT // 2:
        half = MAX_TEXT // 4
        message = (
            f"{message[:half]}\n[... {len(message) - 2 * half} characters ...]\n{message[-half:]}"
        )
    return ("".join(lines)[-(MAX_TEXT - len(message)) :] + message).rstrip()


def _short(path: str) -> str:
    for folder in ("/site-packages/", "/harness/", "/lib/python"):
        _, found, rest = path.partition(folder)
        if found:
            return rest
    return path


def verdict_of(error: BaseException, default: str) -> str:
    """`default`, the resource that ran out, or TAMPERING."""
    if isinstance(error, seal.Tampered):
        return "TAMPERING"
    # Looked up by name: the class exists without CUDA too, in torch's C extension.
    if type(error).__name__ == "OutOfMemoryError":
        return "DEVICE_MEMORY"
    if isinstance(error, MemoryError) or any(text in str(error) for text in _HOST_MEMORY):
        return "HOST_MEMORY"
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return "DISK_LIMIT"
        if error.errno == errno.EAGAIN:
            return "PROCESS_LIMIT"
        if error.errno == errno.ENOMEM:
            return "HOST_MEMORY"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "PROCESS_LIMIT"
    if isinstance(error, RuntimeError):
        for words, verdict in _DEVICE_ERRORS:
            if words in str(error):
                return verdict
    if error.__cause__ is not None and error.__cause__ is not error:
        return verdict_of(error.__cause__, default)
    return default


def reply(error: BaseException, program: str | None, default: str) -> dict[str, Any]:
    return {
        "ok": False,
        "verdict": verdict_of(error, default),
        "error": describe(error, program),
    }
