"""Single operators."""

from __future__ import annotations

from kernelmosaic.generate.families import family
from kernelmosaic.generate.families.shapes import (
    any_shape,
    channel_counts,
    dtype_of,
    image,
    image_sizes,
    matrix,
    sequence,
    window_of,
)
from kernelmosaic.generate.graph import Builder
from kernelmosaic.generate.ops.channel_norms import ChannelNorm
from kernelmosaic.generate.ops.gates import BroadcastOp, Gate, Rotary, Triangle
from kernelmosaic.generate.ops.gathers import Embedding, Gather
from kernelmosaic.generate.ops.lines import REDUCERS, ArgReduce, LineOp, Reduce, Softmax
from kernelmosaic.generate.ops.losses import PAIR_LOSSES, ROW_LOSSES, MeanLoss, RowLoss
from kernelmosaic.generate.ops.movement import Concat, Permute, Rearrange, Upsample
from kernelmosaic.generate.ops.pointwise import BinaryOp, UnitOp
from kernelmosaic.generate.ops.pooling import GlobalPool, Pool
from kernelmosaic.generate.ops.products import Linear, MatMul
from kernelmosaic.generate.ops.row_norms import RowNorm
from kernelmosaic.generate.ops.scans import FORMS, Scan
from kernelmosaic.generate.ops.windows import Convolution
from kernelmosaic.generate.units import ACTIVATIONS, ARITHMETIC, UNITS
from kernelmosaic.generate.values import Size, Value, doubled, draw_size


def _maybe_dim_argument(builder: Builder, op: LineOp) -> LineOp:
    if builder.draw.chance(0.3):
        op.as_argument()
    return op


@family("activation", "activation")
def activation(b: Builder) -> Value:
    x = any_shape(b, dtype=dtype_of(b))
    return b.apply(UnitOp(b.context, x, b.draw.choice(ACTIVATIONS)))


@family("elementwise", "elementwise")
def elementwise(b: Builder) -> Value:
    x = any_shape(b, dtype=dtype_of(b))
    names = [name for name in UNITS if name not in ACTIVATIONS and name not in ARITHMETIC]
    return b.apply(UnitOp(b.context, x, b.draw.choice(names)))


@family("elementwise-chain", "elementwise", 2)
def elementwise_chain(b: Builder) -> Value:
    value = any_shape(b)
    for key in b.draw.sample(sorted(UNITS), b.draw.integer(2, 4)):
        value = b.apply(UnitOp(b.context, value, key))
    return value


@family("binary", "elementwise")
def binary(b: Builder) -> Value:
    x = any_shape(b, dtype=dtype_of(b))
    other = b.input(b.draw.choice(["y", "other", "z"]), x.sizes, x.dtype)
    value = b.apply(
        BinaryOp(
            b.context,
            x,
            other,
            b.draw.choice(["add", "subtract", "multiply", "maximum", "minimum"]),
        )
    )
    if b.draw.chance(0.5):
        value = b.apply(UnitOp(b.context, value, b.draw.choice(ACTIVATIONS)))
    return value


@family("broadcast", "elementwise")
def broadcast(b: Builder) -> Value:
    x = sequence(b)
    operation = b.draw.choice(["add", "multiply", "subtract"])
    sizes = x.sizes[b.draw.integer(1, 2) :]
    other = b.input("other", sizes)
    return b.apply(BroadcastOp(b.context, x, other, operation))


@family("row-reduction", "reduction")
def row_reduction(b: Builder) -> Value:
    x = matrix(b, dtype=dtype_of(b))
    form = b.draw.choice(sorted(REDUCERS))
    op = Reduce(b.context, x, 1, form, b.draw.chance(0.3))
    return b.apply(_maybe_dim_argument(b, op))


@family("dim-reduction", "reduction")
def dim_reduction(b: Builder) -> Value:
    x = sequence(b)
    op = Reduce(
        b.context, x, b.draw.integer(0, 2), b.draw.choice(sorted(REDUCERS)), b.draw.chance(0.3)
    )
    return b.apply(_maybe_dim_argument(b, op))


@family("arg-reduction", "reduction")
def arg_reduction(b: Builder) -> Value:
    x = sequence(b) if b.draw.chance(0.6) else matrix(b)
    op = ArgReduce(b.context, x, b.draw.integer(0, x.rank - 1), b.draw.chance(0.5))
    return b.apply(_maybe_dim_argument(b, op))


@family("softmax", "softmax")
def softmax(b: Builder) -> Value:
    x = matrix(b, dtype=dtype_of(b)) if b.draw.chance(0.6) else sequence(b)
    op = Softmax(b.context, x, b.draw.integer(1, x.rank - 1), b.draw.chance(0.35))
    return b.apply(_maybe_dim_argument(b, op))


@family("row-norm", "normalisation")
def row_norm(b: Builder) -> Value:
    x = matrix(b) if b.draw.chance(0.5) else sequence(b)
    form = b.draw.choice(["layer", "layer", "rms", "rms", "l1", "l2"])
    return b.apply(RowNorm(b.context, x, x.rank - 1, form, b.draw.chance(0.6)))


@family("dim-norm", "normalisation")
def dim_norm(b: Builder) -> Value:
    x = image(b, 2)
    form = b.draw.choice(["rms", "l1", "l2"])
    return b.apply(RowNorm(b.context, x, 1, form, b.draw.chance(0.4)))


@family("channel-norm", "normalisation")
def channel_norm(b: Builder) -> Value:
    x = image(b, b.draw.choice([1, 2, 2, 3]))
    form = b.draw.choice(["batch", "group", "instance"])
    return b.apply(ChannelNorm(b.context, x, form, b.draw.choice([2, 4])))


@family("matmul", "matmul")
def matmul(b: Builder) -> Value:
    draw = b.draw
    ta, tb = draw.chance(0.25), draw.chance(0.3)
    m, k, n = (draw_size(draw, name, "tile") for name in ("M", "K", "N"))
    if draw.chance(0.2):
        m = k = n = Size("N", m.full, m.scaled)
    dtype = dtype_of(b)
    a = b.input("A", [k, m] if ta else [m, k], dtype)
    c = b.input("B", [n, k] if tb else [k, n], dtype)
    return b.apply(MatMul(b.context, a, c, ta, tb))


@family("batched-matmul", "matmul")
def batched_matmul(b: Builder) -> Value:
    draw = b.draw
    ta, tb = draw.chance(0.25), draw.chance(0.3)
    m, k, n = (draw_size(draw, name, "some", "tile") for name in ("m", "k", "n"))
    lead = [draw_size(draw, "batch_size", "few")]
    if draw.chance(0.3):
        lead.append(draw_size(draw, "num_heads", "tiny"))
    a = b.input("A", [*lead, *([k, m] if ta else [m, k])])
    shared = draw.chance(0.25)
    c = b.input("B", [*([] if shared else lead), *([n, k] if tb else [k, n])])
    return b.apply(MatMul(b.context, a, c, ta, tb))


@family("matrix-vector", "matmul")
def matrix_vector(b: Builder) -> Value:
    draw = b.draw
    m, k = draw_size(draw, "M", "tile"), draw_size(draw, "K", "line")
    one = Size("1", 1, 1)
    a = b.input("A", [m, k])
    c = b.input("B", [k, one])
    return b.apply(MatMul(b.context, a, c, False, False))


@family("triangular-matmul", "matmul")
def triangular_matmul(b: Builder) -> Value:
    n = draw_size(b.draw, "N", "tile")
    lower = b.draw.chance(0.5)
    kind = "tril" if lower else "triu"
    spread = f"torch.{kind}({{randn}})" if b.draw.chance(0.7) else ""
    a = b.input("A", [n, n], spread=spread)
    c = b.input("B", [n, n], spread=spread)
    value = b.apply(MatMul(b.context, a, c, False, False))
    return b.apply(Triangle(b.context, value, lower))


@family("linear", "matmul")
def linear(b: Builder) -> Value:
    draw = b.draw
    sizes = [draw_size(draw, "batch_size", "tile"), draw_size(draw, "in_features", "tile")]
    if draw.chance(0.3):
        sizes = [draw_size(draw, "batch_size", "few"), draw_size(draw, "seq_len", "some"), sizes[1]]
    x = b.input("x", sizes, dtype_of(b))
    out = draw_size(draw, "out_features", "tile")
    return b.apply(Linear(b.context, x, out, draw.chance(0.7)))


@family("convolution", "convolution")
def convolution(b: Builder) -> Value:
    draw = b.draw
    rank = draw.choice([1, 2, 2, 2, 3])
    x = image(b, rank, "in_channels")
    kernel, stride, padding = window_of(b, rank)
    groups = draw.choice([1, 1, 1, 2, 4])
    size: int | tuple[int, ...] = kernel
    if rank > 1 and draw.chance(0.25):
        size = tuple(draw.choice([1, 3, 5]) if d else kernel for d in range(rank))
        padding = 0
    dilation = draw.choice([1, 1, 1, 2]) if x.sizes[-1].scaled > 8 else 1
    out = Size("out_channels", draw.choice([16, 32, 64, 128]), draw.choice([4, 8, 12]))
    op = Convolution(
        b.context,
        x,
        out,
        size,
        stride,
        padding,
        dilation,
        groups,
        draw.chance(0.5),
    )
    return b.apply(op)


@family("depthwise-convolution", "convolution")
def depthwise_convolution(b: Builder) -> Value:
    draw = b.draw
    channels = draw.choice([4, 8])
    sizes = image_sizes(b, 2, "in_channels")
    # Groups are a plain number of the module, so channels keep their count at every scale.
    sizes[1] = Size("in_channels", channels, channels)
    x = b.input("x", sizes)
    out = Size("out_channels", channels * 2, channels * 2) if draw.chance(0.3) else sizes[1]
    kernel, stride, padding = window_of(b, 2)
    kernel = max(kernel, 3)
    return b.apply(
        Convolution(b.context, x, out, kernel, stride, padding, 1, channels, draw.chance(0.5))
    )


@family("transposed-convolution", "convolution")
def transposed_convolution(b: Builder) -> Value:
    draw = b.draw
    rank = draw.choice([1, 2, 2, 3])
    x = image(b, rank, "in_channels")
    kernel = draw.choice([2, 3, 4, 5] if rank < 3 else [2, 3])
    stride = draw.choice([1, 2, 2, 3] if rank < 3 else [1, 2])
    padding = draw.integer(0, kernel // 2)
    extra = draw.integer(0, stride - 1) if draw.chance(0.3) else 0
    out = channel_counts(b, "out_channels")
    groups = draw.choice([1, 1, 1, 2])
    op = Convolution(
        b.context, x, out, kernel, stride, padding, 1, groups, draw.chance(0.5), True, extra
    )
    return b.apply(op)


@family("pooling", "pooling")
def pooling(b: Builder) -> Value:
    draw = b.draw
    rank = draw.choice([1, 2, 2, 3])
    x = image(b, rank)
    kernel = draw.choice([2, 3] if rank == 3 else [2, 3, 4])
    stride = draw.choice([1, 2, kernel])
    form = draw.choice(["max", "avg"])
    dilation = 2 if form == "max" and rank < 3 and draw.chance(0.2) else 1
    op = Pool(b.context, x, form, kernel, stride, draw.integer(0, kernel // 2), dilation)
    return b.apply(op)


@family("global-pooling", "pooling")
def global_pooling(b: Builder) -> Value:
    x = image(b, b.draw.choice([1, 2, 3]))
    return b.apply(GlobalPool(b.context, x, b.draw.choice(["avg", "max"]), b.draw.chance(0.5)))


@family("scan", "scan")
def scan(b: Builder) -> Value:
    x = matrix(b) if b.draw.chance(0.6) else sequence(b)
    # Products along long lines leave what floats can hold.
    forms = [f for f in FORMS if f != "cumprod"] if x.sizes[-1].full > 4096 else list(FORMS)
    form = b.draw.choice(forms)
    op = Scan(b.context, x, b.draw.integer(1, x.rank - 1), form)
    return b.apply(_maybe_dim_argument(b, op))


@family("mean-loss", "loss")
def mean_loss(b: Builder) -> Value:
    names = b.draw.choice([("predictions", "targets"), ("input", "target"), ("x", "y")])
    x = matrix(b, names[0])
    target = b.input(names[1], x.sizes)
    return b.apply(MeanLoss(b.context, x, target, b.draw.choice(sorted(PAIR_LOSSES))))


@family("row-loss", "loss")
def row_loss(b: Builder) -> Value:
    form = b.draw.choice(ROW_LOSSES)
    if form == "cross_entropy":
        logits = matrix(b, b.draw.choice(["logits", "predictions"]))
        target = b.input("targets", logits.sizes[:1], "int64", logits.sizes[1].name)
        return b.apply(RowLoss(b.context, [logits, target], form))
    names = ["anchor", "positive", "negative"] if form == "triplet" else ["x", "y"]
    first = matrix(b, names[0])
    rest = [b.input(name, first.sizes) for name in names[1:]]
    return b.apply(RowLoss(b.context, [first, *rest], form))


@family("transpose", "transpose")
def transpose(b: Builder) -> Value:
    x = sequence(b, dtype=dtype_of(b)) if b.draw.chance(0.6) else image(b, 2)
    orders: dict[int, list[tuple[int, ...]]] = {
        3: [(0, 2, 1), (0, 2, 1), (2, 0, 1), (1, 0, 2), (2, 1, 0)],
        4: [(0, 1, 3, 2), (0, 2, 3, 1), (0, 3, 1, 2), (0, 2, 1, 3)],
    }
    return b.apply(Permute(b.context, x, b.draw.choice(orders[x.rank])))


@family("concatenation", "transpose")
def concatenation(b: Builder) -> Value:
    draw = b.draw
    a = sequence(b, "a")
    dim = draw.integer(1, 2)
    sizes = list(a.sizes)
    sizes[dim] = draw_size(draw, "other_dim", "some" if dim == 1 else "tile")
    other = b.input("b", sizes)
    value = b.apply(Concat(b.context, a, other, dim))
    if draw.chance(0.4):
        value = b.apply(UnitOp(b.context, value, draw.choice(ACTIVATIONS)))
    return value


@family("rearrangement", "transpose")
def rearrangement(b: Builder) -> Value:
    draw = b.draw
    form = draw.choice(["flip", "roll", "pad", "pixel_shuffle", "upsample"])
    if form in ("pixel_shuffle", "upsample"):
        x = image(b, 2)
        if form == "upsample":
            return b.apply(Upsample(b.context, x, draw.choice([2, 3])))
        return b.apply(Rearrange(b.context, x, form, 2))
    return b.apply(Rearrange(b.context, matrix(b), form, draw.integer(1, 9)))


@family("embedding", "gather")
def embedding(b: Builder) -> Value:
    draw = b.draw
    index_sizes = [draw_size(draw, "batch_size", "few"), draw_size(draw, "seq_len", "tile")]
    vocabulary = draw_size(draw, "vocab_size", "line")
    index = b.input(
        draw.choice(["indices", "tokens", "ids"]), index_sizes, "int64", vocabulary.name
    )
    value = b.apply(Embedding(b.context, index, vocabulary, draw_size(draw, "embed_dim", "some")))
    if draw.chance(0.4):
        value = b.apply(UnitOp(b.context, value, draw.choice(("scale", "tanh", "gelu"))))
    return value


@family("gather", "gather")
def gather(b: Builder) -> Value:
    draw = b.draw
    x = matrix(b)
    if draw.chance(0.5):
        picked = draw_size(draw, "picked", "some")
        index = b.input("index", [x.sizes[0], picked], "int64", x.sizes[1].name)
        return b.apply(Gather(b.context, x, index, "gather"))
    index = b.input("index", [draw_size(draw, "picked", "tile")], "int64", x.sizes[0].name)
    return b.apply(Gather(b.context, x, index, "index_select"))


@family("gated-unit", "activation")
def gated_unit(b: Builder) -> Value:
    draw = b.draw
    hidden = draw_size(draw, "hidden", "tile")
    double = doubled(hidden)
    lead = [draw_size(draw, "batch_size", "few"), draw_size(draw, "seq_len", "some")]
    x = b.input("x", [*lead[: draw.integer(1, 2)], double])
    return b.apply(Gate(b.context, x, draw.choice(["glu", "swiglu", "geglu", "reglu"])))


@family("rotary", "attention")
def rotary(b: Builder) -> Value:
    draw = b.draw
    width = Size("head_dim", draw.choice([32, 64, 128]), draw.choice([10, 14, 22]))
    sizes = [draw_size(draw, "batch_size", "tiny"), draw_size(draw, "num_heads", "few")]
    x = b.input("x", [*sizes, draw_size(draw, "seq_len", "some", "tile"), width])
    return b.apply(Rotary(b.context, x))


@family("triangle", "elementwise")
def triangle(b: Builder) -> Value:
    draw = b.draw
    n, m = draw_size(draw, "rows", "tile"), draw_size(draw, "cols", "tile")
    x = b.input("x", [draw_size(draw, "batch_size", "few"), n, m])
    value = b.apply(Triangle(b.context, x, draw.chance(0.5)))
    return b.apply(UnitOp(b.context, value, draw.choice(("scale", "tanh", "square", "soft_cap"))))
