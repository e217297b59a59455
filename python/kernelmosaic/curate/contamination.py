"""Which tasks are in a held-out set, under other names, layouts, sizes or words.

Four looks, from strict to loose; each finding names the first that applies:
  same text        the program, but for space around it
  same program     names, comments, annotations and layout taken away
  same but sizes   and numbers too
  near text        at least NEAR of the runs of words of one are in the other
Programs with the same operators in the same order (`graph`) are listed apart: a family in
common is no leak in itself, so they are dropped only where that is asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelmosaic.curate.programs import Program, read_program
from kernelmosaic.curate.task_set import Entry

NEAR = 0.75
LOOKS = ("same text", "same program", "same but sizes", "near text", "same graph")


@dataclass(frozen=True)
class Finding:
    task: Entry
    held_out: Entry
    look: str
    # Share of runs of words in common, for "near text"; else 1.
    share: float


class HeldOut:
    """A held-out set, indexed. Constant once made."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._by: dict[str, dict[str, Entry]] = {look: {} for look in LOOKS}
        self._grams: dict[str, list[int]] = defaultdict(list)
        self._programs: list[tuple[Entry, Program, int]] = []
        self.unread: list[Entry] = []
        for entry in entries:
            self._by["same text"].setdefault(entry.reference.strip(), entry)
            program = read_program(entry.reference)
            if program is None:
                self.unread.append(entry)
                continue
            self._by["same program"].setdefault(program.normal, entry)
            self._by["same but sizes"].setdefault(program.shape_free, entry)
            self._by["same graph"].setdefault(program.graph, entry)
            grams = program.grams()
            for gram in grams:
                self._grams[gram].append(len(self._programs))
            self._programs.append((entry, program, len(grams)))

    def __len__(self) -> int:
        return len(self._programs) + len(self.unread)

    def find(self, task: Entry) -> Finding | None:
        """The strictest finding about this task."""
        if task.reference.strip() in self._by["same text"]:
            return Finding(task, self._by["same text"][task.reference.strip()], "same text", 1.0)
        program = read_program(task.reference)
        if program is None:
            return None
        for look, key in (("same program", program.normal), ("same but sizes", program.shape_free)):
            if key in self._by[look]:
                return Finding(task, self._by[look][key], look, 1.0)
        near = self._nearest(program)
        if near is not None and near[1] >= NEAR:
            return Finding(task, near[0], "near text", near[1])
        held_out = self._by["same graph"].get(program.graph)
        return Finding(task, held_out, "same graph", 1.0) if held_out and program.graph else None

    def _nearest(self, program: Program) -> tuple[Entry, float] | None:
        grams = program.grams()
        common: Counter[int] = Counter()
        for gram in grams:
            common.update(self._grams.get(gram, ()))
        if not common:
            return None
        scored = [
            (count / (len(grams) + self._programs[number][2] - count), number)
            for number, count in common.items()
        ]
        share, number = max(scored)
        # Long programs have the frame of every problem file in common: operators must agree.
        entry, other, _ = self._programs[number]
        same = Counter(program.operators) == Counter(other.operators)
        return (entry, share if same else share * 0.5)


def findings(tasks: Iterable[Entry], held_out: HeldOut) -> list[Finding]:
    return [f for task in tasks if (f := held_out.find(task)) is not None]


def leaks(found: Sequence[Finding], graphs_too: bool = False) -> list[Finding]:
    """Those that must stay out."""
    return [f for f in found if graphs_too or f.look != "same graph"]
