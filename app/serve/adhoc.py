"""Queries that no sheet asks: MDX over the cells of a release, and over nothing else.

Sets are made from the cube's structure, which is public. Every number is a released one: a cell that the
release hides or doesn't know is hidden, the latter as not released, a formula over such a cell too, and sets
that are chosen or ordered by values see a hidden cell as one without a value.
"""

from __future__ import annotations

import difflib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np

from app.cube.answer import Answerer
from app.cube.context import Limits
from app.cube.evaluate import Evaluator
from app.cube.keys import RowIndex
from app.cube.port import Group
from app.cube.properties import axis_properties
from app.cube.source import Bools, Readings
from app.domain.catalogue import Catalogue
from app.domain.cell_key import Numbering, cell_keys
from app.domain.cellset import CalculatedMember
from app.domain.cube import Cube, IntArray
from app.domain.errors import UserError
from app.domain.lattice import Longs, Space
from app.domain.masked import CellStatus, MaskedCellSet
from app.domain.masking import released
from app.domain.patience import Patience
from app.domain.places import Places
from app.domain.release import Release
from app.domain.styles import styles_at
from app.mdx import Query, brief, parse
from app.serve.port import Asked

#: What anybody may ask at once.
LIMITS = Limits(
    tuples=50_000,
    cells=100_000,
    operands=1_000_000,
    definitions=1_000,
    steps=300_000,
    letters=1_000_000,
    words=250,
)
#: Characters of a query.
MAX_TEXT = 200_000
#: Cubes of releases that are kept ready.
_KEPT = 4


class ReleaseCube:
    """One cube of a release: its structure, and its released cells behind the evaluation of MDX."""

    def __init__(self, release: Release, catalogue: Catalogue, name: str) -> None:
        self.cube = catalogue.cubes[name]
        self.release_id = release.id
        calculated, sets = catalogue.calculated.get(name, ()), catalogue.named_sets.get(name, ())
        cells = _Cells(self.cube, release, catalogue.places.get(name))
        self._answerer = Answerer(self.cube, calculated, sets, cells, LIMITS)

    def answer(self, query: Query, patience: Patience) -> Asked:
        """The masked answer to a query.

        Raises
        ------
        UserError
            With the position in its text.
        OverdueError, AbandonedError
        """
        answered = self._answerer.answer(query, patience=patience)
        solved, cells = answered.solved, answered.cells
        values, hidden = solved.values[cells], solved.hidden[cells]
        shown = np.isfinite(values) & ~hidden
        status = np.where(shown, CellStatus.SHOWN, CellStatus.EMPTY).astype(np.int8)
        status[hidden] = CellStatus.UNRELEASED
        status[solved.secret[cells]] = CellStatus.CONFIDENTIAL
        texts = {place: solved.texts[row] for place, row in enumerate(cells.tolist()) if row in solved.texts}
        style, styles = styles_at(self.cube, solved.coords[cells], answered.calculated)
        masked = MaskedCellSet(
            release_id=self.release_id,
            axes=answered.axes,
            slicer=answered.slicer,
            status=status,
            # Adding zero takes the sign off a negative one.
            values=np.where(shown, values, np.nan) + 0.0,
            style=style,
            styles=styles,
            texts=texts,
            by_figures=answered.by_figures,
        )
        properties = tuple(
            axis_properties(self.cube, asked, axis.positions, query.source)
            for asked, axis in zip(query.axes, answered.axes, strict=True)
        )
        cell_properties = tuple(dict.fromkeys(name.parts[-1].text.upper() for name in query.cell_properties))
        return Asked(self.cube.name, masked, answered.hierarchies, properties, cell_properties)


class Adhoc:
    """See `app.serve.port.Asker`; keeps the cubes that were asked last, some of older releases perhaps."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cubes: OrderedDict[tuple[str, str], ReleaseCube] = OrderedDict()

    def ask(self, text: str, release: Release, catalogue: Catalogue, patience: Patience) -> Asked:
        if len(text) > MAX_TEXT:
            raise UserError(f"The query has {len(text):,} characters; the limit is {MAX_TEXT:,}.")
        query = parse(text)
        patience.check()
        return self._cube(query, release, catalogue).answer(query, patience)

    def _cube(self, query: Query, release: Release, catalogue: Catalogue) -> ReleaseCube:
        names = {name.lower(): name for name in catalogue.cubes}
        asked = query.cube_name.lower()
        if asked not in names:
            near = ", ".join(names[item] for item in difflib.get_close_matches(asked, list(names), 3, 0.0))
            cause = f"There is no cube {brief(query.cube_name)}."
            raise UserError(
                query.source.mistake(query.cube_asked.at, cause, f"There is {near}." if near else "")
            )
        key = release.id, names[asked]
        with self._lock:
            if key not in self._cubes:
                self._cubes[key] = ReleaseCube(release, catalogue, key[1])
                while len(self._cubes) > _KEPT:
                    self._cubes.popitem(last=False)
            self._cubes.move_to_end(key)
            return self._cubes[key]


@dataclass(frozen=True, eq=False)
class _Formulas:
    """The calculated members of a query, by the numbers that it gives them.

    ``adding`` and ``finished`` (a bool[...] for each column) say of each number whether it is no formula that
    doesn't only add, and whether its key is known.
    """

    members: list[CalculatedMember]
    numbering: Numbering
    adding: list[Bools]
    finished: list[Bools]

    @classmethod
    def of(cls, cube: Cube, members: list[CalculatedMember]) -> _Formulas:
        numbering = Numbering(Space.of(cube), members)
        adding = [[True] * size for size in numbering.space.own.tolist()]
        finished = [[True] * size for size in numbering.space.own.tolist()]
        for member in members:
            adding[member.column].append(member.terms is not None)
            finished[member.column].append(bool(member.key))
        return cls(members, numbering, [np.array(item) for item in adding], [np.array(i) for i in finished])

    @staticmethod
    def everywhere(known: list[Bools], coords: IntArray) -> Bools:
        """Rows of coordinates of which all numbers are known to be so."""
        result = np.ones(len(coords), dtype=np.bool_)
        for column, flags in enumerate(known):
            result &= flags[coords[:, column]]
        return result


class _Cells:
    """The released cells of one cube, as `app.cube.source.CellSource`."""

    hides = True
    knows_formulas = True

    def __init__(self, cube: Cube, release: Release, places: Places | None) -> None:
        self._cube = cube
        self._release = release
        self._own = np.array([len(cube.measures), *(tree.size for tree in cube.hierarchies)])
        none = np.zeros(0, dtype=np.int64)
        known = places or Places(np.zeros((0, len(self._own)), dtype=np.int32), none)
        self._row = known.row
        self._index = RowIndex(known.coords, self._own.tolist())
        self._by_key = dict(zip(known.keys, known.key_row.tolist(), strict=True))

    def holds(self, coords: IntArray, ev: Evaluator) -> Bools:
        """Cells of formulas that the release has, where their key says all about them.

        Which of two formulas that meet in a cell comes first isn't in the key, unless both only add. What a
        sub-select makes of one that doesn't is worked out here.
        """
        calculated: Bools = coords >= self._own
        several = calculated.sum(axis=1)
        known = self._formulas(ev)
        adding = known.everywhere(known.adding, coords)
        may: Bools = (several > 0) & (adding | ((several == 1) & (not ev.within)))
        rows = np.flatnonzero(may)
        may[rows] = self._rows(coords[rows], ev) >= 0
        return may

    def read(self, coords: IntArray, ev: Evaluator) -> Readings:
        status, values = released(self._rows(coords, ev), self._release)
        unknown = status == CellStatus.UNRELEASED
        return Readings(values, unknown | (status == CellStatus.CONFIDENTIAL), unknown)

    def recompute(self, measure: int, coords: IntArray, groups: Sequence[Group]) -> Readings:
        """Nothing: what doesn't add up can't be had from other cells."""
        every = np.ones(len(coords), dtype=np.bool_)
        return Readings(np.full(len(coords), np.nan), every, every)

    def decimals(self, measure: int) -> int | None:
        own = self._cube.measures[measure]
        return own.decimals if own.additive else None

    def _rows(self, coords: IntArray, ev: Evaluator) -> Longs:
        """Row of each cell in the release, -1 where it isn't there."""
        rows = np.full(len(coords), -1, dtype=np.int64)
        if (coords >= self._own).any():
            # A key is known once the query's definitions are all there.
            known = self._formulas(ev)
            usable = known.everywhere(known.finished, coords)
            coords = np.where(usable[:, None], known.numbering(coords), coords)
            formulas = np.flatnonzero(usable & (coords >= self._own).any(axis=1))
            keys = cell_keys(self._cube, known.numbering.space, coords[formulas])
            rows[formulas] = [self._by_key.get(key, -1) for key in keys]
        own = np.flatnonzero((coords < self._own).all(axis=1))
        place = self._index.find(coords[own])
        rows[own[place >= 0]] = self._row[place[place >= 0]]
        return rows

    def _formulas(self, ev: Evaluator) -> _Formulas:
        """What is known of the query's calculated members, made again when one came or changed."""
        members = [ev.definitions[place].member for place in sorted(ev.definitions)]
        kept: _Formulas | None = ev.kept.get(_Formulas)
        if kept is None or kept.members != members:
            kept = ev.kept[_Formulas] = _Formulas.of(self._cube, members)
        return kept
