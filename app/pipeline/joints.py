"""crawl: hierarchies that two others decide together (`app.domain.joint`)."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from app.domain.cube import Cube, IntArray
from app.domain.joint import Joint
from app.domain.lattice import Longs, Space
from app.pipeline.together import Together
from app.pipeline.twins import Twin, decided

#: How unlikely it must be that facts agree by chance, as the logarithm of its inverse.
SURE = 20.0


def find_joints(together: Together, cube: Cube, space: Space, twins: tuple[Twin, ...]) -> tuple[Joint, ...]:
    """Every hierarchy with an All that two others decide and neither of them alone.

    In few facts a hierarchy is decided by chance, which nobody knows of. So those facts count that share the
    leaves of both deciding hierarchies with another fact: were they free to differ in the third, it would be
    all but impossible that none does.
    """
    coarse = {twin.coarse for twin in twins}
    kept = [column for column in range(1, space.columns) if column not in coarse]
    joints = []
    for column in kept:
        others = [other for other in kept if other != column]
        if not cube.hierarchies[column - 1].has_all:
            continue
        for first, second in combinations(others, 2):
            met = together((first, second))
            if met is None or any(_decides(together, space, other, column) for other in (first, second)):
                continue
            if not together.may_decide((first, second, column)):
                continue
            found = together((first, second, column))
            if found is None or len(found[0]) > len(met[0]) or not _is_sure(*found):
                continue
            one, other, made = found[0].astype(np.int64).T
            joints.append(Joint(column, first, second, made, one, other))
    return tuple(joints)


def _decides(together: Together, space: Space, one: int, other: int) -> bool:
    met = together((min(one, other), max(one, other)))
    return met is not None and decided(space, one, met[0] if one < other else met[0][:, ::-1]) is not None


def _is_sure(met: IntArray, facts: Longs) -> bool:
    """Whether facts that share the first leaves would have differed in the last by now."""
    _, place = np.unique(met[:, -1], return_inverse=True)
    shares = np.bincount(place.reshape(-1), weights=facts) / facts.sum()
    return float((facts - 1).sum()) * -math.log(float((shares**2).sum())) >= SURE
