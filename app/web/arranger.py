"""The form with which a reader sorts and pivots a table."""

from __future__ import annotations

from collections.abc import Mapping

from app.domain.cube import Texts, text_in
from app.domain.masked import MaskedCellSet
from app.web.arrange import Arrangement, arrange, can_pivot, numbered
from app.web.contexts import Arranger, Chooser, Option
from app.web.language import translations
from app.web.tables import caption, grid_of

#: More columns than these aren't offered one by one.
_COLUMNS = 60


def arranger(
    query: str,
    published: MaskedCellSet,
    wanted: Arrangement,
    hierarchies: Mapping[str, Texts],
    kept: tuple[tuple[str, str], ...],
    language: str,
) -> Arranger:
    """Every way that makes sense for the table, with the present one chosen."""
    _ = translations(language).gettext
    return Arranger(
        kept=kept,
        sorts=Chooser(f"sort.{query}", _("Order of the rows"), _sorts(published, wanted, language)),
        pivots=Chooser(
            f"pivot.{query}", _("Rows and columns"), _pivots(published, wanted, hierarchies, language)
        ),
        active=wanted != Arrangement(),
    )


def _sorts(published: MaskedCellSet, wanted: Arrangement, language: str) -> tuple[Option, ...]:
    _ = translations(language).gettext
    pivoted = arrange(published, Arrangement(wanted.rows, wanted.columns))
    options = [Option("", _("As published"), 0, wanted.sort == 0)]
    for number, position in enumerate(grid_of(pivoted).columns[:_COLUMNS], 1):
        name = ", ".join(caption(member, language) for member in position)
        for sign, text in ((-1, _("%(column)s, largest first")), (1, _("%(column)s, smallest first"))):
            key = sign * number
            options.append(Option(str(key), text % {"column": name}, 0, wanted.sort == key))
    return tuple(options)


def _pivots(
    published: MaskedCellSet, wanted: Arrangement, hierarchies: Mapping[str, Texts], language: str
) -> tuple[Option, ...]:
    _ = translations(language).gettext
    below, above = numbered(published)
    names = [text_in(hierarchies.get(h, {}), language) or _("Figures") for h in (*below, *above)]
    rows, columns = tuple(range(len(below))), tuple(range(len(below), len(names)))
    options = [Option("", _("As published"), 0, wanted.rows is None)]
    if not can_pivot(published):
        return tuple(options)
    ways = [Arrangement(columns, rows)]
    ways += [Arrangement(tuple(r for r in rows if r != k), (*columns, k)) for k in rows]
    ways += [Arrangement((*rows, k), tuple(c for c in columns if c != k)) for k in columns]
    if wanted.rows is not None and wanted.columns is not None:
        ways.append(Arrangement(wanted.rows, wanted.columns))
    for way in dict.fromkeys(ways):
        assert way.rows is not None
        assert way.columns is not None
        text = _("%(rows)s down, %(columns)s across") % {
            "rows": " · ".join(names[k] for k in way.rows) or "—",
            "columns": " · ".join(names[k] for k in way.columns) or "—",
        }
        chosen = (way.rows, way.columns) == (wanted.rows, wanted.columns)
        options.append(Option(way.fields("")[0][1], text, 0, chosen))
    return tuple(options)
