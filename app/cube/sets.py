"""Sets without their repetitions, and what is in one set and in another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.cube.values import SetValue


def distinct(value: SetValue) -> SetValue:
    """The set without repetitions, first occurrences kept in order."""
    if len(value) < 2:
        return value
    _, first = np.unique(value.rows, axis=0, return_index=True)
    return value.taking(value.rows[np.sort(first)])


def keep(value: SetValue, other: SetValue, inside: bool) -> SetValue:
    """Tuples of a set that are (or aren't) in another one.

    Where it is open what will be in the other one, what may be kept is.
    """
    pending = value.pending or other.pending
    if not inside and other.pending:
        return replace(value, pending=True)
    if not len(value) or not len(other):
        return replace(value, pending=pending) if not inside else value.taking(value.rows[:0])
    both = np.concatenate([other.rows, value.rows])
    inverse = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    found = np.isin(inverse[len(other) :], inverse[: len(other)])
    return replace(value, rows=value.rows[found == inside], pending=pending)
