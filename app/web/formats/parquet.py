"""Parquet: the tidy CSV's columns with their types, numbers as numbers, a hidden one null."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import BufferOutputStream
from pyarrow import parquet as pq

from app.domain.masked import CellStatus
from app.web.formats import csv
from app.web.formats.download import Download

MEDIA_TYPE = "application/vnd.apache.parquet"


def write(download: Download) -> bytes:
    """The file; what it is stands in the schema's metadata.

    The status columns are those of the CSV: a null value is confidential (C) or empty (M), never just null.
    The pages are left uncompressed, since answers are compressed as a whole.
    """
    names = csv.header(download)
    columns: list[pa.Array] = [
        pa.array(column, pa.string())
        for column in list(zip(*csv.rows(download), strict=True)) or [()] * len(names)
    ]
    masked = download.masked
    columns[names.index(csv.VALUE)] = pa.array(
        masked.values, pa.float64(), mask=masked.status != CellStatus.SHOWN
    )
    said = {
        "title": download.title,
        "notes": download.notes,
        "publisher": download.publisher,
        "released": download.released.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "release": masked.release_id,
        "address": download.address,
        "language": download.language,
    }
    schema = pa.schema(
        [(name, column.type) for name, column in zip(names, columns, strict=True)],
        metadata={name: text for name, text in said.items() if text},
    )
    stream = BufferOutputStream()
    pq.write_table(pa.table(columns, schema=schema), stream, compression="none")
    return bytes(stream.getvalue().to_pybytes())
