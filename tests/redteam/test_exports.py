"""Downloads that tell too much, one way each."""

from __future__ import annotations

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


CLEAN = {"parquet": parquet(5, None, 7)}
TELLING = {"parquet": parquet(5, 6, 7)}
OTHER = {"parquet": parquet(5, None, 8)}
SHORT = {"parquet": parquet(5, 7)}


@pytest.mark.parametrize("kind", CLEAN)
def test_a_clean_download_tells_nothing(kind: str) -> None:
    assert list(export_leaks(kind, CLEAN[kind], ROWS)) == []


@pytest.mark.parametrize("kind", TELLING)
def test_a_figure_in_a_hidden_cells_place_is_a_leak(kind: str) -> None:
    (leak,) = export_leaks(kind, TELLING[kind], ROWS)
    assert (leak.row, leak.lower, leak.upper) == (1, 6, 6)


@pytest.mark.parametrize("kind", CLEAN)
def test_what_is_not_the_csvs_table_is_refused(kind: str) -> None:
    for content, cause in (
        (OTHER[kind], "isn't the CSV's"),
        (SHORT[kind], "2 cells where"),
        (b"nonsense", "no "),
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
