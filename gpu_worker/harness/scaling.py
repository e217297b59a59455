"""Reduces the shapes of a reference program by meaning, for devices that are slow.

Kernels are written for shapes: tiles of 16 to 128, four values at a time, warps of 32,
groups that divide channels. So a reduced size keeps what the original is modulo a power
of two as large as fits, stays a multiple of the small constants that divide it, and
sizes that differ go on to differ. Whether a program still makes sense with reduced sizes
is found out by running it; a ladder of ever weaker reductions ends with the batch alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.shapes import SMALL

# Largest extents that the rungs of the ladder aim at, smallest first.
TARGETS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384, 65536)
# The kind of reduction that all others are part of.
THOROUGH = "all sizes"
# Power of two that a reduced size keeps its remainder by: the largest common tile.
_MAX_MODULUS = 128

_BATCH = re.compile(r"^(batch|batch_?size|bs|n_?batch|num_?batch(es)?|b)$", re.IGNORECASE)
# Sizes that divide others.
_DIVIDER = re.compile(
    r"group|head|patch|pool|stride|factor|block|window|ratio|chunk|split|expand", re.IGNORECASE
)
# Extents in space and time, which programs most often build on by arithmetic of their own.
_EXTENT = re.compile(
    r"height|width|depth|image|img|size|len|seq|^[hwdt]$|^get_inputs:", re.IGNORECASE
)
_FEATURE = re.compile(r"feature|channel|hidden|input_size|output_size|embed|embd", re.IGNORECASE)


def is_batch(name: str) -> bool:
    return _BATCH.match(name) is not None


def is_divider(name: str) -> bool:
    return _DIVIDER.search(name) is not None and not is_batch(name)


def is_extent(name: str) -> bool:
    return _EXTENT.search(name) is not None and not is_batch(name) and not _FEATURE.search(name)


@dataclass(frozen=True)
class Rung:
    """One way to reduce: `changed` holds the sizes that differ from the original."""

    kind: str
    target: int
    changed: Mapping[str, int]


def ladder(
    sizes: Mapping[str, int], scale: float, fixed: Mapping[str, int]
) -> Iterator[list[Rung]]:
    """Kinds of reduction, the most thorough first; of each its rungs, smallest first.

    `fixed` holds sizes given by the task, which stay. No size is reduced to less than
    about `scale` of itself unless that is above the rung's target.
    """
    free = {name: value for name, value in sizes.items() if name not in fixed}
    kinds = {
        THOROUGH: lambda name: True,
        "all but extents": lambda name: not is_extent(name),
        "extents and batch": lambda name: is_extent(name) or is_batch(name),
        "batch": is_batch,
    }
    seen: list[Mapping[str, int]] = []
    for kind, chosen in kinds.items():
        names = {name: value for name, value in free.items() if chosen(name)}
        rungs = []
        for target in TARGETS:
            changed = reduced(names, sizes, target, scale)
            if changed not in seen:
                seen.append(changed)
                rungs.append(Rung(kind, target, {**changed, **fixed}))
        if rungs:
            yield rungs


def reduced(
    names: Mapping[str, int], sizes: Mapping[str, int], target: int, scale: float
) -> dict[str, int]:
    """New values of those of `names` that change when extents shall be about `target`."""
    result: dict[str, int] = {}
    by_value: dict[int, int] = {}
    for name, value in sorted(names.items(), key=lambda item: item[1]):
        if is_batch(name):
            # Any number will do; more than one, so that mixing samples up shows.
            batch = max(2, min(target // 16, math.ceil(value * scale)))
            if batch < value:
                result[name] = batch
        elif value > SMALL and not is_divider(name):
            if value not in by_value:
                by_value[value] = _reduced_value(value, sizes, target, scale, by_value)
            if by_value[value] != value:
                result[name] = by_value[value]
    for name, value in names.items():
        if is_divider(name) and value > SMALL:
            divider = _reduced_divider(value, sizes, result)
            if divider != value:
                result[name] = divider
    return result


def _reduced_value(
    value: int, sizes: Mapping[str, int], target: int, scale: float, taken: Mapping[int, int]
) -> int:
    wanted = min(target, max(SMALL, round(value * scale)))
    floor = min(target, SMALL)
    if value <= wanted:
        return value
    modulus = _modulus(value, sizes, wanted)
    remainder = value % modulus
    steps = max(0, round((wanted - remainder) / modulus))
    new = remainder + steps * modulus
    # Larger sizes stay larger than smaller ones; `taken` comes in rising order.
    below = max(taken.values(), default=0)
    while new < floor or new <= below:
        new += modulus
    return min(new, value)


def _modulus(value: int, sizes: Mapping[str, int], wanted: int) -> int:
    """What the new value must equal the old one by."""
    dividers = [
        size
        for name, size in sizes.items()
        if is_divider(name) and 1 < size <= SMALL and value % size == 0
    ]
    base = math.lcm(*dividers) if dividers else 1
    if base > max(wanted, SMALL):
        base = 1  # the program tells whether it minds
    power = _MAX_MODULUS
    while power > 1 and math.lcm(power, base) > wanted:
        power //= 2
    return math.lcm(power, base)


def _reduced_divider(value: int, sizes: Mapping[str, int], changed: Mapping[str, int]) -> int:
    """A divider of all reduced multiples of `value` that keeps the smallest quotient."""
    multiples = {
        name: size
        for name, size in sizes.items()
        if name in changed and size > value and size % value == 0
    }
    if not multiples:
        return value
    quotient = min(size // value for size in multiples.values())
    common = math.gcd(*(changed[name] for name in multiples))
    smallest = min(changed[name] for name in multiples)
    fitting = [d for d in range(1, common + 1) if common % d == 0 and smallest // d >= quotient]
    # With no room for the quotient, at least two members a group.
    return max(fitting) if fitting else max(1, min(common, smallest // 2))
