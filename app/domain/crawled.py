"""What the crawl found: every cell that readers can see or work out, and how they hang together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.domain.bands import Band
from app.domain.cell_key import cell_keys
from app.domain.cube import Cube, IntArray
from app.domain.equation import Equations
from app.domain.lattice import Bools, Extra, Longs, Space
from app.domain.masked import AxisMember, Layout
from app.domain.nearly import Nearly
from app.domain.places import Places

#: Address of a layout: sheet id, query id, one chosen member's unique name for each parameter.
Address = tuple[str, str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Derived:
    """Cells of non-linear formulas and the cells that each is worked out from, in CSR over the table."""

    cell: Longs
    indptr: Longs
    indices: Longs

    def __post_init__(self) -> None:
        if len(self.indptr) != len(self.cell) + 1:
            raise ValueError("derived cells differ in length")

    def __len__(self) -> int:
        return len(self.cell)


@dataclass(frozen=True, eq=False)
class CubeCells:
    """The cell table of one cube: published cells first, then those that only ratios show, then implied.

    Attributes
    ----------
    cube
        As discovered.
    extras
        Members that aren't the cube's own, by column in the order of their numbers.
    coords : int32[n, 1+H]
    n_published, n_given
        Rows below ``n_published`` stand on a sheet; those up to ``n_given`` are operands of a non-linear
        formula that no sheet shows themselves; the others are implied by relations.
    values : float64[n]
        nan where the cell has no facts.
    decimals : int8[n_published]
        Digits that are published.
    equations
        Relations over the rows.
    derived
        Non-linear cells, all among the published ones.
    fingerprint
        The data that this was found in.
    places
        Where the published rows stand on the sheets.
    bands
        Hierarchies whose members divide a measure by size.
    nearly
        Relations over the rows that hold but for so much.
    """

    cube: Cube
    extras: tuple[Extra, ...]
    coords: IntArray
    n_published: int
    n_given: int
    values: NDArray[np.float64]
    decimals: NDArray[np.int8]
    equations: Equations
    derived: Derived
    fingerprint: str
    places: Places
    bands: tuple[Band, ...] = ()
    nearly: tuple[Nearly, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.n_published <= self.n_given <= len(self.coords) == len(self.values):
            raise ValueError("cell table columns differ in length")
        if len(self.decimals) != self.n_published:
            raise ValueError("published cells without their decimals")
        if len(self.equations.indices) and self.equations.indices.max() >= len(self.coords):
            raise ValueError("an equation names a cell that isn't there")

    def __len__(self) -> int:
        return len(self.coords)

    @cached_property
    def space(self) -> Space:
        """Columns of the coordinates."""
        space = Space.of(self.cube)
        for extra in self.extras:
            space.number(extra.column, extra.terms, extra.key, extra.is_formula)
        return space

    @cached_property
    def is_derived(self) -> Bools:
        """bool[n]: cells of non-linear formulas, which take no part in relations."""
        mark = np.zeros(len(self), dtype=np.bool_)
        mark[self.derived.cell] = True
        return mark

    @cached_property
    def has_contributors(self) -> Bools:
        """bool[n]: cells with contributors of their own: an own measure at own members and groups."""
        return self.space.has_contributors(self.coords)

    def keys(self, rows: Longs) -> tuple[str, ...]:
        """Cell keys: cube, measure, and the members that aren't All, by unique name or normal form."""
        return cell_keys(self.cube, self.space, self.coords[rows])


@dataclass(frozen=True, eq=False)
class Pending:
    """What the axes of a layout hang on, which are made when it is known what is confidential.

    Attributes
    ----------
    coords : int32[k, 1+H]
        The cells, as the cube's answer numbers them.
    cell : int64[k]
        Their rows, as in `Layout.cell`.
    ranks : bool[n_cells]
        Cells of the layout that tell a rank among values that are shown.
    """

    coords: IntArray
    cell: Longs
    ranks: Bools


@dataclass(frozen=True, eq=False)
class Crawl:
    """Every published cell, where it appears, every equation and derived formula.

    ``Layout.cell`` counts published rows over all cubes in order: a release's row numbers. The layouts of
    ``pending`` hold every position that may come to be in them, in no order.
    """

    cubes: tuple[CubeCells, ...]
    layouts: Mapping[Address, Layout]
    choices: Mapping[str, tuple[tuple[AxisMember, ...], ...]]
    cube_of: Mapping[tuple[str, str], str]
    pending: Mapping[Address, Pending]

    @property
    def n_published(self) -> int:
        return sum(cells.n_published for cells in self.cubes)

    @property
    def n_implied(self) -> int:
        return sum(len(cells) - cells.n_published for cells in self.cubes)

    @property
    def n_equations(self) -> int:
        return sum(len(cells.equations) for cells in self.cubes)

    @property
    def fingerprints(self) -> dict[str, str]:
        return {cells.cube.name: cells.fingerprint for cells in self.cubes}
