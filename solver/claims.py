"""Insiders' targets, and how far movements take them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from solver.entries import row_of
from solver.instance import FloatArray, Instance, IntArray

# What a known cell moves in its relations below this is rounding, where levels aren't as small.
_STILL = 1e-9


class Claims:
    """Insiders' targets, and how far movements met so far take them.

    Parameters
    ----------
    instance
        Whose insiders these are.
    heft : float64[n]
        What moving each cell by one moves in its relations.
    """

    def __init__(self, instance: Instance, heft: FloatArray) -> None:
        who = [np.full(len(insider.targets), k) for k, insider in enumerate(instance.insiders)]
        empty = np.empty(0, dtype=np.int64)
        self.who = np.concatenate([empty, *who]).astype(np.int64)
        self.cell = np.concatenate([empty, *(insider.targets for insider in instance.insiders)])
        self.lpl, self.upl, self.spl = (
            np.concatenate([np.empty(0), *(getattr(insider, key) for insider in instance.insiders)])
            for key in ("lpl", "upl", "spl")
        )
        self.up, self.down = np.zeros(len(self.who)), np.zeros(len(self.who))
        levels = np.concatenate([self.lpl, self.upl, self.spl])
        self._still = _STILL * float(levels[levels > 0].min(initial=1.0))
        self._instance, self._heft = instance, heft

    @cached_property
    def _known(self) -> sparse.csr_array:
        """Which cells the insider of each claim knows, by their heft (claims × n)."""
        known = [self._instance.insiders[k].known for k in self.who]
        indptr = np.concatenate([[0], np.cumsum([len(cells) for cells in known])]).astype(np.int64)
        indices = np.concatenate([np.empty(0, dtype=np.int64), *known])
        shape = len(self.who), self._instance.n
        return sparse.csr_array((self._heft[indices], indices, indptr), shape=shape)

    def credit(self, whole: FloatArray) -> None:
        """A movement of all cells helps those whose known cells stay still in it."""
        if not len(self.who):
            return
        moved = np.where(self._known @ np.abs(whole) > self._still, 0.0, whole[self.cell])
        np.maximum(self.up, moved, out=self.up)
        np.maximum(self.down, -moved, out=self.down)

    def credit_all(self, moves: sparse.csr_array) -> None:
        """Each of many movements (csr, k × n), as :meth:`credit` does."""
        still = sparse.csr_array(self._known @ abs(moves).T)
        touched = _places(still)[still.data > self._still]
        mine = sparse.csr_array(sparse.csr_array(moves.T)[self.cell])
        claim = row_of(mine.indptr)
        moved = np.where(np.isin(_places(mine), touched), 0.0, mine.data)
        np.maximum.at(self.up, claim, moved)
        np.maximum.at(self.down, claim, -moved)

    def free(self, k: int, side: int) -> None:
        """Nothing limits a claim on that side."""
        (self.up if side == 1 else self.down)[k] = np.inf

    def met(self, k: int) -> bool:
        """Are all levels of a claim reached?"""
        near = 1 - 1e-9
        wide = self.up[k] + self.down[k] >= self.spl[k] * near
        return bool(self.up[k] >= self.upl[k] * near and self.down[k] >= self.lpl[k] * near and wide)


def _places(matrix: sparse.csr_array) -> IntArray:
    """A number for the place of each entry."""
    return np.asarray(row_of(matrix.indptr) * matrix.shape[1] + matrix.indices, dtype=np.int64)
