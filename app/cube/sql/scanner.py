"""The aggregation statements of the default engine, in another database."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from app.cube.scan import GroupingScanner
from app.cube.sql.foreign import Foreign, as_arrays


class SqlScanner(GroupingScanner):
    """See `app.cube.scan.GroupingScanner`."""

    def __init__(self, foreign: Foreign) -> None:
        super().__init__()
        self.foreign = foreign

    def arrays(self, sql: str) -> dict[str, NDArray[Any]]:
        return as_arrays(self.foreign.table(sql))
