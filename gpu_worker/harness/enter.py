"""Calls the C entry into the sandbox (sandbox/enter.h mirrors `_Options`)."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ALLOW_NO_PROC = 1
UNSANDBOXED = 2


class _Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("readable", ctypes.POINTER(ctypes.c_char_p)),
        ("links", ctypes.POINTER(ctypes.c_char_p)),
        ("devices", ctypes.POINTER(ctypes.c_char_p)),
        ("tmp_bytes", ctypes.c_uint64),
        ("processes", ctypes.c_uint64),
        ("file_bytes", ctypes.c_uint64),
        ("cpu_seconds", ctypes.c_uint64),
        ("open_files", ctypes.c_uint64),
        ("seccomp", ctypes.c_char_p),
        ("seccomp_bytes", ctypes.c_uint64),
        ("keep_fds", ctypes.POINTER(ctypes.c_int32)),
        ("keep_count", ctypes.c_uint64),
        ("join_fds", ctypes.POINTER(ctypes.c_int32)),
        ("join_count", ctypes.c_uint64),
        ("status_fd", ctypes.c_int32),
        ("output_fd", ctypes.c_int32),
        ("uid", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
    ]


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes; `processes` counts threads too; 0 CPU seconds: none."""

    processes: int
    file_bytes: int
    cpu_seconds: int
    tmp_bytes: int
    open_files: int = 1024


@dataclass(frozen=True)
class View:
    """What of the host's files a sandbox shows: canonical paths, and links to make."""

    paths: tuple[str, ...]
    links: tuple[tuple[str, str], ...]


def view_of(readable: Iterable[str], more: View | None = None) -> View:
    """Resolves symbolic links on the way to each path; leaves out what does not exist.
    `more` (a view made before) is joined in."""
    paths = set(more.paths) if more else set()
    links = dict(more.links) if more else {}
    for path in readable:
        if not os.path.isabs(path):
            raise ValueError(f"readable path {path!r} is not absolute")
        real = _follow(path, links)
        if os.path.exists(real):
            paths.add(real)
    kept: list[str] = []
    for candidate in sorted(paths, key=lambda p: p.split("/")):
        if not (kept and _below(candidate, kept[-1])):
            kept.append(candidate)
    kept_links = {at: to for at, to in links.items() if not any(_below(at, p) for p in kept)}
    return View(tuple(kept), tuple(sorted(kept_links.items())))


def _below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _follow(path: str, links: dict[str, str]) -> str:
    """The canonical path; adds every symbolic link met to `links`."""
    done = "/"
    rest = [part for part in path.split("/") if part]
    for _ in range(400):
        if not rest:
            return done
        part = rest.pop(0)
        if part == ".":
            continue
        if part == "..":
            done = os.path.dirname(done)
            continue
        here = os.path.join(done, part)
        if os.path.islink(here):
            target = os.readlink(here)
            links[here] = target
            if target.startswith("/"):
                done = "/"
            rest = [p for p in target.split("/") if p] + rest
            continue
        done = here
    raise OSError(f"too many symbolic links on the way to {path}")


def python_paths() -> list[str]:
    """What this interpreter needs to go on working: its own files, and loaded libraries."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__)}
    found.update(p for p in sys.path if os.path.isabs(p))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            mapped = line.split(maxsplit=5)[-1].strip()
            if mapped.startswith("/") and ".so" in os.path.basename(mapped):
                found.add(mapped)
    # A prefix of "/usr" or "/usr/local" is fine; "/" would show the whole host.
    return sorted(p for p in found if p not in ("/", ""))


def _strings(values: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    array = (ctypes.c_char_p * (len(values) + 1))()
    for index, value in enumerate(values):
        array[index] = os.fsencode(value)
    return array


def _numbers(values: Sequence[int]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * max(1, len(values)))(*values)


class Library:
    """libkmosaic_enter.so, loaded once in the zygote."""

    def __init__(self, path: str) -> None:
        # PyDLL: the GIL stays with the only thread there is.
        self._enter = ctypes.PyDLL(path).kmosaic_enter
        self._enter.argtypes = [ctypes.POINTER(_Options)]
        self._enter.restype = ctypes.c_int

    def enter(
        self,
        *,
        view: View,
        devices: Sequence[str],
        limits: Limits,
        seccomp: bytes,
        keep_fds: Sequence[int],
        join_fds: Sequence[int],
        status_fd: int,
        output_fd: int,
        flags: int,
        uid: int = 65534,
    ) -> None:
        """Call in a freshly forked child. Returns in the role only; a failure is told on
        `status_fd` and ends the process."""
        links = [text for link in view.links for text in link]
        options = _Options(
            size=ctypes.sizeof(_Options),
            readable=_strings(view.paths),
            links=_strings(links),
            devices=_strings(devices),
            tmp_bytes=limits.tmp_bytes,
            processes=limits.processes,
            file_bytes=limits.file_bytes,
            cpu_seconds=limits.cpu_seconds,
            open_files=limits.open_files,
            seccomp=seccomp,
            seccomp_bytes=len(seccomp),
            keep_fds=_numbers(keep_fds),
            keep_count=len(keep_fds),
            join_fds=_numbers(join_fds),
            join_count=len(join_fds),
            status_fd=status_fd,
            output_fd=output_fd,
            uid=uid,
            flags=flags,
        )
        self._enter(ctypes.byref(options))
