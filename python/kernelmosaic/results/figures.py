"""Figures of a job from its exported rows (`trajectory`, with unverified conversations).

A task counts once, however many samples it has: every share is a mean over tasks of the share of
its samples. Intervals are of 95 %; they are over tasks, since samples of one task are alike.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

FAST_P = (0.0, 1.0, 1.5, 2.0)
# Draws of a bootstrap; the interval's ends are then known to about a tenth of its width.
_DRAWS = 2000


@dataclass(frozen=True)
class Sample:
    """One conversation. `speedup`: None where it was not measured."""

    task: str
    level: int
    verified: bool
    speedup: float | None
    turns: int

    def fast(self, p: float) -> bool:
        """Right, and more than `p` times as fast; p = 0 asks for no time."""
        return self.verified and (p == 0 or (self.speedup is not None and self.speedup > p))


@dataclass(frozen=True)
class Share:
    value: float
    low: float
    high: float


def sample_of(row: dict[str, Any]) -> Sample | None:
    """None for a conversation that the system, not the model, ended."""
    if row["stop_reason"] in ("cancelled", "infrastructure", "invalid_task"):
        return None
    return Sample(
        row["task"]["id"],
        int(row["task"]["level"] or 0),
        bool(row["verified"]),
        row["timing"]["speedup"],
        len(row["turns"]),
    )


def by_task(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    tasks: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        tasks[sample.task].append(sample)
    return dict(tasks)


def pass_at(k: int, right: int, samples: int) -> float:
    """Chance that at least one of `k` samples drawn of so many is right (Chen et al. 2021)."""
    if samples - right < k:
        return 1.0
    return 1.0 - math.prod((samples - right - i) / (samples - i) for i in range(k))


def interval(values: Sequence[float], seed: int = 0) -> Share:
    """Mean of the tasks' values, with a bootstrap interval over tasks; Wilson's where all are 0
    or 1, since a bootstrap of equal values has no width."""
    n = len(values)
    mean = sum(values) / n
    if all(v in (0.0, 1.0) for v in values):
        return wilson(int(sum(values)), n)
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=n)) / n for _ in range(_DRAWS))
    return Share(mean, means[int(0.025 * _DRAWS)], means[int(0.975 * _DRAWS) - 1])


def wilson(right: int, n: int) -> Share:
    """Wilson's score interval of a share."""
    z = 1.959963984540054
    mean = right / n
    centre = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Share(mean, max(0.0, centre - half), min(1.0, centre + half))


def fast_p(samples: Sequence[Sample], p: float) -> Share:
    tasks = by_task(samples)
    return interval([sum(s.fast(p) for s in group) / len(group) for group in tasks.values()])


def pass_at_k(samples: Sequence[Sample], k: int) -> Share | None:
    """None where a task has fewer than `k` samples."""
    groups = list(by_task(samples).values())
    if not groups or min(len(group) for group in groups) < k:
        return None
    return interval([pass_at(k, sum(s.verified for s in g), len(g)) for g in groups])


def summary(samples: Sequence[Sample], ks: Sequence[int] = (1, 4, 10)) -> dict[str, Any]:
    """Figures over all tasks and by level; speed only where times were measured."""

    def figures(part: Sequence[Sample]) -> dict[str, Any]:
        timed = any(s.speedup is not None for s in part)
        found: dict[str, Any] = {
            "tasks": len(by_task(part)),
            "samples": len(part),
            "turns": round(sum(s.turns for s in part) / len(part), 2),
        }
        for p in FAST_P if timed else FAST_P[:1]:
            found[f"fast_{p:g}"] = _plain(fast_p(part, p))
        for k in ks:
            share = pass_at_k(part, k)
            if share is not None:
                found[f"pass@{k}"] = _plain(share)
        return found

    levels = sorted({s.level for s in samples})
    return {
        "all": figures(samples),
        "levels": {
            str(level): figures([s for s in samples if s.level == level]) for level in levels
        },
    }


def _plain(share: Share) -> dict[str, float]:
    return {
        k: round(v, 4)
        for k, v in (("value", share.value), ("low", share.low), ("high", share.high))
    }


@dataclass(frozen=True)
class Comparison:
    """Of the tasks that both have: `difference` is b - a; `p_value` is two-sided."""

    tasks: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float


def compare(a: Sequence[Sample], b: Sequence[Sample], p: float = 0.0, seed: int = 0) -> Comparison:
    """Share of right (or fast) samples, paired by task: a sign-flip permutation test and a
    bootstrap interval of the mean difference. ValueError where no task is in both."""
    first, second = by_task(a), by_task(b)
    common = sorted(first.keys() & second.keys())
    if not common:
        raise ValueError("the two have no task in common")

    def share(group: Sequence[Sample]) -> float:
        return sum(s.fast(p) for s in group) / len(group)

    pairs = [(share(first[task]), share(second[task])) for task in common]
    differences = [y - x for x, y in pairs]
    n = len(differences)
    mean = sum(differences) / n
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(differences, k=n)) / n for _ in range(_DRAWS))
    nonzero = [d for d in differences if d]
    extreme = 1
    for _ in range(_DRAWS):
        flipped = sum(d if draw.random() < 0.5 else -d for d in nonzero) / n
        extreme += abs(flipped) >= abs(mean) - 1e-12
    return Comparison(
        n,
        sum(x for x, _ in pairs) / n,
        sum(y for _, y in pairs) / n,
        mean,
        means[int(0.025 * _DRAWS)],
        means[int(0.975 * _DRAWS) - 1],
        extreme / (_DRAWS + 1),
    )
