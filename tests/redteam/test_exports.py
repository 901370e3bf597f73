"""Downloads that tell too much, one way each."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from app.redteam.exports import export_leaks
from app.redteam.tables import TableRow, UnreadableError

ROWS = [TableRow({}, {}, value, 0, value is None) for value in (5.0, None, 7.0)]


def parquet(*figures: float | None) -> bytes:
    stream = BytesIO()
    pq.write_table(pa.table({"OBS_VALUE": pa.array(figures, pa.float64())}), stream)
    return stream.getvalue()


def sdmx_csv(*figures: float | None) -> bytes:
    rows = [f"{'' if f is None else f},{'Q,C' if f is None else 'A,F'}" for f in figures]
    return "\r\n".join(["OBS_VALUE,OBS_STATUS,CONF_STATUS", *rows]).encode()


def sdmx_json(*figures: float | None) -> bytes:
    observations = {str(place): [figure, 0] for place, figure in enumerate(figures)}
    return json.dumps({"data": {"dataSets": [{"observations": observations}]}}).encode()


def px(*figures: float | None) -> bytes:
    signs = ['".."' if f is None else str(f) for f in figures]
    return f'TITLE="DATA=";\r\nDATA=\r\n{" ".join(signs)};\r\n'.encode()


WRITERS: dict[str, Callable[..., bytes]] = {
    "parquet": parquet,
    "sdmx-csv": sdmx_csv,
    "sdmx-json": sdmx_json,
    "px": px,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_a_clean_download_tells_nothing(kind: str) -> None:
    assert list(export_leaks(kind, WRITERS[kind](5, None, 7), ROWS)) == []


@pytest.mark.parametrize("kind", WRITERS)
def test_a_figure_in_a_hidden_cells_place_is_a_leak(kind: str) -> None:
    (leak,) = export_leaks(kind, WRITERS[kind](5, 6, 7), ROWS)
    assert (leak.row, leak.lower, leak.upper) == (1, 6, 6)


@pytest.mark.parametrize("kind", WRITERS)
def test_what_is_not_the_csvs_table_is_refused(kind: str) -> None:
    for content, cause in (
        (WRITERS[kind](5, None, 8), "isn't the CSV's"),
        (WRITERS[kind](5, 7), "2 cells where"),
        (b"nonsense", "no .*|0 cells"),
    ):
        with pytest.raises(UnreadableError, match=cause):
            list(export_leaks(kind, content, ROWS))


def test_statistics_of_another_table_are_noticed() -> None:
    """A column whose footer was made before its cells were hidden."""
    hidden = parquet(5, None, 7)
    file = pq.ParquetFile(BytesIO(hidden))
    assert file.metadata.row_group(0).column(0).statistics.max == 7
    forged = hidden.replace(_eight(7.0), _eight(9.0)).replace(_eight(9.0), _eight(7.0), 1)
    assert forged != hidden
    with pytest.raises(UnreadableError, match="smallest or largest"):
        list(export_leaks("parquet", forged, ROWS))


def _eight(value: float) -> bytes:
    return pa.array([value]).buffers()[1].to_pybytes()[:8]


TOWNS = [
    TableRow({}, {"[Town]": name}, value, 0, value is None)
    for name, value in (("Alder", 40.0), ("Birch", None), ("Cedar", 70.0), ("Elm", 10.0))
]


def svg(width: float, says: str) -> bytes:
    bars = [("Alder", 40.0, "Alder: 40"), ("Cedar", 70.0, "Cedar: 70"), ("Elm", 10.0, "Elm: 10")]
    marks = "".join(
        f'<rect x="0%" width="{size}%"><title>{label}</title></rect>'
        for _, size, label in [*bars, ("Birch", width, says)]
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg">{marks}</svg>'.encode()


def test_a_drawing_is_measured_like_a_pages() -> None:
    assert list(export_leaks("svg", svg(100, "Birch: confidential"), TOWNS)) == []
    (drawn,) = export_leaks("svg", svg(22, "Birch: confidential"), TOWNS)
    assert (drawn.row, drawn.kind, round(drawn.lower)) == (1, "drawn", 22)
    (said,) = export_leaks("svg", svg(100, "Birch: 22"), TOWNS)
    assert (said.row, said.kind, said.lower) == (1, "in the page", 22)
    for content in (b"nonsense", b"<html></html>"):
        with pytest.raises(UnreadableError, match="no SVG"):
            list(export_leaks("svg", content, TOWNS))


def fragment(*cells: str) -> bytes:
    rows = "".join(f"<tr><th>Town</th>{cell}</tr>" for cell in cells)
    return f"<table>{rows}</table>".encode()


def test_a_fragment_is_read_like_a_page() -> None:
    hidden = '<td class="hidden"><abbr title="confidential">[c]</abbr></td>'
    shown = [f"<td>{value}</td>" for value in (40, 70, 10)]
    assert list(export_leaks("html", fragment(shown[0], hidden, *shown[1:]), TOWNS)) == []
    told = fragment(shown[0], '<td class="hidden" title="22">[c]</td>', *shown[1:])
    (leak,) = export_leaks("html", told, TOWNS)
    assert (leak.row, leak.lower) == (1, 22)
    with pytest.raises(UnreadableError, match="3 cells where the download has 4"):
        list(export_leaks("html", fragment(shown[0], hidden, shown[1]), TOWNS))
