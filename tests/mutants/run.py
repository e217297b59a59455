"""Seeded faults in right kernels: how many of them does verification find?

    python3 -m mutants.run OUT [--device emulated] [--count 520] [--seed 1] [--wider 20]

from the folder above this one. The originals are the solutions of the example tasks that pass.
A mutant that passes is searched further: many more seeds, and other sizes at which the original
passes. If that finds it wrong, verification missed a fault; if not, it may be no fault at all, and
it does not count.
Writes OUT/report.md and OUT/report.json. Exit code 1 when an original fails or the share of found
faults is below 99 %. Standard library only; KMOSAIC_HOME and KMOSAIC_PYTHON as in cheats.run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cheats.run import home
from cheats.system import System

from .mutate import Mutant, mutants

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# What says nothing about verification.
_UNBUILT = (
    "COMPILE_ERROR",
    "COMPILE_TIMEOUT",
    "COMPILE_RESOURCES",
    "UNSUPPORTED",
    "INFRASTRUCTURE",
)
_GOAL = 0.99


@dataclass(frozen=True)
class Original:
    task: str
    name: str  # task-turn
    ending: str  # py or cu
    source: str


@dataclass
class Outcome:
    name: str
    mutant: Mutant
    verdict: str
    reason: str
    wider: str = ""  # of the search after a pass


def originals(examples: Path) -> list[Original]:
    found = []
    for path in sorted((examples / "recordings" / "replies").glob("*/*.md")):
        head, _, body = path.read_text(encoding="utf-8").partition("\n---\n")
        blocks = _FENCE.findall(body)
        if "\nexpect: [PASSED]" not in head or not blocks:
            continue
        language, code = max(blocks, key=lambda block: len(block[1]))
        ending = "py" if language == "python" else "cu"
        found.append(Original(path.parent.name, f"{path.parent.name}-{path.stem}", ending, code))
    return found


def choose(
    sources: list[Original], count: int, dice: random.Random
) -> list[tuple[Original, int, Mutant]]:
    """The same number of each original where it has as many, kinds in turn."""
    queues = []
    for original in sources:
        kinds: dict[str, list[tuple[int, Mutant]]] = {}
        for number, mutant in enumerate(mutants(original.source)):
            kinds.setdefault(mutant.kind, []).append((number, mutant))
        for of_kind in kinds.values():
            dice.shuffle(of_kind)
        order = []
        while any(kinds.values()):
            order += [of_kind.pop() for of_kind in kinds.values() if of_kind]
        queues.append((original, order))
    chosen: list[tuple[Original, int, Mutant]] = []
    place = 0
    while len(chosen) < count and any(place < len(order) for _, order in queues):
        for original, order in queues:
            if place < len(order) and len(chosen) < count:
                chosen.append((original, *order[place]))
        place += 1
    return chosen


class Scorer:
    def __init__(self, system: System, binary: Path, examples: Path, device: str) -> None:
        self._command = [
            str(binary / "kmosaic"),
            f"--coordinator={system.coordinator}",
            "-o",
            "jsonl",
            "score",
            "--device",
            device,
            "--stages",
            "compile,verify",
        ]
        self._examples = examples

    def folder(self, task: str) -> Path:
        return self._examples / "tasks" / task

    def score(self, task: Path, files: list[Path], *options: str) -> dict[str, dict[str, Any]]:
        """Results by the stem of the file; `task` is a folder."""
        command = [*self._command, "--task", str(task), *options]
        for file in files:
            command += ["--solution", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"kmosaic score ended with {done.returncode}:\n{done.stderr}")
        results = [json.loads(line) for line in done.stdout.splitlines()]
        return {Path(str(result["id"])).stem: result for result in results}


def originals_by_task(sources: list[Original], folder: Path) -> dict[str, list[Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    tasks: dict[str, list[Path]] = {}
    for original in sources:
        file = folder / f"{original.name}.{original.ending}"
        file.write_text(original.source, encoding="utf-8")
        tasks.setdefault(original.task, []).append(file)
    return tasks


def by_task(
    chosen: list[tuple[Original, int, Mutant]], folder: Path
) -> dict[str, dict[str, tuple[Path, Mutant]]]:
    tasks: dict[str, dict[str, tuple[Path, Mutant]]] = {}
    for original, number, mutant in chosen:
        name = f"{original.name}-m{number}"
        file = folder / original.task / f"{name}.{original.ending}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(mutant.source, encoding="utf-8")
        tasks.setdefault(original.task, {})[name] = (file, mutant)
    return tasks


def run(options: argparse.Namespace, out: Path) -> dict[str, Any]:
    root = home()
    examples = root / "share" / "kernelmosaic" / "examples"
    python = os.environ.get("KMOSAIC_PYTHON") or shutil.which("python3") or "python3"
    sources = originals(examples)
    chosen = choose(sources, options.count, random.Random(options.seed))
    outcomes: list[Outcome] = []
    failed_originals = []
    started = time.monotonic()
    with System(root, python, options.device, out / "system", out / "cache") as system:
        system.start()
        scorer = Scorer(system, root / "bin", examples, options.device)
        search = Search(scorer, out, options.wider, other_sizes=options.device != "cuda")
        for task, files in originals_by_task(sources, out / "originals").items():
            for name, result in scorer.score(scorer.folder(task), files).items():
                if result["verdict"] != "PASSED":
                    failed_originals.append(f"{name}: {result['verdict']} {result['reason']}")
        print(f"{len(sources)} originals ({time.monotonic() - started:.0f} s)", flush=True)
        for task, made in by_task(chosen, out / "mutants").items():
            results = scorer.score(scorer.folder(task), [file for file, _ in made.values()])
            for name, (file, mutant) in made.items():
                result = results[name]
                outcome = Outcome(name, mutant, result["verdict"], result["reason"])
                outcomes.append(outcome)
                if outcome.verdict == "PASSED":
                    original_file = out / "originals" / f"{name.rpartition('-m')[0]}{file.suffix}"
                    outcome.wider = search.verdict(original_file, task, file)
            print(f"{task}: {len(made)} mutants ({time.monotonic() - started:.0f} s)", flush=True)
    return report(outcomes, failed_originals, sources, options, time.monotonic() - started, out)


class Search:
    """Of what passed, for any input that shows it to be wrong."""

    def __init__(self, scorer: Scorer, out: Path, seeds: int, other_sizes: bool) -> None:
        self._scorer = scorer
        self._out = out
        self._seeds = ["--seeds", str(seeds), "--public-seeds", "4"]
        self._other_sizes = other_sizes
        self._folders: dict[str, list[Path]] = {}

    def verdict(self, original: Path, task: str, mutant: Path) -> str:
        """The first that is not PASSED, else PASSED. `original`: the file it is made of."""
        if original.stem not in self._folders:
            self._folders[original.stem] = self._usable(original, task)
        for folder in self._folders[original.stem]:
            result = self._scorer.score(folder, [mutant], *self._seeds)[mutant.stem]
            if result["verdict"] not in ("PASSED", *_UNBUILT, "INVALID_TASK"):
                return str(result["verdict"])
        return "PASSED"

    def _usable(self, original: Path, task: str) -> list[Path]:
        """The task's folder, and copies with other sizes."""
        own = self._scorer.folder(task)
        folders = [own]
        # The last are multiples of four, where kernels take a path of their own.
        changes: list[Callable[[int], int]] = [
            lambda v: v // 2 + 1,
            lambda v: 2 * v + 1,
            lambda v: -(-v // 4) * 4,
        ]
        for number, change in enumerate(changes if self._other_sizes else []):
            copy = self._out / "tasks" / f"{task}-{number}" / task
            if not copy.exists():
                shutil.copytree(own, copy)
                text = (copy / "task.yaml").read_text(encoding="utf-8")
                resized = re.sub(
                    r"scaled_shapes: \{.*?\}",
                    lambda m, f=change: re.sub(r"\d+", lambda n: str(f(int(n[0]))), m[0]),  # type: ignore[misc]
                    text,
                    flags=re.DOTALL,
                )
                (copy / "task.yaml").write_text(resized, encoding="utf-8")
            if self._scorer.score(copy, [original])[original.stem]["verdict"] == "PASSED":
                folders.append(copy)
        return folders


def report(
    outcomes: list[Outcome],
    failed_originals: list[str],
    sources: list[Original],
    options: argparse.Namespace,
    seconds: float,
    out: Path,
) -> dict[str, Any]:
    built = [o for o in outcomes if o.verdict not in _UNBUILT]
    found = [o for o in built if o.verdict != "PASSED"]
    missed = [o for o in built if o.wider not in ("", "PASSED")]
    alike = [o for o in built if o.wider == "PASSED"]
    faults = len(found) + len(missed)
    told: dict[str, Any] = {
        "device": options.device,
        "seed": options.seed,
        "originals": len(sources),
        "failed_originals": failed_originals,
        "made": len(outcomes),
        "built": len(built),
        "faults": faults,
        "found": len(found),
        "share": len(found) / faults if faults else 0.0,
        "not_shown_to_be_faults": len(alike),
        "seconds": seconds,
        "by_kind": {
            kind: dict(
                Counter(
                    "found" if o in found else "missed" if o in missed else "no fault shown"
                    for o in built
                    if o.mutant.kind == kind
                )
            )
            for kind in sorted({o.mutant.kind for o in built})
        },
        "verdicts": dict(Counter(o.verdict for o in outcomes)),
    }
    lines = [
        "# Seeded faults",
        "",
        f"{told['made']} mutants of {told['originals']} kernels on device {options.device}: "
        f"{told['built']} compile, {faults} are faults, {told['found']} of them found "
        f"({told['share']:.1%}); {len(alike)} were not shown to be faults. {seconds:.0f} s.",
        "",
        *[f"- an original fails: {text}" for text in failed_originals],
        "",
        "| kind | found | missed | no fault shown |",
        "|---|---|---|---|",
        *[
            f"| {kind} | {counts.get('found', 0)} | {counts.get('missed', 0)} "
            f"| {counts.get('no fault shown', 0)} |"
            for kind, counts in told["by_kind"].items()
        ],
        "",
    ]
    for title, some in (("Missed", missed), ("Not shown to be faults", alike)):
        lines += [f"## {title}", "", "| mutant | kind | line | before | after | wider |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| {o.name} | {o.mutant.kind} | {o.mutant.line} | `{_cell(o.mutant.before)}` "
            f"| `{_cell(o.mutant.after)}` | {o.wider} |"
            for o in some
        ]
        lines.append("")
    (out / "report.md").write_text("\n".join(lines), encoding="utf-8")
    told["outcomes"] = [
        {
            "name": o.name,
            "kind": o.mutant.kind,
            "line": o.mutant.line,
            "before": o.mutant.before,
            "after": o.mutant.after,
            "verdict": o.verdict,
            "reason": o.reason,
            "wider": o.wider,
        }
        for o in outcomes
    ]
    (out / "report.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    print("\n".join(lines[:20]))
    return told


def _cell(text: str) -> str:
    return " ".join(text.split())[:80].replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="emulated", choices=["cuda", "emulated"])
    parser.add_argument("--count", type=int, default=520, help="mutants to make")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--wider", type=int, default=20, help="secret seeds of the wider search")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    told = run(options, options.out.resolve())
    return 1 if told["failed_originals"] or told["share"] < _GOAL else 0


if __name__ == "__main__":
    sys.exit(main())
