"""Shapes of areas, projected and drawn: what a map needs of an office's geography."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Shapes:
    """Outlines of areas in a drawing of ``width`` by ``height``, y downwards.

    ``paths`` are SVG path data by the area's key. All of it is public.
    """

    width: float
    height: float
    paths: Mapping[str, str]

    def __post_init__(self) -> None:
        if not (self.width > 0 and self.height > 0):
            raise ValueError("a drawing without extent")
