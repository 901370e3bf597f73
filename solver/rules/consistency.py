"""Consistency of given totals, counts and largest contributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from solver.errors import InputError
from solver.rules.profiles import Bools


@dataclass(frozen=True)
class Finding:
    """Something odd about one cell: its row, whether it is an error, and why."""

    row: int
    severity: Literal["error", "warning"]
    cause: str


def check_contributions(
    value: ArrayLike, count: ArrayLike, top: ArrayLike, *, negative_values: bool = False
) -> tuple[Finding, ...]:
    """Check cells that come with their largest contributions.

    Parameters
    ----------
    value, count
        f8[n] and i8[n]: cell value and number of contributors, unweighted.
    top
        f8[n, k], largest contributions as they were given.
    negative_values
        Whether contributions may be negative: then sums may fall below their parts.

    Returns
    -------
    Findings in the order of rows, at most one for each.
    """
    values = np.asarray(value, dtype=np.float64)
    counts = np.asarray(count, dtype=np.int64)
    tops = np.asarray(top, dtype=np.float64)
    n = len(values)
    if counts.shape != (n,) or tops.ndim != 2 or len(tops) != n:
        raise InputError(f"count has shape {counts.shape} and top {tops.shape} for {n} cells.")
    sizes = np.abs(tops) if negative_values else tops
    scale = 1e-9 * np.maximum(np.abs(values), 1)
    largest = tops[:, 0] if tops.shape[1] else np.zeros(n)
    given = (tops != 0).sum(axis=1)
    findings: dict[int, Finding] = {}

    def note(rows: Bools, severity: Literal["error", "warning"], cause: Sequence[str] | str) -> None:
        for row in np.flatnonzero(rows).tolist():
            text = cause if isinstance(cause, str) else cause[row]
            findings.setdefault(row, Finding(row, severity, text))

    rises: Bools = np.diff(sizes, axis=1) > scale[:, None]
    position = rises.argmax(axis=1) + 1 if rises.shape[1] else np.zeros(n, dtype=np.int64)
    note(np.any(rises, axis=1), "error", [f"top{p + 1} > top{p}" for p in position.tolist()])
    note(np.less(counts, 0), "error", "the number of contributors is negative")
    note(
        (counts == 1) & (given > 1),
        "error",
        [f"freq=1 but a second contributor ({g} contributions given)" for g in given.tolist()],
    )
    note(
        np.greater(given, counts),
        "error",
        [
            f"freq={c} but {g} contributions given"
            for c, g in zip(counts.tolist(), given.tolist(), strict=True)
        ],
    )
    if tops.shape[1]:
        note(
            (counts == 1) & (np.abs(largest - values) > scale),
            "error",
            [f"freq=1 but top1={t:g} != value {v:g}" for t, v in zip(largest, values, strict=True)],
        )
    if not negative_values:
        note(
            (values < 0) & (largest > 0),
            "error",
            "value negative but contributions positive; possible only if negative contributions are declared",
        )
        total = tops.sum(axis=1)
        names = "+".join(f"top{j + 1}" for j in range(tops.shape[1]))
        note(
            total > values + scale,
            "warning",
            [
                f"{names}={t:g} > value {v:g} (possible only with negative contributions)"
                for t, v in zip(total, values, strict=True)
            ],
        )
    return tuple(findings[row] for row in sorted(findings))
