"""Verdicts as rewards: what a reinforcement-learning loop needs of a report.

A report is one object of `kmosaic score -o jsonl`. Its parts become a vector in [0, 1], so that a
loop may weigh them as it likes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1[`~]*\s*$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^class ModelNew\b", re.MULTILINE)

# How far a candidate came; a verdict that is not named ran and was wrong.
_NOT_BUILT = frozenset({"COMPILE_ERROR", "COMPILE_TIMEOUT", "COMPILE_RESOURCES"})
_NOT_RUN = frozenset({"LOAD_ERROR", "RUNTIME_ERROR", "CRASHED", "ILLEGAL_LAUNCH", "ILLEGAL_ACCESS"})
# Nothing that a model should be paid for trying.
_CHEATS = frozenset({"TAMPERING", "NO_CUSTOM_KERNEL", "FORBIDDEN_LIBRARY", "IMPOSSIBLE_TIME"})
# Says nothing about the candidate.
_NO_ANSWER = frozenset({"INFRASTRUCTURE", "UNSUPPORTED", "INVALID_TASK"})


def code_of(reply: str) -> str | None:
    """The last complete fenced block of a reply that defines `ModelNew`; None without one."""
    blocks = [match.group(2) for match in _FENCE.finditer(reply)]
    return next((block for block in reversed(blocks) if _ENTRY.search(block)), None)


@dataclass(frozen=True)
class Reward:
    """Parts of one candidate's reward, each in [0, 1]. `known` is false where the machine failed
    or the device cannot judge it: such a sample says nothing, and `total` is then None."""

    known: bool
    extracted: float = 0.0
    compiled: float = 0.0
    ran: float = 0.0
    correct: float = 0.0
    # 0 at the baseline's speed or where nothing was measured, 1 at eight times it.
    faster: float = 0.0

    @property
    def vector(self) -> tuple[float, float, float, float, float]:
        return (self.extracted, self.compiled, self.ran, self.correct, self.faster)


@dataclass(frozen=True)
class Weights:
    """What each part is worth."""

    extracted: float = 0.0
    compiled: float = 0.1
    ran: float = 0.1
    correct: float = 0.8
    faster: float = 1.0

    def total(self, reward: Reward) -> float | None:
        if not reward.known:
            return None
        worth = (self.extracted, self.compiled, self.ran, self.correct, self.faster)
        return sum(w * part for w, part in zip(worth, reward.vector))


def reward_of(report: dict[str, Any] | None) -> Reward:
    """Of a report; None: the reply held no code."""
    if report is None:
        return Reward(known=True)
    verdict = report["verdict"]
    if verdict in _NO_ANSWER:
        return Reward(known=False, extracted=1.0)
    if verdict in _CHEATS:
        return Reward(known=True)
    if verdict in _NOT_BUILT:
        return Reward(known=True, extracted=1.0)
    if verdict in _NOT_RUN:
        return Reward(known=True, extracted=1.0, compiled=1.0)
    if verdict != "PASSED":
        return Reward(known=True, extracted=1.0, compiled=1.0, ran=1.0)
    speedup = (report.get("benchmark") or {}).get("speedup") or 0.0
    faster = min(1.0, math.log2(speedup) / 3) if speedup > 1 else 0.0
    return Reward(True, 1.0, 1.0, 1.0, 1.0, faster)
