"""Realistic faults, put into a right solution of the generator.

Each works on the text, by the idioms that the generator writes. One that finds no place for
itself leaves the solution alone and says so by None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Optional

from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.task import Task

Change = Callable[[Task, str, Draw], Optional[str]]

WRONG = frozenset({"WRONG_OUTPUT"})
UNREADABLE = "NO_VERSION"


@dataclass(frozen=True)
class Mistake:
    """`verdicts`: what an evaluation finds. `repair`: what the teacher says when it mends it.

    A GPU may run a solution with a fault that is `emulated_only` and find nothing.
    """

    name: str
    verdicts: frozenset[str]
    repair: str
    change: Change
    emulated_only: bool = False


MISTAKES: dict[str, Mistake] = {}


def _mistake(
    name: str, verdicts: frozenset[str], repair: str, emulated_only: bool = False
) -> Callable[[Change], Change]:
    def add(change: Change) -> Change:
        MISTAKES[name] = Mistake(name, verdicts, repair, change, emulated_only)
        return change

    return add


def _replace_one(source: str, pattern: str, replacement: str, draw: Draw) -> str | None:
    """Replaces one match, drawn among all; None without a match."""
    found = list(re.finditer(pattern, source, re.MULTILINE))
    if not found:
        return None
    match = draw.choice(found)
    return source[: match.start()] + match.expand(replacement) + source[match.end() :]


def _kernel_part(source: str) -> tuple[str, str, str]:
    """What is before the CUDA source, the source, what is after it."""
    head, rest = source.split('cuda_source = r"""', 1)
    cuda, tail = rest.split('"""', 1)
    return head + 'cuda_source = r"""', cuda, '"""' + tail


def _in_kernel(source: str, pattern: str, replacement: str, draw: Draw) -> str | None:
    head, cuda, tail = _kernel_part(source)
    changed = _replace_one(cuda, pattern, replacement, draw)
    return None if changed is None else head + changed + tail


@_mistake("missing_semicolon", frozenset({"COMPILE_ERROR"}), "A semicolon was missing.")
def _missing_semicolon(task: Task, source: str, draw: Draw) -> str | None:
    return _in_kernel(source, r"^( +(?:const )?(?:float|int|int64_t) \w+ = [^;{}]+);$", r"\1", draw)


@_mistake("undeclared_name", frozenset({"COMPILE_ERROR"}), "A built-in variable was misspelt.")
def _undeclared_name(task: Task, source: str, draw: Draw) -> str | None:
    return _in_kernel(source, r"\b(threadIdx|blockIdx)\.x", r"\1_x", draw)


@_mistake(
    "wrong_pointer_type",
    frozenset({"COMPILE_ERROR", "RUNTIME_ERROR"}),
    "A pointer had the wrong element type.",
)
def _wrong_pointer_type(task: Task, source: str, draw: Draw) -> str | None:
    return _in_kernel(source, r"\.data_ptr<float>\(\)", ".data_ptr<double>()", draw)


@_mistake(
    "dropped_tail",
    frozenset({"WRONG_OUTPUT", "ILLEGAL_LAUNCH"}),
    "The number of blocks was rounded down, so the last partial block was never launched.",
)
def _dropped_tail(task: Task, source: str, draw: Draw) -> str | None:
    return _in_kernel(
        source, r"\((n|lines|quads|rows|columns) \+ (\w+) - 1\) / \2", r"\1 / \2", draw
    )


@_mistake(
    "missing_guard",
    frozenset({"OUT_OF_BOUNDS", "ILLEGAL_ACCESS", "WRONG_OUTPUT", "CRASHED"}),
    "Threads beyond the end were not stopped.",
    emulated_only=True,
)
def _missing_guard(task: Task, source: str, draw: Draw) -> str | None:
    changed = _in_kernel(source, r"^( +)if \(i < n\) \{$", r"\1{", draw)
    return changed or _in_kernel(source, r"^ +if \(line >= lines\) return;\n", "", draw)


@_mistake(
    "missing_barrier",
    frozenset({"DATA_RACE", "WRONG_OUTPUT", "NONDETERMINISTIC"}),
    "A barrier between writing and reading shared memory was missing.",
    emulated_only=True,
)
def _missing_barrier(task: Task, source: str, draw: Draw) -> str | None:
    # The barrier after tiles or partial sums were stored.
    return _in_kernel(
        source,
        r"^( +(?:tile_\w+|tile|shared|taps)\[.*;\n(?: +\}\n)*) +__syncthreads\(\);\n",
        r"\1",
        draw,
    )


@_mistake("wrong_reduction", WRONG, "The reduction did not accumulate, or was not finished.")
def _wrong_reduction(task: Task, source: str, draw: Draw) -> str | None:
    changed = _in_kernel(source, r"^ +mean /= length;\n", "", draw)
    if changed is None or draw.chance(0.5):
        again = _in_kernel(source, r"\b(\w+) = \1 \+ (.*);$", r"\1 = \2;", draw)
        changed = again or changed
    return changed


@_mistake("wrong_index", WRONG, "Rows and columns were mixed up in an index.")
def _wrong_index(task: Task, source: str, draw: Draw) -> str | None:
    options = [
        (r"\(int64_t\)row \* columns \+ column\b", "(int64_t)column * rows + row"),
        (r"\[row \* inner \+ ka\]", "[ka * rows + row]"),
        (r"\(int64_t\)o \* group_in \+ c\b", "(int64_t)c * channels_out + o"),
        (r"\(int64_t\)c \* group_out \+ o\b", "(int64_t)o * group_out + c"),
        (r"\[i % (\w+_size)\]", r"[i / \1 % \1]"),
    ]
    for pattern, replacement in draw.shuffled(options):
        changed = _in_kernel(source, pattern, replacement, draw)
        if changed is not None:
            return changed
    return None


@_mistake("wrong_constant", WRONG, "A constant of the formula was wrong.")
def _wrong_constant(task: Task, source: str, draw: Draw) -> str | None:
    head, cuda, tail = _kernel_part(source)
    found = []
    for line in re.finditer(r"^ +v = .*;$|^ +value\.\w = .*$", cuda, re.MULTILINE):
        for number in re.finditer(r"\b\d+\.\d+f\b", line.group()):
            if float(number.group()[:-1]) not in (0.0, 20.0):
                found.append((line.start() + number.start(), number.group()))
    if not found:
        return None
    start, text = draw.choice(found)
    other = f"{float(text[:-1]) * draw.choice([0.5, 1.1, 1.25, 2.0]):.6g}"
    other = (other if "." in other or "e" in other else other + ".0") + "f"
    return head + cuda[:start] + other + cuda[start + len(text) :] + tail


@_mistake("missing_step", WRONG, "One operation of the chain was left out.")
def _missing_step(task: Task, source: str, draw: Draw) -> str | None:
    return _in_kernel(source, r"^ +v = v (?:\*|\+|-|/) .*;\n", "", draw)


@_mistake(
    "wrong_constructor",
    frozenset({"RUNTIME_ERROR"}),
    "The constructor did not take the arguments that the task states.",
)
def _wrong_constructor(task: Task, source: str, draw: Draw) -> str | None:
    needed = len(task.signature.arguments) - task.signature.defaults
    if needed == 0:
        return None
    names = [a.name for a in task.signature.arguments]
    defaults = "".join(
        f"{a.name} = {getattr(a, 'value', None) or getattr(a, 'full', None)!r}\n"
        for a in task.signature.arguments
    )
    changed = source.replace(f"def __init__({task.signature.text}):", "def __init__(self):", 1)
    del names
    return changed.replace("class ModelNew", f"{defaults}\n\nclass ModelNew", 1)


@_mistake("zero_parameters", WRONG, "Parameters were not drawn as the task states.")
def _zero_parameters(task: Task, source: str, draw: Draw) -> str | None:
    changed = _replace_one(source, r"torch\.randn\((.*)\)\)$", r"torch.zeros(\1))", draw)
    return changed or _replace_one(source, r"^ +nn\.init\.normal_\(.*\)\n", "", draw)


@_mistake("misspelt_attribute", frozenset({"RUNTIME_ERROR"}), "An attribute was misspelt.")
def _misspelt_attribute(task: Task, source: str, draw: Draw) -> str | None:
    head, tail = source.split("    def forward", 1)
    changed = _replace_one(tail, r"\.weight\b", ".weights", draw)
    if changed is None:
        changed = _replace_one(tail, r"\b(extension|ext|kernels|cuda_module)\.", r"\1s.", draw)
    return None if changed is None else head + "    def forward" + changed


@_mistake(
    "modified_input",
    frozenset({"MODIFIED_INPUT", "WRONG_LAYOUT", "WRONG_OUTPUT"}),
    "The output shared memory with an input.",
)
def _modified_input(task: Task, source: str, draw: Draw) -> str | None:
    head, tail = source.split("    def forward", 1)
    del tail
    pattern = "auto y = torch::empty_like(x);"
    if head.count(pattern) != 1 or len(task.graph.nodes) > 1:
        return None
    return source.replace(pattern, "auto y = x;", 1)


@_mistake("wrong_shape", frozenset({"WRONG_SHAPE"}), "The output had the wrong shape.")
def _wrong_shape(task: Task, source: str, draw: Draw) -> str | None:
    if task.graph.output.rank < 2:
        return None
    lines = source.rstrip("\n").split("\n")
    lines[-1] += ".reshape(-1)" if draw.chance(0.5) else ".unsqueeze(0)"
    return "\n".join(lines) + "\n"


@_mistake("wrong_dtype", frozenset({"WRONG_DTYPE"}), "The output had the wrong dtype.")
def _wrong_dtype(task: Task, source: str, draw: Draw) -> str | None:
    lines = source.rstrip("\n").split("\n")
    lines[-1] += ".half()" if task.graph.output.dtype == "float32" else ".float()"
    return "\n".join(lines) + "\n"


@_mistake(
    "uses_torch",
    frozenset({"NO_CUSTOM_KERNEL"}),
    "The work was done by PyTorch's operators; it is a kernel of its own now.",
)
def _uses_torch(task: Task, source: str, draw: Draw) -> str | None:
    program = task.reference.split("def get_inputs")[0].rstrip() + "\n"
    return program.replace("class Model(", "class ModelNew(").replace(
        "super(Model,", "super(ModelNew,"
    )


@_mistake(
    "block_too_large", frozenset({"ILLEGAL_LAUNCH"}), "A block may have at most 1024 threads."
)
def _block_too_large(task: Task, source: str, draw: Draw) -> str | None:
    if "__shared__" in source:
        return None
    return _in_kernel(source, r"const int threads = \d+;", "const int threads = 2048;", draw)


def choices(task: Task, source: str, emulated: bool) -> list[str]:
    """Names of the mistakes that may be put into this solution."""
    return [
        name
        for name, mistake in MISTAKES.items()
        if (emulated or not mistake.emulated_only)
        and mistake.change(task, source, Draw("possible")) not in (None, source)
    ]


def with_mistakes(task: Task, source: str, names: list[str], draw_key: str) -> str:
    """The source with all these mistakes; those that no longer find a place are left out."""
    for name in names:
        changed = MISTAKES[name].change(task, source, Draw(draw_key, name))
        source = changed if changed is not None else source
    return source
