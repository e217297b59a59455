"""The gate that every library of a solution has (torch_abi, launch_gate.c): what it launched on
the GPU, and whether that may run."""

from __future__ import annotations

import ctypes


class LaunchGate:
    """`library`: the path of a solution's library, which is loaded; ImportError when it cannot
    be."""

    def __init__(self, library: str) -> None:
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            raise ImportError(f"cannot load the extension: {error}") from error
        for name in ("launches", "untracked"):
            getattr(self._library, f"kmosaic_launch_gate_{name}").restype = ctypes.c_ulonglong

    def close(self) -> None:
        """From now on its launches do nothing, and report success."""
        self._library.kmosaic_launch_gate_close()

    def launches(self) -> int | None:
        """Of kernels and graphs since the library was loaded. None when it looked a launching
        function up by its name, and nobody knows what it did with it."""
        if self._library.kmosaic_launch_gate_untracked():
            return None
        return int(self._library.kmosaic_launch_gate_launches())

    def refused(self) -> int:
        """The error code (cudaError_t) of the last launch that CUDA refused; 0 for none."""
        return int(self._library.kmosaic_launch_gate_refused())


def total(gates: list[LaunchGate]) -> int | None:
    """Of all of a solution's libraries; None as above."""
    launches = 0
    for gate in gates:
        own = gate.launches()
        if own is None:
            return None
        launches += own
    return launches
