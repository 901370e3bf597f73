"""Request rule (foreign trade)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from solver.arguments import require
from solver.errors import InputError
from solver.rules.base import Hits, exceeds, percentage
from solver.rules.profiles import Profiles


@dataclass(frozen=True)
class Request:
    """A cell is sensitive if its largest contributor asked for protection and holds more than its share.

    ``shares`` gives for each request code the percentage of the total that must be exceeded, such as
    ``{"1": 70, "2": 60}``. Protection levels are those of (1,k)-dominance with that percentage.

    Raises
    ------
    InputError
        If there is no code or a percentage is not in (0, 100). When applied: if a contributor used a code
        that has no percentage.
    """

    shares: Mapping[str, float]

    def __post_init__(self) -> None:
        require(self.shares, Mapping, "shares", 'Give e.g. {"1": 70, "2": 60}.')
        if not self.shares:
            raise InputError("the request rule has no request code.", remedy='Give e.g. {"1": 70, "2": 60}.')
        for code, share in self.shares.items():
            if not code:
                raise InputError("an empty request code means that nobody asked.", remedy="Name the code.")
            percentage(f"share of request code {code!r}", share, 100)
        object.__setattr__(self, "shares", MappingProxyType(dict(self.shares)))

    def __hash__(self) -> int:
        return hash(frozenset(self.shares.items()))

    @property
    def name(self) -> str:
        return "request"

    @property
    def flag(self) -> str:
        return "R"

    @property
    def depth(self) -> int:
        return 1

    def apply(self, profiles: Profiles) -> Hits:
        codes, which = np.unique(profiles.request, return_inverse=True)
        unknown = [str(code) for code in codes if code and code not in self.shares]
        if unknown:
            raise InputError(
                f"request code {', '.join(map(repr, unknown))} has no share.",
                cell=str(int(np.argmax(np.isin(profiles.request, unknown)))),
                remedy=f"Add it to the request rule, which knows {', '.join(map(repr, self.shares))}.",
            )
        k = np.array([self.shares.get(str(code), np.inf) for code in codes])[which]
        asked = profiles.request != ""
        k = np.where(asked, k, 100.0)
        largest = profiles.largest(1)
        hit = profiles.occupied & asked & exceeds(100 * largest, k * profiles.mass)
        level = np.where(hit, np.maximum(100 / k * largest - profiles.mass, 0), 0.0)
        return Hits(hit, level, level, np.zeros(len(profiles)))
