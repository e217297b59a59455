"""A picture of a selection: all tasks and the chosen ones on a map, and bars by family. SVG."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

import numpy as np

from kernelmosaic.curate.features import Vectors
from kernelmosaic.curate.task_set import Entry

_MAP = 460
_ROW = 16
# Points of the map; more would only make the file larger.
_MOST_POINTS = 5000


def _map(vectors: Vectors) -> Vectors:
    """The two directions in which tasks differ most, scaled to 0..1."""
    centred = vectors - vectors.mean(axis=0)
    _, _, axes = np.linalg.svd(centred[: min(len(centred), _MOST_POINTS)], full_matrices=False)
    points = centred @ axes[:2].T
    low, high = points.min(axis=0), points.max(axis=0)
    scaled: Vectors = (points - low) / np.maximum(high - low, 1e-9)
    return scaled


def selection_svg(entries: Sequence[Entry], vectors: Vectors, chosen: Sequence[int]) -> str:
    points = _map(vectors)
    step = max(1, len(points) // _MOST_POINTS)
    before = Counter(entry.family for entry in entries)
    after = Counter(entries[i].family for i in chosen)
    families = [name for name, _ in before.most_common()]
    height = max(_MAP + 60, 70 + _ROW * len(families))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="980" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="20" y="24" font-size="14">{len(chosen)} of {len(entries)} tasks</text>',
    ]

    def dot(i: int, radius: float, colour: str) -> str:
        x, y = 20 + points[i, 0] * _MAP, 40 + points[i, 1] * _MAP
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'

    parts += [dot(i, 1.5, "#c8cdd3") for i in range(0, len(points), step)]
    parts += [dot(i, 2.2, "#d1495b") for i in chosen]
    parts.append('<text x="520" y="24" font-size="14">by family: all (grey), chosen (red)</text>')
    most = max(before.values(), default=1)
    for row, family in enumerate(families):
        y = 40 + row * _ROW
        whole = 260 * before[family] / most
        part = 260 * after[family] / most
        parts.append(f'<text x="640" y="{y + 10}" text-anchor="end">{escape(family or "-")}</text>')
        parts.append(f'<rect x="650" y="{y}" width="{whole:.1f}" height="12" fill="#c8cdd3"/>')
        parts.append(f'<rect x="650" y="{y}" width="{part:.1f}" height="12" fill="#d1495b"/>')
        parts.append(
            f'<text x="{655 + whole:.1f}" y="{y + 10}">{after[family]}/{before[family]}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
