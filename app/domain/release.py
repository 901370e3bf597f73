"""A release: what the public may know, frozen at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from app.domain.masked import CellStatus, FloatArray


@dataclass(frozen=True, eq=False)
class Release:
    """The cells of one publication as the public may see them.

    Holds no number of a hidden cell: a site that reads releases only can't show what it doesn't have.

    Attributes
    ----------
    id : str
        Address of the release; part of every cache key.
    state : str
        A `ReleaseState`.
    created : datetime
        With time zone (UTC).
    fingerprints : mapping of cube name to str
        The data that it was computed from.
    keys : tuple of str
        Cell keys, in the order of the rows.
    status : int8[n]
        `CellStatus` of each row.
    values : float64[n]
        Published value where shown, nan elsewhere.
    """

    id: str
    state: str
    created: datetime
    fingerprints: Mapping[str, str]
    keys: tuple[str, ...]
    status: NDArray[np.int8]
    values: FloatArray

    def __post_init__(self) -> None:
        if not (len(self.keys) == len(self.status) == len(self.values)):
            raise ValueError("release columns differ in length")
        if np.any(np.isfinite(self.values) & (self.status != CellStatus.SHOWN)):
            raise ValueError("a release must not carry the number of a hidden cell")
