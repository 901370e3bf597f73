"""Texts of values for logs, notebooks and error reports: how many and of which status, no number of them."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import fields
from typing import Any

import numpy as np


class Discreet:
    """A dataclass (``repr=False``) that holds true values, or what follows from them, and doesn't print them.

    What prints a result by the way (a log line, the last line of a notebook's cell, an assertion that fails)
    would publish what the result is there to hide. Words and counts are told, numbers of the table aren't.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        told = ((item.name, _told(getattr(self, item.name))) for item in fields(self) if item.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in told if text)})"


def _told(value: Any) -> str:
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, Discreet):
        return f"{type(value).__name__}(…)"
    if isinstance(value, np.ndarray):
        if value.dtype == np.bool_:
            return f"{int(value.sum())} of {value.size}"
        return f"<{' × '.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, Mapping | Sized):
        return f"<{len(value)}>"
    return "…"
