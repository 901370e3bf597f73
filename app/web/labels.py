"""Where a name fits in an outlined area: the widest free band of its shape, found line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

#: Units of the drawing: height of a line of a name, of a number on small screens, and width of a letter.
LINE = 18.0
NUMBER = 29.0
_LETTER = 8.3
#: Units between the lines that a shape is looked through in.
_STEP = 4.0
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
Band = tuple[float, float, float]


@dataclass(frozen=True)
class Label:
    """``lines`` of a name with their middle at ``x`` and ``y``; none where a number stands instead.

    ``spot`` is the middle of the number on a small screen.
    """

    lines: tuple[str, ...]
    x: float
    y: float
    spot: tuple[float, float]


def label_of(name: str, path: str) -> Label:
    """Where an area's name stands in its outline (SVG path data in differences)."""
    _, x, y = spot = _widest(path, NUMBER)
    for lines in _lines(name):
        width, across, down = _widest(path, len(lines) * LINE)
        if max(map(len, lines)) * _LETTER <= width:
            return Label(lines, across, down, spot[1:])
    return Label((), x, y, (x, y))


def _lines(name: str) -> Iterator[tuple[str, ...]]:
    """A name in one line, and in two that are as equal as its words allow."""
    yield (name,)
    words = name.split()
    halves = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
    if halves:
        yield min(halves, key=lambda half: max(map(len, half)))


@lru_cache(maxsize=4096)
def _widest(path: str, height: float) -> Band:
    """Width and middle of the widest band of a height in the shape; of the widest line if none fits."""
    edges = np.concatenate([np.hstack([ring, np.roll(ring, -1, axis=0)]) for ring in _rings(path)])
    low, high = float(edges[:, 1].min()), float(edges[:, 1].max())
    # Off the corners, which have round numbers.
    heights = np.arange(low + 0.013, max(high, low + 0.02), _STEP)
    rows = [_inside(edges, float(at)) for at in heights]
    reach = int(np.ceil(height / 2 / _STEP))
    best = (0.0, float(edges[:, 0].mean()), (low + high) / 2)
    for n, row in enumerate(rows):
        near = rows[max(n - reach, 0) : n + reach + 1]
        whole = len(near) == 2 * reach + 1
        for left, right in row:
            if whole:
                left, right = _common(left, right, near)
            width = right - left if whole else (right - left) / 100
            if width > best[0]:
                best = (width, (left + right) / 2, float(heights[n]))
    return best


def _rings(path: str) -> list[NDArray[np.float64]]:
    """The corners of each ring, shape (n, 2)."""
    found = []
    for ring in filter(None, path.split("M")):
        numbers = np.array([float(text) for text in _NUMBER.findall(ring)]).reshape(-1, 2)
        found.append(np.cumsum(numbers, axis=0))
    return found or [np.zeros((1, 2))]


def _inside(edges: NDArray[np.float64], at: float) -> list[tuple[float, float]]:
    """From where to where a horizontal line runs in the shape."""
    x1, y1, x2, y2 = edges.T
    crossing = (y1 <= at) != (y2 <= at)
    x1, y1, x2, y2 = (side[crossing] for side in (x1, y1, x2, y2))
    places = np.sort(x1 + (at - y1) / (y2 - y1) * (x2 - x1)).tolist()
    return list(zip(places[::2], places[1::2], strict=False))


def _common(left: float, right: float, rows: list[list[tuple[float, float]]]) -> tuple[float, float]:
    """What a stretch has in common with the stretches above and below that overlap it most."""
    for row in rows:
        shared = [(max(left, a), min(right, b)) for a, b in row]
        left, right = max(shared, key=lambda ends: ends[1] - ends[0], default=(left, left))
    return left, max(left, right)
