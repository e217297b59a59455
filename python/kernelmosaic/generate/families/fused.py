"""Products, convolutions and norms with what usually follows them."""

from __future__ import annotations

from kernelmosaic.generate.families import family
from kernelmosaic.generate.families.shapes import (
    channel_counts,
    image,
    matrix,
    sequence,
    window_of,
)
from kernelmosaic.generate.graph import Builder
from kernelmosaic.generate.ops.channel_norms import ChannelNorm
from kernelmosaic.generate.ops.gates import BroadcastOp, Gate
from kernelmosaic.generate.ops.lines import Reduce, Softmax
from kernelmosaic.generate.ops.pointwise import BinaryOp, ChannelOp, UnitOp
from kernelmosaic.generate.ops.pooling import GlobalPool, Pool
from kernelmosaic.generate.ops.products import Linear, MatMul
from kernelmosaic.generate.ops.row_norms import RowNorm
from kernelmosaic.generate.ops.windows import Convolution
from kernelmosaic.generate.units import ACTIVATIONS, ARITHMETIC
from kernelmosaic.generate.values import Value, doubled, draw_size


def pointwise_tail(b: Builder, value: Value, count: int, channel_dim: int) -> Value:
    """`count` pointwise operators: activations, arithmetic, learned vectors."""
    for _ in range(count):
        kind = b.draw.integer(0, 9)
        if kind < 4:
            value = b.apply(UnitOp(b.context, value, b.draw.choice(ACTIVATIONS)))
        elif kind < 8:
            value = b.apply(UnitOp(b.context, value, b.draw.choice(ARITHMETIC)))
        else:
            operation = b.draw.choice(["add", "multiply"])
            value = b.apply(ChannelOp(b.context, value, channel_dim, operation))
    return value


def _features(b: Builder) -> Value:
    draw = b.draw
    sizes = [draw_size(draw, "batch_size", "tile"), draw_size(draw, "in_features", "tile")]
    return b.input("x", sizes)


def _linear(b: Builder, x: Value) -> Value:
    out = draw_size(b.draw, "out_features", "tile")
    return b.apply(Linear(b.context, x, out, b.draw.chance(0.75)))


@family("linear-pointwise", "matmul", 2)
def linear_pointwise(b: Builder) -> Value:
    value = _linear(b, _features(b))
    return pointwise_tail(b, value, b.draw.integer(1, 4), 1)


@family("linear-residual", "matmul", 2)
def linear_residual(b: Builder) -> Value:
    x = _features(b)
    out = draw_size(b.draw, "out_features", "tile")
    residual = b.input("residual", [x.sizes[0], out])
    value = b.apply(Linear(b.context, x, out, b.draw.chance(0.7)))
    value = pointwise_tail(b, value, b.draw.integer(0, 2), 1)
    value = b.apply(BinaryOp(b.context, value, residual, b.draw.choice(["add", "multiply"])))
    return pointwise_tail(b, value, b.draw.integer(0, 1), 1)


@family("linear-norm", "matmul", 2)
def linear_norm(b: Builder) -> Value:
    value = _linear(b, _features(b))
    value = pointwise_tail(b, value, b.draw.integer(0, 2), 1)
    form = b.draw.choice(["layer", "layer", "rms", "l2"])
    value = b.apply(RowNorm(b.context, value, 1, form, b.draw.chance(0.6)))
    return pointwise_tail(b, value, b.draw.integer(0, 2), 1)


@family("linear-softmax", "softmax", 2)
def linear_softmax(b: Builder) -> Value:
    value = _linear(b, _features(b))
    value = pointwise_tail(b, value, b.draw.integer(0, 2), 1)
    value = b.apply(Softmax(b.context, value, 1, b.draw.chance(0.4)))
    if b.draw.chance(0.3):
        value = b.apply(UnitOp(b.context, value, "scale"))
    return value


@family("linear-reduce", "reduction", 2)
def linear_reduce(b: Builder) -> Value:
    value = _linear(b, _features(b))
    value = pointwise_tail(b, value, b.draw.integer(0, 2), 1)
    form = b.draw.choice(["sum", "mean", "max", "min", "logsumexp", "l2"])
    value = b.apply(Reduce(b.context, value, 1, form, True))
    if b.draw.chance(0.6):
        value = b.apply(UnitOp(b.context, value, b.draw.choice(ACTIVATIONS)))
    return value


@family("linear-gate", "activation", 2)
def linear_gate(b: Builder) -> Value:
    x = _features(b)
    hidden = draw_size(b.draw, "hidden", "tile")
    double = doubled(hidden)
    value = b.apply(Linear(b.context, x, double, b.draw.chance(0.6)))
    return b.apply(Gate(b.context, value, b.draw.choice(["glu", "swiglu", "geglu", "reglu"])))


@family("matmul-pointwise", "matmul", 2)
def matmul_pointwise(b: Builder) -> Value:
    draw = b.draw
    m, k, n = (draw_size(draw, name, "tile") for name in ("M", "K", "N"))
    tb = draw.chance(0.4)
    left = b.input("A", [m, k])
    right = b.input("B", [n, k] if tb else [k, n])
    value = b.apply(MatMul(b.context, left, right, False, tb))
    return pointwise_tail(b, value, draw.integer(1, 3), 1)


def _convolution(b: Builder, x: Value) -> Value:
    kernel, stride, padding = window_of(b, x.rank - 2)
    out = channel_counts(b, "out_channels")
    if b.draw.chance(0.25):
        kernel = b.draw.choice([2, 3])
        stride = b.draw.choice([1, 2])
        op = Convolution(b.context, x, out, kernel, stride, 0, 1, 1, True, True)
    else:
        op = Convolution(b.context, x, out, kernel, stride, padding, 1, 1, b.draw.chance(0.7))
    return b.apply(op)


@family("convolution-pointwise", "convolution", 2)
def convolution_pointwise(b: Builder) -> Value:
    x = image(b, b.draw.choice([1, 2, 2, 3]), "in_channels")
    return pointwise_tail(b, _convolution(b, x), b.draw.integer(1, 4), 1)


@family("convolution-norm", "convolution", 2)
def convolution_norm(b: Builder) -> Value:
    x = image(b, b.draw.choice([2, 2, 3]), "in_channels")
    value = pointwise_tail(b, _convolution(b, x), b.draw.integer(0, 1), 1)
    groups = b.draw.choice([2, 2, 1])
    value = b.apply(
        ChannelNorm(b.context, value, b.draw.choice(["batch", "group", "instance"]), groups)
    )
    return pointwise_tail(b, value, b.draw.integer(0, 3), 1)


@family("convolution-pool", "pooling", 2)
def convolution_pool(b: Builder) -> Value:
    x = image(b, 2, "in_channels")
    value = pointwise_tail(b, _convolution(b, x), b.draw.integer(1, 2), 1)
    if b.draw.chance(0.5):
        value = b.apply(Pool(b.context, value, b.draw.choice(["max", "avg"]), 2, 2))
    else:
        value = b.apply(GlobalPool(b.context, value, b.draw.choice(["avg", "max"]), True))
    return pointwise_tail(b, value, b.draw.integer(0, 2), 1)


@family("convolution-softmax", "softmax", 2)
def convolution_softmax(b: Builder) -> Value:
    x = image(b, 2, "in_channels")
    value = pointwise_tail(b, _convolution(b, x), b.draw.integer(0, 2), 1)
    value = b.apply(Softmax(b.context, value, 1, b.draw.chance(0.2)))
    return pointwise_tail(b, value, b.draw.integer(0, 1), 1)


@family("norm-pointwise", "normalisation", 2)
def norm_pointwise(b: Builder) -> Value:
    x = sequence(b) if b.draw.chance(0.5) else matrix(b)
    form = b.draw.choice(["layer", "rms", "l2"])
    value = b.apply(RowNorm(b.context, x, x.rank - 1, form, b.draw.chance(0.6)))
    return pointwise_tail(b, value, b.draw.integer(1, 3), x.rank - 1)


@family("residual-norm", "normalisation", 2)
def residual_norm(b: Builder) -> Value:
    x = sequence(b)
    residual = b.input("residual", x.sizes)
    value = b.apply(BinaryOp(b.context, x, residual, "add"))
    form = b.draw.choice(["layer", "rms"])
    return b.apply(RowNorm(b.context, value, 2, form, b.draw.chance(0.7)))


@family("scaled-softmax", "softmax", 2)
def scaled_softmax(b: Builder) -> Value:
    x = sequence(b)
    value = b.apply(UnitOp(b.context, x, b.draw.choice(["scale", "divide", "soft_cap"])))
    if b.draw.chance(0.5):
        mask = b.input("mask", x.sizes[1:])
        value = b.apply(BroadcastOp(b.context, value, mask, "add"))
    return b.apply(Softmax(b.context, value, 2, b.draw.chance(0.25)))


@family("pointwise-reduce", "reduction", 2)
def pointwise_reduce(b: Builder) -> Value:
    x = matrix(b)
    value = pointwise_tail(b, x, b.draw.integer(1, 2), 1)
    form = b.draw.choice(["sum", "mean", "max", "logsumexp", "l2", "variance"])
    value = b.apply(Reduce(b.context, value, 1, form, b.draw.chance(0.5)))
    if b.draw.chance(0.5):
        value = b.apply(UnitOp(b.context, value, b.draw.choice(ACTIVATIONS)))
    return value
