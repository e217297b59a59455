"""Single faults in CUDA source: each mutant differs from its original in one place.

Only the text of `__global__` and `__device__` functions is changed, in C++ and in the strings of
Python files alike. The kinds are those that people and models make: a wrong index, a bound that
is off by one or leaves out a tail, a wrong reduction, a missing barrier or atomic, less precision,
a statement left out. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    kind: str
    line: int  # of the source, from 1
    before: str
    after: str
    source: str


_FUNCTION = re.compile(r"__(?:global|device)__[^;{}()]*\([^;{}]*?\)\s*\{", re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TYPE = r"(?:float|double|int|half|auto|unsigned|char|bool)"
_DECLARED = re.compile(rf"(?:__shared__|\b(?:const|{_TYPE}))\s+$")
_DECLARATION = re.compile(rf"\s*(?:extern\s+)?(?:__shared__\s+)?{_TYPE}\b[^=]*$")


def bodies(source: str) -> Iterator[tuple[int, int]]:
    """Where the bodies of device functions begin and end, braces left out."""
    for match in _FUNCTION.finditer(source):
        depth, at = 1, match.end()
        while at < len(source) and depth:
            depth += {"{": 1, "}": -1}.get(source[at], 0)
            at += 1
        if not depth:
            yield match.end(), at - 1


def _indexes(body: str) -> Iterator[tuple[int, int]]:
    """The insides of subscripts that are no declarations."""
    for match in re.finditer(r"(\w+)\[", body):
        if _DECLARED.search(body[: match.start()]):
            continue
        line = body[body.rfind("\n", 0, match.start()) + 1 : match.start()]
        if _DECLARATION.match(line):
            continue
        depth, at = 1, match.end()
        while at < len(body) and depth:
            depth += {"[": 1, "]": -1}.get(body[at], 0)
            at += 1
        yield match.end(), at - 1


# (kind, pattern, what the match becomes)
_TEXTUAL: list[tuple[str, str, Callable[[re.Match[str]], str]]] = [
    ("bound", r"(?<!<) < (?!<)", lambda m: " <= "),
    ("tail", r"(?<![<]) < (\w+)(?=[;)\s&])", lambda m: f" < {m[1]} - 1"),
    ("bound", r" >= ", lambda m: " > "),
    ("bound", r" > (?=\w)", lambda m: " >= "),
    ("tail", r"\+= (blockDim\.x|gridDim\.x \* blockDim\.x|stride)\b", lambda m: f"+= 2 * {m[1]}"),
    ("index", r"\bthreadIdx\.x\b", lambda m: "threadIdx.y"),
    ("index", r"\bblockIdx\.x\b", lambda m: "(blockIdx.x / 2)"),
    ("reduction", r"\bfmaxf\(", lambda m: "fminf("),
    ("reduction", r"\b(?<!f)max\(", lambda m: "min("),
    ("reduction", r" \+= (?!\d|blockDim|gridDim|stride|2 \*)", lambda m: " = "),
    ("reduction", r"(?:>>= 1|/= 2)\b", lambda m: ">>= 2"),
    ("reduction", r"(\w+) > 0;", lambda m: f"{m[1]} > 1;"),
    ("reduction", r"-INFINITY|-FLT_MAX", lambda m: "0.0f"),
    ("reduction", r"= 0\.0?f;", lambda m: "= 1.0f;"),
    ("arithmetic", r"(?<=[\w\])]) \+ (?=[\w(])", lambda m: " - "),
    ("arithmetic", r"(?<=[\w\])]) - (?=[\w(])", lambda m: " + "),
    ("arithmetic", r"(?<=[\w\])]) \* (?=[\w(])", lambda m: " + "),
    ("arithmetic", r"(?<=[\w\])]) / (?=[\w(])", lambda m: " * "),
    ("constant", r"\b(\d+\.\d+)f\b", lambda m: f"{float(m[1]) * 1.01 + 1e-3!r}f"),
    ("race", r"__syncthreads\(\);", lambda m: ";"),
    ("race", r"__syncwarp\(\);", lambda m: ";"),
    ("race", r"atomicAdd\(&?([^,;]+), ([^;]+)\);", lambda m: f"*(&({m[1].strip()})) += {m[2]};"),
    (
        "precision",
        r" = (?![^;]*(?:blockIdx|Dim|%|count|size))([^=;{}]*(?:\*|/|f\()[^=;{}]*[\w)\]]);",
        lambda m: f" = kmosaic_less({m[1]});",
    ),
    (
        "stale read",  # what was there before stays: a statement, no declaration, is left out
        r"(?<=\n)[ \t]*[\w.]+(?:\[[^\]\n]*\])* [-+*|]?= [^;{}]*;(?=\n)",
        lambda m: ";",
    ),
]

# TF32 has 10 bits of fraction, float32 has 23. Other types pass.
_LESS = """
template <typename T> __device__ T kmosaic_less(T value) { return value; }
__device__ float kmosaic_less(float value) {
  return __uint_as_float(__float_as_uint(value) & 0xffffe000u);
}
"""


def mutants(source: str) -> list[Mutant]:
    """All of them, in the order of the source."""
    found: list[Mutant] = []
    seen = {source}

    def add(kind: str, first: int, last: int, text: str) -> None:
        changed = source[:first] + text + source[last:]
        if kind == "precision":
            # A declaration needs an initialiser of its own type, and nothing else changes.
            head = _FUNCTION.search(changed)
            if head is None:
                return
            start = _start_of_function(changed, head.start())
            changed = changed[:start] + _LESS + changed[start:]
        if changed in seen:
            return
        seen.add(changed)
        line = source.count("\n", 0, first) + 1
        found.append(Mutant(kind, line, source[first:last].strip(), text.strip(), changed))

    for start, end in bodies(source):
        body = source[start:end]
        hidden = [m.span() for m in _COMMENT.finditer(body)]

        def visible(at: int, hidden: list[tuple[int, int]] = hidden) -> bool:
            return not any(a <= at < b for a, b in hidden)

        for first, last in _indexes(body):
            if visible(first):
                inside = body[first:last]
                add("index", start + first, start + last, f"({inside}) ^ 1")
                add("index", start + first, start + last, f"({inside}) + 1")
        for kind, pattern, replacement in _TEXTUAL:
            for match in re.finditer(pattern, body):
                if visible(match.start()):
                    add(kind, start + match.start(), start + match.end(), replacement(match))
    return sorted(found, key=lambda m: (m.line, m.kind, m.after))


def _start_of_function(source: str, at: int) -> int:
    """Before the template head of the function at `at`, if it has one."""
    head = re.search(r"template\s*<[^<>]*>\s*$", source[:at])
    return at if head is None else head.start()
