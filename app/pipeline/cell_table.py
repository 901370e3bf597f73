"""crawl: collects the rows of many cellsets into the cell table of one cube."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer, Group
from app.domain.cell_key import Numbering, cell_keys
from app.domain.cellset import CellSet
from app.domain.crawled import CubeCells, Derived
from app.domain.cube import IntArray
from app.domain.distinct import counted_once
from app.domain.emptiness import Emptiness, known_empty, left_out, nearest_names
from app.domain.equation import Closure, Entries, close_cells
from app.domain.errors import InternalError, OperatorError
from app.domain.identity import identity_sums
from app.domain.joint import joint_sums
from app.domain.known import ShownCells
from app.domain.lattice import Bools, Extra, Longs, Space, ranges, unique_rows
from app.domain.nearly import Told
from app.domain.place_relations import place_relations
from app.domain.places import Places
from app.domain.translation import earlier_rows
from app.pipeline.alike import find_alike
from app.pipeline.bands import find_bands
from app.pipeline.identities import counts_alike, find_identities
from app.pipeline.joints import find_joints
from app.pipeline.lags import find_lags
from app.pipeline.nearly import closed_nearly, find_nearly
from app.pipeline.parts import with_parts
from app.pipeline.rates import find_rates
from app.pipeline.slices import find_slices
from app.pipeline.sums import find_sums
from app.pipeline.telling import Telling
from app.pipeline.together import Together
from app.pipeline.twins import find_overlaps, find_twins, recorded

SAME = 1e-9

#: Implied cells that are asked for at once.
CHUNK = 5_000
#: Cells that may have been left out for having no facts that an engine without facts is asked for.
MOST_ASKED = 50_000


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows of one cellset: its cells and those that its axes hang on first, then operands."""

    coords: IntArray
    values: NDArray[np.float64]
    n_cells: int


class CellTable:
    """Cells of one cube as queries bring them in; `finish` closes them into `CubeCells`."""

    def __init__(
        self, server: CubeServer, past: Sequence[ShownCells] = (), zeros_are_shown: bool = True
    ) -> None:
        self.server = server
        self._zeros_are_shown = zeros_are_shown
        self._past = past
        self.cube = server.discover()
        self.space = Space.of(self.cube)
        self.fingerprint = server.fingerprint()
        self._together = Together(server, self.cube)
        self._twins = find_twins(self._together, self.cube, self.space)
        self._blocks: list[_Block] = []
        self._sets: list[CellSet] = []
        self._shown: list[IntArray] = []
        self._decimals: list[NDArray[np.int8]] = []
        self._left_out: list[IntArray] = []
        self._n_cells = 0

    def add(self, cellset: CellSet, decimals: NDArray[np.int8], complete: bool = True) -> int:
        """Take a cellset in; returns the number that its first cell has among all cells so far.

        Cells that its axes hang on count as cells: readers see which are larger. A cellset that isn't
        ``complete`` may leave out members without facts, and so tells that they have none.
        """
        n = cellset.n_cells + cellset.n_read
        coords = Numbering(self.space, cellset.calculated)(cellset.coords)
        self._shown.append(coords[:n])
        if not complete:
            self._left_out.append(left_out(self.space, coords[:n]))
        coords = recorded(self.space, self._twins, coords)
        self._blocks.append(_Block(coords, cellset.values, n))
        self._sets.append(cellset)
        self._decimals.append(decimals)
        self._n_cells += n
        return self._n_cells - n

    def finish(self) -> tuple[CubeCells, Longs]:
        """The closed cell table, and the row of each cell that `add` numbered.

        Raises
        ------
        OperatorError
            If a cell had two values: the data changed under the crawl.
        """
        coords = np.concatenate(
            [block.coords[: block.n_cells] for block in self._blocks]
            + [block.coords[block.n_cells :] for block in self._blocks]
        )
        values = np.concatenate(
            [block.values[: block.n_cells] for block in self._blocks]
            + [block.values[block.n_cells :] for block in self._blocks]
        )
        distinct, row = unique_rows(self.space, coords)
        known = np.full(len(distinct), np.nan)
        known[row[::-1]] = values[::-1]
        self._check_same(values, known[row])
        n_published = int(row[: self._n_cells].max(initial=-1)) + 1
        decimals = np.zeros(n_published, dtype=np.int8)
        np.maximum.at(decimals, row[: self._n_cells], np.concatenate(self._decimals))

        given, derived, formulas = self._formulas(row, distinct, known, n_published)
        order = np.concatenate([np.arange(n_published), given])
        measured = _Measured(self.server, self.space, distinct, known)
        overlaps = find_overlaps(self._together, self.cube, self.space, self._twins)
        joints = find_joints(self._together, self.cube, self.space, self._twins)
        tied = (*overlaps, *find_slices(self.cube, self.server.facts(), self._twins, joints))
        remembered = earlier_rows(self.space, self.cube, self._past)
        base = unique_rows(self.space, np.concatenate([distinct[order], remembered]))[0]
        identities = find_identities(self.cube, self.server.facts())
        alike = counts_alike(self.cube, self.space, measured.values)
        empty = self._empty(distinct, measured)
        has_all = [tree.has_all for tree in self.cube.hierarchies]

        def further(cells: IntArray, rows: Longs) -> list[Entries]:
            return [
                *joint_sums(self.space, joints, cells, rows),
                *identity_sums(self.space, identities, cells, rows),
                *alike(cells, rows),
                *nearest_names(self.space, empty, cells, rows),
            ]

        def close(given: IntArray) -> Closure:
            closure = close_cells(self.space, given, formulas, measured.occupied, tied, further)
            more = place_relations(self.space, closure, empty, has_all)
            if more is None:
                return closure
            # What is told by then is a combination of cells that were there: it tells no more of its kind.
            known = more if formulas is None else Entries.join([formulas, more], self.space.columns)
            return close_cells(self.space, given, known, measured.occupied, tied, further)

        facts = self.server.facts()
        told: list[Told] = [
            *find_nearly(self.cube, facts),
            *find_sums(self.cube, facts, self._twins),
            *find_rates(self.cube, facts, self._twins),
            *find_alike(self._together, self.cube, facts, self._twins, overlaps),
            *find_lags(self.cube, facts, self._twins),
        ]
        closure, nearly = closed_nearly(self.space, told, facts, measured.occupied, base, close)
        closure = counted_once(self.space, closure, measured.values(closure.coords))
        place = np.full(len(distinct), -1, dtype=np.int64)
        place[order] = np.arange(len(order))
        coords, extras = self._pruned(closure.coords)
        if self.server.fingerprint() != self.fingerprint:
            raise OperatorError(f"The data of cube {self.cube.name} changed during the crawl. Run it again.")
        values = measured.values(closure.coords)
        cells = CubeCells(
            cube=with_parts(self.cube, self.server.facts()),
            extras=extras,
            coords=coords,
            n_published=n_published,
            n_given=len(order),
            values=values,
            decimals=decimals,
            equations=closure.equations,
            derived=Derived(derived.cell, derived.indptr, place[derived.indices]),
            fingerprint=self.fingerprint,
            places=self._places(row[: self._n_cells]),
            bands=find_bands(self.cube, self.server.facts(), self._twins, (coords, values)),
            nearly=nearly,
        )
        return cells, row[: self._n_cells]

    # ------------------------------------------------------------------ parts

    def _empty(self, coords: IntArray, measured: _Measured) -> tuple[Emptiness, ...]:
        """Where readers know that there is nothing, by cells that are shown or left out."""
        values = measured.values(coords)
        own = (coords < self.space.own).all(axis=1)
        promised = [measure.nonnegative and self._zeros_are_shown for measure in self.cube.measures]
        none = own & np.isnan(values)
        zero = own & (values == 0) & np.array([*promised, False])[np.minimum(coords[:, 0], len(promised))]
        facts = self.server.facts()
        absent = unique_rows(self.space, np.concatenate([coords[none], *self._left_out]))[0]
        if facts is None and self._left_out:
            absent = absent[:MOST_ASKED]
            absent = absent[~measured.occupied(absent)]
        absent[:, 0] = -1
        boxes = np.concatenate([absent, coords[none | zero]])
        return known_empty(
            self.space,
            [tree.has_all for tree in self.cube.hierarchies],
            boxes,
            lambda columns: None if facts is None else (self._together(columns) or (None,))[0],
        )

    def _places(self, row: Longs) -> Places:
        """Where the sheets show each published row: twins of hierarchies are recorded elsewhere."""
        shown, place = unique_rows(self.space, np.concatenate(self._shown))
        rows = np.zeros(len(shown), dtype=np.int64)
        rows[place] = row
        own = (shown < self.space.own).all(axis=1)
        keys = cell_keys(self.cube, self.space, shown[~own])
        return Places(shown[own], rows[own], keys, rows[~own])

    def _check_same(self, values: NDArray[np.float64], first: NDArray[np.float64]) -> None:
        differ = np.isnan(values) != np.isnan(first)
        differ |= np.abs(values - first) > SAME * (1 + np.abs(first))
        if differ.any():
            raise OperatorError(f"The data of cube {self.cube.name} changed during the crawl. Run it again.")

    def _formulas(
        self, row: Longs, distinct: IntArray, values: NDArray[np.float64], n_published: int
    ) -> tuple[Longs, Derived, Entries | None]:
        """Operands that only ratios show, the derived cells, and linear formulas told row by row.

        A weighted sum of small whole numbers is both: it is linear, and hidden with its operands.

        Derived cells name rows of ``distinct``.
        """
        relation: list[Longs] = []
        operand: list[Longs] = []
        coef: list[NDArray[np.float64]] = []
        rhs: list[NDArray[np.float64]] = []
        pairs: list[tuple[Longs, Longs]] = []
        cells, extra = 0, self._n_cells
        terms_tell = self._terms_tell(distinct)
        nonlinear = np.zeros(len(distinct), dtype=np.bool_)
        tell = Telling(self.cube, distinct, values)
        for block, cellset in zip(self._blocks, self._sets, strict=True):
            n_more = len(block.coords) - block.n_cells
            numbers = np.concatenate([row[cells : cells + block.n_cells], row[extra : extra + n_more]])
            cells, extra = cells + block.n_cells, extra + n_more
            linear, ratios = cellset.linear, cellset.nonlinear
            asked = ~terms_tell[numbers[linear.cell]]
            base = sum(len(part) for part in rhs)
            local = np.cumsum(asked) - 1
            inside = np.repeat(asked, np.diff(linear.indptr))
            relation += [
                base + np.arange(int(asked.sum())),
                base + np.repeat(local, np.diff(linear.indptr))[inside],
            ]
            operand += [numbers[linear.cell][asked], numbers[linear.indices][inside]]
            coef += [np.full(int(asked.sum()), -1.0), linear.coefs[inside]]
            rhs.append(-linear.constant[asked])
            owner = np.repeat(numbers[ratios.cell], np.diff(ratios.indptr))
            nonlinear[numbers[ratios.cell]] = True
            pairs.append((owner, numbers[ratios.indices]))
            telling, told = tell(linear, numbers[linear.indices])
            nonlinear[numbers[linear.cell][telling]] = True
            owner = np.repeat(numbers[linear.cell], np.diff(linear.indptr))
            pairs.append((owner[told], numbers[linear.indices][told]))
        none = np.zeros(0, dtype=np.int64)
        owner = np.concatenate([none, *(pair[0] for pair in pairs)])
        needed = np.concatenate([none, *(pair[1] for pair in pairs)])
        derived = _flatten(owner, needed, nonlinear, n_published)
        given = np.unique(derived.indices[derived.indices >= n_published])
        if not sum(len(part) for part in rhs):
            return given, derived, None
        rows = np.concatenate(operand)
        entries = Entries(
            relation=np.concatenate(relation),
            coords=distinct[rows],
            coef=np.concatenate(coef),
            optional=rows >= n_published,
            rhs=np.concatenate(rhs),
            completes=np.zeros(sum(len(part) for part in rhs), dtype=np.bool_),
        )
        return given, derived, entries

    def _terms_tell(self, coords: IntArray) -> Bools:
        """Rows whose extra members are all sums over their own column: the closure expands them itself."""
        told = self.space.adds_up(coords)
        for column in range(self.space.columns):
            told &= self.space.flags(column, lambda extra: extra.terms is not None)[coords[:, column]]
        return told

    def _pruned(self, coords: IntArray) -> tuple[IntArray, tuple[Extra, ...]]:
        """Coordinates renumbered over the extras that occur, and those extras."""
        coords = coords.copy()
        kept: list[Extra] = []
        for column, own in enumerate(self.space.own.tolist()):
            number = coords[:, column]
            used = np.unique(number[number >= own])
            kept.extend(self.space.extra(column, int(item)) for item in used)
            coords[:, column] = np.where(number < own, number, own + np.searchsorted(used, number))
        return coords, tuple(kept)


def _flatten(owner: Longs, needed: Longs, nonlinear: Bools, n_published: int) -> Derived:
    """Published derived cells over cells that are not derived themselves."""
    n = len(nonlinear)
    pairs = np.unique(owner * n + needed)
    while True:
        owner, needed = pairs // n, pairs % n
        nested = nonlinear[needed]
        if not nested.any():
            break
        order = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[order], np.arange(n + 1))
        inner = needed[nested]
        counts = starts[inner + 1] - starts[inner]
        if (inner == owner[nested]).any():
            raise InternalError("a derived cell depends on itself")
        expanded = np.repeat(owner[nested], counts) * n + needed[order[ranges(starts[inner], counts)]]
        pairs = np.unique(np.concatenate([pairs[~nested], expanded]))
    shown = owner < n_published
    owner, needed = owner[shown], needed[shown]
    cell = np.flatnonzero(nonlinear[:n_published])
    indptr = np.searchsorted(owner, np.append(cell, n)).astype(np.int64)
    return Derived(cell, indptr, needed)


class _Measured:
    """Values and occupancy: from the cellsets where they told, from the cube otherwise."""

    def __init__(
        self, server: CubeServer, space: Space, coords: IntArray, values: NDArray[np.float64]
    ) -> None:
        self._server = server
        self._space = space
        self._known = dict(zip(map(bytes, coords), values.tolist(), strict=True))

    def occupied(self, coords: IntArray) -> Bools:
        return ~np.isnan(self.values(coords))

    def values(self, coords: IntArray) -> NDArray[np.float64]:
        keys = list(map(bytes, np.ascontiguousarray(coords, dtype=np.int32)))
        unknown = [place for place, key in enumerate(keys) if key not in self._known]
        for start in range(0, len(unknown), CHUNK):
            chunk = unknown[start : start + CHUNK]
            found = self._ask(coords[chunk]).tolist()
            self._known.update(zip((keys[place] for place in chunk), found, strict=True))
        return np.array([self._known[key] for key in keys], dtype=np.float64)

    def _ask(self, coords: IntArray) -> NDArray[np.float64]:
        """Values from the cube."""
        apart = (coords >= self._space.own).any(axis=1) & ~self._space.adds_up(coords)
        found = np.zeros(len(coords))
        if apart.any():
            profiles = self._server.measure(*as_groups(self._space, coords[apart]))
            found[apart] = np.where(profiles.count > 0, profiles.value, np.nan)
        if not apart.all():
            found[~apart] = self._added(coords[~apart])
        return found

    def _added(self, coords: IntArray) -> NDArray[np.float64]:
        """Values of cells that add up: a group's is the sum over its members that have facts."""
        owner = np.arange(len(coords))
        for column, own in enumerate(self._space.own.tolist()):
            extra = coords[:, column] >= own
            if extra.any():
                numbers = coords[extra, column].astype(np.int64)
                if not all(self._space.extra(column, int(n)).is_group for n in np.unique(numbers)):
                    raise InternalError("a calculated cell was taken for one with contributors")
                place, member, _ = self._space.terms_of(column, numbers)
                spread = coords[extra][place]
                spread[:, column] = member
                coords = np.concatenate([coords[~extra], spread])
                owner = np.concatenate([owner[~extra], owner[extra][place]])
        found = self._server.values(coords)
        full = ~np.isnan(found)
        n = int(owner.max()) + 1
        total = np.bincount(owner[full], weights=found[full], minlength=n)
        return np.where(np.bincount(owner[full], minlength=n) > 0, total, np.nan)


def as_groups(space: Space, coords: IntArray) -> tuple[IntArray, Sequence[Group]]:
    """Coordinates for `CubeServer.measure`, which numbers its own groups.

    Raises
    ------
    InternalError
        If a row has a member that isn't a plain group: it has no contributors.
    """
    coords = coords.copy()
    groups: list[Group] = []
    for column, own in enumerate(space.own.tolist()):
        number = coords[:, column]
        used = np.unique(number[number >= own])
        extras = [space.extra(column, int(item)) for item in used]
        if not all(extra.is_group for extra in extras):
            raise InternalError("a calculated cell was taken for one with contributors")
        groups.extend(
            Group(column, np.array([member for member, _ in extra.terms or ()], dtype=np.int32))
            for extra in extras
        )
        coords[:, column] = np.where(number < own, number, own + np.searchsorted(used, number))
    return coords, groups
