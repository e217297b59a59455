"""Sets of tasks as files hold them: task folders, KernelBench folders, JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A task as far as choosing needs it. `path`: where it comes from."""

    id: str
    path: str
    reference: str
    description: str = ""
    family: str = ""
    level: int = 0
    dtypes: tuple[str, ...] = ()


def _folder(folder: Path) -> Entry:
    fields = {}
    for line in (folder / "task.yaml").read_text(encoding="utf-8").splitlines():
        key, mark, value = line.partition(": ")
        if mark and not line.startswith(" "):
            fields[key] = value.strip().strip("\"'")
    texts = {
        name: (folder / name).read_text(encoding="utf-8") if (folder / name).exists() else ""
        for name in ("reference.py", "oracle.py", "description.md")
    }
    return Entry(
        fields.get("id", folder.name),
        str(folder),
        texts["reference.py"] or texts["oracle.py"],
        texts["description.md"],
        fields.get("family", ""),
        int(fields.get("level", "0") or 0),
        tuple(d.strip() for d in fields.get("dtypes", "").strip("[]").split(",") if d.strip()),
    )


def _row(row: dict[str, Any], path: Path, number: int) -> Entry:
    reference = row.get("reference") or row.get("oracle", {}).get("reference", "")
    if not isinstance(reference, str) or not reference:
        raise ValueError(f"{path}:{number}: there is no reference program in this row")
    return Entry(
        str(row.get("id", f"{path.stem}-{number}")),
        f"{path}:{number}",
        reference,
        str(row.get("description", "")),
        str(row.get("family", "")),
        int(row.get("level", 0) or 0),
    )


def read_tasks(path: Path) -> Iterator[Entry]:
    """All tasks at `path`: a folder with task folders or problem files (*.py) below it, one
    problem file, or JSON Lines with `reference`. ValueError where there is none."""
    if path.is_file() and path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _row(json.loads(line), path, number)
        return
    if path.is_file():
        yield Entry(path.stem, str(path), path.read_text(encoding="utf-8"))
        return
    folders = sorted(p.parent for p in path.rglob("task.yaml"))
    for folder in folders:
        yield _folder(folder)
    files = [] if folders else sorted(path.rglob("*.py"))
    for file in files:
        yield Entry(file.stem, str(file), file.read_text(encoding="utf-8"))
    if not folders and not files:
        raise ValueError(f"{path}: there are no task folders, problem files or JSON Lines")
