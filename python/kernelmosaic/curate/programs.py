"""What a reference program is, whatever its names, layout and sizes: keys to compare it by."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

# Ways of writing one operator -> one name.
_ALIASES = {
    "mm": "matmul", "bmm": "matmul", "linear": "linear", "addmm": "linear", "mul": "multiply",
    "sub": "subtract", "div": "divide", "clip": "clamp", "hardtanh": "clamp", "cat": "concat",
    "concatenate": "concat", "swish": "silu", "amax": "max", "amin": "min", "pow": "power",
    "true_divide": "divide", "transpose": "permute", "t": "permute", "T": "permute",
    "mT": "permute", "huber_loss": "smooth_l1_loss",
}  # fmt: skip
_OPERATORS = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.MatMult: "matmul", ast.Pow: "power",
}  # fmt: skip
# Change no values, or only say where and how large.
_SILENT = {
    "view", "reshape", "contiguous", "size", "flatten", "squeeze", "unsqueeze", "to", "float",
    "super", "len", "int", "range", "expand", "clone", "detach", "dim", "tuple", "list", "dropout",
}  # fmt: skip


class _Plain(ast.NodeTransformer):
    """Names in order of appearance; no imports, docstrings and annotations."""

    def __init__(self, numbers: bool) -> None:
        self._numbers = numbers
        self._names: dict[str, str] = {}

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"n{len(self._names)}")

    def _body(self, node: Any) -> Any:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> Any:
        return self._body(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.name = "Class"
        return self._body(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self._body(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> Any:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        return None

    def visit_arg(self, node: ast.arg) -> Any:
        return ast.arg(arg=self._name(node.arg))

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in ("torch", "nn", "F"):
            return node
        return ast.Name(id=self._name(node.id), ctx=node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value = self.visit(node.value)
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        return ast.Attribute(value=value, attr=self._name("." + node.attr) if own else node.attr,
                             ctx=node.ctx)  # fmt: skip

    def visit_keyword(self, node: ast.keyword) -> Any:
        return ast.keyword(arg=node.arg, value=self.visit(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return None
        return self.visit(ast.Assign(targets=[node.target], value=node.value))

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not self._numbers and isinstance(node.value, (int, float)):
            return ast.Constant(value=0)
        return node


class _Operators(ast.NodeVisitor):
    """Operators of `forward` in the order in which they are evaluated."""

    def __init__(self, modules: dict[str, str], functions: dict[str, ast.FunctionDef]) -> None:
        self._modules = modules
        self._functions = functions
        self._depth = 0
        self.found: list[str] = []

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        if name and not self._is_number(node):
            self.found.append(name)

    def _is_number(self, node: ast.AST) -> bool:
        return all(
            isinstance(n, (ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop))
            for n in ast.walk(node)
        )

    def visit_Call(self, node: ast.Call) -> None:
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword.value)
        function = node.func
        if isinstance(function, ast.Attribute):
            if isinstance(function.value, ast.Name) and function.value.id == "self":
                module = self._modules.get(function.attr)
                if module:
                    self._add(module)
                elif function.attr in self._functions:
                    self._enter(function.attr)
                return
            self.visit(function.value)
            self._add(function.attr)
        elif isinstance(function, ast.Name):
            if function.id in self._functions:
                self._enter(function.id)
            else:
                self._add(function.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)
        if node.attr in ("T", "mT"):
            self._add(node.attr)

    def _enter(self, name: str) -> None:
        if self._depth < 4:
            self._depth += 1
            for statement in self._functions[name].body:
                self.visit(statement)
            self._depth -= 1

    def _add(self, name: str) -> None:
        if name not in _SILENT:
            self.found.append(_ALIASES.get(name, name))


def _snake(name: str) -> str:
    """Name of a layer as an operator: layer_norm of LayerNorm, relu of ReLU."""
    known = {
        "ReLU": "relu", "ReLU6": "relu6", "GELU": "gelu", "SiLU": "silu", "ELU": "elu",
        "SELU": "selu", "CELU": "celu", "LeakyReLU": "leaky_relu", "LogSoftmax": "log_softmax",
        "Hardtanh": "clamp",
        "LayerNorm": "layer_norm", "GroupNorm": "group_norm",
    }  # fmt: skip
    if name in known:
        return known[name]
    for kind in ("BatchNorm", "InstanceNorm", "MaxPool", "AvgPool", "ConvTranspose"):
        if name.startswith(kind):
            return kind.lower() + name[len(kind) :].lower()
    return name.lower()


@dataclass(frozen=True)
class Program:
    """Keys of a reference program. Two are the same computation, as far as text can tell, where
    `graph` is equal; the same task where `shape_free` is equal; the same text where `normal` is."""

    text: str
    normal: str
    shape_free: str
    operators: tuple[str, ...]
    integers: tuple[int, ...]

    @property
    def graph(self) -> str:
        """Operators in order, without shapes, names and constants."""
        return " ".join(self.operators)

    def grams(self, length: int = 5) -> frozenset[str]:
        """Runs of words of the shape-free form."""
        words = self.shape_free_words
        last = max(1, len(words) - length + 1)
        return frozenset(" ".join(words[i : i + length]) for i in range(last))

    @property
    def shape_free_words(self) -> list[str]:
        return re.findall(r"\w+|[^\w\s]", self.shape_free)


@lru_cache(maxsize=1 << 16)
def read_program(source: str) -> Program | None:
    """None where it is not Python or holds no `Model.forward`."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    forward: ast.FunctionDef | None = None
    functions: dict[str, ast.FunctionDef] = {}
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = node
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            target, called = node.targets[0], node.value.func
            if isinstance(target, ast.Attribute) and isinstance(called, ast.Attribute):
                modules[target.attr] = _snake(called.attr)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            forward = next(
                (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward"),
                None,
            )
    if forward is None:
        return None
    layers = {name: kind for name, kind in modules.items() if kind != "parameter"}
    visitor = _Operators(layers, functions)
    for statement in forward.body:
        visitor.visit(statement)
    integers = tuple(
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and type(node.value.value) is int
    )
    normal = ast.unparse(_Plain(numbers=True).visit(ast.parse(source)))
    shape_free = ast.unparse(_Plain(numbers=False).visit(ast.parse(source)))
    return Program(source, normal, shape_free, tuple(visitor.found), integers)
