"""Measures that are part of another in every record: of the income declared, what is salaries.

Who sees the part knows that the whole is no less, and who sees the whole that the part is no more. The office
says so (``of_which``), or the facts do.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np

from app.domain.cube import Cube
from app.domain.equation import Floats
from app.domain.errors import UserError
from app.domain.known import FactRows

#: Records in which a part is the whole, and in which it is less, that make chance out of the question.
ENOUGH = 20
#: Records by which parts are looked for; all are asked whether they are.
SAMPLE = 20_000
ROUNDING = 1e-9


def with_parts(cube: Cube, facts: FactRows | None) -> Cube:
    """The cube whose measures name all that they are part of in every record, by themselves or by others.

    A measure that is never above another, but never the same either, isn't taken for a part of it: a tax is
    no part of the income that it is raised on.

    Raises
    ------
    UserError
        If a record has more of a part than of its whole.
    """
    number = {measure.name: place for place, measure in enumerate(cube.measures)}
    pairs = {(place, number[whole]) for place, part in enumerate(cube.measures) for whole in part.of_which}
    if facts is not None:
        amounts = [np.asarray(column, dtype=np.float64) for column in facts.amounts]
        wrong = [(a, b) for a, b in sorted(pairs) if not _is_within(amounts[a], amounts[b])]
        if wrong:
            part, whole = (cube.measures[place].name for place in wrong[0])
            raise UserError(f"Measure {part} isn't part of {whole}: a record has more of it.")
        adding = [place for place, measure in enumerate(cube.measures) if measure.additive]
        step = max(facts.size // SAMPLE, 1)
        sample = {place: amounts[place][::step] for place in adding}
        pairs |= {
            (a, b)
            for a, b in permutations(adding, 2)
            if _is_within(sample[a], sample[b]) and _is_part(amounts[a], amounts[b])
        }
    for middle in range(len(cube.measures)):
        above = {b for a, b in pairs if a == middle}
        pairs |= {(a, b) for a, c in pairs if c == middle for b in above if a != b}
    measures = tuple(
        replace(measure, of_which=tuple(cube.measures[b].name for a, b in sorted(pairs) if a == place))
        for place, measure in enumerate(cube.measures)
    )
    return cube if measures == cube.measures else replace(cube, measures=measures)


def _is_within(part: Floats, whole: Floats) -> bool:
    return bool((part <= whole + ROUNDING * np.abs(whole)).all())


def _is_part(part: Floats, whole: Floats) -> bool:
    """Whether a measure looks like part of another: sometimes less, sometimes all of it, never more."""
    same, less = int(((part == whole) & (whole != 0)).sum()), int((part < whole).sum())
    return min(same, less) >= ENOUGH and _is_within(part, whole)
