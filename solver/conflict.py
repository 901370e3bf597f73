"""Which few requirements can't be met together?"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solver.errors import Conflict
from solver.explain import spelled
from solver.instance import BoolArray, Instance, IntArray

#: Questions that one search may ask; each is a program.
_QUESTIONS = 60


def fewest(items: IntArray, impossible: Callable[[IntArray], bool]) -> IntArray:
    """Some of the items (int64[k]) that are impossible together, and possible without any one of them.

    All of the items have to be impossible together. After a number of questions, the few found by then.

    References
    ----------
    U. Junker, QuickXplain: preferred explanations and relaxations for over-constrained problems, AAAI 2004.
    """
    asked = 0

    def search(kept: IntArray, rest: IntArray, grown: bool) -> IntArray:
        nonlocal asked
        if grown and asked < _QUESTIONS:
            asked += 1
            if impossible(kept):
                return rest[:0]
        if len(rest) <= 1 or asked >= _QUESTIONS:
            return rest
        first, second = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        late = search(np.concatenate([kept, first]), second, True)
        early = search(np.concatenate([kept, late]), first, len(late) > 0)
        return np.concatenate([early, late])

    return np.sort(search(items[:0], items, True))


def named(instance: Instance, cells: IntArray, relations: IntArray, moving: BoolArray) -> Conflict:
    """A conflict of cells (int64[k]) by relations (int64[r]) in the words of the instance."""
    parts = [instance.indices[instance.indptr[r] : instance.indptr[r + 1]] for r in relations.tolist()]
    tied = np.unique(np.concatenate([cells[:0], *parts]))
    return Conflict(
        cells=tuple(instance.name(cell) for cell in cells.tolist()),
        relations=tuple(relations.tolist()),
        spelled=tuple(spelled(instance, relation) for relation in relations.tolist()),
        kept=tuple(instance.name(cell) for cell in tied[~moving[tied]].tolist()),
    )
