"""Log lines as JSON, one for each event, or as text.

The text of an exception may quote cells or names, so only its type and place are ever written.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from types import TracebackType
from typing import IO

from app.domain.errors import UserError

LOG_VARIABLE = "CELOSIA_LOG"

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonLines(logging.Formatter):
    """A record as an object: time, level, logger, event, and the fields given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        for name, value in vars(record).items():
            if name not in _STANDARD and not name.startswith("_"):
                found[name] = value if isinstance(value, str | int | float | bool | None) else str(value)
        if record.exc_info:
            found["fault"] = fault(record.exc_info)
        return json.dumps(found, ensure_ascii=False)


class TextLines(logging.Formatter):
    """A record as a line for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        extra = {n: v for n, v in vars(record).items() if n not in _STANDARD and not n.startswith("_")}
        tail = "".join(f" {name}={value}" for name, value in extra.items())
        return f"{super().format(record)}{tail}"

    def formatException(self, ei: _ExcInfo) -> str:  # noqa: N802 (logging's name)
        return fault(ei)


def fault(found: _ExcInfo) -> str:
    """Type and place of an exception, without its text."""
    kind, _error, place = found
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "?"
    return f"{kind.__name__ if kind else 'nothing'} at {where}"


def install_logs(wish: str, stream: IO[str] | None = None) -> None:
    """Write the process's log to standard error: ``json``, ``text`` (warnings alone when empty).

    Raises
    ------
    UserError
        Another wish.
    """
    if wish not in ("", "json", "text"):
        raise UserError(f"{LOG_VARIABLE} is json or text, not {wish[:40]}.")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if wish == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO if wish else logging.WARNING)
    # Others' libraries say much at level INFO, and may say addresses with what readers asked for.
    for name in ("httpx", "httpcore", "alembic", "sqlalchemy", "opentelemetry"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
