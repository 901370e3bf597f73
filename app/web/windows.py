"""Windows of large tables: a page shows some thousand cells of them and leads to the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.domain.masked import MaskedCellSet
from app.web.arranger import Subject
from app.web.contexts import Link, Pager
from app.web.language import translations
from app.web.moves import flat, take
from app.web.refusals import RefusalError
from app.web.tables import grid_of

#: As many cells as a page shows, and columns.
CELLS = 6000
COLUMNS = 100
#: Fewer rows than these aren't worth a page.
_ROWS = 30


@dataclass(frozen=True)
class Side:
    """A window along one axis: items ``first`` to ``last`` (from 1) of ``total``, on page ``page``."""

    page: int
    pages: int
    first: int
    last: int
    total: int


def window(masked: MaskedCellSet, page: tuple[int, int]) -> tuple[MaskedCellSet, tuple[Side, Side]]:
    """The cells of a page, and where they lie: along the rows, along the columns.

    Raises
    ------
    RefusalError
        404 for a page that there isn't.
    """
    table = flat(masked)
    columns, rows = (len(axis.positions) for axis in table.axes)
    across = _side(page[1], columns, _columns(rows, columns))
    down = _side(page[0], rows, _rows(rows, across))
    if (down.pages, across.pages) == (1, 1):
        return masked, (down, across)
    shown = take(table, list(range(down.first - 1, down.last)), list(range(across.first - 1, across.last)))
    return shown, (down, across)


def page_with(masked: MaskedCellSet, place: tuple[int, int]) -> tuple[int, int]:
    """The page on which the cell at a row and a column stands."""
    grid = grid_of(masked)
    rows, columns = len(grid.rows), len(grid.columns)
    size = _columns(rows, columns)
    across = _side(place[1] // size + 1, columns, size)
    return place[0] // _rows(rows, across) + 1, across.page


def _columns(rows: int, columns: int) -> int:
    """How many columns a page shows."""
    return max(1, columns if columns * min(rows, _ROWS) <= CELLS else COLUMNS)


def _rows(rows: int, across: Side) -> int:
    """How many rows a page shows of so many columns."""
    width = max(1, across.last - across.first + 1)
    return max(1, rows if rows * width <= CELLS else max(_ROWS, CELLS // width))


def _side(page: int, total: int, size: int) -> Side:
    pages = max(1, -(-total // size))
    if page > pages:
        raise RefusalError(404)
    first = (page - 1) * size + 1
    return Side(page, pages, first, min(total, first + size - 1), total)


def pager(place: tuple[Side, Side], subject: Subject) -> Pager | None:
    """What a page says of its window, None where it shows all there is."""
    _ = translations(subject.language).gettext
    down, across = place
    if (down.pages, across.pages) == (1, 1):
        return None
    texts = (
        (
            down,
            _("Rows %(first)s–%(last)s of %(total)s"),
            (_("First rows"), _("Rows before"), _("Rows after"), _("Last rows")),
        ),
        (
            across,
            _("Columns %(first)s–%(last)s of %(total)s"),
            (_("First columns"), _("Columns before"), _("Columns after"), _("Last columns")),
        ),
    )
    said, links = [], []
    for number, (side, text, names) in enumerate(texts):
        if side.pages == 1:
            continue
        said.append(text % {"first": side.first, "last": side.last, "total": side.total})
        targets = (1, side.page - 1, side.page + 1, side.pages)
        for name, target, wanted in zip(
            names,
            targets,
            (side.page > 2, side.page > 1, side.page < side.pages, side.page < side.pages - 1),
            strict=True,
        ):
            if wanted:
                page = (target, across.page) if number == 0 else (down.page, target)
                links.append(Link(name, subject.address(replace(subject.wanted, page=page, cell=()))))
    return Pager(tuple(said), tuple(links))
