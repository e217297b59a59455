"""Writes a graph as a `ModelNew` with CUDA kernels, from plain to fused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelmosaic.generate.cuda.epilogue import Epilogue
from kernelmosaic.generate.cuda.helpers import helper
from kernelmosaic.generate.cuda.source import Argument, HostFunction
from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.graph import Graph, Node
from kernelmosaic.generate.ops.movement import View
from kernelmosaic.generate.reference import Signature
from kernelmosaic.generate.values import Value


@dataclass(frozen=True)
class Plan:
    """How a solution is written. `style` picks each operator's kernel, up to what it has."""

    name: str
    style: int
    fuse: bool


PLANS = (
    Plan("naive", 0, False),
    Plan("shared", 1, False),
    Plan("fused", 1, True),
    Plan("vectorised", 2, True),
)


def groups_of(graph: Graph, fuse: bool) -> list[list[Node]]:
    """Nodes that share a kernel: an operator and the pointwise ones that end it."""
    groups: list[list[Node]] = []
    for node in graph.nodes:
        if fuse and groups and _joins(graph, groups[-1], node):
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _joins(graph: Graph, group: Sequence[Node], node: Node) -> bool:
    last = group[-1]
    if node.op.step() is None or not group[0].op.fuses:
        return False
    if node.op.inputs[0] != last.value or graph.uses(last.value) != 1:
        return False
    made_here = {n.value.name for n in group}
    return all(value.name not in made_here for value in node.op.inputs[1:])


def _function(group: Sequence[Node], name: str, style: int) -> HostFunction:
    steps = tuple(step for node in group[1:] for step in [node.op.step()] if step is not None)
    op = group[0].op
    return op.function(name, group[-1].value, Epilogue(steps), min(style, op.styles - 1))


def _passed(argument: Argument, names: dict[str, str]) -> str:
    source = argument.source
    return names[source.name] if isinstance(source, Value) else source


def solution_text(graph: Graph, signature: Signature, plan: Plan, draw: Draw) -> str:
    """One whole file. `draw` decides on names alone."""
    extension = draw.choice(["extension", "ext", "kernels", "cuda_module"])
    suffix = draw.choice(["", "_cuda", "_forward"])
    functions: list[HostFunction] = []
    forward: list[str] = []
    names = {e.value.name: e.value.name for e in graph.inputs}
    taken: dict[str, int] = {}
    for group in groups_of(graph, plan.fuse):
        op, out = group[0].op, group[-1].value
        names[out.name] = out.name
        if isinstance(op, View):
            forward.append(f"{out.name} = {op.torch([names[v.name] for v in op.inputs])}")
            continue
        kinds = [node.op.kind for node in group]
        base = "_".join(kinds if len(kinds) <= 3 else [*kinds[:2], "fused"]) + suffix
        taken[base] = taken.get(base, 0) + 1
        name = base if taken[base] == 1 else f"{base}{taken[base]}"
        function = _function(group, name, plan.style)
        functions.append(function)
        passed = ", ".join(_passed(a, names) for a in function.arguments)
        forward.append(f"{out.name} = {extension}.{name}({passed})")
    return _file(graph, signature, extension, functions, forward)


def _file(
    graph: Graph,
    signature: Signature,
    extension: str,
    functions: Sequence[HostFunction],
    forward: Sequence[str],
) -> str:
    helpers = dict.fromkeys(h for f in functions for h in f.helpers)
    device = "\n".join([*[helper(h) for h in helpers], *[f.text for f in functions]])
    includes = ["#include <torch/extension.h>", "#include <cuda_runtime.h>"]
    if "__half" in device:
        includes.append("#include <cuda_fp16.h>")
    if "__nv_bfloat16" in device:
        includes.append("#include <cuda_bf16.h>")
    includes += ["#include <algorithm>", "#include <cmath>"]
    prototypes = "\n".join(f"{f.prototype};" for f in functions)
    listed = ", ".join(f'"{f.name}"' for f in functions)
    parameters = ", ".join(f"{e.value.name}: torch.Tensor" for e in graph.inputs)
    init = "".join(f"        {line}\n" for line in graph.init)
    last = forward[-1].split(" = ", 1)[1]
    body = "".join(f"        {line}\n" for line in [*forward[:-1], f"return {last}"])
    imports = "import torch\nimport torch.nn as nn\n"
    if "F." in body:
        imports += "import torch.nn.functional as F\n"
    newline = "\n"
    return f'''{imports}from torch.utils.cpp_extension import load_inline

cuda_source = r"""
{newline.join(includes)}

{device.strip()}
"""

cpp_source = r"""
{prototypes}
"""

{extension} = load_inline(
    name="{functions[0].name}_extension",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=[{listed}],
)


class ModelNew(nn.Module):
    def __init__({signature.text}):
        super().__init__()
{init}
    def forward(self, {parameters}) -> torch.Tensor:
{body}'''


def solutions_of(graph: Graph, signature: Signature, draw: Draw) -> list[tuple[str, str]]:
    """(name, source) of all ways, each source once, from plain to fast."""
    found: dict[str, str] = {}
    key = draw.integer(0, 1 << 30)
    for plan in PLANS:
        found.setdefault(solution_text(graph, signature, plan, Draw(key)), plan.name)
    return [(name, source) for source, name in found.items()]
