"""The sole door from raw to public."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.domain.masked import CellStatus, FloatArray, Layout, MaskedCellSet
from app.domain.release import Release


def mask(layout: Layout, release: Release | None) -> MaskedCellSet:
    """What the public sees of a layout under a release.

    Every number comes from the release, so that data which changed since can't mix in. Without a live
    release nothing is shown; a cell that the release doesn't know is not released, and one that it calls
    shown without having its number is hidden as confidential.
    """
    status, values = released(layout.cell, release)
    return MaskedCellSet(
        release_id=release.id if release is not None else "",
        axes=layout.axes,
        slicer=layout.slicer,
        status=status,
        values=values,
        style=layout.style,
        styles=layout.styles,
        by_figures=layout.by_figures,
        cell=layout.cell,
    )


def released(rows: NDArray[np.int64], release: Release | None) -> tuple[NDArray[np.int8], FloatArray]:
    """Status and value of rows of a release's cells; -1 is a cell that it doesn't know."""
    n = len(rows)
    status = np.full(n, CellStatus.UNRELEASED, dtype=np.int8)
    values = np.full(n, np.nan)
    if release is not None:
        known = np.flatnonzero((rows >= 0) & (rows < len(release.keys)))
        met = rows[known]
        status[known] = CellStatus.CONFIDENTIAL
        shown = (release.status[met] == CellStatus.SHOWN) & np.isfinite(release.values[met])
        status[known[shown]] = CellStatus.SHOWN
        status[known[release.status[met] == CellStatus.EMPTY]] = CellStatus.EMPTY
        values[known[shown]] = release.values[met[shown]]
    return status, values
