"""Choices that follow from a key alone, on every machine and Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    """A stream of choices. Two with the same key make the same ones in the same order."""

    def __init__(self, *key: object) -> None:
        # Of a Random only seeding by text and random() are used: both are promised to stay.
        self._random = random.Random("/".join(str(part) for part in key))

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def choice(self, items: Sequence[Item]) -> Item:
        return items[self.integer(0, len(items) - 1)]

    def number(self, low: float, high: float, digits: int = 2) -> float:
        return round(low + self._random.random() * (high - low), digits)

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        rest = list(items)
        return [rest.pop(self.integer(0, len(rest) - 1)) for _ in items]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        return self.shuffled(items)[:count]
