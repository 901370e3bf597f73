"""Relations between cells: hierarchies' sums, remainders, completed totals, linear formulas.

`close_cells` finds, from the cells that are published, every cell that a reader can work out by adding and
subtracting, and the relations that tie them all together. It works line by line: a *line* is a set of
cells that differ in one hierarchy only. In a line each present member is the sum of the nearest present
members below it and of one *remainder*, the union of the branches that nothing present covers; an absent
member whose branches are all covered is *completed*. New cells open new lines in the other hierarchies, so
this is repeated until nothing new appears.

Everything here is structure: no value is looked at, only whether a cell has any facts at all, which is
public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from app.domain.cube import IntArray
from app.domain.errors import InternalError
from app.domain.lattice import Bools, Longs, Space, ranges, row_of, unique_rows
from app.domain.lines import Lines, cover, lines_of, overlapping
from app.domain.overlaps import Overlap, tightened

Floats = NDArray[np.float64]

#: Which cells (int32[k, columns]) have facts.
Occupied = Callable[[IntArray], Bools]

#: Relations that some rows of the cells are in, besides those of this module.
Further = Callable[[IntArray, Longs], list["Entries"]]


@dataclass(frozen=True, eq=False)
class Equations:
    """``Σ coefs · cell = rhs`` in CSR over the rows of a cell table."""

    indptr: Longs
    indices: Longs
    coefs: Floats
    rhs: Floats

    def __post_init__(self) -> None:
        if len(self.indptr) != len(self.rhs) + 1 or len(self.indices) != len(self.coefs):
            raise ValueError("equations differ in length")

    def __len__(self) -> int:
        return len(self.rhs)

    @property
    def relation(self) -> Longs:
        """The relation of each entry."""
        return row_of(self.indptr)

    def matrix(self, n: int) -> sparse.csr_array:
        """The coefficients over a table of ``n`` cells (m × n)."""
        return sparse.csr_array((self.coefs, self.indices, self.indptr), shape=(len(self), n))


@dataclass(frozen=True, eq=False)
class Entries:
    """Relations over cells named by their coordinates.

    ``relation`` (int64[k]) numbers the relation of each entry; ``rhs`` (float64[m]) has one number for
    each. Entries marked ``optional`` drop out when their cell has no facts. A relation marked
    ``completes`` holds only if its optional entries all drop out: then its other cells are all there is.
    """

    relation: Longs
    coords: IntArray
    coef: Floats
    optional: Bools
    rhs: Floats
    completes: Bools

    @classmethod
    def join(cls, parts: list[Entries], columns: int) -> Entries:
        shifts = np.cumsum([0, *(len(part.rhs) for part in parts)])
        empty = cls(
            np.zeros(0, dtype=np.int64),
            np.zeros((0, columns), dtype=np.int32),
            np.zeros(0),
            np.zeros(0, dtype=np.bool_),
            np.zeros(0),
            np.zeros(0, dtype=np.bool_),
        )
        whole = [empty, *parts]
        return cls(
            np.concatenate([empty.relation, *(p.relation + s for p, s in zip(parts, shifts, strict=False))]),
            np.concatenate([part.coords for part in whole]),
            np.concatenate([part.coef for part in whole]),
            np.concatenate([part.optional for part in whole]),
            np.concatenate([part.rhs for part in whole]),
            np.concatenate([part.completes for part in whole]),
        )


@dataclass(frozen=True, eq=False)
class Closure:
    """The published cells (first rows, in the order given), the implied ones, and their relations."""

    coords: IntArray
    n_published: int
    equations: Equations


def close_cells(
    space: Space,
    published: IntArray,
    formulas: Entries | None,
    occupied: Occupied,
    overlaps: Sequence[Overlap] = (),
    further: Further = lambda cells, rows: [],
) -> Closure:
    """Every cell that follows from the published ones, and all relations among them.

    Parameters
    ----------
    space
        Columns of the coordinates; takes up the remainders as further extras.
    published : int32[n, columns]
        Distinct rows.
    formulas
        Relations that are already known, of formulas that can't be told from their members alone.
    occupied
        Which cells have facts.
    overlaps
        Hierarchies that divide the same things in ways that cut across each other.
    further
        Asked for rows of cells that add up.

    Raises
    ------
    InternalError
        If two rows are equal.
    """
    if len(unique_rows(space, published)[0]) != len(published):
        raise InternalError("a published cell is listed twice")
    cells = published
    fresh = np.arange(len(cells))
    found: list[tuple[Longs, Longs, Floats, Floats]] = []
    parts = [] if formulas is None else [formulas]
    while len(fresh):
        parts.extend(_proposals(space, cells, fresh, overlaps, further))
        if not parts:
            break
        grown, relations = _settle(space, cells, Entries.join(parts, space.columns), occupied)
        found.append(relations)
        fresh = np.arange(len(cells), len(grown))
        cells, parts = grown, []
    return Closure(cells, len(published), _equations(found, len(cells)))


def _proposals(
    space: Space, cells: IntArray, fresh: Longs, overlaps: Sequence[Overlap], further: Further
) -> list[Entries]:
    expanded = _expand_terms(space, cells, fresh)
    parts = [] if expanded is None else [expanded]
    usable = _inlines_of(space, cells)
    parts.extend(further(cells, fresh[usable[fresh]]))
    if overlaps:
        parts.append(_aliases(space, cells, fresh[usable[fresh]], overlaps))
    for h in range(len(space.trees)):
        parts.extend(_line_relations(space, cells, usable, fresh, h))
    return parts


def _aliases(space: Space, cells: IntArray, rows: Longs, overlaps: Sequence[Overlap]) -> Entries:
    """Cells that are the same as their tightest names."""
    return same_cells(cells[rows], tightened(space, overlaps, cells[rows]))


def same_cells(coords: IntArray, names: IntArray) -> Entries:
    """That cells are those of other names, where these differ."""
    other = (names != coords).any(axis=1)
    k = int(other.sum())
    return Entries(
        relation=np.tile(np.arange(k), 2),
        coords=np.concatenate([coords[other], names[other]]),
        coef=np.repeat([-1.0, 1.0], k),
        optional=np.zeros(2 * k, dtype=np.bool_),
        rhs=np.zeros(k),
        completes=np.zeros(k, dtype=np.bool_),
    )


def _inlines_of(space: Space, cells: IntArray) -> Bools:
    """Cells that may add up: of such an own measure, at own members and groups."""
    return space.may_add_up(cells) & space.has_contributors(cells)


def _expand_terms(space: Space, cells: IntArray, fresh: Longs) -> Entries | None:
    """Formulas that are sums over members of one column: cell = Σ coefficient · operand.

    A cell with several such members is expanded in the one that isn't a plain group, if there is one
    (its operands are expanded further), else in each. A cell with a member that is no such sum has its
    formula told another way, and so has one of a measure that doesn't add up.
    """
    told = space.adds_up(cells[fresh])
    for column in range(space.columns):
        told &= space.flags(column, lambda extra: extra.terms is not None)[cells[fresh, column]]
    fresh = fresh[told]
    linear, group = [], []
    told = np.zeros(len(fresh), dtype=np.bool_)
    for column in range(space.columns):
        # A ratio of a group is no sum of the members' ratios; formulas without terms are told row by row.
        rowwise = space.flags(column, lambda extra: extra.terms is None)
        told |= (cells[fresh, column] >= space.own[column]) & rowwise[cells[fresh, column]]
    for column in range(space.columns):
        extra = (cells[fresh, column] >= space.own[column]) & ~told
        formula = space.flags(column, lambda extra: extra.terms is not None and extra.is_formula)
        plain = space.flags(column, lambda extra: extra.is_group)
        number = cells[fresh, column]
        linear.append(extra & formula[number] & ~plain[number])
        group.append(extra & formula[number] & plain[number])
    any_linear = np.logical_or.reduce(linear)
    done = np.zeros(len(fresh), dtype=np.bool_)
    parts = []
    for column in range(space.columns):
        chosen = (linear[column] & ~done) | (group[column] & ~any_linear)
        done |= linear[column]
        if chosen.any():
            rows = fresh[chosen]
            owner, member, factor = space.terms_of(column, cells[rows, column].astype(np.int64))
            # An empty operand stays a cell: whoever sees the empty sum knows its places to be empty.
            parts.append(_sums(cells, rows, column, owner, member, factor, optional=False))
    return Entries.join(parts, space.columns) if parts else None


def _sums(
    cells: IntArray,
    rows: Longs,
    column: int,
    owner: Longs,
    member: Longs,
    factor: Floats,
    optional: bool | Bools,
) -> Entries:
    """Relations ``Σ factor · cell(member) − cell(row) = 0``, one for each row."""
    operands = cells[rows[owner]].copy()
    operands[:, column] = member
    k = len(rows)
    return Entries(
        relation=np.concatenate([np.arange(k), owner]),
        coords=np.concatenate([cells[rows], operands]),
        coef=np.concatenate([np.full(k, -1.0), factor]),
        optional=np.concatenate(
            [np.zeros(k, dtype=np.bool_), np.broadcast_to(np.asarray(optional, dtype=np.bool_), owner.shape)]
        ),
        rhs=np.zeros(k),
        completes=np.zeros(k, dtype=np.bool_),
    )


def _line_relations(space: Space, cells: IntArray, usable: Bools, fresh: Longs, h: int) -> list[Entries]:
    if space.trees[h].size < 2:
        return []
    column = 1 + h
    view, own = lines_of(space, cells, np.flatnonzero(usable), fresh, h)
    return [
        entries
        for entries in (
            _parents(space, cells, view, own, column),
            _groups(space, cells, view, own, column),
            _completions(space, cells, view, own, column),
        )
        if entries is not None
    ]


def _parents(space: Space, cells: IntArray, view: Lines, own: Bools, column: int) -> Entries | None:
    """Each present member with present members below it: the sum of the nearest, and the remainder."""
    tree = view.tree
    line, member = view.line[own], view.member[own]
    has = view.below(line, member + 1, tree.last[member].astype(np.int64)) > 0
    has &= tree.last[member] > member
    if not has.any():
        return None
    rows, line, member = view.rows[own][has], line[has], member[has]
    owner, branch = tree.children_of(member)
    return _covered(space, cells, view, rows, owner, line[owner], branch, column)


def _groups(space: Space, cells: IntArray, view: Lines, own: Bools, column: int) -> Entries | None:
    """Remainders that something present cuts into: their parts are cells too."""
    formula = space.flags(column, lambda extra: extra.is_formula)
    remainder = ~own & ~formula[view.member]
    if not remainder.any():
        return None
    rows, line, number = view.rows[remainder], view.line[remainder], view.member[remainder]
    owner, branch, _ = space.terms_of(column, number)
    end = view.tree.last[branch].astype(np.int64)
    cut = np.zeros(len(rows), dtype=np.bool_)
    cut[owner[view.below(line[owner], branch, end) > 0]] = True
    clash = np.zeros(len(rows), dtype=np.bool_)
    clash[owner[overlapping(line[owner], branch, end)]] = True
    parts = []
    picked = cut & ~clash
    if picked.any():
        inside = picked[owner]
        place = np.cumsum(picked) - 1
        parts.append(
            _covered(
                space,
                cells,
                view,
                rows[picked],
                place[owner[inside]],
                line[owner[inside]],
                branch[inside],
                column,
            )
        )
    if clash.any():
        inside = clash[owner]
        place = np.cumsum(clash) - 1
        ones = np.ones(int(inside.sum()))
        parts.append(
            _sums(cells, rows[clash], column, place[owner[inside]], branch[inside], ones, optional=True)
        )
    return Entries.join(parts, space.columns) if parts else None


def _covered(
    space: Space,
    cells: IntArray,
    view: Lines,
    rows: Longs,
    owner: Longs,
    line: Longs,
    branch: Longs,
    column: int,
) -> Entries:
    """Relations of rows with the members that cover their branches and the remainder of what is left."""
    taken_owner, taken, left_owner, left = cover(view, owner, line, branch)
    rest_owner, rest = _remainders(space, column, left_owner, left)
    factor = np.ones(len(taken) + len(rest))
    optional = np.concatenate([np.zeros(len(taken), dtype=np.bool_), np.ones(len(rest), dtype=np.bool_)])
    return _sums(
        cells,
        rows,
        column,
        np.concatenate([taken_owner, rest_owner]),
        np.concatenate([taken, rest]),
        factor,
        optional,
    )


def _remainders(space: Space, column: int, owner: Longs, branch: Longs) -> tuple[Longs, Longs]:
    """One member for each owner: its only branch itself, or the group of them. (owner, number)."""
    if not len(owner):
        return owner, branch
    order = np.lexsort((branch, owner))
    owner, branch = owner[order], branch[order]
    owners, start, count = np.unique(owner, return_index=True, return_counts=True)
    # Owners with the same branches share the group; a random sum of 64 bits tells sets apart quickly,
    # and the first owner of each is spelt out.
    token = np.random.default_rng(0).integers(0, 2**63, space.trees[column - 1].size, dtype=np.uint64)
    signature = np.add.reduceat(token[branch] * np.uint64(0x9E3779B97F4A7C15), start) + count.astype(
        np.uint64
    )
    _, first, kind = np.unique(signature, return_index=True, return_inverse=True)
    numbers = []
    for place in first:
        members = branch[start[place] : start[place] + count[place]].tolist()
        numbers.append(space.number(column, [(member, 1.0) for member in members], "", is_formula=False))
    for place, which in enumerate(kind):
        sample = first[which]
        if count[place] != count[sample] or not np.array_equal(
            branch[start[place] : start[place] + count[place]],
            branch[start[sample] : start[sample] + count[sample]],
        ):
            raise InternalError("two remainders have the same signature")
    return owners, np.array(numbers, dtype=np.int64)[kind]


def _completions(space: Space, cells: IntArray, view: Lines, own: Bools, column: int) -> Entries | None:
    """Absent members whose branches are covered: the sum of what covers them."""
    tree = view.tree
    line, member, rows = view.line[own], view.member[own], view.rows[own]
    above = tree.parent[member].astype(np.int64)
    candidates: list[tuple[Longs, Longs, Longs]] = []
    while (above >= 0).any():
        up = above >= 0
        line, rows, above = line[up], rows[up], above[up]
        absent = ~view.present(line, above)
        line, rows, above = line[absent], rows[absent], above[absent]
        key = line * tree.size + above
        _, first = np.unique(key, return_index=True)
        line, rows, above = line[first], rows[first], above[first]
        candidates.append((line, rows, above))
        above = tree.parent[above].astype(np.int64)
    if not candidates:
        return None
    line, rows, above = (np.concatenate(column_) for column_ in zip(*candidates, strict=True))
    _, first = np.unique(line * tree.size + above, return_index=True)
    line, rows, above = line[first], rows[first], above[first]
    if not len(rows):
        return None
    owner, branch = tree.children_of(above)
    taken_owner, taken, left_owner, left = cover(view, owner, line[owner], branch)
    rest_owner, rest = _remainders(space, column, left_owner, left)
    k = len(rows)
    totals = cells[rows].copy()
    totals[:, column] = above
    parts = cells[rows[np.concatenate([taken_owner, rest_owner])]].copy()
    parts[:, column] = np.concatenate([taken, rest])
    return Entries(
        relation=np.concatenate([np.arange(k), taken_owner, rest_owner]),
        coords=np.concatenate([totals, parts]),
        coef=np.concatenate([np.full(k, -1.0), np.ones(len(taken) + len(rest))]),
        optional=np.concatenate(
            [np.zeros(k + len(taken), dtype=np.bool_), np.ones(len(rest), dtype=np.bool_)]
        ),
        rhs=np.zeros(k),
        completes=np.ones(k, dtype=np.bool_),
    )


def _settle(
    space: Space, cells: IntArray, entries: Entries, occupied: Occupied
) -> tuple[IntArray, tuple[Longs, Longs, Floats, Floats]]:
    """Take the proposed relations up: the cells grown by theirs, and (relation, row, coef, rhs)."""
    both = np.concatenate([cells, entries.coords])
    distinct, place = unique_rows(space, both)
    place = place[len(cells) :]
    asked = np.zeros(len(distinct), dtype=np.bool_)
    asked[place[entries.optional]] = True
    asked[: len(cells)] = False
    full = np.ones(len(distinct), dtype=np.bool_)
    questions = np.flatnonzero(asked)
    if len(questions):
        full[questions] = occupied(distinct[questions])
    valid = np.ones(len(entries.rhs), dtype=np.bool_)
    spoiled = entries.completes[entries.relation] & entries.optional & full[place]
    valid[entries.relation[spoiled]] = False
    kept = valid[entries.relation] & (full[place] | ~entries.optional)
    used = np.zeros(len(distinct), dtype=np.bool_)
    used[: len(cells)] = True
    used[place[kept]] = True
    row = np.cumsum(used) - 1
    numbering = np.cumsum(valid) - 1
    return distinct[used], (
        numbering[entries.relation[kept]],
        row[place[kept]],
        entries.coef[kept],
        entries.rhs[valid],
    )


def _equations(found: list[tuple[Longs, Longs, Floats, Floats]], n: int) -> Equations:
    """All relations once each, in CSR; entries of one cell added up, empty relations left out."""
    shifts = np.cumsum([0, *(len(rhs) for *_, rhs in found)])
    none = np.zeros(0, dtype=np.int64)
    relation = np.concatenate([none, *(r + s for (r, *_), s in zip(found, shifts, strict=False))])
    row = np.concatenate([none, *(rows for _, rows, _, _ in found)])
    coef = np.concatenate([np.zeros(0), *(coefs for _, _, coefs, _ in found)])
    rhs = np.concatenate([np.zeros(0), *(side for *_, side in found)])
    key, place = np.unique(relation * n + row, return_inverse=True)
    coef = np.bincount(place, weights=coef, minlength=len(key))
    relation, row = key[coef != 0] // n, key[coef != 0] % n
    coef = coef[coef != 0]
    counts = np.bincount(relation, minlength=len(rhs))
    starts = np.concatenate([[0], np.cumsum(counts)])
    kept = _distinct_relations(relation, row, coef, rhs, counts)
    picked = ranges(starts[kept], counts[kept])
    indptr = np.concatenate([[0], np.cumsum(counts[kept])]).astype(np.int64)
    return Equations(indptr, row[picked].astype(np.int64), coef[picked], rhs[kept])


def _distinct_relations(relation: Longs, row: Longs, coef: Floats, rhs: Floats, counts: Longs) -> Longs:
    """Relations that are not a repetition of an earlier one, in order; those without cells drop out."""
    seen: dict[bytes, None] = {}
    kept = []
    starts = np.concatenate([[0], np.cumsum(counts)])
    packed_rows, packed_coefs = row.tobytes(), coef.tobytes()
    for number in np.flatnonzero(counts).tolist():
        part = slice(8 * int(starts[number]), 8 * int(starts[number + 1]))
        key = packed_rows[part] + packed_coefs[part] + rhs[number].tobytes()
        if key not in seen:
            seen[key] = None
            kept.append(number)
    return np.array(kept, dtype=np.int64)
