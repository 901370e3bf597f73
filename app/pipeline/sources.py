"""Columns of the data files that a cube names, read from their heads alone."""

from __future__ import annotations

from pathlib import Path

from app.cube.sources import column_names, file_source
from app.domain.errors import Mistake, OperatorError, UserError


def columns_of(path: Path) -> tuple[str, ...]:
    """Column names of a Parquet or CSV file.

    Raises
    ------
    UserError
        If the file is missing, of another kind, or not readable as what its name says.
    """
    try:
        return column_names(file_source(str(path)))
    except OperatorError as error:
        raise UserError(Mistake("", 0, 0, str(error))) from error
