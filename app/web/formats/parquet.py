"""Parquet: the tidy CSV's columns with their types, numbers as numbers, a hidden one null."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyarrow import BufferOutputStream
from pyarrow import parquet as pq

from app.domain.cube import text_in
from app.domain.masked import CellStatus
from app.domain.observations import Block
from app.web.formats import csv
from app.web.formats.download import Download
from app.web.locate import write_moment
from app.web.tables import caption

MEDIA_TYPE = "application/vnd.apache.parquet"

_BLOCK = 1 << 16


def parts(download: Download) -> Iterator[bytes]:
    """The file; what it is stands in the schema's metadata.

    The status columns are those of the CSV: a null value is confidential (Q, C), not released (O) or
    empty (M), never just null.
    The pages are left uncompressed, since answers are compressed as a whole.
    """
    cells, language = download.cells, download.language
    said = {
        "title": download.title,
        "notes": download.notes,
        "publisher": download.publisher,
        "released": write_moment(download.released),
        "release": cells.release_id,
        "address": download.address,
        "language": language,
    }
    schema = pa.schema(
        [pa.field(name, pa.float64() if name == csv.VALUE else pa.string()) for name in csv.header(download)],
        metadata={name: text for name, text in said.items() if text},
    )
    members = [
        (
            pa.array([member.unique_name for member in column.members], pa.string()),
            pa.array([caption(member, language) for member in column.members], pa.string()),
        )
        for column in cells.columns
    ]
    states = [pa.array([csv.SDMX_STATUS[s][n] or None for s in CellStatus], pa.string()) for n in range(2)]
    units = pa.array([text_in(style.unit, language) for style in cells.styles], pa.string())

    def batch(block: Block) -> pa.RecordBatch:
        columns = [
            text.take(pa.array(codes))
            for texts, codes in zip(members, block.members, strict=True)
            for text in texts
        ]
        columns.append(
            pa.array(block.values, pa.float64(), mask=np.asarray(block.status != CellStatus.SHOWN))
        )
        columns += [texts.take(pa.array(block.status)) for texts in states]
        columns.append(units.take(pa.array(block.style)))
        return pa.record_batch(columns, schema=schema)

    stream = BufferOutputStream()
    with pq.ParquetWriter(stream, schema, compression="none") as writer:
        for block in download.blocks(_BLOCK):
            writer.write_batch(batch(block))
    yield bytes(stream.getvalue().to_pybytes())
