"""Values of cells by MDX queries of tuples, for servers that answer MDX."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from app.domain.cellset import FloatArray

#: Tuples of one query.
CHUNK = 1_000
#: The values of a query's cells, of which there have to be so many; nan where a cell is empty.
Ask = Callable[[str, int], list[float]]


class TupleQueries:
    """Asks a cube for cells; see `app.cube.remote.Cells`.

    Parameters
    ----------
    cube : str
        Its name on the server.
    ask : callable
        Runs a query.
    """

    def __init__(self, cube: str, ask: Ask) -> None:
        self._cube = f"[{cube.replace(']', ']]')}]"
        self._ask = ask

    def values(self, tuples: Sequence[Sequence[str]]) -> FloatArray:
        return self._asked(tuples, "")

    def aggregate(self, tuples: Sequence[Sequence[str]], sets: Sequence[Sequence[str]]) -> FloatArray:
        slicer = " * ".join("{" + ", ".join(members) + "}" for members in sets)
        return self._asked(tuples, f" WHERE {slicer}")

    def _asked(self, tuples: Sequence[Sequence[str]], slicer: str) -> FloatArray:
        distinct = list(dict.fromkeys(map(tuple, tuples)))
        known: dict[tuple[str, ...], float] = {}
        for start in range(0, len(distinct), CHUNK):
            chunk = distinct[start : start + CHUNK]
            listed = ", ".join(f"({', '.join(item)})" for item in chunk)
            mdx = f"SELECT {{{listed}}} ON COLUMNS FROM {self._cube}{slicer}"
            known.update(zip(chunk, self._ask(mdx, len(chunk)), strict=True))
        return np.array([known[tuple(item)] for item in tuples], dtype=np.float64)
