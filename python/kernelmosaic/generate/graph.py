"""A computation as a list of operators, and how a family puts one together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.ops.base import ConstructorArgument, Context, Op
from kernelmosaic.generate.values import Constant, Size, Value


@dataclass(frozen=True)
class Input:
    """An argument of `forward`. `limit`: for indices, the size that they stay below."""

    value: Value
    limit: str = ""
    spread: str = ""


@dataclass(frozen=True)
class Node:
    op: Op
    value: Value


@dataclass(frozen=True)
class Graph:
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    output: Value

    @property
    def kinds(self) -> list[str]:
        """Operators in order: what the graph is, without shapes and names."""
        return [node.op.kind for node in self.nodes]

    @property
    def constructor(self) -> list[ConstructorArgument]:
        """Arguments of the constructor: sizes, then numbers, each once."""
        found: dict[str, ConstructorArgument] = {}
        for node in self.nodes:
            for argument in node.op.constructor:
                found.setdefault(argument.name, argument)
        sizes = [a for a in found.values() if isinstance(a, Size)]
        return [*sizes, *[a for a in found.values() if isinstance(a, Constant)]]

    @property
    def sizes(self) -> list[Size]:
        """All module-level integers, those with an expression last."""
        found: dict[str, Size] = {}
        for argument in self.constructor:
            if isinstance(argument, Size):
                found.setdefault(argument.name, argument)
        for entry in self.inputs:
            for size in entry.value.sizes:
                found.setdefault(size.name, size)
        for size in list(found.values()):
            for operand in size.operands:
                found.setdefault(operand.name, operand)
        found.pop("1", None)
        plain = [s for s in found.values() if not s.expression]
        return [*plain, *[s for s in found.values() if s.expression]]

    @property
    def init(self) -> list[str]:
        """Lines of `__init__` after `super().__init__()`."""
        kept = [f"self.{a.name} = {a.name}" for a in self.constructor if isinstance(a, Constant)]
        return kept + [line for node in self.nodes for line in node.op.init]

    def uses(self, value: Value) -> int:
        inputs = sum(node.op.inputs.count(value) for node in self.nodes)
        return inputs + (1 if value == self.output else 0)


class Builder:
    """What a family's function is given."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.context = Context(draw)
        self._inputs: list[Input] = []
        self._nodes: list[Node] = []

    def input(
        self,
        name: str,
        sizes: Sequence[Size],
        dtype: str = "float32",
        limit: str = "",
        spread: str = "",
    ) -> Value:
        value = Value(name, tuple(sizes), dtype)
        self._inputs.append(Input(value, limit, spread))
        return value

    def apply(self, op: Op) -> Value:
        value = Value(f"h{len(self._nodes) + 1}", op.sizes, op.dtype)
        self._nodes.append(Node(op, value))
        return value

    def resize(self, value: Value, sizes: Sequence[Size]) -> Value:
        """The latest value under equal sizes of other names (an extent that stays, say)."""
        renamed = Value(value.name, tuple(sizes), value.dtype)
        assert self._nodes[-1].value == value
        self._nodes[-1] = Node(self._nodes[-1].op, renamed)
        return renamed

    def graph(self, output: Value) -> Graph:
        return Graph(tuple(self._inputs), tuple(self._nodes), output)
