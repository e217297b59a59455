"""A problem file in KernelBench's convention, and the task that it becomes."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

from kernelmosaic.curate.programs import read_program

# First operator of a family that is found in `forward` decides; the order is that of weight.
_FAMILIES = (
    ("attention", ("scaled_dot_product_attention", "multiheadattention")),
    ("convolution", ("conv",)),
    ("loss", ("loss", "cross_entropy", "kl_div", "cosine_similarity")),
    ("matmul", ("matmul", "linear", "einsum", "lstm", "gru", "rnn")),
    ("normalisation", ("norm",)),
    ("softmax", ("softmax",)),
    ("pooling", ("pool",)),
    ("scan", ("cumsum", "cumprod", "cummax")),
    ("reduction", ("sum", "mean", "max", "min", "argmax", "argmin", "prod", "logsumexp")),
    ("gather", ("embedding", "gather", "index_select")),
    ("transpose", ("permute", "concat", "pad")),
)


class Refused(Exception):
    """Why a file is no task: what is wrong, and where."""


@dataclass(frozen=True)
class Problem:
    id: str
    title: str
    family: str
    level: int
    dtypes: tuple[str, ...]
    text: str

    def yaml(self, source: str, licence: str) -> str:
        lines = [
            f"id: {self.id}",
            f"title: {json.dumps(self.title)}",
            f"source: {json.dumps(source)}",
            f"licence: {json.dumps(licence)}",
            f"family: {self.family}",
            f"level: {self.level}",
            f"dtypes: [{', '.join(self.dtypes)}]",
            "contract: modelnew",
        ]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path, source: str, licence: str) -> None:
        """The program's text is written as it is."""
        folder.mkdir(parents=True)
        (folder / "task.yaml").write_text(self.yaml(source, licence), encoding="utf-8")
        (folder / "reference.py").write_bytes(self.text.encode())


def _family(text: str) -> str:
    program = read_program(text)
    operators = program.operators if program else ()
    for family, marks in _FAMILIES:
        if any(mark in operator for operator in operators for mark in marks):
            return family
    return "elementwise"


def _dtypes(text: str) -> tuple[str, ...]:
    named = re.findall(r"torch\.(float16|bfloat16|float64|int8|int32|int64|bool)\b", text)
    return tuple(dict.fromkeys(["float32", *named]))


def _check(text: str) -> None:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise Refused(f"line {error.lineno}: is no Python: {error.msg}") from error
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    functions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    if "Model" not in classes:
        raise Refused("defines no class Model")
    methods = {n.name for n in classes["Model"].body if isinstance(n, ast.FunctionDef)}
    if "forward" not in methods:
        raise Refused("class Model has no forward")
    for name in ("get_inputs", "get_init_inputs"):
        if name not in functions:
            raise Refused(f"defines no {name}()")


def read_problem(text: str, name: str, level: int, prefix: str = "") -> Problem:
    """`name`: of the file, "36_RMSNorm_". Refused where it is no problem file."""
    _check(text)
    words = re.sub(r"[^A-Za-z0-9]+", " ", name).strip()
    identity = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{prefix}{name}").strip("-_")[:128]
    title = re.sub(r"^\d+ ", "", words) or identity
    return Problem(identity, title, _family(text), level, _dtypes(text), text)


def level_of(path: Path) -> int:
    """From a folder called level1 to level3 above the file; else 0. KernelBench's level 4 (whole
    models of a hub) counts as 3."""
    for part in reversed(path.parts[:-1]):
        match = re.fullmatch(r"level[_-]?([1-4])", part.lower())
        if match:
            return min(3, int(match.group(1)))
    return 0
