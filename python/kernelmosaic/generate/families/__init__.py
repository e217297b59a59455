"""The table of families: each draws a graph of operators.

Families were chosen by what CUDA programmers write: the kernels of deep-learning frameworks,
their usual fusions, and the blocks that models are built from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from kernelmosaic.generate.graph import Builder
from kernelmosaic.generate.values import Value


@dataclass(frozen=True)
class Family:
    """`operator` is the task's family, by which guidance is picked."""

    name: str
    operator: str
    level: int
    draw: Callable[[Builder], Value]


FAMILIES: dict[str, Family] = {}


def family(
    name: str, operator: str, level: int = 1
) -> Callable[[Callable[[Builder], Value]], Callable[[Builder], Value]]:
    """Adds the decorated function to the table."""

    def add(function: Callable[[Builder], Value]) -> Callable[[Builder], Value]:
        assert name not in FAMILIES
        FAMILIES[name] = Family(name, operator, level, function)
        return function

    return add


def load() -> dict[str, Family]:
    """The whole table, in a fixed order."""
    from kernelmosaic.generate.families import blocks, fused, single  # noqa: F401

    return FAMILIES
