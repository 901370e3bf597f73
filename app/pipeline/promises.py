"""What the office promises its respondents: how uncertain each sensitive cell must stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.db.store import Store
from app.domain.crawled import Crawl
from app.domain.errors import UserError
from app.domain.lattice import Space
from app.domain.primary import PrimaryResult
from app.pipeline.build import Problems
from app.pipeline.running import RESULTS
from app.pipeline.suppress import Suppression, levels_kept


@dataclass(frozen=True)
class PromisedInterval:
    """A sensitive cell and the interval that every reader must hold possible.

    ``members`` are unique names, one for each hierarchy of the cube in its order; a group is the names of
    its members joined by `` + ``.
    """

    measure: str
    members: tuple[str, ...]
    lower: float
    upper: float
    width: float


def read_promises(store: Store) -> Mapping[str, tuple[PromisedInterval, ...]]:
    """Promises of the last run for the sensitive cells, by cube.

    Raises
    ------
    UserError
        If no run has come as far as a pattern.
    """
    values = []
    for name in ("crawl", "assess", "build", "suppress"):
        stored = store.step(name)
        if stored is None:
            raise UserError("The publication hasn't been run yet. Run it first.")
        values.append(RESULTS.decode(stored.body))
    crawl: Crawl = values[0]
    primaries: PrimaryResult = values[1]
    problems: Problems = values[2]
    suppression: Suppression = values[3]
    promises = {}
    for number, (cells, verdicts) in enumerate(zip(crawl.cubes, primaries.cubes, strict=True)):
        value = np.nan_to_num(cells.values)
        lpl, upl, spl = levels_kept(number, verdicts, problems, suppression)
        space = cells.space
        promises[cells.cube.name] = tuple(
            PromisedInterval(
                measure=space.name(0, int(cells.coords[row, 0])),
                members=tuple(
                    _name(space, column, int(cells.coords[row, column])) for column in range(1, space.columns)
                ),
                lower=float(value[row] - lpl[row]),
                upper=float(value[row] + upl[row]),
                width=float(spl[row]),
            )
            for row in np.flatnonzero(verdicts.sensitive & cells.has_contributors & ~verdicts.known)
        )
    return promises


def _name(space: Space, column: int, number: int) -> str:
    if number < space.own[column]:
        return space.name(column, number)
    terms = space.extra(column, number).terms or ()
    return " + ".join(space.name(column, member) for member, _ in terms)
