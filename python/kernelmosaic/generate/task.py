"""A generated task: views, metadata and solutions, from (family, seed, number)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.families import Family, load
from kernelmosaic.generate.graph import Builder, Graph
from kernelmosaic.generate.reference import Signature, draw_signature, reference_text
from kernelmosaic.generate.solution import solutions_of
from kernelmosaic.generate.values import Constant
from kernelmosaic.generate.views import description_text, spec_text, title_text

# Changes when the same key gives another task.
VERSION = 1

# Largest input or output, in elements: about 0.5 GB of float32.
MOST_ELEMENTS = 1 << 27
# What a call on the emulated device may take, in elements of all values.
MOST_SCALED_ELEMENTS = 1 << 21


@dataclass(frozen=True)
class Key:
    """Says which task. Its text is the task's id."""

    family: str
    seed: int
    number: int

    @property
    def text(self) -> str:
        return f"{self.family}-{self.seed}-{self.number:05d}"

    @staticmethod
    def parse(text: str) -> Key:
        family, seed, number = text.rsplit("-", 2)
        return Key(family, int(seed), int(number))


@dataclass(frozen=True)
class Task:
    key: Key
    family: Family
    graph: Graph
    signature: Signature
    title: str
    reference: str
    description: str
    spec: str

    @property
    def id(self) -> str:
        return self.key.text

    @property
    def scaled_shapes(self) -> dict[str, int]:
        """Reduced values of all module-level integers; those that must not change keep theirs."""
        scaled = {s.name: s.scaled for s in self.graph.sizes if not s.expression}
        for argument in self.signature.arguments:
            line = f"\n{argument.name} = "
            # Some are written into get_init_inputs, and are no module-level integers.
            if not isinstance(argument, Constant) or line not in self.reference:
                continue
            if isinstance(argument.value, int) and argument.value > 0:
                scaled[argument.name] = argument.value
        return scaled

    @property
    def dtypes(self) -> list[str]:
        values = [e.value for e in self.graph.inputs] + [self.graph.output]
        return list(dict.fromkeys(v.dtype for v in values))

    @property
    def solutions(self) -> list[tuple[str, str]]:
        """(name, source), from plain to fast. Each is right."""
        return solutions_of(self.graph, self.signature, Draw("solution", self.id))

    @property
    def yaml(self) -> str:
        def quoted(text: str) -> str:
            return json.dumps(text)

        shapes = ", ".join(f"{name}: {value}" for name, value in self.scaled_shapes.items())
        lines = [
            f"id: {self.id}",
            f"title: {quoted(self.title)}",
            f"source: KernelMosaic generator {VERSION}",
            "licence: Apache-2.0",
            f"family: {self.family.operator}",
            f"level: {self.family.level}",
            f"dtypes: [{', '.join(self.dtypes)}]",
            "contract: modelnew",
            f"scaled_shapes: {{{shapes}}}",
        ]
        return "\n".join(lines) + "\n"

    @property
    def files(self) -> dict[str, str]:
        """Name -> text of the task's folder."""
        return {
            "task.yaml": self.yaml,
            "description.md": self.description,
            "reference.py": self.reference,
            "spec.md": self.spec,
        }

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")


def _fits(graph: Graph) -> bool:
    values = [e.value for e in graph.inputs] + [n.value for n in graph.nodes]
    for value in values:
        if any(s.full < 1 or s.scaled < 1 for s in value.sizes):
            return False
        if value.elements() > MOST_ELEMENTS:
            return False
    return sum(v.elements(full=False) for v in values) <= MOST_SCALED_ELEMENTS


def generate(key: Key) -> Task:
    """The task of this key; the same in every place. KeyError where there is no such family."""
    family = load()[key.family]
    draw = Draw(VERSION, key.text)
    while True:
        builder = Builder(draw)
        graph = builder.graph(family.draw(builder))
        if _fits(graph):
            break
    signature = draw_signature(graph, draw)
    title = title_text(graph)
    return Task(
        key,
        family,
        graph,
        signature,
        title,
        reference_text(graph, title, signature, draw),
        description_text(graph, signature, draw),
        spec_text(graph, signature),
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.strip().encode()).hexdigest()
