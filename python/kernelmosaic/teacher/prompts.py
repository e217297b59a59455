"""Which generated task a prompt is about: found by the text of any of its views."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelmosaic.generate.task import VERSION, Key, digest

_FILES = ("description.md", "reference.py", "spec.md")
_SECTION = re.compile(
    r"^## (Description|Reference program|Specification|Entry point|Inputs that may be changed"
    r"|Precision|Guidance)$",
    re.MULTILINE,
)


class TaskIndex:
    """Digest of a view -> key of its task. Constant once made."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}

    def __len__(self) -> int:
        return len(set(self._keys.values()))

    def add_folder(self, folder: Path) -> None:
        """Adds a task's folder. ValueError where the generator of this version did not make it."""
        lines = (folder / "task.yaml").read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        if fields.get("source") != f"KernelMosaic generator {VERSION}":
            raise ValueError(
                f"{folder / 'task.yaml'}: was not made by generator {VERSION}; "
                "make the tasks anew with `kmosaic task generate`"
            )
        key = Key.parse(fields["id"])
        for name in _FILES:
            text = (folder / name).read_text(encoding="utf-8")
            self._keys[digest(text)] = key

    def add_tree(self, root: Path) -> int:
        """Adds every task folder below `root`; how many there were."""
        folders = [path.parent for path in sorted(root.rglob("task.yaml"))]
        for folder in folders:
            self.add_folder(folder)
        return len(folders)

    def find(self, prompt: str) -> Key | None:
        for text in _views(prompt):
            key = self._keys.get(digest(text))
            if key is not None:
                return key
        return None


def _views(prompt: str) -> Iterator[str]:
    """Texts of the views that a first message shows."""
    marks = list(_SECTION.finditer(prompt))
    for number, mark in enumerate(marks):
        end = marks[number + 1].start() if number + 1 < len(marks) else len(prompt)
        text = prompt[mark.end() : end].strip()
        if mark.group(1) in ("Description", "Specification"):
            yield text
        elif mark.group(1) == "Reference program":
            fenced = re.search(r"^(`{3,})python\n(.*?)^\1$", text, re.MULTILINE | re.DOTALL)
            if fenced:
                yield fenced.group(2)


def first_user_message(messages: Sequence[dict[str, str]]) -> str:
    return next((m["content"] for m in messages if m["role"] == "user"), "")
