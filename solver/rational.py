"""Exact arithmetic for the few statements that must not depend on rounding.

Any relation multipliers γ prove a limit: with d = ±e_p − Mᵀγ, the cell p moves at most
Σ_{d>0} d·(ub − a) + Σ_{d<0} |d|·(a − lb) over the hidden cells. Floats only propose γ.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from solver.instance import BoolArray, FloatArray, Instance

_SIMPLE = 5000


def rational_multipliers(gamma: FloatArray, factor: FloatArray) -> dict[int, Fraction]:
    """Multipliers as simple fractions, by relation; rounding noise becomes zero.

    ``factor`` (float64[m], powers of two) brings each relation's coefficients to a common size.
    """
    found = {}
    even = gamma / factor
    for relation in np.flatnonzero(np.abs(even) > 1e-9).tolist():
        number = Fraction(float(even[relation]))
        simple = number.limit_denominator(_SIMPLE)
        off = abs(simple - number) / (1 + abs(number))
        found[relation] = (simple if off <= Fraction(1, 10**7) else number) * Fraction(
            float(factor[relation])
        )
    return {relation: number for relation, number in found.items() if number}


def proven_limit(
    instance: Instance,
    moving: BoolArray,
    cell: int,
    direction: int,
    multipliers: Mapping[int, Fraction],
) -> Fraction | None:
    """The farthest the cell can move, as the multipliers prove; None if they prove no limit.

    Parameters
    ----------
    moving : bool[n]
        Cells whose value the attacker does not know.
    direction
        1 up, -1 down.
    """
    cost: dict[int, Fraction] = {cell: Fraction(direction)}
    for relation, number in multipliers.items():
        for k in range(int(instance.indptr[relation]), int(instance.indptr[relation + 1])):
            i = int(instance.indices[k])
            cost[i] = cost.get(i, Fraction(0)) - number * Fraction(repr(float(instance.coefs[k])))
    limit = Fraction(0)
    for i, d in cost.items():
        if not d or not moving[i]:
            continue
        bound = float(instance.upper_bound[i] if d > 0 else instance.lower_bound[i])
        if not np.isfinite(bound):
            return None
        limit += d * (Fraction(repr(bound)) - instance.exact(i))
    return limit
