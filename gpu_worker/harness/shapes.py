"""The integers of a reference program that look like sizes, and the program with others.

A size is an integer constant (or an expression of constants) that module level assigns
to a name, stands in a list or tuple assigned there, or is a literal above SMALL inside
get_inputs or get_init_inputs. Names: "batch_size", "input_shape[0]", "get_inputs:224"
(all literals of one value in one function are one size).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Constants up to this are kernel sizes, strides, groups, heads: meaning, not extent.
SMALL = 16
_INPUT_FUNCTIONS = ("get_inputs", "get_init_inputs")


@dataclass(frozen=True)
class _Site:
    name: str
    value: int
    start: int  # bytes into the source
    end: int


class Sizes:
    """Raises SyntaxError for text that is no Python."""

    def __init__(self, source: str) -> None:
        self._source = source.encode()
        self._line_starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))
        # a = b = 5 is one constant, and so one size, named a; {"b": "a"}.
        self.aliases: dict[str, str] = {}
        self._sites = list(self._find(ast.parse(source)))

    def values(self) -> dict[str, int]:
        """Of each size the value that counts in the end (the last assignment)."""
        return {site.name: site.value for site in self._sites}

    def source_with(self, values: Mapping[str, int]) -> str:
        """The program with these sizes instead of its own; lines keep their numbers."""
        text = self._source
        for site in sorted(self._sites, key=lambda s: s.start, reverse=True):
            if site.name in values and values[site.name] != site.value:
                lines = text[site.start : site.end].count(b"\n")
                new = str(values[site.name]).encode()
                if lines:
                    new = b"(" + new + b"\n" * lines + b")"
                text = text[: site.start] + new + text[site.end :]
        return text.decode()

    def _site(self, name: str, value: int, node: ast.expr) -> _Site:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return _Site(
            name,
            value,
            self._line_starts[node.lineno - 1] + node.col_offset,
            self._line_starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _find(self, tree: ast.Module) -> Iterator[_Site]:
        for statement in tree.body:
            if isinstance(statement, ast.Assign):
                first, *others = statement.targets
                yield from self._assigned(first, statement.value)
                for other in others:
                    if isinstance(first, ast.Name) and isinstance(other, ast.Name):
                        self.aliases[other.id] = first.id
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                yield from self._assigned(statement.target, statement.value)
            elif isinstance(statement, ast.FunctionDef) and statement.name in _INPUT_FUNCTIONS:
                yield from self._literals(statement)

    def _assigned(self, target: ast.expr, value: ast.expr) -> Iterator[_Site]:
        if isinstance(target, ast.Name):
            number = _constant(value)
            if number is not None:
                yield self._site(target.id, number, value)
                return
            for index, element in enumerate(_elements(value)):
                number = _constant(element)
                if number is not None:
                    yield self._site(f"{target.id}[{index}]", number, element)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for name, element in zip(target.elts, value.elts):
                yield from self._assigned(name, element)

    def _literals(self, function: ast.FunctionDef) -> Iterator[_Site]:
        for node in ast.walk(function):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value > SMALL:
                yield self._site(f"{function.name}:{node.value}", node.value, node)


def _elements(value: ast.expr) -> list[ast.expr]:
    """Of a list or tuple, or of one that is repeated by a constant."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _elements(value.left) or _elements(value.right)
    return value.elts if isinstance(value, (ast.List, ast.Tuple)) else []


def _constant(node: ast.expr) -> int | None:
    """The value of an integer constant or of + - * // ** over such."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _constant(node.left), _constant(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.FloorDiv) and right != 0:
        return left // right
    if isinstance(node.op, ast.Pow) and 0 <= right <= 40:
        return int(left**right)
    return None
