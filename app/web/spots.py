"""The one cell that an address points at, named by a member of each hierarchy."""

from __future__ import annotations

from app.domain.masked import AxisMember, MaskedCellSet
from app.serve.answer import NotPublishedError
from app.web.arrange import Hierarchies
from app.web.language import marked as _
from app.web.picks import Members, terms_of
from app.web.refusals import RefusalError
from app.web.tables import caption, grid_of

Place = tuple[int, int]


NO_CELL = _("The table has no figure in row %(row)s and column %(column)s.")


def place_of(masked: MaskedCellSet, known: Hierarchies, terms: tuple[str, ...]) -> Place | None:
    """Row and column of the cell with these members, None where the table leaves it out.

    Raises
    ------
    RefusalError
        400 unless there is a term for each hierarchy.
    NotPublishedError
        For a term that means no member.
    """
    if len(terms) != len(known.members):
        raise RefusalError(400)
    names = {_named(members, term) for members, term in zip(known.members, terms, strict=True)}
    grid = grid_of(masked)
    fixed = {member.unique_name for member in masked.slicer}

    def first(positions: tuple[tuple[AxisMember, ...], ...]) -> int | None:
        found = (n for n, position in enumerate(positions) if names.issuperset(_names(position)))
        return next(found, None)

    row, column = first(grid.rows), first(grid.columns)
    if row is None or column is None:
        return None
    return (row, column) if names <= _names(grid.rows[row]) | _names(grid.columns[column]) | fixed else None


def terms_at(masked: MaskedCellSet, known: Hierarchies, place: Place) -> tuple[str, ...]:
    """How an address says the cell at a row and column (from 0); `RefusalError` 400 where there is none."""
    grid = grid_of(masked)
    row, column = place
    if not (0 <= row < len(grid.rows) and 0 <= column < len(grid.columns)):
        raise RefusalError(400, NO_CELL, row=str(row + 1), column=str(column + 1))
    here = _names(grid.rows[row]) | _names(grid.columns[column]) | {m.unique_name for m in masked.slicer}
    return tuple(
        term
        for members in known.members
        for member, term in zip(members.members, members.terms, strict=True)
        if member.unique_name in here
    )


def said_at(masked: MaskedCellSet, place: Place, language: str) -> str:
    """The members that a cell stands under, in words."""
    grid = grid_of(masked)
    return " · ".join(caption(m, language) for m in (*grid.rows[place[0]], *grid.columns[place[1]]))


def _names(position: tuple[AxisMember, ...]) -> set[str]:
    return {member.unique_name for member in position}


def _named(members: Members, term: str) -> str:
    if term in members.terms:
        return members.members[members.terms.index(term)].unique_name
    known = terms_of(members.hierarchy) if members.hierarchy is not None else {}
    for name, other in known.items():
        if other == term:
            return name
    raise NotPublishedError(term)
