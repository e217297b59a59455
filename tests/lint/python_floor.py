#!/usr/bin/env python3
"""Holds the oldest Python that what a bundle runs on the user's machine may need.

ruff and mypy judge syntax and types, but neither knows when a function or a parameter came.
Exits 1 and names file, line and what is too new.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOOR = (3, 9)
SHIPPED = (
    "gpu_worker/harness/*.py",
    "python/kernelmosaic/**/*.py",
    "tests/gpu/*.py",
    "examples/tasks/*/*.py",
)
# These can be run under FLOOR too, wherever there is such a Python with torch.
TESTS = ("tests/unit/harness/*.py",)

# What came after FLOOR, from the "Added in version" notes of Python's library reference.
NEW_MODULES = {"tomllib"}
NEW_BUILTINS = {
    "aiter",
    "anext",
    "BaseExceptionGroup",
    "EncodingWarning",
    "ExceptionGroup",
    "PythonFinalizationError",
}
NEW_NAMES: dict[str, set[str]] = {
    "ast": {"TryStar", "compare"},
    "contextlib": {"aclosing", "chdir"},
    "datetime": {"UTC"},
    "enum": {"EnumCheck", "FlagBoundary", "ReprEnum", "StrEnum", "member", "nonmember", "verify"},
    "functools": {"Placeholder"},
    "hashlib": {"file_digest"},
    "inspect": {
        "get_annotations",
        "getasyncgenstate",
        "getmembers_static",
        "markcoroutinefunction",
    },
    "itertools": {"batched", "pairwise"},
    "math": {"cbrt", "exp2", "fma", "sumprod"},
    "operator": {"call", "is_none", "is_not_none"},
    "os": {
        "EFD_CLOEXEC",
        "eventfd",
        "eventfd_read",
        "eventfd_write",
        "login_tty",
        "process_cpu_count",
        "setns",
        "splice",
        "unshare",
    },
    "signal": {"SIGSTKFLT"},
    "socket": {"SO_INCOMING_CPU", "TCP_CONNECTION_INFO"},
    "statistics": {"correlation", "covariance", "kde", "linear_regression"},
    "sys": {
        "activate_stack_trampoline",
        "exception",
        "monitoring",
        "orig_argv",
        "stdlib_module_names",
    },
    "threading": {"gettrace", "getprofile", "setprofile_all_threads", "settrace_all_threads"},
    "types": {"EllipsisType", "NoneType", "NotImplementedType", "UnionType", "get_original_bases"},
    "typing": {
        "Concatenate",
        "LiteralString",
        "Never",
        "NotRequired",
        "ParamSpec",
        "ReadOnly",
        "Required",
        "Self",
        "TypeAlias",
        "TypeAliasType",
        "TypeGuard",
        "TypeIs",
        "TypeVarTuple",
        "Unpack",
        "assert_never",
        "assert_type",
        "dataclass_transform",
        "is_typeddict",
        "override",
        "reveal_type",
    },
}
NEW_METHODS = {"add_note", "bit_count", "hardlink_to"}
NEW_PARAMETERS: dict[str, set[str]] = {
    "TemporaryDirectory": {"delete"},
    "bisect": {"key"},
    "bisect_left": {"key"},
    "bisect_right": {"key"},
    "dataclass": {"kw_only", "match_args", "slots", "weakref_slot"},
    "field": {"kw_only"},
    "insort": {"key"},
    "parse_args": {"color"},
    "rmtree": {"onexc"},
    "walk": {"walk_up"},
    "zip": {"strict"},
}
# Took (type, value) alone; the exception by itself came later.
TAKE_TYPE_AND_VALUE = {"format_exception", "format_exception_only", "print_exception"}


@dataclass(frozen=True)
class Problem:
    line: int
    what: str


def _annotations_of(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
        yield node.returns
    if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
        yield node.annotation


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_type(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left) or _is_type(node.right)
    if isinstance(node, ast.Subscript):
        return _is_type(node.value)
    builtin = getattr(builtins, _name(node), None) if isinstance(node, ast.Name) else None
    return isinstance(builtin, type)


class _Floor(ast.NodeVisitor):
    def __init__(self, postponed: bool) -> None:
        self.problems: list[Problem] = []
        self._postponed = postponed
        self._modules: dict[str, str] = {}

    def _say(self, node: ast.AST, what: str) -> None:
        self.problems.append(Problem(getattr(node, "lineno", 0), what))

    def visit(self, node: ast.AST) -> None:
        postponed = {id(a) for a in _annotations_of(node)} if self._postponed else set()
        getattr(self, f"visit_{type(node).__name__}", lambda _: None)(node)
        for child in ast.iter_child_nodes(node):
            if id(child) not in postponed:
                self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._modules[alias.asname or alias.name] = alias.name
            if alias.name.split(".")[0] in NEW_MODULES:
                self._say(node, f"module {alias.name}")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if module.split(".")[0] in NEW_MODULES:
            self._say(node, f"module {module}")
        for alias in node.names:
            if alias.name in NEW_NAMES.get(module, set()):
                self._say(node, f"{module}.{alias.name}")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in NEW_BUILTINS:
            self._say(node, f"builtin {node.id}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        module = self._modules.get(_name(node.value), "")
        if node.attr in NEW_NAMES.get(module, set()):
            self._say(node, f"{module}.{node.attr}")
        elif node.attr in NEW_METHODS:
            self._say(node, f"method {node.attr}")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.BitOr) and (_is_type(node.left) or _is_type(node.right)):
            self._say(node, "a union of types that is evaluated (X | Y)")

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        for keyword in node.keywords:
            if keyword.arg in NEW_PARAMETERS.get(name, set()):
                self._say(node, f"parameter {keyword.arg} of {name}")
        if name in TAKE_TYPE_AND_VALUE and len(node.args) < 2:
            self._say(node, f"{name} of an exception without its type")
        if name in ("isinstance", "issubclass") and len(node.args) == 2:
            kinds = node.args[1]
            if isinstance(kinds, ast.BinOp) and not _is_type(kinds):
                self._say(node, "a union of types that is evaluated (X | Y)")


def problems_of(source: str) -> list[Problem]:
    """What in `source` a Python of version FLOOR cannot run, as far as text tells."""
    try:
        tree = ast.parse(source, feature_version=FLOOR)
    except SyntaxError as error:
        return [Problem(error.lineno or 0, f"syntax: {error.msg}")]
    postponed = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in tree.body
    )
    floor = _Floor(postponed)
    floor.visit(tree)
    return floor.problems


def checked_files() -> list[Path]:
    return sorted(path for pattern in SHIPPED + TESTS for path in ROOT.glob(pattern))


def main() -> int:
    files = checked_files()
    failures = 0
    for path in files:
        for problem in problems_of(path.read_text(encoding="utf-8")):
            version = ".".join(map(str, FLOOR))
            print(
                f"{path.relative_to(ROOT)}:{problem.line}: {problem.what} is newer than"
                f" Python {version}, which the bundle's target may have"
            )
            failures += 1
    print(f"python floor: {len(files)} files, {failures} things that are too new")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
