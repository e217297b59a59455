"""`kmosaic task import`: task folders from KernelBench's problem files or JSON Lines."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelmosaic.importing.problem import Problem, Refused, level_of, read_problem


@dataclass(frozen=True)
class Source:
    """Where a problem is: its place for messages, its text, name and level."""

    place: str
    text: str
    name: str
    level: int


def _files(root: Path) -> Iterator[Source]:
    paths = [root] if root.is_file() else sorted(root.rglob("*.py"))
    for path in paths:
        text = path.read_bytes().decode("utf-8", errors="strict")
        yield Source(str(path), text, path.stem, level_of(path.resolve()))


def _rows(path: Path) -> Iterator[Source]:
    with path.open(encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            row = json.loads(line)
            text = row.get("reference")
            if not isinstance(text, str):
                raise ValueError(f'{path}:{number}: "reference" must be the text of a program')
            name = str(row.get("id") or row.get("name") or f"line-{number}")
            yield Source(f"{path}:{number}", text, name, min(3, int(row.get("level") or 0)))


def _import(sources: Iterator[Source], options: argparse.Namespace) -> int:
    made: dict[str, str] = {}
    seen: dict[str, str] = {}
    refused = 0
    for source in sources:
        prefix = options.prefix or (f"l{source.level}-" if source.level else "")
        try:
            problem: Problem = read_problem(source.text, source.name, source.level, prefix)
            if source.text in seen:
                raise Refused(f"is the same program as {seen[source.text]}")
            if problem.id in made:
                raise Refused(f"would be called {problem.id}, as {made[problem.id]} is")
        except Refused as why:
            refused += 1
            print(f"{source.place}: {why}", file=sys.stderr)
            continue
        seen[source.text] = made[problem.id] = source.place
        origin = options.source or Path(source.place.split(":")[0]).name
        problem.write(options.out / problem.id, origin, options.licence)
    print(f"{options.out}: {len(made)} tasks, {refused} refused")
    return 0 if made and not refused else 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kmosaic task", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    command = verbs.add_parser("import", help="make task folders")
    kinds = command.add_subparsers(dest="kind", required=True)
    for kind, what in (
        ("kernelbench", "problem file, or folder with level1, level2, ..."),
        ("jsonl", "JSON Lines with reference and id"),
    ):
        sub = kinds.add_parser(kind)
        sub.add_argument("path", type=Path, help=what)
        sub.add_argument("out", type=Path, help="folder to make")
        sub.add_argument("--source", default="", help="where they come from, for task.yaml")
        sub.add_argument("--licence", default="", help="SPDX expression")
        sub.add_argument("--prefix", default="", help="of the ids; default: l1-, l2-, l3-")
    options = parser.parse_args(arguments)
    if options.out.exists() and any(options.out.iterdir()):
        print(f"kmosaic task import: {options.out} is not empty", file=sys.stderr)
        return 2
    try:
        read = _files if options.kind == "kernelbench" else _rows
        return _import(read(options.path), options)
    except (OSError, ValueError) as error:
        print(f"kmosaic task import: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
