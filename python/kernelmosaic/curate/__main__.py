"""`kmosaic task select` and `kmosaic task contamination`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kernelmosaic.curate.contamination import HeldOut, findings, leaks
from kernelmosaic.curate.task_set import Entry, read_tasks


def _read(paths: Sequence[Path]) -> list[Entry]:
    entries = [entry for path in paths for entry in read_tasks(path)]
    twice = [name for name, count in Counter(e.id for e in entries).items() if count > 1]
    if twice:
        raise ValueError(f"several tasks are called {', '.join(sorted(twice)[:3])}")
    return entries


def _limits(text: str) -> dict[str, int]:
    """ "softmax=20,matmul=40"."""
    limits = {}
    for part in text.split(","):
        if part:
            name, mark, number = part.partition("=")
            if not mark or not number.isdigit():
                raise ValueError(f"{part!r} is not NAME=NUMBER")
            limits[name] = int(number)
    return limits


def _select(options: argparse.Namespace) -> int:
    from kernelmosaic.curate.features import features
    from kernelmosaic.curate.picture import selection_svg
    from kernelmosaic.curate.selection import Quotas, select

    began = time.monotonic()
    entries = _read(options.tasks)
    vectors = features(entries)
    quotas = Quotas(
        options.per_family,
        options.per_level,
        _limits(options.families),
        {int(k): v for k, v in _limits(options.levels).items()},
    )
    selection = select(entries, vectors, options.count, quotas, options.seed)
    chosen = [entries[i] for i in selection.chosen]
    report = {
        "tasks": len(entries),
        "near_duplicates": len(selection.duplicates),
        "chosen": len(chosen),
        "coverage": round(selection.coverage, 4),
        "coverage_of_as_many_at_random": round(selection.random_coverage, 4),
        "families": {
            "before": len({e.family for e in entries}),
            "after": len({e.family for e in chosen}),
        },
        "by_family": dict(Counter(e.family for e in chosen).most_common()),
        "by_level": {str(k): v for k, v in sorted(Counter(e.level for e in chosen).items())},
        "seconds": round(time.monotonic() - began, 1),
    }
    if options.out:
        options.out.mkdir(parents=True)
        for entry in chosen:
            if Path(entry.path).is_dir():
                shutil.copytree(entry.path, options.out / entry.id)
    if options.picture:
        options.picture.write_text(
            selection_svg(entries, vectors, selection.chosen), encoding="utf-8"
        )
    if options.list:
        options.list.write_text("".join(f"{e.id}\n" for e in chosen), encoding="utf-8")
    print(json.dumps(report, indent=2))
    return 0 if len(chosen) == options.count else 1


def _contamination(options: argparse.Namespace) -> int:
    held_out = HeldOut(_read(options.held_out))
    entries = _read(options.tasks)
    found = findings(entries, held_out)
    out = leaks(found, options.graphs_too)
    for finding in found if options.all else out:
        row = {
            "task": finding.task.id,
            "held_out": finding.held_out.id,
            "look": finding.look,
            "share": round(finding.share, 3),
        }
        print(json.dumps(row))
    counts = Counter(f.look for f in found)
    summary = ", ".join(f"{count} {look}" for look, count in counts.most_common()) or "nothing"
    print(f"{len(entries)} tasks against {len(held_out)}: {summary}", file=sys.stderr)
    if options.list:
        options.list.write_text("".join(f"{f.task.id}\n" for f in out), encoding="utf-8")
    return 1 if out else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kmosaic task", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    select = verbs.add_parser("select", help="choose tasks that cover all")
    select.add_argument("tasks", nargs="+", type=Path)
    select.add_argument("--count", type=int, required=True)
    select.add_argument("--per-family", type=int, default=0)
    select.add_argument("--per-level", type=int, default=0)
    select.add_argument("--families", default="", help="NAME=MOST,...")
    select.add_argument("--levels", default="", help="LEVEL=MOST,...")
    select.add_argument("--seed", type=int, default=0)
    select.add_argument("--out", type=Path, help="folder to copy the chosen task folders to")
    select.add_argument("--list", type=Path, help="file to write the chosen ids to")
    select.add_argument("--picture", type=Path, help="SVG to write")
    select.set_defaults(run=_select)
    contamination = verbs.add_parser("contamination", help="find tasks that are in a held-out set")
    contamination.add_argument("tasks", nargs="+", type=Path)
    contamination.add_argument("--held-out", nargs="+", type=Path, required=True)
    contamination.add_argument("--graphs-too", action="store_true")
    contamination.add_argument("--all", action="store_true", help="print same graphs too")
    contamination.add_argument("--list", type=Path, help="file to write ids to leave out to")
    contamination.set_defaults(run=_contamination)
    return parser


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (OSError, ValueError) as error:
        print(f"kmosaic task {options.verb}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
