"""The formats that a query can be had in: the one list that pages, catalogues and addresses go by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.web.formats import csv, jsonstat, parquet, px, sdmxcsv, sdmxjson, svg, xlsx
from app.web.formats.download import Download


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
    write : callable
    registered : bool
        Whether IANA knows the media type.
    views : tuple of str
        Views of a query that it exists for.
    """

    extension: str
    name: str
    media_type: str
    file_type: str
    write: Callable[[Download], bytes]
    registered: bool = True
    views: tuple[str, ...] = ("table", "chart", "map")

    @property
    def kind(self) -> str:
        """The media type without its parameters."""
        return self.media_type.partition(";")[0]

    @property
    def suffix(self) -> str:
        """How a saved file's name ends: ``sdmx.csv`` for ``sdmx-csv``."""
        return self.extension.replace("-", ".")


FORMATS = (
    Format("csv", "CSV", csv.MEDIA_TYPE, "CSV", csv.write),
    Format("xlsx", "Excel", xlsx.MEDIA_TYPE, "XLSX", xlsx.write),
    Format("json", "JSON-stat", jsonstat.MEDIA_TYPE, "JSON", jsonstat.write),
    Format("parquet", "Parquet", parquet.MEDIA_TYPE, "PARQUET", parquet.write),
    Format("sdmx-csv", "SDMX-CSV", sdmxcsv.MEDIA_TYPE, "SDMX", sdmxcsv.write, registered=False),
    Format("sdmx-json", "SDMX-JSON", sdmxjson.MEDIA_TYPE, "SDMX", sdmxjson.write, registered=False),
    Format("px", "PX", px.MEDIA_TYPE, "", px.write, registered=False),
    Format("svg", "SVG", svg.MEDIA_TYPE, "SVG", svg.write, views=("chart", "map")),
)
BY_EXTENSION = {form.extension: form for form in FORMATS}


def formats_for(view: str) -> tuple[Format, ...]:
    """The formats of a query that is shown as ``view``."""
    return tuple(form for form in FORMATS if view in form.views)
