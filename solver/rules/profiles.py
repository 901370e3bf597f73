"""Cell profiles: what the sensitivity rules need to know about each cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solver.discreet import Discreet
from solver.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Kind = Literal["frequency", "magnitude"]

TIE = 1e-12
"""Relative width of a tie: sums that differ by less are equal, so that rounding never breaks one."""


def _floats(name: str, values: ArrayLike) -> Floats:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds a value that is not a finite number.", remedy="Give finite numbers.")
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Profiles(Discreet):
    """Contributor profiles of n cells.

    Parameters
    ----------
    value
        f8[n], the cell value as published.
    count
        i8[n], contributors: holdings where holdings are known, each counted once and unweighted.
    top
        f8[n, k], the largest holding-level contributions as absolute values, descending, zero padded.
        With integer sampling weights a contribution is repeated as often as its weight says. With
        fractional ones the j-th entry is the integral from j - 1 to j of the descending step function in
        which each contribution is as wide as its weight, which is the same thing for integer weights.
    kind
        ``"frequency"`` when the value counts units, ``"magnitude"`` when it adds up their amounts.
    weighted_count
        f8[n], contributors counted with their sampling weights; equals ``count`` when left out.
    mass
        f8[n], the weighted sum of absolute contributions, against which shares are measured; equals
        ``abs(value)`` when left out, which is right whenever all contributions have one sign.
    request
        str[n], the request code of the largest contributor, empty where it did not ask.
    negative_values
        Whether contributions may be negative. Otherwise protection levels stop at zero.

    Raises
    ------
    InputError
        If shapes disagree, a number is not finite, a count is negative, or ``top`` is not descending.
    """

    value: Floats
    count: Ints
    top: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    kind: Kind = "magnitude"
    weighted_count: Floats = field(default_factory=lambda: np.zeros(0))
    mass: Floats = field(default_factory=lambda: np.zeros(0))
    request: NDArray[np.str_] = field(default_factory=lambda: np.zeros(0, dtype=np.str_))
    negative_values: bool = False

    def __post_init__(self) -> None:
        value = _floats("value", self.value)
        count = np.ascontiguousarray(self.count, dtype=np.int64)
        n = len(value)
        top = _floats("top", self.top)
        if top.size == 0:
            top = np.zeros((n, top.shape[1] if top.ndim == 2 else 0))
        weighted = _floats("weighted_count", self.weighted_count)
        mass = _floats("mass", self.mass)
        request = np.asarray(self.request, dtype=np.str_)
        weighted = count.astype(np.float64) if weighted.size == 0 else weighted
        mass = np.abs(value) if mass.size == 0 else mass
        request = np.full(n, "", dtype=np.str_) if request.size == 0 else request
        shapes = {"count": count, "weighted_count": weighted, "mass": mass, "request": request}
        for name, array in shapes.items():
            if array.shape != (n,):
                raise InputError(f"{name} has shape {array.shape}, but there are {n} cells.")
        if top.ndim != 2 or len(top) != n:
            raise InputError(f"top has shape {top.shape}, but there are {n} cells.")
        if self.kind not in ("frequency", "magnitude"):
            raise InputError(f"kind is {self.kind!r}.", remedy='Say "frequency" or "magnitude".')
        if (count < 0).any():
            raise InputError("a contributor count is negative.", cell=str(int(np.argmax(count < 0))))
        falling = (np.diff(top, axis=1) <= TIE * np.abs(top[:, :1])).all(axis=1) & (top >= 0).all(axis=1)
        if not falling.all():
            raise InputError(
                "the largest contributions are not in descending order.",
                cell=str(int(np.argmin(falling))),
                remedy="Sort them by absolute value, largest first, and give absolute values.",
            )
        for name, array in {"value": value, "top": top, **shapes}.items():
            frozen = array.view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)

    def __len__(self) -> int:
        return len(self.value)

    @property
    def occupied(self) -> Bools:
        """bool[n]: cells with at least one contributor; the others are empty and never sensitive."""
        return self.count > 0

    def largest(self, n: int) -> Floats:
        """Sum of the n largest contributions of each cell, f8[cells].

        Raises
        ------
        InputError
            If fewer than n contributions were kept for each cell while some cell may have more.
        """
        depth = self.top.shape[1]
        if depth < n and (np.maximum(self.count, self.weighted_count) > depth).any():
            raise InputError(
                f"a rule needs the {n} largest contributions, the profiles hold {depth}.",
                remedy=f"Collect at least {n} contributions for each cell.",
            )
        total: Floats = self.top[:, :n].sum(axis=1)
        return total
