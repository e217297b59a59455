"""What the teacher says next: a pure function of the task and the conversation so far."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.task import Task
from kernelmosaic.teacher.mistakes import MISTAKES, choices, with_mistakes


@dataclass(frozen=True)
class Habits:
    """How often the teacher errs. Shares are of replies."""

    # Weights of 0, 1, 2, ... mistakes in the first version.
    first: Sequence[float] = (0.45, 0.36, 0.15, 0.04)
    # An optimisation that brings a mistake.
    optimisation: float = 0.15
    # A repair that brings another mistake.
    worse: float = 0.05
    # A repair that changes nothing.
    stuck: float = 0.02
    # A first reply without a usable code block.
    unreadable: float = 0.02


@dataclass
class _State:
    solution: int
    mistakes: list[str] = field(default_factory=list)
    said: str = ""


_VERDICT = re.compile(r"\(([A-Z_]+)\)\s*$", re.MULTILINE)


def verdict_of(feedback: str) -> str:
    """The verdict that a message of feedback names; NO_VERSION where no code was found."""
    if "All checks passed" in feedback or "all checks passed" in feedback:
        return "PASSED"
    found = _VERDICT.search(feedback)
    return found.group(1) if found else "NO_VERSION"


class Script:
    """One conversation on one task. `sample` tells conversations on one task apart."""

    def __init__(self, task: Task, seed: int, sample: int, emulated: bool, habits: Habits) -> None:
        self._task = task
        self._key = f"{seed}/{task.id}/{sample}"
        self._emulated = emulated
        self._habits = habits
        self._solutions = [source for _, source in task.solutions]

    def reply(self, feedback: Sequence[str]) -> str:
        """The next reply after these messages of feedback, oldest first."""
        state = self._first()
        for turn, text in enumerate(feedback, start=1):
            state = self._next(state, text, Draw("next", self._key, turn))
        return self._text(state, len(feedback))

    def mistakes_of(self, feedback: Sequence[str]) -> list[str]:
        """Mistakes in the version that `reply` gives."""
        state = self._first()
        for turn, text in enumerate(feedback, start=1):
            state = self._next(state, text, Draw("next", self._key, turn))
        return state.mistakes

    def _first(self) -> _State:
        draw = Draw("first", self._key)
        start = 0 if draw.chance(0.65) else draw.integer(0, len(self._solutions) - 1)
        state = _State(start)
        rest = draw.number(0.0, 1.0, 6)
        count = 0
        for share in self._habits.first:
            if rest < share:
                break
            rest -= share
            count += 1
        self._err(state, count, draw)
        if draw.chance(self._habits.unreadable):
            state.mistakes.insert(0, draw.choice(["truncated", "no_code"]))
        state.said = draw.choice(
            [
                "Each thread computes its own part of the output.",
                "Here is a version with CUDA kernels.",
                "A straightforward version first.",
                "The kernels below follow the task step by step.",
            ]
        )
        return state

    def _err(self, state: _State, count: int, draw: Draw) -> None:
        possible = choices(self._task, self._solutions[state.solution], self._emulated)
        possible = [name for name in possible if name not in state.mistakes]
        # One that does the work in PyTorch leaves nothing for others to go wrong in.
        if count > 1:
            possible = [name for name in possible if name != "uses_torch"]
        state.mistakes += draw.sample(possible, count)

    def _next(self, state: _State, feedback: str, draw: Draw) -> _State:
        verdict = verdict_of(feedback)
        if verdict == "PASSED" or "This version is dropped" in feedback:
            return self._faster(state, draw)
        if draw.chance(self._habits.stuck):
            return _State(state.solution, list(state.mistakes), "I see no fault in it; once more.")
        return self._repaired(state, verdict, draw)

    def _faster(self, state: _State, draw: Draw) -> _State:
        last = len(self._solutions) - 1
        if state.solution >= last:
            return _State(last, [], "I have nothing faster than this.")
        new = _State(draw.integer(state.solution + 1, last))
        if draw.chance(self._habits.optimisation):
            self._err(new, 1, draw)
        new.said = draw.choice(
            [
                "This version moves less data through global memory.",
                "Threads work together now, and fewer launches are needed.",
                "Operations are fused and reductions shared among threads.",
            ]
        )
        return new

    def _repaired(self, state: _State, verdict: str, draw: Draw) -> _State:
        unreadable = [m for m in state.mistakes if m not in MISTAKES]
        named = [m for m in state.mistakes if m in MISTAKES and verdict in MISTAKES[m].verdicts]
        fixed = (unreadable or named or state.mistakes)[:1]
        rest = [m for m in state.mistakes if m not in fixed]
        new = _State(state.solution, rest)
        if not fixed:
            # Nothing known explains the verdict: back to the plainest version.
            new.solution = 0
            new.said = "I start again from the plainest version."
        elif fixed[0] in MISTAKES:
            new.said = MISTAKES[fixed[0]].repair
        else:
            new.said = "Here is the whole file in one block."
        if fixed and draw.chance(self._habits.worse):
            self._err(new, 1, draw)
        return new

    def _text(self, state: _State, turn: int) -> str:
        faults = [m for m in state.mistakes if m in MISTAKES]
        source = with_mistakes(self._task, self._solutions[state.solution], faults, self._key)
        if "no_code" in state.mistakes:
            return "The kernel would use one thread per element and a grid that covers the output."
        text = f"{state.said}\n\n```python\n{source}```\n"
        if "truncated" in state.mistakes:
            return text[: len(text) * 2 // 3]
        return text
