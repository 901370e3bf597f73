"""SVG: a query's chart or maps as one file that needs nothing else, drawn by the page's own templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from textwrap import wrap

from jinja2 import Environment
from markupsafe import Markup

from app.domain.texts import printable
from app.web.contexts import Drawing
from app.web.formats.download import TableDownload
from app.web.language import long_date
from app.web.places import share
from app.web.render import environment

MEDIA_TYPE = "image/svg+xml"

_LETTERS_IN_A_LINE = 88
#: What XML can't hold, however it is written.
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")


def parts(download: TableDownload) -> Iterator[bytes]:
    """The drawing with its title, legend and source; a hidden cell is hatched, as on the page."""
    said = (f"{name}: {member}" if name else member for name, member in download.context)
    unit = f"{download.words['unit']}: {download.table.unit}" if download.table.unit else ""
    source = (download.publisher, long_date(download.released, download.language), download.address)
    drawing = Drawing(
        id=download.identity.rpartition("/")[2],
        heading=tuple(wrap(download.title, _LETTERS_IN_A_LINE)),
        context=tuple(wrap(" · ".join(filter(None, (*said, unit))), _LETTERS_IN_A_LINE + 20)),
        chart=download.draw_chart(),
        maps=download.draw_maps(),
        source=" · ".join(filter(None, source)),
        style=_style(),
    )
    template = _environment(download.language).get_template(Drawing.template)
    yield printable(template.render(page=drawing)).encode()


@cache
def _environment(language: str) -> Environment:
    return environment(language)


@cache
def _style() -> Markup:
    """The style sheet's rules for charts, with the colours of a light screen in place of variables."""
    sheet = (share("static") / "site.css").read_text(encoding="utf-8")
    first = sheet[sheet.index(":root {") + 7 : sheet.index("}")]
    values = dict(re.findall(r"(--[\w-]+):\s*([^;]+);", first))
    rules = sheet[sheet.index("/* Charts") : sheet.index("/* End of charts */")]
    told = [
        _VARIABLE.sub(lambda found: values[found.group(1)], rule.strip())
        for rule in re.findall(r"[^{}]+\{[^{}]*\}", rules[rules.index("*/") + 2 :])
        if set(_VARIABLE.findall(rule)) <= set(values)
    ]
    ground = f"svg {{ font-family: {values['--text']}; }} .ground {{ fill: {values['--paper']}; }}"
    heading = ".heading { font-size: 18px; font-weight: 600; }"
    quiet = f".chart .quiet {{ fill: {values['--muted']}; }}"
    return Markup("\n".join([ground, *told, heading, quiet]))
