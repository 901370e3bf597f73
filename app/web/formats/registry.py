"""The formats that a query can be had in: the one list that pages, catalogues and addresses go by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from app.web.formats import csv, fragment, jsonstat, parquet, png, px, sdmxcsv, sdmxjson, svg, xlsx
from app.web.formats.download import Download, TableDownload


@dataclass(frozen=True)
class Format:
    """A kind of download.

    Attributes
    ----------
    extension : str
        How its addresses end.
    name : str
        What readers call it.
    media_type : str
    file_type : str
        Its name in the EU's vocabulary of file types, empty where that has none.
    parts : callable
        Makes the file, part by part, from a `Download`, or from a `TableDownload`.
    registered : bool
        Whether IANA knows the media type.
    views : tuple of str
        Views of a query that it exists for.
    whole : bool
        Whether it is made from whole tables (`TableDownload`); else from any list of cells.
    streams : bool
        Whether its parts come as they are made, so that a long one needs little memory.
    """

    extension: str
    name: str
    media_type: str
    file_type: str
    parts: Callable[[TableDownload], Iterator[bytes]] | Callable[[Download], Iterator[bytes]]
    registered: bool = True
    views: tuple[str, ...] = ("table", "chart", "map")
    whole: bool = False
    streams: bool = False

    @property
    def kind(self) -> str:
        """The media type without its parameters."""
        return self.media_type.partition(";")[0]

    @property
    def suffix(self) -> str:
        """How a saved file's name ends: ``sdmx.csv`` for ``sdmx-csv``."""
        return self.extension.replace("-", ".")


FORMATS = (
    Format("csv", "CSV", csv.MEDIA_TYPE, "CSV", csv.parts, streams=True),
    Format("xlsx", "Excel", xlsx.MEDIA_TYPE, "XLSX", xlsx.parts, whole=True),
    Format("json", "JSON-stat", jsonstat.MEDIA_TYPE, "JSON", jsonstat.parts),
    Format("parquet", "Parquet", parquet.MEDIA_TYPE, "PARQUET", parquet.parts),
    Format("sdmx-csv", "SDMX-CSV", sdmxcsv.MEDIA_TYPE, "SDMX", sdmxcsv.parts, False, streams=True),
    Format("sdmx-json", "SDMX-JSON", sdmxjson.MEDIA_TYPE, "SDMX", sdmxjson.parts, registered=False),
    Format("px", "PX", px.MEDIA_TYPE, "", px.parts, False, whole=True),
    Format("html", "HTML", fragment.MEDIA_TYPE, "HTML", fragment.parts, whole=True),
    Format("svg", "SVG", svg.MEDIA_TYPE, "SVG", svg.parts, views=("chart", "map"), whole=True),
    Format("png", "PNG", png.MEDIA_TYPE, "PNG", png.parts, views=("chart", "map"), whole=True),
)
BY_EXTENSION = {form.extension: form for form in FORMATS}


def formats_for(view: str) -> tuple[Format, ...]:
    """The formats of a query that is shown as ``view``."""
    return tuple(form for form in FORMATS if view in form.views)
