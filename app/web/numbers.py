"""Numbers as a reader writes them: grouping and decimal signs by locale, published decimals always.

A page prints every published digit and none more, so that it says exactly what the downloads say.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from decimal import Decimal
from functools import lru_cache

import numpy as np
from babel.numbers import NumberPattern, get_decimal_symbol, get_group_symbol, parse_pattern

from app.domain.masked import CellStyle
from app.web.language import locale_of

#: Formats that MDX knows by name, as patterns.
_NAMED = {
    "": "#,##0",
    "standard": "#,##0",
    "general": "#0",
    "fixed": "#0",
    "percent": "#,##0%",
    "currency": "#,##0",
    "#": "#,##0",
}


@lru_cache(maxsize=256)
def _pattern(text: str) -> NumberPattern:
    text = _NAMED.get(text.strip().lower(), text)
    if not set(text) & set("#0"):
        text = "#,##0"
    try:
        return parse_pattern(text)
    except ValueError:
        return parse_pattern("#,##0")


@lru_cache(maxsize=512)
def _formatter(text: str, decimals: int, language: str) -> Callable[[float], str]:
    pattern = _pattern(text)
    locale = locale_of(language)
    printed = max(decimals - pattern.scale, 0)
    if pattern.scale == 0 and pattern.prefix == ("", "-") and pattern.suffix == ("", ""):
        group = get_group_symbol(locale) if pattern.grouping[0] < 1000 else ""
        signs = str.maketrans({",": group, ".": get_decimal_symbol(locale)})
        spec = f",.{printed}f"

        def plain(value: float) -> str:
            digits = format(value, spec)
            if digits.startswith("-") and not digits.strip("-0.,"):
                digits = digits[1:]
            return digits.translate(signs)

        return plain
    pattern = copy(pattern)
    pattern.frac_prec = (printed, printed)
    percent = locale.percent_formats[None].suffix[0] if pattern.suffix[0] == "%" else ""

    def dressed(value: float) -> str:
        number = pattern.apply(Decimal(repr(float(value))), locale)
        return f"{number.removesuffix('%')}{percent}" if percent else number

    return dressed


def percent_scale(style: CellStyle) -> int:
    """Power of ten by which the printed number exceeds the published one: 2 for a percentage."""
    return 2 if _pattern(style.format).scale == 2 else 0


def format_value(value: float, style: CellStyle, language: str) -> str:
    """A shown value as text."""
    return _formatter(style.format, style.decimals, language)(value)


def plain_number(value: float) -> str:
    """A shown value for machines: the shortest digits that give the number back, no exponent."""
    return str(np.format_float_positional(value, trim="-"))
