"""Forks the roles of an evaluation from a process that has torch imported already.

The daemon starts it with an empty environment and one socket. It runs no code of
others: each request forks a child, which enters the sandbox before it reads anything.

Requests: {"op": "fork", "role": "collect" | "reference" | "candidate" | "launcher", "limits":
{...}, "readable": [paths], "devices": [nodes], "flags": n} with descriptors [role socket, output
pipe, seccomp program, status socket, cgroup.procs files ...]; answer {"ok": true} or
{"ok": false, "error": text}. How the child fares is told on the status socket
(sandbox/enter.h).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import signal
import socket
import sys
from typing import Any

_PARENT_OF_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Says no without touching CUDA, so that forked children can still start it.
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"


def _die_with_parent(parent: int) -> None:
    """The kernel kills this process when the thread that started it ends."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the daemon is gone")


def _read_all(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0)


class Zygote:
    def __init__(self, control: socket.socket, library_path: str, shown: list[str]) -> None:
        from harness import candidate, collect, enter, launcher, reference, wire

        self._enter = enter
        self._wire = wire
        self._roles = {
            "collect": collect.serve,
            "reference": reference.serve,
            "candidate": candidate.serve,
            "launcher": launcher.serve,
        }
        self._control = wire.Channel(control)
        self._library = enter.Library(library_path)
        harness = os.path.dirname(os.path.abspath(__file__))
        # What lies beside the package is no role's business, though it is importable for now.
        python = [path for path in enter.python_paths() if path != _PARENT_OF_PACKAGE]
        self._always_shown = enter.view_of([*python, harness, *shown])

    def announce(self) -> None:
        import torch

        self._control.send(
            {
                "ok": True,
                "python": sys.version.split()[0],
                "torch": torch.__version__,
                "cuda": torch.version.cuda,
            }
        )

    def serve(self) -> None:
        """Until the daemon closes the socket."""
        while (received := self._control.receive()) is not None:
            message, descriptors = received
            try:
                self._fork(message, descriptors)
                self._control.send({"ok": True})
            except (OSError, ValueError, KeyError, TypeError) as error:
                self._control.send({"ok": False, "error": f"fork of a role: {error!r}"})
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

    def _fork(self, message: dict[str, Any], descriptors: list[int]) -> None:
        role_fd, output_fd, seccomp_fd, status_fd, *join_fds = descriptors
        serve = self._roles[message["role"]]
        limits = self._enter.Limits(**message["limits"])
        view = self._enter.view_of(message["readable"], self._always_shown)
        seccomp = _read_all(seccomp_fd)
        if os.fork() != 0:
            return
        code = 1
        try:
            self._library.enter(
                view=view,
                devices=message["devices"],
                limits=limits,
                seccomp=seccomp,
                keep_fds=[role_fd],
                join_fds=join_fds,
                status_fd=status_fd,
                output_fd=output_fd,
                flags=message["flags"],
            )
            _restore_signals()
            serve(self._wire.Channel(socket.socket(fileno=role_fd)))
            code = 0
        finally:
            # Past Python's own exit: atexit handlers belong to the zygote.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def _restore_signals() -> None:
    """Python ignores these; a program that breaks a limit shall die of it, told apart."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True, help="pid of the daemon")
    parser.add_argument("--control", type=int, required=True, help="descriptor of its socket")
    parser.add_argument("--library", required=True, help="path of libkmosaic_enter.so")
    parser.add_argument("--readable", required=True, help="JSON list of paths every role may read")
    options = parser.parse_args()
    _die_with_parent(options.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the daemon's to handle

    sys.path.insert(0, _PARENT_OF_PACKAGE)
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    zygote = Zygote(
        socket.socket(fileno=options.control), options.library, json.loads(options.readable)
    )
    # Programs under evaluation import nothing of ours by its plain name.
    sys.path.remove(_PARENT_OF_PACKAGE)
    # Nobody waits for the keepers of the sandboxes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Garbage collection in a child would touch, and so copy, every page of ours.
    gc.collect()
    gc.freeze()
    zygote.announce()
    zygote.serve()


if __name__ == "__main__":
    main()
