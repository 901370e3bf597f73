"""Columns of the data files that a cube names, read from their heads alone."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from app.domain.errors import UserError

SEPARATORS = ",;\t|"


def columns_of(path: Path) -> tuple[str, ...]:
    """Column names of a Parquet or CSV file (``.csv``, ``.csv.gz``).

    Raises
    ------
    UserError
        If the file is missing, of another kind, or not readable as what its name says.
    """
    if not path.is_file():
        raise UserError(f"There is no file {path.name}.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    try:
        if suffixes[-1:] == [".parquet"]:
            return tuple(pq.read_schema(path).names)
        if suffixes[-1:] == [".csv"] or suffixes[-2:] == [".csv", ".gz"]:
            opener = gzip.open if suffixes[-1] == ".gz" else open
            with opener(path, "rt", encoding="utf-8-sig", newline="") as handle:
                head = handle.readline()
            separator = max(SEPARATORS, key=head.count)
            return tuple(name.strip() for name in next(csv.reader([head], delimiter=separator), []))
    except UnicodeDecodeError:
        raise UserError(f"File {path.name} isn't UTF-8.") from None
    except (pa.ArrowException, OSError, EOFError) as error:
        raise UserError(f"File {path.name} can't be read: {str(error).splitlines()[0]}.") from None
    raise UserError(f"File {path.name} is neither Parquet nor CSV.")
