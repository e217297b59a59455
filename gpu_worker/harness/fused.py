"""Two passes of our own over numbers on a GPU (device/kernels/compare.cu), for comparison.py."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import torch

from harness import device_kernels

# Names of the kernels by the dtype of the outputs.
_NAMES = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
}
_LANES = 32  # threads that share a row


@dataclass(frozen=True)
class Bounds:
    """As comparison.Rule and what follows from the field."""

    unit: float
    accumulation: float
    factor: float
    global_rms: float
    error_floor: float


def takes(baseline: torch.Tensor, reference: torch.Tensor) -> bool:
    """Whether there are kernels for these; flat, contiguous, of one length."""
    return baseline.dtype in _NAMES and reference.dtype in (baseline.dtype, torch.float64)


class Comparison:
    """Of flat, contiguous tensors of one length; `got` has the dtype of `baseline`."""

    def __init__(
        self,
        kernels: device_kernels.Kernels,
        reference: torch.Tensor,
        baseline: torch.Tensor,
        got: torch.Tensor,
        block: int,
    ) -> None:
        self._kernels = kernels
        self._numbers = (reference, baseline, got)
        self._block = block
        self._rows = -(-got.numel() // block)
        name = _NAMES[baseline.dtype]
        wide = reference.dtype is torch.float64 and baseline.dtype is not torch.float64
        self._name = name + ("_wide" if wide else "")

    def _zeros(self, count: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        return torch.zeros(count, dtype=dtype, device=self._numbers[0].device)

    def _launch(self, kernel: str, tensors: tuple[torch.Tensor, ...], *arguments: Any) -> None:
        if self._rows == 0:
            return
        self._kernels.launch(
            f"{kernel}_{self._name}",
            self._rows * _LANES,
            *map(_address, tensors),
            ctypes.c_uint64(self._numbers[0].numel()),
            ctypes.c_uint64(self._block),
            *arguments,
        )

    def field(self, unit: float) -> tuple[torch.Tensor, torch.Tensor, list[float]]:
        """Root mean squares and largest excess errors of the rows, and four sums."""
        rms, error, sums = self._zeros(self._rows), self._zeros(self._rows), self._zeros(4)
        self._launch(
            "field",
            self._numbers[:2],
            ctypes.c_double(unit),
            _address(rms),
            _address(error),
            _address(sums),
        )
        return rms, error, sums.tolist()

    def check(
        self, rms: torch.Tensor, error: torch.Tensor, bounds: Bounds
    ) -> tuple[bool, bool, list[float]]:
        """Whether something is not finite or not right, whether zeros are wrong; three sums."""
        sums, flags = self._zeros(3), self._zeros(1, torch.int32)
        self._launch(
            "check",
            self._numbers,
            *(ctypes.c_double(value) for value in vars(bounds).values()),
            _address(rms),
            _address(error),
            _address(sums),
            _address(flags),
        )
        found = int(flags[0])
        return bool(found & 1), bool(found & 2), sums.tolist()


def _address(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())
