"""Tables of cells with their codes, and the relations that hierarchies put between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from solver.discreet import Discreet
from solver.errors import InputError
from solver.hierarchy import Hierarchy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EMPTY = "empty"
STATUSES = ("s", "u", "z", "x", EMPTY)


@dataclass(frozen=True, eq=False, repr=False)
class CellTable(Discreet):
    """n cells as a file or frame gives them.

    Attributes
    ----------
    dims
        Names of the d dimensions.
    codes
        For each dimension the n codes.
    value
        f8[n].
    decimals
        The values' exact decimals, if the source gives them.
    count
        i8[n], contributors.
    status
        n of ``"s"``, ``"u"`` (sensitive), ``"z"`` (must be shown), ``"x"`` (hidden beforehand), ``"empty"``.
    top
        f8[n, k], largest contributions.
    weight, lpl, upl
        f8[n], cost of hiding and stated protection levels.
    lines, file
        Where each cell was read.
    """

    dims: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    value: Floats
    decimals: tuple[str, ...] | None = None
    count: Ints | None = None
    status: tuple[str, ...] = ()
    top: Floats | None = None
    weight: Floats | None = None
    lpl: Floats | None = None
    upl: Floats | None = None
    lines: tuple[int, ...] | None = None
    file: str | None = None

    def __post_init__(self) -> None:
        n = len(self.value)
        object.__setattr__(self, "status", tuple(self.status) or ("s",) * n)
        for name in ("decimals", "count", "status", "top", "weight", "lpl", "upl", "lines"):
            column = getattr(self, name)
            if column is not None and len(column) != n:
                raise InputError(f"{name} has {len(column)} entries for {n} cells.", file=self.file)
        if len(self.codes) != len(self.dims) or any(len(column) != n for column in self.codes):
            raise InputError(f"codes are needed for {n} cells and dimensions {', '.join(self.dims)}.")
        unknown = set(self.status) - set(STATUSES)
        if unknown:
            raise InputError(
                f"status {', '.join(sorted(unknown))} is unknown.", f"Use {', '.join(STATUSES)}."
            )

    def __len__(self) -> int:
        return len(self.value)

    def name(self, cell: int) -> str:
        """The codes of a cell, joined."""
        return " × ".join(column[cell] for column in self.codes)


def group_keys(columns: Sequence[Ints]) -> Ints:
    """One number for each row, equal where all columns are; never overflows."""
    if not columns:
        return np.zeros(0, dtype=np.int64)
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        width = int(column.max(initial=0)) + 1
        key = np.unique(key * width + column, return_inverse=True)[1].astype(np.int64)
    return key


@dataclass(frozen=True, eq=False)
class Relations:
    """Relations Σ parts − total = rhs: a CSR matrix m × n, the total of each and its dimension."""

    matrix: sparse.csr_array
    total: Ints
    dim: Ints


def relations_of(position: Ints, hierarchies: Sequence[Hierarchy]) -> Relations:
    """The relations between cells: every cell is the sum of the cells that lie directly below it.

    Parameters
    ----------
    position
        i8[n, d], the position of each cell's code in the hierarchy of each dimension; rows differ.

    Returns
    -------
    One relation for each cell and each dimension in which a cell directly below it is there.
    """
    n = len(position)
    rows, cols, data = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    totals, dims = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    made = 0
    for d, hierarchy in enumerate(hierarchies):
        rest = [position[:, e] for e in range(position.shape[1]) if e != d]
        group = group_keys(rest) if rest else np.zeros(n, dtype=np.int64)
        key = group * hierarchy.n + position[:, d]
        order = np.argsort(key)
        mother = hierarchy.parent[position[:, d]]
        part = np.flatnonzero(mother >= 0)
        wanted = group[part] * hierarchy.n + mother[part]
        place = np.minimum(np.searchsorted(key, wanted, sorter=order), max(n - 1, 0))
        found = order[place] if n else place
        there = key[found] == wanted
        part, total = part[there], found[there]
        above, row = np.unique(total, return_inverse=True)
        rows += [made + row, made + np.arange(len(above))]
        cols += [part, above]
        data += [np.ones(len(part)), -np.ones(len(above))]
        totals.append(above)
        dims.append(np.full(len(above), d))
        made += len(above)
    matrix = sparse.csr_array(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols))), shape=(made, n)
    )
    return Relations(matrix, np.concatenate(totals), np.concatenate(dims))


@dataclass(frozen=True, repr=False)
class Violation(Discreet):
    """A total that is not the sum of its parts, in exact decimals."""

    cell: int
    total: str
    dimension: str
    published: Decimal
    sum_of_parts: Decimal

    @property
    def difference(self) -> Decimal:
        """Published total minus the sum of its parts."""
        return self.published - self.sum_of_parts

    @property
    def sentence(self) -> str:
        """What the author of the input is told."""
        return (
            f"{self.total} is {self.published:f}, but its parts by {self.dimension} add up to "
            f"{self.sum_of_parts:f}: difference {self.difference:f}"
        )


def decimal_places(decimals: Sequence[str]) -> int | None:
    """Most decimal places; None if a number is written with an exponent."""
    if any("e" in d or "E" in d for d in decimals):
        return None
    return max((len(d.partition(".")[2]) for d in decimals), default=0)


def find_violations(
    relations: Relations,
    decimals: Sequence[str],
    names: Sequence[str],
    dims: Sequence[str],
    *,
    tolerance: float = 0.0,
    relative: float = 0.0,
) -> tuple[Violation, ...]:
    """Every relation that does not add up in exact decimals.

    Differences up to ``tolerance``, or up to ``relative`` times the sum of sizes, are accepted; the latter is
    for numbers that went through binary sums.
    """
    value = np.array(decimals, dtype=np.str_).astype(np.float64) if len(decimals) else np.zeros(0)
    matrix = relations.matrix
    scale = abs(matrix) @ np.abs(value)
    miss = np.abs(matrix @ value)
    digits = decimal_places(decimals)
    if relative:
        suspect = miss > max(relative, 1e-15) * scale
    elif digits is None:
        suspect = np.ones(len(miss), dtype=np.bool_)
    else:
        # Where doubles can't resolve the last decimal, only exact sums can tell.
        unit, resolution = 10.0**-digits, 4 * np.finfo(np.float64).eps * np.diff(matrix.indptr) * scale
        suspect = (miss > unit / 4) | (resolution > unit / 4)
    suspects = np.flatnonzero(suspect)
    violations = []
    for r in suspects.tolist():
        total = int(relations.total[r])
        members = matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]].tolist()
        parts = sum((Decimal(decimals[i]) for i in members if i != total), Decimal(0))
        violation = Violation(
            total, names[total], dims[int(relations.dim[r])], Decimal(decimals[total]), parts
        )
        if abs(violation.difference) > Decimal(repr(tolerance)):
            violations.append(violation)
    return tuple(violations)


def check_additivity(
    table: CellTable, hierarchies: Mapping[str, Hierarchy], *, counts: bool = False, tolerance: float = 0.0
) -> tuple[Violation, ...]:
    """Every total of a table that is not the sum of its parts, with exact differences.

    Parameters
    ----------
    hierarchies
        The hierarchy of each dimension.
    counts
        Check the frequencies instead of the values.

    Raises
    ------
    InputError
        If a code is in no hierarchy, or frequencies are to be checked and there are none.
    """
    listed = [hierarchies[dim] for dim in table.dims]
    position = np.column_stack(
        [positions(codes, h, dim) for codes, h, dim in zip(table.codes, listed, table.dims, strict=True)]
    )
    if counts:
        if table.count is None:
            raise InputError("the table has no frequencies.", file=table.file)
        decimals: Sequence[str] = [str(c) for c in table.count.tolist()]
    else:
        decimals = table.decimals or [repr(x) for x in table.value.tolist()]
    names = [table.name(i) for i in range(len(table))]
    return find_violations(relations_of(position, listed), decimals, names, table.dims, tolerance=tolerance)


def positions(codes: Sequence[str], hierarchy: Hierarchy, dim: str) -> Ints:
    """i8[n], where each code stands in the hierarchy.

    Raises
    ------
    InputError
        Naming all codes that are not in it.
    """
    found = np.array([hierarchy.index.get(code, -1) for code in codes], dtype=np.int64)
    if (found < 0).any():
        unknown = dict.fromkeys(code for code, i in zip(codes, found.tolist(), strict=True) if i < 0)
        listed = ", ".join(map(repr, list(unknown)[:20]))
        more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""
        raise InputError(
            f"{dim} has codes that its hierarchy doesn't: {listed}{more}.",
            "Add them to the hierarchy or correct them.",
        )
    return found
