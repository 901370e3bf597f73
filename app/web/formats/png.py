"""PNG: the SVG file as a picture, with the site's own letters, so that it looks the same on every machine."""

from __future__ import annotations

from collections.abc import Iterator

import resvg_py

from app.web.formats import svg
from app.web.formats.download import TableDownload
from app.web.places import share

MEDIA_TYPE = "image/png"
#: Pixels for each unit of the drawing.
_ZOOM = 2.0


def parts(download: TableDownload) -> Iterator[bytes]:
    """The picture of the same masked drawing."""
    fonts = sorted(str(path) for path in (share("static") / "fonts").glob("*.ttf"))
    yield bytes(
        resvg_py.svg_to_bytes(
            svg_string=b"".join(svg.parts(download)).decode(),
            zoom=_ZOOM,
            skip_system_fonts=True,
            font_files=fonts,
            font_family="Source Sans 3",
            sans_serif_family="Source Sans 3",
        )
    )
