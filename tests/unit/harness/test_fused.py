"""The kernels of comparisons against operations of torch, over a stand-in for libcuda."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from driver_stand_in import StandIn
from harness import comparison, device_kernels

from tests.unit.harness.test_device_kernels import kernels

RULE = comparison.Rule(
    unit=2.0**-24,
    accumulation=2.0**-15,
    block=100,
    scale_hint=0.0,
    baseline_error=0.0,
    factor=4.0,
    smallest_block=32,
)


@pytest.fixture
def own(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> device_kernels.Kernels:
    return kernels(tmp_path, monkeypatch)


def both(
    own: device_kernels.Kernels,
    expected: torch.Tensor,
    expected64: torch.Tensor | None,
    got: torch.Tensor,
    rule: comparison.Rule = RULE,
) -> comparison.Facts:
    """What both ways say, which must be the same."""
    plain = vars(comparison.compare(expected, expected64, got, rule, 0xFF))
    fused = vars(comparison.compare(expected, expected64, got, rule, 0xFF, own))
    for name, value in plain.items():
        if isinstance(value, float) and math.isfinite(value):
            assert fused[name] == pytest.approx(value, rel=1e-9, abs=1e-300), name
        else:
            assert fused[name] == value or (value != value and fused[name] != fused[name]), name
    return comparison.Facts(**fused)


@pytest.mark.parametrize("size", [1, 31, 100, 101, 12_345])
@pytest.mark.parametrize("error", [0.0, 1e-7, 3e-6, 1e-3])
@pytest.mark.parametrize("have64", [True, False])
def test_both_ways_say_the_same(
    own: device_kernels.Kernels, size: int, error: float, have64: bool
) -> None:
    generator = torch.Generator().manual_seed(size)
    exact = torch.randn(size, dtype=torch.float64, generator=generator)
    noise = torch.randn(size, dtype=torch.float64, generator=generator)
    expected, got = exact.float(), (exact * (1 + error * noise)).float()
    facts = both(own, expected, exact if have64 else None, got)
    assert facts.clean == (error < 1e-3)


def test_a_float64_task_is_compared_too(own: device_kernels.Kernels) -> None:
    exact = torch.randn(777, dtype=torch.float64)
    assert both(own, exact, exact.clone(), exact + 1e-18).clean
    assert not both(own, exact, None, exact + 1e-3).clean


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["got", "expected", "both"])
def test_what_is_not_finite_is_looked_at_in_detail(
    own: device_kernels.Kernels, value: float, where: str
) -> None:
    expected = torch.linspace(-1, 1, 1000)
    got = expected.clone()
    if where != "got":
        expected[345] = value
    if where != "expected":
        got[345] = value
    facts = both(own, expected, expected.double(), got)
    assert facts.clean == (where == "both")


def test_zeros_pass_where_all_is_small(own: device_kernels.Kernels) -> None:
    expected = torch.zeros(500)
    assert both(own, expected, expected.double(), expected.clone()).zeros_pass
    expected[3] = 1.0
    assert not both(own, expected, expected.double(), expected.clone()).zeros_pass


def test_a_hint_of_the_usual_size_counts_in_both(own: device_kernels.Kernels) -> None:
    rule = comparison.Rule(**{**vars(RULE), "scale_hint": 3.0, "baseline_error": 1e-6})
    expected = torch.full((7,), 1e-4)
    assert both(own, expected, None, expected + 1e-6, rule).clean
