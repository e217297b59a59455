"""What a computation is about: sizes, tensors, constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from kernelmosaic.generate.draw import Draw


@dataclass(frozen=True)
class Size:
    """An extent: a module-level integer of the reference, or one that follows from others.

    `full` is what a GPU is given, `scaled` what the emulated device is given.
    """

    name: str
    full: int
    scaled: int
    # Where it is the result of arithmetic on other sizes ("2 * hidden"), and on which.
    expression: str = ""
    operands: tuple[Size, ...] = ()


@dataclass(frozen=True)
class Value:
    """A tensor of the graph. `dtype` is torch's name without `torch.`."""

    name: str
    sizes: tuple[Size, ...]
    dtype: str = "float32"

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def elements(self, full: bool = True) -> int:
        count = 1
        for size in self.sizes:
            count *= size.full if full else size.scaled
        return count


Number = Union[int, float, tuple[int, ...]]


@dataclass(frozen=True)
class Constant:
    """A number of an operator: an argument of the constructor, or written into the program."""

    name: str
    value: Number
    is_argument: bool = False

    @property
    def in_python(self) -> str:
        """How `forward` names it."""
        return f"self.{self.name}" if self.is_argument else repr(self.value)

    @property
    def in_cuda(self) -> str:
        """How a kernel names it."""
        return self.name if self.is_argument else cuda_number(float(self.value))  # type: ignore[arg-type]


def cuda_number(value: float) -> str:
    return repr(float(value)) + "f"


# Sizes of the emulated device: no multiples of usual tiles, different from one another.
_SCALED = {
    "tiny": (2, 3),
    "few": (3, 5, 6, 7),
    "some": (9, 11, 13, 14, 17, 19),
    "tile": (33, 35, 37, 41, 43, 45, 50, 53),
    "line": (130, 193, 261, 275, 300, 333, 517),
}
_FULL = {
    "tiny": (2, 4, 8, 16),
    "few": (8, 16, 32, 64),
    "some": (32, 48, 64, 96, 128),
    "tile": (256, 384, 512, 768, 1024, 1536, 2048),
    "line": (1024, 2048, 3000, 4096, 6144, 8192, 10000, 16384),
}


def draw_size(draw: Draw, name: str, kind: str, full_kind: str = "") -> Size:
    """A size of the given kind; now and then one that is no power of two."""
    full = draw.choice(_FULL[full_kind or kind])
    if draw.chance(0.2):
        full += draw.integer(1, 9)
    return Size(name, full, draw.choice(_SCALED[kind]))


def doubled(size: Size) -> Size:
    return Size(f"double_{size.name}", 2 * size.full, 2 * size.scaled, f"2 * {size.name}", (size,))
