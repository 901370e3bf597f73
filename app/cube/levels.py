"""How many formulas deep each cell of an answer is, and in which order formulas are worked out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.domain.lattice import ranges

Longs = NDArray[np.int64]


class CircleError(Exception):
    """A formula refers to itself, by way of others or not; ``row`` is a cell of it."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def levels(calculated: NDArray[np.bool_], rows: Longs, operands: Longs) -> Longs:
    """Formulas between each cell and the facts: int64[n], 0 for cells of the facts.

    Every reference is followed once, from the facts upwards, so that a chain of formulas takes no longer
    than as many that don't hang on one another.

    Parameters
    ----------
    calculated : bool[n]
        Cells that a formula gives.
    rows, operands : int64[k]
        Cell ``rows[i]`` refers to cell ``operands[i]``; rows are calculated.

    Raises
    ------
    CircleError
    """
    n = len(calculated)
    level = np.zeros(n, dtype=np.int64)
    waiting = np.bincount(rows, minlength=n)
    order = np.argsort(operands, kind="stable")
    users = rows[order]
    counts = np.bincount(operands, minlength=n)
    starts = np.cumsum(counts) - counts
    frontier = np.flatnonzero(~calculated)
    ready = np.flatnonzero(calculated & (waiting == 0))
    left, depth = int(calculated.sum()), 0
    while len(frontier) or len(ready):
        depth += 1
        met, times = np.unique(users[ranges(starts[frontier], counts[frontier])], return_counts=True)
        waiting[met] -= times
        frontier = np.concatenate([met[waiting[met] == 0], ready])
        ready = ready[:0]
        level[frontier] = depth
        left -= len(frontier)
    if left:
        raise CircleError(_on_circle(waiting > 0, rows, operands))
    return level


def _on_circle(waits: NDArray[np.bool_], rows: Longs, operands: Longs) -> int:
    """A cell of a circle: where one comes to that goes from a cell that waits to one that it waits for."""
    among = waits[operands] & waits[rows]
    following: dict[int, int] = dict(zip(rows[among].tolist(), operands[among].tolist(), strict=True))
    row, seen = next(iter(following)), set[int]()
    while row not in seen:
        seen.add(row)
        row = following[row]
    return row


def by_level(level: Longs, blocks: list[Longs]) -> list[tuple[int, Longs]]:
    """Blocks of cells in the order in which they are worked out: a block's number, and places within it.

    Parameters
    ----------
    level : int64[n]
    blocks : list of int64[...]
        The cells of each block, which may lie on several levels.
    """
    steps = sorted(
        (depth, number) for number, rows in enumerate(blocks) for depth in np.unique(level[rows]).tolist()
    )
    return [(number, np.flatnonzero(level[blocks[number]] == depth)) for depth, number in steps]
