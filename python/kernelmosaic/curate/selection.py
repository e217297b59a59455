"""Choosing N tasks that cover all: near-duplicates out, then facility location under quotas.

Coverage of a choice is the mean, over all tasks, of the similarity to the nearest chosen one.
The greedy choice that adds what raises it most is within 1 - 1/e of the best. Gains only fall, so
each is computed anew only when it is at the head of the queue (lazy greedy). Similarities are made
block by block and never kept: memory is that of the vectors.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kernelmosaic.curate.features import Vectors
from kernelmosaic.curate.programs import read_program
from kernelmosaic.curate.task_set import Entry

# Rows of a block of similarities: 2,048 x 20,000 floats are 160 MB.
BLOCK = 2048
# Tasks that coverage is measured on; more are represented by a sample of this many.
MOST_COVERED = 20_000
# Gains that are computed anew together.
STALE = 64


@dataclass(frozen=True)
class Quotas:
    """Most tasks of each value; 0: no limit. `families` and `levels` override the general one."""

    per_family: int = 0
    per_level: int = 0
    families: dict[str, int] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)

    def allows(self, entry: Entry, chosen: Counter[object]) -> bool:
        family = self.families.get(entry.family, self.per_family)
        level = self.levels.get(entry.level, self.per_level)
        return (not family or chosen[("family", entry.family)] < family) and (
            not level or chosen[("level", entry.level)] < level
        )


@dataclass(frozen=True)
class Selection:
    """Positions in the order in which they were chosen; `duplicates` were left out before."""

    chosen: list[int]
    duplicates: list[int]
    coverage: float
    # Of as many tasks drawn at random (under no quotas), for comparison.
    random_coverage: float


def near_duplicates(entries: Sequence[Entry]) -> list[int]:
    """Positions of tasks that an earlier one equals but for names, layout and words."""
    seen: set[str] = set()
    found = []
    for position, entry in enumerate(entries):
        program = read_program(entry.reference)
        key = program.normal if program else entry.reference.strip()
        if key in seen:
            found.append(position)
        seen.add(key)
    return found


def coverage(vectors: Vectors, covered: Vectors, chosen: Sequence[int]) -> float:
    best = np.zeros(len(covered), dtype=np.float32)
    for start in range(0, len(chosen), BLOCK):
        part = vectors[list(chosen[start : start + BLOCK])]
        best = np.maximum(best, (covered @ part.T).max(axis=1))
    return float(best.mean())


def select(
    entries: Sequence[Entry],
    vectors: Vectors,
    count: int,
    quotas: Quotas,
    seed: int = 0,
) -> Selection:
    """At most `count` tasks; fewer where quotas or duplicates leave no more."""
    random = np.random.default_rng(seed)
    duplicates = near_duplicates(entries)
    left_out = set(duplicates)
    candidates = np.array([i for i in range(len(entries)) if i not in left_out])
    covered = vectors[candidates]
    if len(candidates) > MOST_COVERED:
        covered = vectors[random.choice(candidates, MOST_COVERED, replace=False)]
    best = np.zeros(len(covered), dtype=np.float32)

    def gains(positions: Sequence[int]) -> Vectors:
        reached = covered @ vectors[list(positions)].T
        reached -= best[:, None]
        total: Vectors = np.maximum(reached, 0.0, out=reached).sum(axis=0)
        return total

    queue: list[tuple[float, int, int]] = []
    for start in range(0, len(candidates), BLOCK):
        part = [int(p) for p in candidates[start : start + BLOCK]]
        queue += [(-float(g), p, 0) for g, p in zip(gains(part), part)]
    heapq.heapify(queue)
    chosen: list[int] = []
    counts: Counter[object] = Counter()
    while queue and len(chosen) < count:
        if queue[0][2] == len(chosen):
            _, position, _ = heapq.heappop(queue)
            if quotas.allows(entries[position], counts):
                entry = entries[position]
                chosen.append(position)
                counts.update([("family", entry.family), ("level", entry.level)])
                best = np.maximum(best, covered @ vectors[position])
            continue
        # What is at the head is out of date: several at once, since a product of matrices is
        # many times faster than as many products with a vector.
        stale: list[int] = []
        while queue and len(stale) < STALE and queue[0][2] != len(chosen):
            position = heapq.heappop(queue)[1]
            if quotas.allows(entries[position], counts):
                stale.append(position)
        for gained, position in zip(gains(stale), stale):
            heapq.heappush(queue, (-float(gained), position, len(chosen)))
    drawn: npt.NDArray[np.int64] = random.permutation(candidates)[: len(chosen)]
    return Selection(
        chosen,
        duplicates,
        coverage(vectors, covered, chosen) if chosen else 0.0,
        coverage(vectors, covered, [int(i) for i in drawn]) if chosen else 0.0,
    )
