"""Reads task folders as docs/tasks.md defines them, for the tests of the example tasks."""

from __future__ import annotations

import dataclasses
import pathlib
import types
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
TASKS = ROOT / "examples" / "tasks"
VIEWS = {"description": "description.md", "reference": "reference.py", "spec": "spec.md"}

KEYS = {
    "id",
    "title",
    "source",
    "licence",
    "family",
    "level",
    "dtypes",
    "contract",
    "entry",
    "mutable_inputs",
    "scaled_shapes",
    "reduced_precision",
}


@dataclasses.dataclass(frozen=True)
class Task:
    """One task folder; missing views are empty."""

    folder: pathlib.Path
    config: dict[str, Any]
    views: dict[str, str]
    oracle: str

    @property
    def id(self) -> str:
        return str(self.config["id"])

    @property
    def contract(self) -> str:
        return str(self.config.get("contract", "modelnew"))


def read_task(folder: pathlib.Path) -> Task:
    """Raises ValueError for what docs/tasks.md calls an error."""
    config = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8"))
    unknown = set(config) - KEYS
    if unknown:
        raise ValueError(f"{folder}/task.yaml: unknown keys {sorted(unknown)}")
    views = {}
    for view, name in VIEWS.items():
        path = folder / name
        views[view] = path.read_text(encoding="utf-8") if path.exists() else ""
    oracle = folder / "oracle.py"
    text = oracle.read_text(encoding="utf-8") if oracle.exists() else views["reference"]
    if not text:
        raise ValueError(f"{folder}: neither oracle.py nor reference.py")
    return Task(folder, config, views, text)


def all_tasks() -> list[Task]:
    return [read_task(path.parent) for path in sorted(TASKS.glob("*/task.yaml"))]


def load_module(source: str, name: str, shapes: dict[str, int] | None = None) -> types.ModuleType:
    """Runs a program; module-level integers named in `shapes` get those values afterwards.

    Raises ValueError when a name is not a module-level integer of the program.
    """
    module = types.ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    for key, value in (shapes or {}).items():
        if not isinstance(module.__dict__.get(key), int):
            raise ValueError(f"{name}: {key} is not a module-level integer")
        module.__dict__[key] = value
    return module
