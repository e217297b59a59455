"""Compares tensors where they are: gpu_worker/evaluate/comparator.cc in operations of torch.

The formula is that of evaluate/tolerance.h; the constants come from the daemon. What is right is
known after a few operations, or after two kernels of our own where there are some (fused.py); only
what is not is looked at in detail.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness import device_kernels, fused

# Numbers that are looked at together: some ten temporaries of float64 each.
_CHUNK = 1 << 24

_LARGEST_RATIO = 1e9

_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Rule:
    """Of one floating tensor; names as in tolerance.h."""

    unit: float  # u
    accumulation: float  # a
    block: int  # numbers that share a block
    scale_hint: float
    baseline_error: float
    factor: float
    smallest_block: int


@dataclass
class Facts:
    """Of one tensor: TensorFacts in evaluate/comparator.h."""

    clean: bool = True
    worst_ratio: float = 0.0
    zeros_pass: bool = True
    baseline_error: float = 0.0
    # Of what is not clean.
    size: int = 0
    zeros: int = 0
    nans: int = 0
    poisoned: int = 0
    wrong: int = 0
    wrong_poisoned: int = 0
    wrong_zeros: int = 0
    expected_all_zero: bool = True
    at: int = 0
    expected: float = 0.0
    got: float = 0.0
    tolerance: float = 0.0
    max_error: float = 0.0
    norm: float = 0.0
    norm_bound: float = 0.0


def compare(
    expected: torch.Tensor,
    expected64: torch.Tensor | None,
    got: torch.Tensor,
    rule: Rule,
    poison: int | None,
    kernels: device_kernels.Kernels | None = None,
) -> Facts:
    """Three tensors of one shape, `expected` and `got` of one dtype. `poison`: the byte that
    fresh memory was filled with. With `kernels` the tensors are on the GPU."""
    if expected.is_floating_point() or expected.is_complex():
        return _Floating(expected, expected64, got, rule, poison, kernels).facts()
    return _compare_exactly(expected, expected64, got, poison)


def _compare_exactly(
    expected: torch.Tensor, expected64: torch.Tensor | None, got: torch.Tensor, poison: int | None
) -> Facts:
    """Indexes, counts and truth values have no tolerance, but a float64 run may settle a tie in
    another way than the task's dtype does."""
    if expected64 is not None and expected64.dtype is not expected.dtype:
        expected64 = None
    if expected.dtype is torch.bool:  # whose bytes may be others than 0 and 1
        expected, got = expected.contiguous().view(torch.uint8), got.contiguous().view(torch.uint8)
        expected64 = expected64 if expected64 is None else expected64.contiguous().view(torch.uint8)
    expected, got = expected.contiguous().view(-1), got.contiguous().view(-1)
    right = _bytes_of(got) == _bytes_of(expected)
    zero = _bytes_of(expected) == 0
    if expected64 is not None:
        second = _bytes_of(expected64.contiguous().view(-1))
        right |= _bytes_of(got) == second
        zero |= second == 0
    facts = Facts(zeros_pass=bool(zero.all()))
    wrong = ~right
    if not bool(wrong.any()):
        return facts
    facts.worst_ratio = _LARGEST_RATIO
    for first in range(0, got.numel(), _CHUNK):
        part = slice(first, first + _CHUNK)
        if facts.wrong == 0 and bool(wrong[part].any()):
            facts.at = first + int(wrong[part].nonzero()[0])
        numbers, others = got[part].double(), expected[part].double()
        _count(facts, got[part], numbers, others, wrong[part], poison)
        error = torch.where(wrong[part], (numbers - others).abs(), 0.0)
        facts.max_error = max(facts.max_error, float(error.amax()))
    facts.expected, facts.got = float(expected[facts.at]), float(got[facts.at])
    return facts


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """As whole numbers of the same width."""
    return tensor.view(_WHOLE[tensor.element_size()])


def _count(
    facts: Facts,
    raw: torch.Tensor,
    got: torch.Tensor,
    expected: torch.Tensor,
    wrong: torch.Tensor,
    poison: int | None,
) -> None:
    """Adds to the counts of `facts`. Flat tensors; `raw` is `got` in its own dtype."""
    zero = got == 0
    facts.clean = False
    facts.size += got.numel()
    facts.zeros += int(zero.sum())
    facts.nans += int(got.isnan().sum())
    facts.wrong += int(wrong.sum())
    facts.wrong_zeros += int((zero & wrong).sum())
    if bool((expected != 0).any()):
        facts.expected_all_zero = False
    if poison is None:
        return
    pattern = int.from_bytes(bytes([poison]) * raw.element_size(), "little", signed=True)
    if raw.element_size() == 1:
        pattern = poison
    poisoned = _bytes_of(raw) == pattern
    facts.poisoned += int(poisoned.sum())
    facts.wrong_poisoned += int((poisoned & wrong).sum())


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
    """Numbers in whole blocks, as float64 (blocks x block); what a short last block lacks is not
    `present`."""

    first: int
    count: int
    reference: torch.Tensor
    baseline: torch.Tensor
    got: torch.Tensor
    present: torch.Tensor | None  # None: all

    def flat(self, tensor: torch.Tensor) -> torch.Tensor:
        """Without what is not present."""
        return tensor.view(-1)[: self.count]


@dataclass
class _Field:
    """What the bounds of a tensor are made of; the lists by chunk."""

    block_rms: list[torch.Tensor]
    block_error: list[torch.Tensor]
    global_rms: float
    error_floor: float
    norm_bound: float
    baseline_error: float


class _Floating:
    def __init__(
        self,
        expected: torch.Tensor,
        expected64: torch.Tensor | None,
        got: torch.Tensor,
        rule: Rule,
        poison: int | None,
        kernels: device_kernels.Kernels | None,
    ) -> None:
        self._baseline = _numbers(expected)
        self._reference = self._baseline if expected64 is None else _numbers(expected64)
        self._have64 = expected64 is not None
        self._got = _numbers(got)
        self._rule = rule
        self._poison = poison
        self._fused: fused.Comparison | None = None
        if kernels is not None and fused.takes(self._baseline, self._reference):
            self._fused = fused.Comparison(
                kernels, self._reference, self._baseline, self._got, rule.block
            )

    def facts(self) -> Facts:
        field = self._field()
        return self._quick(field) or self._detailed(field)

    def _step(self) -> int:
        """Numbers of a chunk: whole blocks."""
        block = self._rule.block
        return max(block, _CHUNK // block * block)

    def _chunks(self) -> Iterator[_Chunk]:
        block = self._rule.block
        step = self._step()
        size = self._got.numel()
        for first in range(0, size, step):
            count = min(step, size - first)
            padding = -count % block
            reference, baseline, got = (
                torch.nn.functional.pad(t[first : first + count].double(), (0, padding)).view(
                    -1, block
                )
                for t in (self._reference, self._baseline, self._got)
            )
            present = None
            if padding:
                present = torch.ones_like(got, dtype=torch.bool)
                present.view(-1)[count:] = False
            yield _Chunk(first, count, reference, baseline, got, present)

    def _zero(self) -> torch.Tensor:
        return torch.zeros((), dtype=torch.float64, device=self._got.device)

    def _sums(self) -> tuple[list[torch.Tensor], list[torch.Tensor], list[float]]:
        """Of each chunk the root mean squares and the largest errors of its blocks; the sums of
        the squares of the references, of the baseline's errors and of their excesses, and the
        count of finite numbers."""
        rule = self._rule
        if self._fused is not None:
            rms, error, sums = self._fused.field(rule.unit)
            rows = self._step() // rule.block
            firsts = range(0, rms.numel(), rows)
            return [rms[i : i + rows] for i in firsts], [error[i : i + rows] for i in firsts], sums
        total, total_error, total_excess = self._zero(), self._zero(), self._zero()
        count_all = self._zero()
        block_rms, block_error = [], []
        for chunk in self._chunks():
            finite = torch.isfinite(chunk.reference) & torch.isfinite(chunk.baseline)
            if chunk.present is not None:
                finite &= chunk.present
            reference = torch.where(finite, chunk.reference, 0.0)
            error = (torch.where(finite, chunk.baseline, 0.0) - reference).abs()
            excess = (error - rule.unit * reference.abs()).clamp_(min=0)
            squares = reference.square().sum(1)
            count = finite.sum(1)
            block_rms.append((squares / count.clamp(min=1)).sqrt())
            block_error.append(excess.amax(1))
            total += squares.sum()
            total_error += error.square().sum()
            total_excess += excess.square().sum()
            count_all += count.sum()
        sums = [float(total), float(total_error), float(total_excess), float(count_all)]
        return block_rms, block_error, sums

    def _field(self) -> _Field:
        rule = self._rule
        block_rms, block_error, (total, total_error, total_excess, count) = self._sums()
        numbers = max(count, 1.0)
        norm = math.sqrt(total)
        global_rms = math.sqrt(total / numbers)
        own_rms = global_rms
        scale = max(norm, rule.scale_hint * math.sqrt(numbers))
        if rule.scale_hint > global_rms:
            if self._got.numel() < rule.smallest_block:
                block_rms = [rms.clamp(min=rule.scale_hint) for rms in block_rms]
            global_rms = rule.scale_hint
        error_floor = 4 * math.sqrt(total_excess / numbers)
        norm_error = math.sqrt(total_error)
        baseline_error = norm_error / norm if norm > 0 else 0.0
        if not self._have64:
            error_floor = 4 * rule.baseline_error * own_rms
            norm_error = rule.baseline_error * scale
        norm_bound = rule.factor * max(norm_error, (rule.accumulation + rule.unit) * scale)
        return _Field(block_rms, block_error, global_rms, error_floor, norm_bound, baseline_error)

    def _tolerance(self, field: _Field, index: int, size: torch.Tensor) -> torch.Tensor:
        """Of chunk `index`, whose references have these magnitudes."""
        rule = self._rule
        local = (field.block_rms[index] * field.global_rms).sqrt().unsqueeze(1)
        bound = torch.maximum(
            field.block_error[index].clamp(min=field.error_floor).unsqueeze(1),
            rule.accumulation * torch.maximum(size, local),
        )
        return 2 * rule.unit * size + rule.factor * bound

    def _quick(self, field: _Field) -> Facts | None:
        """None when something is not finite or not right."""
        doubtful, zeros_wrong, (squares, zero_squares, worst) = self._check(field)
        if doubtful or math.sqrt(squares) > field.norm_bound:
            return None
        return Facts(
            worst_ratio=min(worst, _LARGEST_RATIO),
            zeros_pass=not zeros_wrong and math.sqrt(zero_squares) <= field.norm_bound,
            baseline_error=field.baseline_error,
        )

    def _check(self, field: _Field) -> tuple[bool, bool, list[float]]:
        """Whether something is not finite or not right, whether zeros are wrong somewhere; the
        sums of the squares of the errors and of those of zeros, and the largest share of its
        bound that an error takes."""
        if self._fused is not None:
            rule = self._rule
            return self._fused.check(
                torch.cat(field.block_rms),
                torch.cat(field.block_error),
                fused.Bounds(
                    rule.unit, rule.accumulation, rule.factor, field.global_rms, field.error_floor
                ),
            )
        squares, zero_squares, worst = self._zero(), self._zero(), self._zero()
        device = self._got.device
        doubtful = torch.zeros((), dtype=torch.bool, device=device)
        zeros_wrong = torch.zeros((), dtype=torch.bool, device=device)
        for index, chunk in enumerate(self._chunks()):
            size = chunk.reference.abs()
            tolerance = self._tolerance(field, index, size)
            error = torch.minimum(
                (chunk.got - chunk.reference).abs(), (chunk.got - chunk.baseline).abs()
            )
            zero_error = torch.minimum(size, chunk.baseline.abs())
            # NaN is not at most anything; what is infinite in both makes one.
            doubtful |= ~(error <= tolerance).all()
            doubtful |= ~(torch.isfinite(size) & torch.isfinite(chunk.baseline)).all()
            squares += error.square().sum()
            zero_squares += zero_error.square().sum()
            zeros_wrong |= (zero_error > tolerance).any()
            worst = torch.maximum(worst, torch.where(error == 0, 0.0, error / tolerance).amax())
        return (
            bool(doubtful),
            bool(zeros_wrong),
            [float(squares), float(zero_squares), float(worst)],
        )

    def _detailed(self, field: _Field) -> Facts:
        facts = Facts(norm_bound=field.norm_bound, baseline_error=field.baseline_error)
        squares = zero_squares = 0.0
        worst_at, worst_tolerance = 0, 0.0
        zeros_wrong = False
        dtype = self._baseline.dtype
        infinity = float("inf")
        for index, chunk in enumerate(self._chunks()):
            reference, baseline, got = (
                chunk.flat(t) for t in (chunk.reference, chunk.baseline, chunk.got)
            )
            finite, base_finite = torch.isfinite(reference), torch.isfinite(baseline)
            got_finite = torch.isfinite(got)
            size = torch.where(torch.isfinite(chunk.reference), chunk.reference, 0.0).abs()
            tolerance = torch.where(
                finite, chunk.flat(self._tolerance(field, index, size)), infinity
            )
            rounded = reference.to(dtype).double()
            overflows = ~base_finite & ~torch.isfinite(rounded)

            def error_of(
                value: torch.Tensor | float,
                reference: torch.Tensor = reference,
                baseline: torch.Tensor = baseline,
                finite: torch.Tensor = finite,
                base_finite: torch.Tensor = base_finite,
            ) -> torch.Tensor:
                return torch.minimum(
                    torch.where(finite, (value - reference).abs(), infinity),
                    torch.where(base_finite, (value - baseline).abs(), infinity),
                )

            error, zero_error = error_of(got), error_of(0.0)
            alike = _alike(got, baseline) | _alike(got, rounded)
            other_kind = torch.where(got_finite, overflows, ~alike)
            counted = got_finite & ~overflows & finite
            wrong = other_kind | (counted & (error > tolerance))
            zeros_wrong |= bool((overflows | (zero_error > tolerance)).any())
            squares += float(torch.where(counted, error, 0.0).square().sum())
            zero_squares += float(torch.where(finite, zero_error, 0.0).square().sum())
            raw = self._got[chunk.first : chunk.first + chunk.count]
            if facts.wrong == 0 and bool(wrong.any()):
                at = int(wrong.nonzero()[0])
                facts.at = chunk.first + at
                facts.tolerance = float(tolerance[at])
            _count(facts, raw, got, baseline, wrong, self._poison)
            facts.max_error = max(facts.max_error, float(torch.where(counted, error, 0.0).amax()))
            ratio = torch.where(counted & (error > 0), error / tolerance, 0.0)
            if bool(other_kind.any()):
                facts.worst_ratio = _LARGEST_RATIO
            largest = min(float(ratio.amax()), _LARGEST_RATIO)
            if largest > facts.worst_ratio:
                facts.worst_ratio = largest
                at = int(ratio.argmax())
                worst_at, worst_tolerance = chunk.first + at, float(tolerance[at])
        facts.norm = math.sqrt(squares)
        facts.clean = facts.wrong == 0 and facts.norm <= field.norm_bound
        facts.zeros_pass = not (zeros_wrong or math.sqrt(zero_squares) > field.norm_bound)
        if facts.clean:
            return facts
        if facts.wrong == 0:
            facts.at, facts.tolerance = worst_at, worst_tolerance
            facts.worst_ratio = max(facts.worst_ratio, facts.norm / field.norm_bound)
        facts.expected = float(self._baseline[facts.at])
        facts.got = float(self._got[facts.at])
        return facts


def _alike(got: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Where both are NaN, or the same infinity."""
    return (got.isnan() & other.isnan()) | (got.isinf() & (got == other))
