"""The sole door from raw to public."""

from __future__ import annotations

import numpy as np

from app.domain.masked import CellStatus, Layout, MaskedCellSet
from app.domain.release import Release


def mask(layout: Layout, release: Release | None) -> MaskedCellSet:
    """What the public sees of a layout under a release.

    Every number comes from the release, so that data which changed since can't mix in. Without a live
    release nothing is shown; a cell that the release doesn't know is hidden, and so is one that it
    calls shown without having its number.
    """
    n = len(layout.cell)
    status = np.full(n, CellStatus.CONFIDENTIAL, dtype=np.int8)
    values = np.full(n, np.nan)
    if release is not None:
        known = np.flatnonzero((layout.cell >= 0) & (layout.cell < len(release.keys)))
        rows = layout.cell[known]
        shown = (release.status[rows] == CellStatus.SHOWN) & np.isfinite(release.values[rows])
        status[known[shown]] = CellStatus.SHOWN
        status[known[release.status[rows] == CellStatus.EMPTY]] = CellStatus.EMPTY
        values[known[shown]] = release.values[rows[shown]]
    return MaskedCellSet(
        release_id=release.id if release is not None else "",
        axes=layout.axes,
        slicer=layout.slicer,
        status=status,
        values=values,
        style=layout.style,
        styles=layout.styles,
        notes={},
    )
