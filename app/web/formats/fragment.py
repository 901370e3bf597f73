"""HTML fragment: the table as on its page, for pasting into other pages; it needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from jinja2 import Environment

from app.web.contexts import Fragment
from app.web.formats.download import TableDownload
from app.web.language import long_date
from app.web.render import environment
from app.web.tables import signs_of
from app.web.words import by_figures_note

MEDIA_TYPE = "text/html; charset=utf-8"
#: Pieces of the page that are written at once.
_AT_ONCE = 1000


def parts(download: TableDownload) -> Iterator[bytes]:
    """The fragment; a hidden cell is ``[c]`` or ``[x]`` and the words under the table say what that means."""
    said = (download.publisher, long_date(download.released, download.language), download.address)
    fragment = Fragment(
        language=download.language,
        title=download.title,
        context=download.context,
        table=download.table,
        signs=signs_of(download.masked, download.words),
        note=by_figures_note(download.language) if download.masked.by_figures else "",
        source=" · ".join(filter(None, said)),
    )
    pieces = _environment(download.language).get_template(fragment.template).stream(page=fragment)
    pieces.enable_buffering(_AT_ONCE)
    for piece in pieces:
        download.patience.check()
        yield piece.encode()


@cache
def _environment(language: str) -> Environment:
    return environment(language)
