"""Pointwise operations that end a kernel, applied to `v` before it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelmosaic.generate.cuda.source import Argument, Extent


@dataclass(frozen=True)
class Step:
    """One pointwise operation. `expression` may use `v`, `{i}` (the place in the output) and
    the arguments and extents."""

    expression: str
    arguments: tuple[Argument, ...] = ()
    extents: tuple[Extent, ...] = ()


@dataclass(frozen=True)
class Epilogue:
    steps: tuple[Step, ...] = ()

    @property
    def arguments(self) -> list[Argument]:
        return [argument for step in self.steps for argument in step.arguments]

    @property
    def extents(self) -> list[Extent]:
        return [extent for step in self.steps for extent in step.extents]

    def lines(self, place: str, name: str = "v") -> list[str]:
        return [
            f"{name} = {step.expression.replace('{i}', place).replace('{v}', name)};"
            for step in self.steps
        ]


NOTHING = Epilogue()


def joined(steps: Sequence[Step]) -> Epilogue:
    return Epilogue(tuple(steps))
