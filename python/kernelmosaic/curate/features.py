"""Tasks as vectors: what they compute, at which sizes and dtypes, in which words.

Each of four blocks (operators and their neighbours, sizes, dtypes with family and level, words
of the description) is hashed into its share of the vector and has its share of the length, so
that the dot product of two vectors is a similarity from 0 to 1.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from kernelmosaic.curate.programs import read_program
from kernelmosaic.curate.task_set import Entry

Vectors = npt.NDArray[np.float32]

# Block -> (places in the vector, share of the squared length).
BLOCKS = {"operators": (160, 0.55), "sizes": (32, 0.15), "kind": (32, 0.1), "words": (32, 0.2)}
WIDTH = sum(places for places, _ in BLOCKS.values())


def _operators(entry: Entry) -> list[str]:
    program = read_program(entry.reference)
    if program is None:
        return []
    names = list(program.operators)
    return names + [f"{a}>{b}" for a, b in zip(["^", *names], [*names, "$"])]


def _sizes(entry: Entry) -> list[str]:
    program = read_program(entry.reference)
    if program is None:
        return []
    # Half powers of two: 384 and 512 differ, 512 and 520 do not.
    return [f"s{round(2 * math.log2(n))}" for n in program.integers if n > 0]


def _words(entry: Entry) -> list[str]:
    return re.findall(r"[a-z]{4,}", entry.description.lower())


def _hashed(words: Iterable[str], places: int) -> Vectors:
    vector = np.zeros(places, dtype=np.float32)
    for word in words:
        vector[zlib.crc32(word.encode()) % places] += 1.0
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector


def features(entries: Sequence[Entry]) -> Vectors:
    """(tasks, WIDTH), rows of length at most 1."""
    rows = np.zeros((len(entries), WIDTH), dtype=np.float32)
    for row, entry in zip(rows, entries):
        parts = {
            "operators": _operators(entry),
            "sizes": _sizes(entry),
            "kind": [f"f{entry.family}", f"l{entry.level}", *entry.dtypes],
            "words": _words(entry),
        }
        start = 0
        for name, (places, share) in BLOCKS.items():
            row[start : start + places] = _hashed(parts[name], places) * math.sqrt(share)
            start += places
    return rows
