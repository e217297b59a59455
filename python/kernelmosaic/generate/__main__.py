"""`kmosaic task generate`: writes folders of generated tasks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from kernelmosaic.generate.families import load
from kernelmosaic.generate.task import Key, Task, digest, generate


def tasks(families: list[str], seed: int, count: int, start: int = 0) -> Iterator[Task]:
    """`count` tasks with views that differ from one another, families in turn."""
    seen: set[str] = set()
    number = start
    made = 0
    while made < count:
        for family in families:
            if made == count:
                return
            task = generate(Key(family, seed, number))
            views = {digest(t) for t in (task.reference, task.description, task.spec)}
            if views & seen:
                continue
            seen |= views
            made += 1
            yield task
        number += 1
        if number - start > 100 * (1 + count // len(families)):
            raise ValueError(f"{families} have no {count} different tasks")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kmosaic task generate", description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", help="folder to make")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", default="", help="comma-separated; all where none is named")
    parser.add_argument("--except", dest="without", default="", help="families left out")
    parser.add_argument("--list", action="store_true", help="print the families and stop")
    options = parser.parse_args(arguments)
    table = load()
    if options.list:
        for family in table.values():
            print(f"{family.name:26} level {family.level}  {family.operator}")
        return 0
    named = [f for f in options.families.split(",") if f] or list(table)
    without = [f for f in options.without.split(",") if f]
    unknown = [f for f in named + without if f not in table]
    if unknown or options.out is None or options.count < 1:
        what = f"there is no family {', '.join(unknown)}; --list prints them"
        if not unknown:
            what = "needs a folder to write to, and a count of at least 1"
        print(f"kmosaic task generate: {what}", file=sys.stderr)
        return 2
    if options.out.exists() and any(options.out.iterdir()):
        print(f"kmosaic task generate: {options.out} is not empty", file=sys.stderr)
        return 2
    made = 0
    for task in tasks([f for f in named if f not in without], options.seed, options.count):
        task.write(options.out / task.id)
        made += 1
    print(f"{options.out}: {made} tasks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
