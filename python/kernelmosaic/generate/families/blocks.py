"""Blocks of models: several layers."""

from __future__ import annotations

from kernelmosaic.generate.families import family
from kernelmosaic.generate.families.fused import pointwise_tail
from kernelmosaic.generate.families.shapes import channel_counts, image, image_sizes
from kernelmosaic.generate.graph import Builder
from kernelmosaic.generate.ops.channel_norms import ChannelNorm
from kernelmosaic.generate.ops.gates import BroadcastOp, Gate, Triangle
from kernelmosaic.generate.ops.lines import Softmax
from kernelmosaic.generate.ops.movement import Concat, Permute, View
from kernelmosaic.generate.ops.pointwise import BinaryOp, UnitOp
from kernelmosaic.generate.ops.pooling import GlobalPool, Pool
from kernelmosaic.generate.ops.products import Linear, MatMul
from kernelmosaic.generate.ops.row_norms import RowNorm
from kernelmosaic.generate.ops.windows import Convolution
from kernelmosaic.generate.values import Size, Value, doubled, draw_size

_SMOOTH = ("relu", "gelu", "silu", "tanh", "leaky_relu", "mish", "elu")


@family("mlp", "matmul", 3)
def mlp(b: Builder) -> Value:
    draw = b.draw
    sizes = [draw_size(draw, "batch_size", "tile"), draw_size(draw, "input_size", "tile")]
    value = b.input("x", sizes)
    activation = draw.choice(_SMOOTH)
    layers = draw.integer(2, 4)
    for number in range(1, layers):
        hidden = draw_size(draw, f"hidden_size{number}", "some", "tile")
        value = b.apply(Linear(b.context, value, hidden, True, "fc"))
        value = b.apply(UnitOp(b.context, value, activation))
    return b.apply(Linear(b.context, value, draw_size(draw, "output_size", "some"), True, "fc"))


@family("transformer-mlp", "matmul", 3)
def transformer_mlp(b: Builder) -> Value:
    draw = b.draw
    width = draw_size(draw, "d_model", "some", "tile")
    sizes = [
        draw_size(draw, "batch_size", "few"),
        draw_size(draw, "seq_len", "some", "tile"),
        width,
    ]
    x = b.input("x", sizes)
    value = x
    before = draw.chance(0.7)
    form = draw.choice(["layer", "rms"])
    if before:
        value = b.apply(RowNorm(b.context, value, 2, form, True))
    hidden = draw_size(draw, "d_ff", "tile")
    value = b.apply(Linear(b.context, value, hidden, draw.chance(0.7), "up_proj"))
    value = b.apply(UnitOp(b.context, value, draw.choice(("gelu", "gelu_tanh", "relu", "silu"))))
    value = b.apply(Linear(b.context, value, width, draw.chance(0.7), "down_proj"))
    value = b.apply(BinaryOp(b.context, value, x, "add"))
    if not before:
        value = b.apply(RowNorm(b.context, value, 2, form, True))
    return value


@family("gated-mlp", "matmul", 3)
def gated_mlp(b: Builder) -> Value:
    draw = b.draw
    width = draw_size(draw, "hidden_size", "some", "tile")
    x = b.input("x", [draw_size(draw, "tokens", "tile"), width])
    inner = draw_size(draw, "intermediate_size", "tile")
    gate = b.apply(Linear(b.context, x, inner, False, "gate_proj"))
    gate = b.apply(UnitOp(b.context, gate, draw.choice(("silu", "gelu", "sigmoid"))))
    up = b.apply(Linear(b.context, x, inner, False, "up_proj"))
    value = b.apply(BinaryOp(b.context, up, gate, "multiply"))
    return b.apply(Linear(b.context, value, width, False, "down_proj"))


@family("attention-core", "attention", 2)
def attention_core(b: Builder) -> Value:
    draw = b.draw
    lead = [draw_size(draw, "batch_size", "tiny"), draw_size(draw, "num_heads", "tiny")]
    positions = draw_size(draw, "seq_len", "some", "tile")
    keys = positions if draw.chance(0.6) else draw_size(draw, "kv_len", "some", "tile")
    width = Size("head_dim", draw.choice([32, 64, 128]), draw.choice([9, 13, 17]))
    lead = lead[: draw.integer(1, 2)]
    q = b.input("q", [*lead, positions, width])
    k = b.input("k", [*lead, keys, width])
    v = b.input("v", [*lead, keys, width])
    scores = b.apply(MatMul(b.context, q, k, False, True))
    scores = b.apply(UnitOp(b.context, scores, draw.choice(["scale", "divide"])))
    if keys == positions and draw.chance(0.5):
        scores = b.apply(Triangle(b.context, scores, True, True))
    weights = b.apply(Softmax(b.context, scores, scores.rank - 1))
    return b.apply(MatMul(b.context, weights, v, False, False))


@family("attention-block", "attention", 3)
def attention_block(b: Builder) -> Value:
    draw = b.draw
    heads, head_dim = draw.choice([2, 4]), draw.choice([8, 12])
    batch = draw_size(draw, "batch_size", "tiny", "few")
    positions = draw_size(draw, "seq_len", "some", "tile")
    # Heads are a plain number of the module, so the width keeps its value at every scale.
    width = Size("embed_dim", heads * head_dim, heads * head_dim)
    x = b.input("x", [batch, positions, width])
    head = Size("num_heads", heads, heads)
    each = Size("head_dim", head_dim, head_dim)

    def heads_of(name: str) -> Value:
        projected = b.apply(Linear(b.context, x, width, draw.chance(0.6), name))
        split = b.apply(
            View(
                b.context,
                projected,
                [batch, positions, head, each],
                f"{{x}}.view({{x}}.shape[0], {{x}}.shape[1], {heads}, {head_dim})",
                f"See the last dimension as ({heads}, {head_dim}), that is, {heads} heads,",
            )
        )
        return b.apply(Permute(b.context, split, (0, 2, 1, 3)))

    q, k, v = (heads_of(name) for name in ("q_proj", "k_proj", "v_proj"))
    scores = b.apply(MatMul(b.context, q, k, False, True))
    scores = b.apply(UnitOp(b.context, scores, "scale"))
    if draw.chance(0.5):
        scores = b.apply(Triangle(b.context, scores, True, True))
    weights = b.apply(Softmax(b.context, scores, 3))
    value = b.apply(MatMul(b.context, weights, v, False, False))
    value = b.apply(Permute(b.context, value, (0, 2, 1, 3)))
    joined = b.apply(
        View(
            b.context,
            value,
            [batch, positions, width],
            f"{{x}}.reshape({{x}}.shape[0], {{x}}.shape[1], {heads * head_dim})",
            f"See the last two dimensions as one of {heads * head_dim}",
        )
    )
    value = b.apply(Linear(b.context, joined, width, draw.chance(0.6), "out_proj"))
    return b.apply(BinaryOp(b.context, value, x, "add")) if draw.chance(0.5) else value


@family("residual-convolution", "convolution", 3)
def residual_convolution(b: Builder) -> Value:
    draw = b.draw
    x = image(b, 2, "channels")
    channels = x.sizes[1]
    value = x
    activation = draw.choice(("relu", "relu", "silu", "leaky_relu"))
    for part in range(2):
        op = Convolution(b.context, value, channels, 3, 1, 1, 1, 1, draw.chance(0.4))
        value = b.apply(op)
        # Padding of one keeps the extents.
        value = b.resize(value, x.sizes)
        if draw.chance(0.8):
            value = b.apply(ChannelNorm(b.context, value, draw.choice(["batch", "instance"])))
        if part == 0:
            value = b.apply(UnitOp(b.context, value, activation))
    value = b.apply(BinaryOp(b.context, value, x, "add"))
    return b.apply(UnitOp(b.context, value, activation))


@family("squeeze-excite", "convolution", 3)
def squeeze_excite(b: Builder) -> Value:
    draw = b.draw
    x = image(b, 2, "channels")
    reduced = Size("reduced", draw.choice([4, 8]), draw.choice([2, 3]))
    pooled = b.apply(GlobalPool(b.context, x, "avg", False))
    value = b.apply(Linear(b.context, pooled, reduced, draw.chance(0.6), "fc"))
    value = b.apply(UnitOp(b.context, value, draw.choice(("relu", "silu"))))
    value = b.apply(Linear(b.context, value, x.sizes[1], draw.chance(0.6), "fc"))
    value = b.apply(UnitOp(b.context, value, draw.choice(("sigmoid", "hardsigmoid"))))
    ones = (Size("1", 1, 1), Size("1", 1, 1))
    shaped = b.apply(
        View(
            b.context,
            value,
            [*value.sizes, *ones],
            "{x}.view({x}.shape[0], {x}.shape[1], 1, 1)",
            "Add two dimensions of extent 1 at the end",
        )
    )
    return b.apply(BroadcastOp(b.context, x, shaped, "multiply"))


@family("convolution-net", "convolution", 3)
def convolution_net(b: Builder) -> Value:
    draw = b.draw
    value = image(b, 2, "in_channels")
    activation = draw.choice(("relu", "silu", "gelu"))
    for number in range(1, draw.integer(2, 3)):
        out = channel_counts(b, f"channels{number}")
        value = b.apply(Convolution(b.context, value, out, 3, 1, 1, 1, 1, True))
        if draw.chance(0.5):
            value = b.apply(ChannelNorm(b.context, value, "batch"))
        value = b.apply(UnitOp(b.context, value, activation))
        value = b.apply(Pool(b.context, value, draw.choice(["max", "avg"]), 2, 2))
    value = b.apply(GlobalPool(b.context, value, draw.choice(["avg", "max"]), False))
    return b.apply(Linear(b.context, value, draw_size(draw, "num_classes", "some"), True, "fc"))


@family("separable-convolution", "convolution", 3)
def separable_convolution(b: Builder) -> Value:
    draw = b.draw
    # Groups are a plain number of the module, so channels keep their count at every scale.
    channels = Size("in_channels", 8, 8)
    sizes = image_sizes(b, 2)
    x = b.input("x", [sizes[0], channels, *sizes[2:]])
    value = b.apply(Convolution(b.context, x, channels, 3, draw.choice([1, 2]), 1, 1, 8, False))
    if draw.chance(0.6):
        value = b.apply(ChannelNorm(b.context, value, "batch"))
        value = b.apply(UnitOp(b.context, value, draw.choice(("relu6", "relu", "hardswish"))))
    out = channel_counts(b, "out_channels")
    value = b.apply(Convolution(b.context, value, out, 1, 1, 0, 1, 1, draw.chance(0.5)))
    return pointwise_tail(b, value, draw.integer(0, 2), 1)


@family("dense-block", "convolution", 3)
def dense_block(b: Builder) -> Value:
    draw = b.draw
    x = image(b, 2, "in_channels")
    growth = channel_counts(b, "growth")
    new = b.apply(Convolution(b.context, x, growth, 1, 1, 0, 1, 1, draw.chance(0.5)))
    new = b.resize(new, (x.sizes[0], growth, *x.sizes[2:]))
    new = b.apply(UnitOp(b.context, new, draw.choice(("relu", "silu"))))
    return b.apply(Concat(b.context, x, new, 1))


@family("recurrent-cell", "matmul", 3)
def recurrent_cell(b: Builder) -> Value:
    draw = b.draw
    inner = draw_size(draw, "hidden_size", "some", "tile")
    batch = draw_size(draw, "batch_size", "tile")
    x = b.input("x", [batch, draw_size(draw, "input_size", "some", "tile")])
    state = b.input(draw.choice(["h", "hidden", "state"]), [batch, inner])

    def gate(name: str, unit: str) -> Value:
        left = b.apply(Linear(b.context, x, inner, True, f"x_{name}"))
        right = b.apply(Linear(b.context, state, inner, draw.chance(0.5), f"h_{name}"))
        return b.apply(UnitOp(b.context, b.apply(BinaryOp(b.context, left, right, "add")), unit))

    new = gate("new", "tanh")
    if draw.chance(0.4):
        return new
    update = gate("update", "sigmoid")
    difference = b.apply(BinaryOp(b.context, state, new, "subtract"))
    change = b.apply(BinaryOp(b.context, update, difference, "multiply"))
    return b.apply(BinaryOp(b.context, new, change, "add"))


@family("mixer", "matmul", 3)
def mixer(b: Builder) -> Value:
    draw = b.draw
    positions = draw_size(draw, "num_patches", "some", "tile")
    width = draw_size(draw, "dim", "some", "tile")
    x = b.input("x", [draw_size(draw, "batch_size", "few"), positions, width])
    value = b.apply(RowNorm(b.context, x, 2, draw.choice(["layer", "rms"]), True))
    value = b.apply(Permute(b.context, value, (0, 2, 1)))
    value = b.apply(
        Linear(b.context, value, draw_size(draw, "token_dim", "some"), True, "token_fc")
    )
    value = b.apply(UnitOp(b.context, value, draw.choice(("gelu", "relu", "silu"))))
    value = b.apply(Linear(b.context, value, positions, True, "token_fc"))
    value = b.apply(Permute(b.context, value, (0, 2, 1)))
    return b.apply(BinaryOp(b.context, value, x, "add"))


@family("gated-linear-block", "activation", 3)
def gated_linear_block(b: Builder) -> Value:
    draw = b.draw
    width = draw_size(draw, "d_model", "some", "tile")
    hidden = draw_size(draw, "hidden", "some", "tile")
    double = doubled(hidden)
    x = b.input("x", [draw_size(draw, "tokens", "tile"), width])
    value = b.apply(RowNorm(b.context, x, 1, draw.choice(["rms", "layer"]), True))
    value = b.apply(Linear(b.context, value, double, draw.chance(0.4), "in_proj"))
    value = b.apply(Gate(b.context, value, draw.choice(["swiglu", "geglu", "glu"])))
    # The gate's output is as wide as `hidden`.
    value = b.resize(value, (x.sizes[0], hidden))
    value = b.apply(Linear(b.context, value, width, draw.chance(0.4), "out_proj"))
    return b.apply(BinaryOp(b.context, value, x, "add"))
