"""Shapes that several families draw."""

from __future__ import annotations

from kernelmosaic.generate.graph import Builder
from kernelmosaic.generate.values import Size, Value, draw_size

_HALF = ("float16", "bfloat16")


def dtype_of(builder: Builder, half_share: float = 0.15) -> str:
    draw = builder.draw
    return draw.choice(_HALF) if draw.chance(half_share) else "float32"


def matrix(builder: Builder, name: str = "x", dtype: str = "float32") -> Value:
    """(rows, columns) under one of the usual pairs of names."""
    draw = builder.draw
    rows, columns = draw.choice(
        [
            ("batch_size", "dim"),
            ("batch_size", "features"),
            ("rows", "cols"),
            ("tokens", "hidden_size"),
            ("M", "N"),
        ]
    )
    sizes = [draw_size(draw, rows, "tile"), draw_size(draw, columns, "line")]
    return builder.input(name, sizes, dtype)


def sequence(builder: Builder, name: str = "x", dtype: str = "float32") -> Value:
    """(batch, positions, width)."""
    draw = builder.draw
    middle, last = draw.choice(
        [
            ("seq_len", "d_model"),
            ("seq_len", "hidden_size"),
            ("dim1", "dim2"),
            ("tokens", "embed_dim"),
        ]
    )
    sizes = [
        draw_size(draw, draw.choice(["batch_size", "batch"]), "few"),
        draw_size(draw, middle, "some", "tile"),
        draw_size(draw, last, "tile"),
    ]
    return builder.input(name, sizes, dtype)


def image_sizes(builder: Builder, rank: int, channels: str = "") -> list[Size]:
    """(batch, channels, spatial...) for `rank` spatial dimensions."""
    draw = builder.draw
    spatial: dict[int, list[tuple[str, ...]]] = {
        1: [("length",), ("seq_len",), ("width",)],
        2: [("height", "width"), ("h", "w"), ("height", "width")],
        3: [("depth", "height", "width"), ("d1", "d2", "d3")],
    }
    kinds = {1: ("tile", "line"), 2: ("some", "some"), 3: ("few", "few")}[rank]
    sizes = [
        draw_size(draw, draw.choice(["batch_size", "batch"]), "tiny", "few"),
        Size(
            channels or draw.choice(["in_channels", "channels", "num_features"]),
            draw.choice([8, 16, 32, 64, 96]),
            draw.choice([4, 8]),
        ),
    ]
    names = draw.choice(spatial[rank])
    for name in names:
        sizes.append(draw_size(draw, name, kinds[0], kinds[1]))
    return sizes


def image(builder: Builder, rank: int, channels: str = "") -> Value:
    return builder.input("x", image_sizes(builder, rank, channels))


def any_shape(builder: Builder, name: str = "x", dtype: str = "float32") -> Value:
    """One to four dimensions."""
    draw = builder.draw
    form = draw.integer(0, 9)
    if form < 5:
        return matrix(builder, name, dtype)
    if form < 7:
        return sequence(builder, name, dtype)
    if form < 8:
        size = Size(draw.choice(["n", "size", "length"]), 1 << draw.integer(20, 23), 10007)
        return builder.input(name, [size], dtype)
    return builder.input(name, image_sizes(builder, 2), dtype)


def channel_counts(builder: Builder, name: str) -> Size:
    draw = builder.draw
    return Size(name, draw.choice([16, 32, 64, 128]), draw.choice([6, 8, 12]))


def window_of(builder: Builder, rank: int) -> tuple[int, int, int]:
    """(kernel, stride, padding)."""
    draw = builder.draw
    kernel = draw.choice([1, 3, 3, 3, 5] if rank < 3 else [1, 3, 3])
    stride = draw.choice([1, 1, 1, 2])
    padding = draw.integer(0, kernel // 2)
    return kernel, stride, padding
