"""What a sample is called with and what has to come out."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import torch
from harness import cuda_entry


@dataclasses.dataclass(frozen=True)
class Call:
    """Values by the names of the entry's parameters.

    inputs must be left as they are; scratch may change; outputs hold what is expected, and are
    poisoned before the call. Floating outputs are compared within `tolerance` times the largest
    expected magnitude, others exactly.
    """

    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    numbers: dict[str, int | float] = dataclasses.field(default_factory=dict)
    scratch: dict[str, torch.Tensor] = dataclasses.field(default_factory=dict)
    tolerance: float = 2e-6


@dataclasses.dataclass(frozen=True)
class Case:
    """prototype: of the entry. body: the entry's, for samples that have no entry of their own.

    kernels: further code that the body needs.
    """

    name: str
    prototype: str
    body: str | None
    calls: Callable[[], list[Call]]
    kernels: str = ""

    @property
    def entry(self) -> str:
        """The name of the host function."""
        return self.prototype.split("(")[0].split()[-1]

    def source(self, sample: str) -> str:
        if self.body is None:
            return sample
        return f'{sample}{self.kernels}\nextern "C" {self.prototype} {{\n{self.body}\n}}\n'


CASES: dict[str, Case] = {}
# For whole Python files: gets the file's names, calls what is in them, and asserts.
FILE_CASES: dict[str, Callable[[dict[str, Any]], None]] = {}


def case(
    name: str, prototype: str, body: str | None = None, kernels: str = ""
) -> Callable[[Callable[[], list[Call]]], Callable[[], list[Call]]]:
    """Registers the function below it as the maker of the calls of the sample run=NAME."""

    def register(calls: Callable[[], list[Call]]) -> Callable[[], list[Call]]:
        assert name not in CASES, f"two cases are named {name}"
        CASES[name] = Case(name, prototype, body, calls, kernels)
        return calls

    return register


def entry_of(case: Case, call: Call) -> cuda_entry.Entry:
    """Binds parameters by name. Inputs are followed by scratch, numbers are `init`."""
    groups: dict[str, dict[str, Any]] = {
        "input": call.inputs | call.scratch,
        "output": call.outputs,
        "init": call.numbers,
    }
    bindings = {
        name: f"{group}[{index}]"
        for group, values in groups.items()
        for index, name in enumerate(values)
    }
    return cuda_entry.parse(case.prototype, bindings)


def compare(call: Call, outputs: list[torch.Tensor], where: str) -> None:
    """Raises AssertionError that says where and what differs."""
    for (name, expected), got in zip(call.outputs.items(), outputs, strict=True):
        if not expected.is_floating_point():
            assert torch.equal(got, expected), f"{where}: {name}"
            continue
        scale = expected[expected.isfinite()].abs().max().item()
        torch.testing.assert_close(
            got.double(),
            expected.double(),
            rtol=0,
            atol=call.tolerance * scale,
            msg=functools.partial("{}: {}: {}".format, where, name),
        )


def normal(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 3) -> torch.Tensor:
    """The same values on each call."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed + len(shape)))
    return values.to(dtype)


def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """From low to high - 1; the same values on each call."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(5)).to(dtype)
