"""What readers know about measures that don't add up: a whole is at least any part of it.

Distinct counts, maxima and minima have no equations, but bounds: the whole's distinct count is at least
each part's and at most their sum; the whole's maximum is at least each part's, and is one of them; the
whole's median lies between its parts'. Each bound becomes a relation with a slack of its own, a cell that
nobody sees and that is never negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.domain.completeness import joined
from app.domain.cube import IntArray
from app.domain.equation import Equations, Floats
from app.domain.lattice import Space
from app.domain.lines import covers


@dataclass(frozen=True, eq=False)
class Bounds:
    """Relations over the rows of a cell table and, behind them, as many slacks as ``slack`` has values."""

    equations: Equations
    slack: Floats

    def and_others(self, others: Bounds, n: int) -> Bounds:
        """Both over the same table of n rows, the others' slacks behind these."""
        more = others.equations
        moved = np.where(more.indices >= n, more.indices + len(self.slack), more.indices)
        shifted = Equations(more.indptr, moved, more.coefs, more.rhs)
        return Bounds(joined(self.equations, shifted), np.concatenate([self.slack, others.slack]))


def bounds_of(space: Space, coords: IntArray, values: Floats, kinds: tuple[str, ...]) -> Bounds:
    """Bounds between the cells of measures that don't add up.

    Parameters
    ----------
    coords : int32[n, columns]
    values : float64[n]
        nan where a cell has no facts.
    kinds
        Aggregator of each measure; only ``distinct-count``, ``max``, ``median`` and ``min`` have bounds.
    """
    lines: list[tuple[list[int], list[float]]] = []
    slacks: list[float] = []
    n, empty = len(coords), np.isnan(values)

    def at_most(parts: list[int], whole: list[int]) -> None:
        """Σ parts ≤ Σ whole."""
        gap = float(values[whole].sum() - values[parts].sum())
        lines.append(([*parts, n + len(slacks), *whole], [1.0] * (len(parts) + 1) + [-1.0] * len(whole)))
        slacks.append(max(gap, 0.0))

    for number, kind in enumerate(kinds):
        if kind not in ("distinct-count", "max", "median", "min"):
            continue
        mine = coords[:, 0] == number
        for column in range(1, space.columns):
            mine &= coords[:, column] < space.own[column]
        for h in range(len(space.trees)):
            for whole, below, left in covers(space, coords, np.flatnonzero(mine), h):
                parts = [part for part in below if not empty[part]]
                if empty[whole] or not parts:
                    continue
                if kind == "median":
                    # Some part's is as high as the whole's and some as low: told if but one can be.
                    high = [part for part in parts if values[part] >= values[whole]]
                    low = [part for part in parts if values[part] <= values[whole]]
                    if len(high) == 1 and not left:
                        at_most([whole], high)
                    if len(low) == 1 and not left:
                        at_most(low, [whole])
                    continue
                for part in parts:
                    at_most(*(([whole], [part]) if kind == "min" else ([part], [whole])))
                if kind == "distinct-count":
                    if values[parts].sum() >= values[whole]:
                        at_most([whole], parts)
                elif not left:
                    same = [part for part in parts if values[part] == values[whole]]
                    if len(same) == 1:
                        lines.append(([same[0], whole], [1.0, -1.0]))
    sizes = np.array([len(cells) for cells, _ in lines], dtype=np.int64)
    return Bounds(
        Equations(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.array([cell for cells, _ in lines for cell in cells], dtype=np.int64),
            np.array([coef for _, coefs in lines for coef in coefs], dtype=np.float64),
            np.zeros(len(lines)),
        ),
        np.array(slacks, dtype=np.float64),
    )
