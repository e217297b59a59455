"""`kmosaic teacher`: serves the scripted teacher."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kernelmosaic.teacher.prompts import TaskIndex
from kernelmosaic.teacher.server import Teacher, TeacherServer


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="kmosaic teacher", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of generated tasks")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seed", type=int, default=0, help="of its mistakes")
    options = parser.parse_args(arguments)
    index = TaskIndex()
    for folder in options.folders:
        try:
            found = index.add_tree(folder)
        except (OSError, ValueError, KeyError) as error:
            print(f"kmosaic teacher: {error}", file=sys.stderr)
            return 2
        if found == 0:
            print(f"kmosaic teacher: {folder}: there is no task below it", file=sys.stderr)
            return 2
    server = TeacherServer(Teacher(index, options.seed), (options.host, options.port))
    print(f"teaching {len(index)} tasks at {server.url}", flush=True)
    try:
        server.serve()
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
