"""How a reader wants a table: which members, where, in what order, and as what figures.

Masked cells move, and what is worked out is worked out of them alone (`app.web.derive`). An order made from
hidden values would tell them, so hidden cells always come last, in their own order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from app.domain.cube import Cube
from app.domain.masked import AxisMember, MaskedCellSet
from app.serve.answer import NotPublishedError
from app.web.derive import SAID, derive
from app.web.marks import KINDS
from app.web.moves import distinct, flat, is_whole, keep, pivot, sort, without_empty
from app.web.picks import Members, members_of, terms_of
from app.web.refusals import NO_VALUE, RefusalError

_T = TypeVar("_T")
Numbers = tuple[int, ...]


#: What an address says for a chart's figures as a table alone.
TABLE = "table"


@dataclass(frozen=True)
class Arrangement:
    """What an address says of a query's table; hierarchies are numbered as `numbered` lists them.

    Attributes
    ----------
    rows, columns : tuple of int, optional
        Hierarchies down and across; None means as published.
    sort : int
        A column's number from 1, negative for descending; 0 doesn't sort.
    fixed : tuple of int
        Hierarchies that are neither down nor across: their first picked member holds for the whole table.
    picks : mapping of hierarchy to pick
        As `app.web.picks` reads it; those that aren't said are whole.
    folded : mapping of hierarchy to terms
        Members whose branch isn't shown.
    opened : mapping of hierarchy to terms
        Members whose children come in from elsewhere in the release.
    totals : bool
        Whether members are shown whose parts are.
    show : str
        What the figures are shown as, in the words of `app.web.derive`; empty: as published.
    empty : bool
        Whether rows and columns are shown in which there is nothing to count.
    page : tuple of int
        Which window of rows, and of columns, a page shows; downloads have them all.
    chart : str
        Kind of chart that the table is drawn as, or `TABLE` for none; empty as published.
    cell : tuple of terms
        One member of each hierarchy: the cell that a page points at.
    """

    rows: Numbers | None = None
    columns: Numbers | None = None
    sort: int = 0
    fixed: Numbers = ()
    picks: Mapping[int, str] = field(default_factory=dict)
    folded: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    opened: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    totals: bool = True
    show: str = ""
    empty: bool = True
    page: tuple[int, int] = (1, 1)
    chart: str = ""
    cell: tuple[str, ...] = ()

    @property
    def moves(self) -> Arrangement:
        """What of it decides which cells there are, and where."""
        return replace(self, page=(1, 1), chart="", cell=())

    def fields(self, query: str) -> list[tuple[str, str]]:
        """What an address says of it."""
        said = []
        if self.rows is not None and self.columns is not None:
            places = ["-".join(map(str, side)) for side in (self.rows, self.columns, self.fixed)]
            said.append((f"pivot.{query}", "~".join(places if self.fixed else places[:2])))
        if self.sort:
            said.append((f"sort.{query}", str(self.sort)))
        said += [(f"pick.{query}.{number}", pick) for number, pick in sorted(self.picks.items()) if pick]
        for name, branches in (("fold", self.folded), ("open", self.opened)):
            said += [
                (f"{name}.{query}.{number}", ",".join(terms))
                for number, terms in sorted(branches.items())
                if terms
            ]
        if not self.totals:
            said.append((f"totals.{query}", "no"))
        if self.show:
            said.append((f"show.{query}", self.show))
        if not self.empty:
            said.append((f"empty.{query}", "no"))
        if self.page != (1, 1):
            said.append((f"page.{query}", "~".join(map(str, self.page))))
        if self.chart:
            said.append((f"chart.{query}", self.chart))
        if self.cell:
            said.append((f"cell.{query}", ",".join(self.cell)))
        return said


def read_arrangement(fields: Mapping[str, str], query: str) -> Arrangement:
    """The arrangement that an address asks for; `RefusalError` 400 naming the field that can't be read."""

    def said(kind: str, read: Callable[[str], _T]) -> _T:
        name = f"{kind}.{query}"
        text = fields.get(name, "")
        try:
            return read(text)
        except ValueError:
            raise RefusalError(400, NO_VALUE, name=name, value=text) from None

    rows, columns, fixed = said("pivot", _places)
    return Arrangement(
        rows=rows,
        columns=columns,
        sort=said("sort", lambda text: int(text or "0")),
        fixed=fixed,
        picks=_by_number(fields, f"pick.{query}."),
        folded=_branches(fields, f"fold.{query}."),
        opened=_branches(fields, f"open.{query}."),
        totals=said("totals", lambda text: _one_of(text or "yes", ("yes", "no"))) == "yes",
        show=said("show", _figures),
        empty=said("empty", lambda text: _one_of(text or "yes", ("yes", "no"))) == "yes",
        page=said("page", _page),
        chart=said("chart", lambda text: _one_of(text, ("", TABLE, *KINDS))),
        cell=said("cell", lambda text: tuple(text.split(",")) if text else ()),
    )


def _places(text: str) -> tuple[Numbers | None, Numbers | None, Numbers]:
    if not text:
        return None, None, ()
    sides = [tuple(int(part) for part in side.split("-") if part) for side in text.split("~")]
    if len(sides) not in (2, 3):
        raise ValueError(text)
    return sides[0], sides[1], sides[2] if len(sides) > 2 else ()


def _page(text: str) -> tuple[int, int]:
    page = [int(part) for part in (text or "1").split("~")]
    if len(page) > 2 or min(page) < 1:
        raise ValueError(text)
    return page[0], page[1] if len(page) > 1 else 1


def _figures(text: str) -> str:
    if text and not SAID.fullmatch(text):
        raise ValueError(text)
    return text


def _one_of(text: str, words: Sequence[str]) -> str:
    if text not in words:
        raise ValueError(text)
    return text


def _by_number(fields: Mapping[str, str], start: str) -> dict[int, str]:
    """Texts by the number that follows the start of a field's name."""
    found = {name.removeprefix(start): text for name, text in fields.items() if name.startswith(start)}
    return {int(number): text for number, text in found.items() if text and number.isdecimal()}


def _branches(fields: Mapping[str, str], start: str) -> dict[int, tuple[str, ...]]:
    return {number: tuple(terms.split(",")) for number, terms in _by_number(fields, start).items()}


@dataclass(frozen=True, eq=False)
class Hierarchies:
    """The hierarchies on the axes of a published table: those of the rows, then those of the columns."""

    rows: int
    members: tuple[Members, ...]
    whole: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(side.members[0].hierarchy for side in self.members)


def hierarchies_of(masked: MaskedCellSet, cube: Cube) -> Hierarchies:
    """The hierarchies of a table's axes, numbered; ``whole`` is whether every member meets every other,
    so that hierarchies can move without leaving gaps."""
    table = flat(masked)
    columns, rows = (axis.positions for axis in table.axes)
    found = [*distinct(rows), *distinct(columns)] if rows and columns else []
    return Hierarchies(
        len(rows[0]) if rows else 0,
        tuple(members_of(cube, members) for members in found),
        bool(found) and all(is_whole(side) for side in (rows, columns)),
    )


def arrange(masked: MaskedCellSet, wanted: Arrangement, cube: Cube) -> MaskedCellSet:
    """The cells that a reader wants to see, where and in the order that they are wanted in.

    Raises
    ------
    RefusalError
        400 when the hierarchies or the column don't exist, the table can't be pivoted, or its figures can't
        be shown as is wanted.
    NotPublishedError
        A member that the table doesn't have.
    """
    if wanted.moves == Arrangement(opened=wanted.opened):
        return masked
    known = hierarchies_of(masked, cube)
    count = len(known.members)
    if not set(wanted.picks) | set(wanted.folded) <= set(range(count)):
        raise RefusalError(400)
    table = flat(masked)
    if wanted.show:
        periods = frozenset(
            name
            for number, members in enumerate(known.members)
            if members.time
            for name in members.pick(wanted.picks.get(number, ""))
        )
        table = derive(table, wanted.show, known.members, periods)
    for number, pick in wanted.picks.items():
        chosen = set(known.members[number].pick(pick))
        for opened in opened_names(known, wanted, number) if number in wanted.opened else ():
            if opened in chosen:
                chosen |= {m.unique_name for m in known.members[number].members if m.parent == opened}
        table = keep(table, known.names[number], frozenset(chosen))
    if not wanted.totals:
        for name in known.names:
            table = keep(table, name, present(table, name) - ancestors(table, name, cube))
    if wanted.rows is not None and wanted.columns is not None:
        if sorted((*wanted.rows, *wanted.columns, *wanted.fixed)) != list(range(count)) or not known.whole:
            raise RefusalError(400)
        table = pivot(table, known.rows, wanted.rows, wanted.columns, wanted.fixed)
    for number, terms in wanted.folded.items():
        closed, members = known.members[number].named(terms), known.members[number].members
        inside = {item.unique_name for item in members if not closed.isdisjoint(_above(item, cube))}
        table = keep(table, known.names[number], present(table, known.names[number]) - inside)
    if not wanted.empty:
        table = without_empty(table)
    if wanted.sort:
        table = sort(table, abs(wanted.sort) - 1, wanted.sort < 0)
    return table


def opened_names(known: Hierarchies, wanted: Arrangement, number: int) -> tuple[str, ...]:
    """Unique names of the members of a hierarchy that are opened, parents before their children.

    Raises
    ------
    RefusalError
        400 for a hierarchy without branches.
    NotPublishedError
        For a term that means no member.
    """
    hierarchy = known.members[number].hierarchy if number < len(known.members) else None
    if hierarchy is None:
        raise RefusalError(400)
    names = {term: name for name, term in terms_of(hierarchy).items()}
    try:
        found = [names[term] for term in wanted.opened[number]]
    except KeyError as error:
        raise NotPublishedError(str(error)) from None
    return tuple(sorted(found, key=hierarchy.index_of.__getitem__))


def present(table: MaskedCellSet, hierarchy: str) -> frozenset[str]:
    """Unique names of the members of a hierarchy on the axes of a table."""
    return frozenset(member.unique_name for member in _on_axes(table, hierarchy))


def ancestors(table: MaskedCellSet, hierarchy: str, cube: Cube) -> frozenset[str]:
    """Unique names of what the members of a hierarchy on the axes of a table lie in."""
    parents = {member.parent: member for member in _on_axes(table, hierarchy)}
    return frozenset(name for member in parents.values() for name in _above(member, cube))


def _on_axes(table: MaskedCellSet, hierarchy: str) -> list[AxisMember]:
    found: dict[str, AxisMember] = {}
    for axis in table.axes:
        if hierarchy in axis.hierarchies:
            column = axis.hierarchies.index(hierarchy)
            found |= {position[column].unique_name: position[column] for position in axis.positions}
    return list(found.values())


def _above(member: AxisMember, cube: Cube) -> list[str]:
    index = cube.hierarchy_index.get(member.hierarchy)
    found: list[str] = []
    if index is None or member.parent is None:
        return found
    hierarchy = cube.hierarchies[index]
    at = hierarchy.index_of.get(member.parent, -1)
    while at >= 0:
        found.append(hierarchy.unique_names[at])
        at = int(hierarchy.parent[at])
    return found
