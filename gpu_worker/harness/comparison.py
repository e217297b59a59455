"""Compares tensors where they are: the fast side of gpu_worker/evaluate/comparator.

Says only that an output is right beyond doubt, by the formula of evaluate/tolerance.h; what is
not is looked at by the daemon, element by element. The constants come from the daemon.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import torch

# Numbers that are looked at together: some ten temporaries of float64 each.
_CHUNK = 1 << 24

_LARGEST_RATIO = 1e9


@dataclass(frozen=True)
class Rule:
    """Of one floating tensor; names as in tolerance.h."""

    unit: float  # u
    accumulation: float  # a
    block: int  # numbers that share a block
    scale_hint: float
    factor: float
    smallest_block: int


@dataclass(frozen=True)
class Result:
    clean: bool
    # Of what is clean.
    worst_ratio: float = 0.0
    zeros_pass: bool = True


def compare(
    expected: torch.Tensor, expected64: torch.Tensor | None, got: torch.Tensor, rule: Rule
) -> Result:
    """Three tensors of one shape, `expected` and `got` of one dtype."""
    if expected.is_floating_point() or expected.is_complex():
        return _Floating(expected, expected64, got, rule).result()
    if expected64 is not None and expected64.dtype is not expected.dtype:
        expected64 = None
    same = got == expected
    zeros = expected == 0
    if expected64 is not None:
        same |= got == expected64
        zeros |= expected64 == 0
    return Result(clean=bool(same.all()), zeros_pass=bool(zeros.all()))


def mean_square(tensor: torch.Tensor) -> tuple[float, bool]:
    """Over the finite numbers of a floating tensor (at most the largest finite one), and whether
    there are others."""
    total = torch.zeros((), dtype=torch.float64, device=tensor.device)
    finite = torch.zeros((), dtype=torch.int64, device=tensor.device)
    flat = _numbers(tensor)
    for first in range(0, flat.numel(), _CHUNK):
        numbers = flat[first : first + _CHUNK].double()
        present = torch.isfinite(numbers)
        total += torch.where(present, numbers, 0.0).square().sum()
        finite += present.sum()
    count = int(finite)
    square = min(float(total) / count, sys.float_info.max) if count else 0.0
    return square, count != flat.numel()


def same_bytes(before: torch.Tensor, after: torch.Tensor) -> bool:
    return (
        before.shape == after.shape
        and before.dtype is after.dtype
        and torch.equal(_bits(before), _bits(after))
    )


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def _numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Real numbers, in C order."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.contiguous().view(-1)


@dataclass
class _Chunk:
    """Numbers in whole blocks (rows); what a short last block lacks is not `finite`."""

    reference: torch.Tensor  # blocks x block, float64, zero where not finite
    baseline: torch.Tensor
    got: torch.Tensor
    finite: torch.Tensor


class _Floating:
    def __init__(
        self,
        expected: torch.Tensor,
        expected64: torch.Tensor | None,
        got: torch.Tensor,
        rule: Rule,
    ) -> None:
        self._baseline = _numbers(expected)
        self._reference = self._baseline if expected64 is None else _numbers(expected64)
        self._got = _numbers(got)
        self._rule = rule
        self._doubtful = torch.zeros((), dtype=torch.bool, device=got.device)
        self._special = torch.zeros((), dtype=torch.bool, device=got.device)

    def _chunks(self) -> Iterator[_Chunk]:
        block = self._rule.block
        step = max(block, _CHUNK // block * block)
        size = self._got.numel()
        for first in range(0, size, step):
            count = min(step, size - first)
            padding = -count % block
            reference, baseline, got = (
                torch.nn.functional.pad(t[first : first + count].double(), (0, padding))
                for t in (self._reference, self._baseline, self._got)
            )
            finite = torch.isfinite(reference) & torch.isfinite(baseline)
            # Not finite, and of the same kind as in the task's dtype: right, and no number.
            alike = ((got == baseline) | (got.isnan() & baseline.isnan())) & ~torch.isfinite(got)
            self._doubtful |= (~finite & ~alike).any() | (finite & ~torch.isfinite(got)).any()
            self._special |= alike.any()
            if padding:
                finite[count:] = False
            zero = torch.zeros((), dtype=torch.float64, device=got.device)
            reference, baseline, got = (
                torch.where(finite, t, zero).view(-1, block) for t in (reference, baseline, got)
            )
            yield _Chunk(reference, baseline, got, finite.view(-1, block))

    def result(self) -> Result:
        rule = self._rule
        device = self._got.device

        def zero() -> torch.Tensor:
            return torch.zeros((), dtype=torch.float64, device=device)

        total, total_error, total_excess, finite = zero(), zero(), zero(), zero()
        block_rms, block_error = [], []
        for chunk in self._chunks():
            error = (chunk.baseline - chunk.reference).abs()
            excess = (error - rule.unit * chunk.reference.abs()).clamp_(min=0)
            squares = chunk.reference.square().sum(1)
            count = chunk.finite.sum(1)
            block_rms.append((squares / count.clamp(min=1)).sqrt())
            block_error.append(excess.amax(1))
            total += squares.sum()
            total_error += error.square().sum()
            total_excess += excess.square().sum()
            finite += count.sum()
        count_all = max(float(finite), 1.0)
        global_rms = math.sqrt(float(total) / count_all)
        error_floor = 4 * math.sqrt(float(total_excess) / count_all)
        scale = max(math.sqrt(float(total)), rule.scale_hint * math.sqrt(count_all))
        norm_bound = rule.factor * max(
            math.sqrt(float(total_error)), (rule.accumulation + rule.unit) * scale
        )
        if rule.scale_hint > global_rms:
            if self._got.numel() < rule.smallest_block:
                block_rms = [rms.clamp(min=rule.scale_hint) for rms in block_rms]
            global_rms = rule.scale_hint

        squares_all, zero_squares, worst = zero(), zero(), zero()
        wrong = torch.zeros((), dtype=torch.bool, device=device)
        zeros_wrong = torch.zeros((), dtype=torch.bool, device=device)
        for index, chunk in enumerate(self._chunks()):
            size = chunk.reference.abs()
            local = (block_rms[index] * global_rms).sqrt().unsqueeze(1)
            bound = torch.maximum(
                block_error[index].clamp(min=error_floor).unsqueeze(1),
                rule.accumulation * torch.maximum(size, local),
            )
            tolerance = 2 * rule.unit * size + rule.factor * bound
            error = torch.minimum(
                (chunk.got - chunk.reference).abs(), (chunk.got - chunk.baseline).abs()
            )
            zero_error = torch.minimum(size, chunk.baseline.abs())
            squares_all += error.square().sum()
            zero_squares += zero_error.square().sum()
            wrong |= (error > tolerance).any()
            zeros_wrong |= (zero_error > tolerance).any()
            ratio = torch.where(error == 0, 0.0, error / tolerance)
            worst = torch.maximum(worst, ratio.amax())
        clean = not bool(wrong | self._doubtful) and math.sqrt(float(squares_all)) <= norm_bound
        zeros_pass = (
            not bool(zeros_wrong | self._special) and math.sqrt(float(zero_squares)) <= norm_bound
        )
        if not clean:
            return Result(False)
        return Result(True, min(float(worst), _LARGEST_RATIO), zeros_pass)
