"""Data frames in and out: pandas, polars, anything that speaks the Arrow PyCapsule protocol, or a mapping
of columns.

None of those libraries is imported unless such a frame is handed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from solver.discreet import Discreet
from solver.errors import InputError
from solver.formats.text import Numbers, did_you_mean, parse_numbers

Kind = Literal["pandas", "polars", "arrow", "mapping"]


def _kind(frame: object) -> Kind:
    if isinstance(frame, Mapping):
        return "mapping"
    library = type(frame).__module__.split(".")[0]
    if library == "pandas":
        return "pandas"
    if library == "polars":
        return "polars"
    if hasattr(frame, "__arrow_c_stream__"):
        return "arrow"
    raise InputError(
        f"a {type(frame).__name__} is no data frame.",
        "Give a pandas, polars or Arrow frame, or a mapping of column names to columns.",
    )


def _is_missing(value: object) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):
        # pandas' missing value, and a decimal that is a signalling NaN.
        return True
    except ValueError:
        return False


@dataclass(frozen=True, eq=False, repr=False)
class Frame(Discreet):
    """The columns of a frame, and what library it came from."""

    columns: Mapping[str, NDArray[Any]]
    kind: Kind

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def column(self, name: str, role: str) -> NDArray[Any]:
        """The column of that name.

        Raises
        ------
        InputError
            If there is none; says for what it was wanted and which columns there are.
        """
        if name not in self.columns:
            raise InputError(
                f"{role} column {name} not found; columns are {', '.join(self.columns)}.",
                did_you_mean(name, self.columns),
            )
        return self.columns[name]

    def texts(self, name: str, role: str) -> list[str | None]:
        """A column as texts, None where missing; whole numbers lose a decimal ``.0``."""
        column = self.column(name, role)
        if column.dtype.kind in "iub":
            return [str(value) for value in column.tolist()]
        return [
            None
            if _is_missing(value)
            else str(int(value))
            if isinstance(value, float) and value.is_integer()
            else str(value)
            for value in column.tolist()
        ]

    def numbers(self, name: str, role: str) -> Numbers:
        """A column as numbers with their exact decimals: of decimals and texts as written, of doubles the
        shortest that reads back."""
        column = self.column(name, role)
        n = len(column)
        nothing = np.zeros(n, dtype=np.bool_)
        if column.dtype.kind in "iub":
            value = column.astype(np.float64)
            return Numbers(value, tuple(str(int(x)) for x in column.tolist()), nothing, nothing, ".")
        if column.dtype.kind == "f":
            missing = np.isnan(column)
            value = np.where(missing, 0.0, column.astype(np.float64))
            decimals = tuple(repr(x).removesuffix(".0") for x in value.tolist())
            return Numbers(value, decimals, missing, np.isinf(value), ".")
        texts = [
            "" if _is_missing(x) else format(x, "f") if isinstance(x, Decimal) else str(x)
            for x in column.tolist()
        ]
        return parse_numbers(texts)


def _from_arrow(column: Any) -> NDArray[Any]:
    import pyarrow.types as types

    chunk = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if types.is_dictionary(chunk.type) and not types.is_string_view(chunk.type.value_type):
        chunk = chunk.cast(chunk.type.value_type)
    if types.is_integer(chunk.type) or types.is_floating(chunk.type) or types.is_boolean(chunk.type):
        array: NDArray[Any] = chunk.to_numpy(zero_copy_only=False)
        if array.dtype.kind != "O":
            return array
    result = np.empty(len(chunk), dtype=object)
    result[:] = chunk.to_pylist()
    return result


def read_frame(frame: object) -> Frame:
    """Take a frame apart into columns.

    Raises
    ------
    InputError
        If it is no frame, has two columns of one name, or columns that aren't one value in each row.
    """
    kind = _kind(frame)
    columns: dict[str, NDArray[Any]] = {}
    if isinstance(frame, Mapping):
        _require_unique(frame)
        columns = {str(name): _from_sequence(str(name), given) for name, given in frame.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns differ in length: {lengths}.", "Give each row a value in each.")
        return Frame(columns, kind)
    import pyarrow as pa

    if kind == "pandas":
        _require_unique(getattr(frame, "columns", ()))
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False) if kind == "pandas" else pa.table(frame)
    except (pa.ArrowException, TypeError, AttributeError):
        # What Arrow says may hold values.
        raise InputError(
            f"the {type(frame).__name__} can't be read.",
            "Give a data frame, collected, whose columns each hold values of one kind, such as texts.",
        ) from None
    _require_unique(table.column_names)
    for name in table.column_names:
        columns[str(name)] = _from_arrow(table.column(name))
    return Frame(columns, kind)


def _require_unique(names: Iterable[object]) -> None:
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise InputError(f"two columns are called {name}.", "Give each its own name.")
        seen.add(name)


def _from_sequence(name: str, given: Any) -> NDArray[Any]:
    """A column as it was handed in; what a masked array masks is missing, whatever lies beneath."""
    if isinstance(given, str | bytes | Set) or not (hasattr(given, "__len__") and hasattr(given, "__iter__")):
        said = f"column {name} is a {type(given).__name__}."
        raise InputError(said, "Give one value in each row, as a list or an array.")
    masked = isinstance(given, np.ma.MaskedArray) and bool(np.ma.getmaskarray(given).any())
    column = np.asarray(given)
    if column.dtype.kind in "iufb" and not masked:
        if column.ndim != 1:
            raise InputError(f"column {name} has {column.ndim} dimensions.", "Give one value in each row.")
        return column
    values = given.tolist() if masked else list(given)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def write_frame(columns: Mapping[str, Sequence[Any] | NDArray[Any]], kind: Kind) -> Any:
    """Build a frame of that kind; None becomes the library's missing value."""
    listed = {
        name: column.tolist() if isinstance(column, np.ndarray) else list(column)
        for name, column in columns.items()
    }
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(listed)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(listed)
    if kind == "arrow":
        import pyarrow as pa

        return pa.table(listed)
    return listed
