"""Writes a graph in words and as mathematics. Each view suffices alone."""

from __future__ import annotations

from kernelmosaic.generate.draw import Draw
from kernelmosaic.generate.graph import Graph
from kernelmosaic.generate.reference import Signature
from kernelmosaic.generate.values import Constant, Size


def _shape(sizes: object) -> str:
    names = [s.name for s in sizes]  # type: ignore[attr-defined]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})" if names else "()"


def _module_text(graph: Graph, signature: Signature) -> str:
    """What a solution's constructor has to look like."""
    lines: list[str] = []
    if signature.arguments:
        names = ", ".join(f"`{a.name}`" for a in signature.arguments)
        numbers = [
            f"`{a.name}` = {a.value!r}" for a in signature.arguments if isinstance(a, Constant)
        ]
        lines.append(f"The constructor takes {names}, in this order.")
        if signature.defaults:
            last = signature.arguments[-signature.defaults :]
            defaults = ", ".join(f"`{a.name}={a.value!r}`" for a in last if isinstance(a, Constant))
            lines.append(f"Defaults: {defaults}.")
        if numbers:
            lines.append(f"It is given {', '.join(numbers)}.")
    else:
        lines.append("The constructor takes no arguments.")
    made = [line for node in graph.nodes for line in node.op.init]
    if made:
        lines.append("It makes, in this order, so that parameters have the same values:\n")
        return " ".join(lines) + "\n" + "\n".join(f"- `{line}`" for line in made) + "\n"
    return " ".join(lines) + "\n"


def _sizes_text(graph: Graph) -> str:
    parts = ", ".join(
        f"{s.name} = {s.expression + ' = ' if s.expression else ''}{s.full}" for s in graph.sizes
    )
    return f"At full size {parts}; other sizes must work too.\n"


def _inputs_text(graph: Graph) -> list[str]:
    lines = []
    for entry in graph.inputs:
        value = entry.value
        limit = f", indices from 0 to {entry.limit} - 1" if entry.limit else ""
        lines.append(f"- `{value.name}`: {_shape(value.sizes)}, {value.dtype}{limit}")
    return lines


def description_text(graph: Graph, signature: Signature, draw: Draw) -> str:
    names: dict[str, str] = {e.value.name: f"`{e.value.name}`" for e in graph.inputs}
    steps: list[str] = []
    for number, node in enumerate(graph.nodes, start=1):
        steps.append(node.op.english([names[v.name] for v in node.op.inputs]))
        names[node.value.name] = f"the result of step {number}"
    head = draw.choice(
        [
            "`forward` takes",
            "The inputs of `forward` are",
            "`forward` is called with",
        ]
    )
    parts = [f"{head}, in this order:\n\n" + "\n".join(_inputs_text(graph)) + "\n"]
    if len(steps) == 1:
        # A lone step needs no number.
        parts.append(
            steps[0] + ". " + draw.choice(["Return the result.", "That is the output."]) + "\n"
        )
    else:
        numbered = "\n".join(f"{k}. {s}." for k, s in enumerate(steps, start=1))
        intro = draw.choice(["Compute:", "Do the following:", "The computation, step by step:"])
        parts.append(f"{intro}\n\n{numbered}\n\nThe last result is returned.\n")
    parts.append(
        f"The output has shape {_shape(graph.output.sizes)} and dtype {graph.output.dtype}.\n"
    )
    parts.append(_module_text(graph, signature))
    parts.append(_sizes_text(graph))
    return "\n".join(parts)


def spec_text(graph: Graph, signature: Signature) -> str:
    names: dict[str, str] = {}
    given = []
    for entry in graph.inputs:
        value = entry.value
        symbol = (
            value.name if len(value.name) == 1 else rf"\text{{{value.name}}}".replace("_", r"\_")
        )
        names[value.name] = symbol
        sizes = r" \times ".join(rf"\text{{{s.name}}}".replace("_", r"\_") for s in value.sizes)
        field = rf"\{{0, \ldots, \text{{{entry.limit}}} - 1\}}" if entry.limit else r"\mathbb{R}"
        if not entry.limit:
            given.append(rf"- ${symbol} \in {field}^{{{sizes}}}$ (`{value.name}`, {value.dtype})")
        else:
            limit = field.replace("_", r"\_")
            given.append(rf"- ${symbol} \in {limit}^{{{sizes}}}$ (`{value.name}`, int64)")
    lines = []
    for number, node in enumerate(graph.nodes, start=1):
        out = (
            "y" if node.value == graph.output and "y" not in names.values() else f"h^{{({number})}}"
        )
        inputs = [names[v.name] for v in node.op.inputs]
        lines.append(f"$${node.op.latex(out, inputs)}$$")
        names[node.value.name] = out
    result = names[graph.output.name]
    return (
        "**Given**, in the order of `forward`'s arguments,\n\n"
        + "\n".join(given)
        + "\n\n**find** $"
        + result
        + f"$ of shape {_shape(graph.output.sizes)}, {graph.output.dtype}:\n\n"
        + "\n\n".join(lines)
        + (
            "\n\nAn index $i$ runs over all elements. $R$ is the extent of the dimension "
            "named, $\\varepsilon$, "
        )
        + "weights and biases are those of the module.\n\n"
        + _module_text(graph, signature)
        + "\n"
        + _sizes_text(graph)
    )


def title_text(graph: Graph) -> str:
    words = {
        "relu": "ReLU", "gelu": "GELU", "gelu_tanh": "tanh GELU", "silu": "SiLU", "elu": "ELU",
        "leaky_relu": "LeakyReLU", "matmul": "matrix product", "mse": "MSE loss", "view": "",
        "log_softmax": "log-softmax", "kl_div": "KL divergence", "rms_norm": "RMSNorm",
        "layer_norm": "LayerNorm", "batch_norm": "BatchNorm", "group_norm": "GroupNorm",
        "instance_norm": "InstanceNorm",
    }  # fmt: skip
    parts = [words.get(kind, kind.replace("_", " ")) for kind in graph.kinds]
    parts = [p for p in parts if p]
    sizes = graph.inputs[0].value.sizes
    del sizes
    text = ", ".join(parts)
    if len(text) > 90:
        text = text[:90].rsplit(",", 1)[0] + " and more"
    return text[:1].upper() + text[1:]


def size_arguments(signature: Signature) -> list[Size]:
    return [a for a in signature.arguments if isinstance(a, Size)]
