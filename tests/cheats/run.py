"""Runs the suites of cheats, honest solutions and faults, and writes report.md and report.json.

    python3 -m cheats.run OUT [--device cuda] [--suites cheats,honest,faults] [--only NAME...]

from the folder above this one. Exit code 1 when a verdict is not a right one. Standard library
only. KMOSAIC_HOME is an unpacked bundle or a build folder (default: the bundle that this file is
in, or build/release), KMOSAIC_PYTHON the interpreter with torch (default: python3).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import cheats_device, cheats_harness, cheats_host, cheats_python, faults, honest
from .candidates import CUDA, Candidate
from .system import System

CHEATS = [
    *cheats_python.CANDIDATES,
    *cheats_host.CANDIDATES,
    *cheats_device.CANDIDATES,
    *cheats_harness.CANDIDATES,
]
HONEST = honest.CANDIDATES
FAULTS = faults.CANDIDATES
GOOD = next(c for c in HONEST if c.name == "honest-affine")

# A time below this share of the honest twin's was gained by cheating.
_GAINED = 0.8
# Faults are bounded by these, so that a run of them ends soon.
_FAULT_LIMITS = (
    "--run-limit=10s",
    "--compile-limit=30s",
    "--memory-mib=1024",
    "--processes=64",
    "--tmp-mib=64",
    "--verify-slots=1",
)
# On a GPU a process holds several gigabytes of address space and the driver's own threads.
_FAULT_LIMITS_CUDA = (
    "--run-limit=15s",
    "--compile-limit=60s",
    "--memory-mib=8192",
    "--processes=256",
    "--tmp-mib=64",
    "--verify-slots=1",
)
# More than any end of a fault takes beyond its limits: the processes that look into it and two
# seconds to let a killed process go.
_FAULT_SECONDS = 150.0


@dataclass
class Outcome:
    candidate: Candidate
    result: dict[str, Any]
    right: bool
    gap: bool = False
    seconds: float = 0.0
    said: str = ""

    def line(self) -> str:
        mark = "right" if self.right else "GAP" if self.gap else "WRONG"
        times = self.result.get("benchmark") or {}
        median = times.get("median_us")
        shown = f"{median:.1f} us" if median else ""
        reason = " ".join(str(self.result.get("reason", "")).split())[:160].replace("|", "/")
        return (
            f"| {self.candidate.name} | {self.candidate.kind} | {self.result['verdict']} "
            f"| {mark} | {shown} {self.said} | {reason} |"
        )


@dataclass
class Report:
    device: dict[str, Any] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def wrong(self) -> list[Outcome]:
        return [o for o in self.outcomes if not (o.right or o.gap)]

    def add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self.device = outcome.result.get("device") or self.device


def select(candidates: Sequence[Candidate], device: str, only: Sequence[str]) -> list[Candidate]:
    return [c for c in candidates if device in c.devices and (not only or c.name in only)]


def judge(
    candidate: Candidate, result: dict[str, Any], device: str, twin: dict[str, Any] | None
) -> Outcome:
    verdict = result["verdict"]
    right = verdict in candidate.verdicts
    said = ""
    if verdict == "PASSED" and candidate.twin is not None:
        median = (result.get("benchmark") or {}).get("median_us")
        honest_median = ((twin or {}).get("benchmark") or {}).get("median_us")
        if median is None or honest_median is None:
            right = False
            said = "no time of the honest twin"
        else:
            right = median >= _GAINED * honest_median
            said = f"({median / honest_median:.2f} of the twin's)"
    gap = not right and bool(candidate.gap) and device in candidate.gap_devices
    return Outcome(candidate, result, right, gap, said=said)


def run_rows(
    report: Report, system: System, name: str, candidates: list[Candidate], device: str
) -> None:
    """All at once, as the worker's slots allow; PASSED is bad for cheats only."""
    stages = "compile,verify,benchmark" if device == CUDA else "compile,verify"
    extra = {c.twin for c in candidates if c.twin} - {c.name for c in candidates}
    twins = [c for c in HONEST if c.name in extra]
    rows = [c.row(device) for c in candidates + twins]
    results, seconds = system.score(rows, stages, timeout=60.0 + 60.0 * len(rows))
    by_name = {str(r["id"]): r for r in results}
    for candidate, result in zip(candidates, results, strict=False):
        report.add(judge(candidate, result, device, by_name.get(candidate.twin or "")))
    report.seconds[name] = seconds
    if not system.worker_lives():
        report.problems.append(f"the worker ended during {name}")


def run_faults(report: Report, system: System, candidates: list[Candidate], device: str) -> None:
    """One after the other; after each a good solution on the same worker."""
    good_row = GOOD.row(device)
    usual = []
    for _ in range(3):
        (result,), seconds = system.score([good_row], "compile,verify", _FAULT_SECONDS)
        usual.append(seconds)
        if result["verdict"] != "PASSED":
            report.problems.append(f"the good solution: {result['verdict']}: {result['reason']}")
    allowed = 10 * max(usual[1:]) + 5
    start_of_all = time.monotonic()
    processes = len(system.descendants())
    slowest = 0.0
    for candidate in candidates:
        (result,), seconds = system.score([candidate.row(device)], "compile,verify", _FAULT_SECONDS)
        outcome = judge(candidate, result, device, None)
        outcome.seconds = seconds
        outcome.said = f"{seconds:.1f} s"
        report.add(outcome)
        print(outcome.line(), flush=True)
        if not system.worker_lives():
            report.problems.append(f"the worker ended after {candidate.name}")
            return
        (after,), seconds = system.score([good_row], "compile,verify", _FAULT_SECONDS)
        slowest = max(slowest, seconds)
        if after["verdict"] != "PASSED":
            report.problems.append(
                f"after {candidate.name} the good solution: {after['verdict']}: {after['reason']}"
            )
        if seconds > allowed:
            report.problems.append(
                f"after {candidate.name} the good solution took {seconds:.1f} s, "
                f"usually {max(usual[1:]):.1f} s"
            )
    left = system.descendants()
    if len(left) > processes:
        report.problems.append(f"processes are left below the worker: {sorted(left.values())}")
    now, most = system.worker_memory_mib()
    report.notes.append(
        f"the good solution took {min(usual):.1f} to {max(usual):.1f} s before the faults and at "
        f"most {slowest:.1f} s right after one; the daemon holds {now:.0f} MiB, at most {most:.0f}"
    )
    report.seconds["faults"] = time.monotonic() - start_of_all


def write(report: Report, out: Path, device: str) -> None:
    counts = Counter("right" if o.right else "gap" if o.gap else "wrong" for o in report.outcomes)
    kinds = {"cheats": CHEATS, "honest": HONEST, "faults": FAULTS}
    told = report.device
    text = [
        "# Cheats, honest solutions and faults",
        "",
        f"Device: {told.get('name', device)} {told.get('uuid', '')}, driver "
        f"{told.get('driver') or '-'}, torch {told.get('torch', '-')}.",
        "",
    ]
    for name, candidates in kinds.items():
        names = {c.name for c in candidates}
        of = [o for o in report.outcomes if o.candidate.name in names]
        if not of:
            continue
        text += [
            f"{name}: {len(of)} run, {sum(o.right for o in of)} with a right verdict, "
            f"{sum(o.gap for o in of)} known gaps, "
            f"{sum(not (o.right or o.gap) for o in of)} wrong, "
            f"{report.seconds.get(name, 0):.0f} s.",
        ]
    text += [
        "",
        *[f"- problem: {p}" for p in report.problems],
        *[f"- {n}" for n in report.notes],
        "",
    ]
    for title, chosen in (
        ("Wrong", [o for o in report.outcomes if not (o.right or o.gap)]),
        ("Known gaps", [o for o in report.outcomes if o.gap]),
        ("Right", [o for o in report.outcomes if o.right]),
    ):
        if chosen:
            text += [
                f"## {title}",
                "",
                "| name | kind | verdict | | time | reason |",
                "|---|---|---|---|---|---|",
                *[o.line() for o in chosen],
                "",
            ]
    gaps = [o for o in report.outcomes if o.gap]
    text += [f"- {o.candidate.name}: {o.candidate.gap}" for o in gaps]
    (out / "report.md").write_text("\n".join(text) + "\n", encoding="utf-8")
    (out / "report.json").write_text(
        json.dumps(
            {
                "device": told,
                "counts": dict(counts),
                "problems": report.problems,
                "notes": report.notes,
                "seconds": report.seconds,
                "results": [
                    {
                        "name": o.candidate.name,
                        "kind": o.candidate.kind,
                        "right": o.right,
                        "gap": o.gap,
                        "expected": o.candidate.verdicts,
                        **o.result,
                    }
                    for o in report.outcomes
                ],
            },
            indent=1,
        ),
        encoding="utf-8",
    )
    print("\n".join(text[: text.index("## Right")] if "## Right" in text else text))


def home() -> Path:
    here = Path(__file__).resolve()
    folders = [
        os.environ.get("KMOSAIC_HOME"),
        here.parents[4] if len(here.parents) > 4 else None,
        here.parents[2] / "build" / "release",
    ]
    for folder in folders:
        if folder and (Path(folder) / "bin" / "kmosaic").exists():
            return Path(folder).resolve()
    raise SystemExit("there is no bin/kmosaic: set KMOSAIC_HOME to a bundle or a build folder")


def run(
    out: Path,
    home_folder: Path,
    device: str,
    suites: Sequence[str],
    only: Sequence[str] = (),
    cache: Path | None = None,
) -> Report:
    python = os.environ.get("KMOSAIC_PYTHON") or shutil.which("python3") or "python3"
    cache = cache or out / "cache"
    report = Report()
    if {"cheats", "honest"} & set(suites):
        with System(home_folder, python, device, out / "system", cache) as system:
            system.start()
            for name, candidates in (("honest", HONEST), ("cheats", CHEATS)):
                chosen = select(candidates, device, only)
                if name in suites and chosen:
                    run_rows(report, system, name, chosen, device)
            _, most = system.worker_memory_mib()
            report.notes.append(f"the daemon held at most {most:.0f} MiB during cheats and honest")
    chosen = select(FAULTS, device, only)
    if "faults" in suites and chosen:
        limits = _FAULT_LIMITS_CUDA if device == CUDA else _FAULT_LIMITS
        with System(home_folder, python, device, out / "system-faults", cache) as system:
            run_faults(report, system.start(limits), chosen, device)
    write(report, out, device)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default=CUDA, choices=["cuda", "emulated"])
    parser.add_argument("--suites", default="honest,cheats,faults")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--cache", type=Path, help="compiled kernels, kept between runs")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    report = run(
        options.out.resolve(),
        home(),
        options.device,
        options.suites.split(","),
        options.only,
        options.cache,
    )
    return 1 if report.wrong() or report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
