"""Reading further downloads, whose cells stand in the order of the tidy CSV: the figure of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO

import pyarrow as pa
from pyarrow import parquet as pq

from app.redteam.pages import PageLeak
from app.redteam.tables import TableRow, UnreadableError

Figures = list[float | None]

#: Share of a figure by which two documents may differ on it.
_SAME = 1e-9


def export_leaks(kind: str, content: bytes, rows: Sequence[TableRow]) -> Iterator[PageLeak]:
    """Hidden cells that a download tells.

    Raises
    ------
    UnreadableError
        It can't be read, holds more than its cells, or says another thing than the CSV does.
    """
    figures = READERS[kind](content)
    if len(figures) != len(rows):
        raise UnreadableError(f"{len(figures)} cells where the CSV has {len(rows)}")
    told = []
    for number, (figure, row) in enumerate(zip(figures, rows, strict=True)):
        if row.hidden and figure is not None:
            told.append(PageLeak(number, "in the page", figure, figure))
        elif not row.hidden and not _same(figure, row.value):
            raise UnreadableError("a figure that isn't the CSV's")
    yield from told


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_SAME)


def _parquet(content: bytes) -> Figures:
    try:
        file = pq.ParquetFile(BytesIO(content))
        column: Figures = file.read().column("OBS_VALUE").to_pylist()
    except (pa.ArrowInvalid, KeyError, OSError) as error:
        raise UnreadableError(f"no Parquet table: {error}") from error
    shown = [value for value in column if value is not None]
    place = file.schema_arrow.get_field_index("OBS_VALUE")
    for group in range(file.metadata.num_row_groups):
        told = file.metadata.row_group(group).column(place).statistics
        if told is not None and told.has_min_max and not {told.min, told.max} <= set(shown):
            raise UnreadableError("a smallest or largest figure that no cell shows")
    return column


#: How each kind of download is read, by the name that the catalogue gives it.
READERS: Mapping[str, Callable[[bytes], Figures]] = {"parquet": _parquet}
