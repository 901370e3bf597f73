"""assess: profiles of contributors as the rules take them, and the rules of measures that protect others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.cube.port import Profiles as CubeProfiles
from app.domain.cube import Cube, IntArray, Measure
from app.domain.publication import MeasureProtection
from app.pipeline.define_rules import REQUESTED, rule_of
from solver.rules import Profiles, Request, Rule, Zero, assess

#: Protection of an associated cell where no rule states it, in per cent of its value.
ASSOCIATED_PERCENT = 10.0
MIN_TOP = 3


def associated_percent(protection: MeasureProtection, above: MeasureProtection) -> float:
    """Protection of a measure's cells for the sake of the measure ``above``, in per cent of their size."""
    stated = [
        item.parameters["p"]
        for item in (*protection.rules, *above.rules)
        if item.name == "threshold" and "p" in item.parameters
    ]
    return stated[0] if stated else ASSOCIATED_PERCENT


def protectors_hit(
    cube: Cube,
    by_name: Mapping[str, MeasureProtection],
    name: str,
    coords: IntArray,
    profiles: Callable[[IntArray, Sequence[Rule]], CubeProfiles],
) -> NDArray[np.bool_]:
    """Where the rules of measure ``name``, or of one that protects it, find the same places sensitive.

    Parameters
    ----------
    by_name
        The cube's protections by measure.
    coords : int32[n, 1+H]
        Of any measure.
    profiles
        Profiles of such cells, deep enough for the rules.
    """
    numbers = {measure.name: number for number, measure in enumerate(cube.measures)}
    hit = np.zeros(len(coords), dtype=np.bool_)
    while name:
        measure = cube.measures[numbers[name]]
        rules = [rule_of(item) for item in by_name[name].rules]
        twin = coords.copy()
        twin[:, 0] = numbers[name]
        found = profiles(twin, rules)
        plain = [rule for rule in rules if not isinstance(rule, Request | Zero)]
        hit |= assess(solver_profiles(measure, found), plain).sensitive
        asked = [rule for rule in rules if isinstance(rule, Request)]
        hit |= assess(requested_profiles(measure, found), asked).sensitive
        name = by_name[name].associated_with or ""
    return hit


def solver_profiles(measure: Measure, found: CubeProfiles) -> Profiles:
    """Profiles as the rules take them."""
    return Profiles(
        value=found.value,
        count=found.count,
        top=np.abs(found.top),
        kind="frequency" if measure.is_frequency else "magnitude",
        weighted_count=found.weighted_count,
        mass=found.mass,
        negative_values=not measure.nonnegative,
    )


def requested_profiles(measure: Measure, found: CubeProfiles) -> Profiles:
    """The same with the largest contribution of those that asked in front."""
    requested = np.abs(found.requested)
    return Profiles(
        value=found.value,
        count=found.count,
        top=requested[:, None],
        kind="frequency" if measure.is_frequency else "magnitude",
        request=np.where(requested > 0, REQUESTED, ""),
        mass=found.mass,
        negative_values=not measure.nonnegative,
    )
