"""Sensitivity rules: which cells are primary, why, and how far they must be protected.

One rule is one file; :func:`assess` combines them. A cell that several rules hit keeps every reason and
takes the largest of the protection levels.

Source: the table of rules in the design (threshold, (n,k)-dominance, p%, request, manual), and the handed
cases of practice for strictness, weights and zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solver.discreet import Discreet
from solver.errors import InputError
from solver.rules.base import Hits, Rule
from solver.rules.consistency import Finding, check_contributions
from solver.rules.derived import hide_derived
from solver.rules.dominance import Dominance
from solver.rules.manual import Manual
from solver.rules.micro import profiles_of
from solver.rules.p_percent import PPercent
from solver.rules.profiles import Bools, Floats, Profiles
from solver.rules.request import Request
from solver.rules.threshold import Threshold
from solver.rules.zero import Zero

__all__ = [
    "Assessment",
    "Dominance",
    "Finding",
    "Hits",
    "Manual",
    "PPercent",
    "Profiles",
    "Request",
    "Rule",
    "Threshold",
    "Zero",
    "assess",
    "check_contributions",
    "hide_derived",
    "profiles_of",
]

FLAG_ORDER = "ABCFRMZ"
SECONDARY_FLAG = "D"
VALID_FLAG = "V"


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Discreet):
    """The verdict of the rules over n cells.

    Attributes
    ----------
    sensitive
        bool[n], primaries.
    reasons
        Rule name to bool[n], in the order of the rules.
    lpl, upl, spl
        f8[n], protection levels, 0 where the cell is not sensitive.
    rule_flags
        Rule name to its one-letter flag.
    """

    sensitive: Bools
    reasons: Mapping[str, Bools]
    lpl: Floats
    upl: Floats
    spl: Floats
    rule_flags: Mapping[str, str]

    def reasons_of(self, cell: int) -> tuple[str, ...]:
        """Names of the rules that hit the cell, in the order of the rules."""
        return tuple(name for name, hit in self.reasons.items() if hit[cell])

    def flags(self, secondary: Bools | None = None) -> NDArray[np.str_]:
        """One letter for each cell, str[n]: the first of A, B, C, F, R, M, Z whose rule hits, D for
        secondary suppressions, V for cells that are shown."""
        flags = np.full(len(self.sensitive), VALID_FLAG, dtype="<U1")
        if secondary is not None:
            flags[secondary] = SECONDARY_FLAG
        for letter in reversed(FLAG_ORDER):
            for name, hit in self.reasons.items():
                if self.rule_flags[name] == letter:
                    flags[hit] = letter
        return flags


def assess(profiles: Profiles, rules: Sequence[Rule]) -> Assessment:
    """Apply the rules to the cells.

    Without negative values a lower protection level never exceeds the cell value: every reader knows that
    the value isn't below zero.

    Parameters
    ----------
    profiles
        The n cells.
    rules
        Any of ``Threshold``, ``Dominance``, ``PPercent``, ``Request``, ``Manual``, ``Zero``; none is allowed.

    Returns
    -------
    Assessment

    Raises
    ------
    InputError
        If two rules have the same name or a rule can't be applied to these profiles.
    """
    n = len(profiles)
    reasons: dict[str, Bools] = {}
    flags: dict[str, str] = {}
    lpl, upl, spl = np.zeros(n), np.zeros(n), np.zeros(n)
    for rule in rules:
        if rule.name in reasons:
            raise InputError(f"rule {rule.name} is given twice.", remedy="Keep one of the two.")
        hits = rule.apply(profiles)
        reasons[rule.name] = hits.hit
        flags[rule.name] = rule.flag
        lpl, upl, spl = np.maximum(lpl, hits.lpl), np.maximum(upl, hits.upl), np.maximum(spl, hits.spl)
    if not profiles.negative_values:
        lpl = np.minimum(lpl, np.maximum(profiles.value, 0))
    sensitive = np.logical_or.reduce([np.zeros(n, dtype=np.bool_), *reasons.values()])
    return Assessment(sensitive, reasons, lpl, upl, spl, flags)
