"""Writes a graph as a PyTorch program, in the ways in which people write them."""

from __future__ import annotations

from dataclasses import dataclass

from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.graph import Graph, Input
from kernelmosaic.generate.ops.base import ConstructorArgument
from kernelmosaic.generate.values import Constant, Size


@dataclass(frozen=True)
class Signature:
    """The constructor's arguments in the order of this task; the last `defaults` have one."""

    arguments: list[ConstructorArgument]
    defaults: int
    typed: bool

    @property
    def text(self) -> str:
        parts = ["self"]
        first = len(self.arguments) - self.defaults
        for number, argument in enumerate(self.arguments):
            kind = "int" if isinstance(argument, Size) else type(argument.value).__name__
            text = f"{argument.name}: {kind}" if self.typed else argument.name
            if number >= first and isinstance(argument, Constant):
                text += f" = {argument.value!r}" if self.typed else f"={argument.value!r}"
            parts.append(text)
        return ", ".join(parts)


def draw_signature(graph: Graph, draw: Draw) -> Signature:
    sizes = [a for a in graph.constructor if isinstance(a, Size)]
    numbers = [a for a in graph.constructor if isinstance(a, Constant)]
    if draw.chance(0.3):
        sizes = draw.shuffled(sizes)
    if draw.chance(0.4):
        numbers = draw.shuffled(numbers)
    defaults = draw.integer(0, len(numbers)) if draw.chance(0.4) else 0
    return Signature([*sizes, *numbers], defaults, draw.chance(0.6))


def _input_line(entry: Input) -> str:
    value = entry.value
    extents = ", ".join(s.name for s in value.sizes)
    if value.dtype == "int64":
        tail = "," if len(value.sizes) == 1 else ""
        return f"torch.randint(0, {entry.limit}, ({extents}{tail}))"
    text = f"torch.randn({extents})"
    if entry.spread:
        text = entry.spread.format(randn=text, extents=extents)
    return text if value.dtype == "float32" else f"({text}).to(torch.{value.dtype})"


def forward_lines(graph: Graph, draw: Draw) -> list[str]:
    """The body of the reference's `forward`."""
    names: dict[str, str] = {entry.value.name: entry.value.name for entry in graph.inputs}
    remaining = {node.value.name: graph.uses(node.value) for node in graph.nodes}
    for entry in graph.inputs:
        remaining[entry.value.name] = graph.uses(entry.value)
    form = draw.choice(["overwrite", "overwrite", "named", "nested"])
    base = draw.choice(["out", "y", "h", "z"])
    lines: list[str] = []
    for number, node in enumerate(graph.nodes):
        inputs = [names[v.name] for v in node.op.inputs]
        text = node.op.torch(inputs)
        for value in node.op.inputs:
            remaining[value.name] -= 1
        last = number == len(graph.nodes) - 1
        if last:
            if form == "named" and draw.chance(0.4):
                lines.append(f"result = {text}")
                text = "result"
            lines.append(f"return {text}")
            break
        following = graph.nodes[number + 1].op
        first = node.op.inputs[0]
        if (
            form == "nested"
            and remaining[node.value.name] == 1
            and following.inputs[0] == node.value
            and following.inputs.count(node.value) == 1
            and not following.repeats
            and len(text) < 60
        ):
            call = text.endswith(")") and not any(s in text for s in (" + ", " - ", " * ", " / "))
            names[node.value.name] = text if call else f"({text})"
            continue
        if form != "named" and remaining[first.name] == 0 and names[first.name].isidentifier():
            target = names[first.name]
        else:
            target = node.value.name if form == "named" else f"{base}{number + 1}"
        names[node.value.name] = target
        lines.append(f"{target} = {text}")
    return lines


def _docstring(text: str, depth: int, draw: Draw) -> list[str]:
    indent = "    " * depth
    if draw.chance(0.5):
        return [f'{indent}"""{text}"""']
    return [f'{indent}"""', f"{indent}{text}", f'{indent}"""']


def _method_docstring(graph: Graph, returns: str, draw: Draw) -> list[str]:
    lines = ['        """']
    head = ["Computes the result.", "Forward pass.", "Runs the operation on the inputs.", ""]
    text = draw.choice(head)
    if text:
        lines += [f"        {text}", ""]
    lines.append("        Args:")
    for entry in graph.inputs:
        shape = ", ".join(s.name for s in entry.value.sizes)
        lines.append(f"            {entry.value.name} (torch.Tensor): shape ({shape})")
    lines += ["", "        Returns:", f"            torch.Tensor: {returns}", '        """']
    return lines


def reference_text(graph: Graph, title: str, signature: Signature, draw: Draw) -> str:
    body: list[str] = []
    words = draw.choice([title + ".", f"Model that computes: {title}.", f"Simple model: {title}."])
    body.append("class Model(nn.Module):")
    if draw.chance(0.75):
        body += _docstring(words, 1, draw)
    body.append(f"    def __init__({signature.text}):")
    body.append(f"        super({'Model, self' if draw.chance(0.4) else ''}).__init__()")
    body += [f"        {line}" for line in graph.init]
    body.append("")
    typed = signature.typed or draw.chance(0.3)
    parameters = ", ".join(
        f"{e.value.name}: torch.Tensor" if typed else e.value.name for e in graph.inputs
    )
    body.append(f"    def forward(self, {parameters}){' -> torch.Tensor' if typed else ''}:")
    if draw.chance(0.4):
        shape = ", ".join(s.name for s in graph.output.sizes)
        body += _method_docstring(graph, f"shape ({shape})", draw)
    body += [f"        {line}" for line in forward_lines(graph, draw)]

    constants = [f"{s.name} = {s.expression or s.full}" for s in graph.sizes]
    first_default = len(signature.arguments) - signature.defaults
    given: list[str] = []
    keep = draw.integer(first_default, len(signature.arguments))
    named_numbers = draw.chance(0.5)
    for number, argument in enumerate(signature.arguments[:keep]):
        if isinstance(argument, Constant) and named_numbers:
            constants.append(f"{argument.name} = {argument.value!r}")
            given.append(argument.name)
        else:
            given.append(argument.name if isinstance(argument, Size) else repr(argument.value))
        del number
    inputs = ["def get_inputs():"]
    if draw.chance(0.5):
        inputs += [f"    {e.value.name} = {_input_line(e)}" for e in graph.inputs]
        inputs.append(f"    return [{', '.join(e.value.name for e in graph.inputs)}]")
    else:
        inputs.append(f"    return [{', '.join(_input_line(e) for e in graph.inputs)}]")
    tail = [*inputs, "", "", "def get_init_inputs():", f"    return [{', '.join(given)}]"]

    preambles = list(dict.fromkeys(n.op.preamble for n in graph.nodes if n.op.preamble))
    text = "\n".join([*body, *tail])
    imports = ["import torch", "import torch.nn as nn"]
    if "F." in text or any("F." in p for p in preambles):
        imports.append("import torch.nn.functional as F")
    blocks = [imports]
    before = draw.chance(0.3)
    if before:
        blocks.append(constants)
    blocks += [p.rstrip("\n").split("\n") for p in preambles]
    blocks.append(body)
    if not before:
        blocks.append(constants)
    blocks.append(tail)
    separator = "\n\n\n" if draw.chance(0.6) else "\n\n"
    return separator.join("\n".join(block) for block in blocks) + "\n"
