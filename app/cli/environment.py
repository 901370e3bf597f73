"""What the environment says."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from app.domain.errors import UserError

T = TypeVar("T")


def number(variable: str, made: Callable[[float], T], default: float, what: str) -> T:
    """What is made of a variable's number, or of ``default`` where it isn't set.

    Raises
    ------
    UserError
        The variable is no number, or none that ``made`` takes; ``what`` says which ones it does.
    """
    text = os.environ.get(variable, "").strip()
    try:
        return made(float(text) if text else default)
    except (ValueError, OverflowError):
        raise UserError(f"{variable} is {text}. It has to be {what}.") from None
