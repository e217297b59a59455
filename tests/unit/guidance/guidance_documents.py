"""Reads guidance documents: front matter, text, and the code blocks in it."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
from typing import Any

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "agent_runner" / "guidance" / "documents"


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block: ```LANGUAGE WORD... as docs/guidance.md defines the words."""

    document: str
    number: int
    language: str
    words: tuple[str, ...]
    code: str

    @property
    def id(self) -> str:
        return f"{self.document}-{self.number}"

    def word(self, key: str) -> str | None:
        """The VALUE of a word KEY=VALUE."""
        return next((w.split("=", 1)[1] for w in self.words if w.startswith(key + "=")), None)

    @property
    def run(self) -> str | None:
        return self.word("run")

    @property
    def gpu(self) -> str | None:
        return self.word("gpu")


@dataclasses.dataclass(frozen=True)
class Document:
    path: pathlib.Path
    front: dict[str, Any]
    text: str

    @property
    def name(self) -> str:
        return str(self.front["name"])

    @property
    def tokens(self) -> int:
        """As the agent runner estimates them: three bytes each."""
        return (len(self.text.strip().encode()) + 1 + 2) // 3

    @property
    def blocks(self) -> list[Block]:
        found = re.findall(r"^```(\w+)([^\n]*)\n(.*?)^```$", self.text, re.S | re.M)
        return [
            Block(self.path.stem, number, language, tuple(words.split()), code)
            for number, (language, words, code) in enumerate(found)
        ]


@functools.cache
def documents() -> tuple[Document, ...]:
    return tuple(read(path) for path in sorted(FOLDER.glob("*.md")))


def read(path: pathlib.Path) -> Document:
    """Raises ValueError where there is no front matter."""
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", path.read_text(encoding="utf-8"), re.S)
    if match is None:
        raise ValueError(f"{path}: no front matter")
    return Document(path, yaml.safe_load(match.group(1)), match.group(2))


def blocks(language: str) -> list[Block]:
    return [b for document in documents() for b in document.blocks if b.language == language]
