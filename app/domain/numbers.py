"""Numbers as they are printed: MDX format strings, with the signs of a reader's language.

The site prints every published digit and none more (`format_value`), so that a page says exactly what the
downloads say; the analyst's answers keep to the format string alone (`format_text`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache, lru_cache

import numpy as np
from babel import Locale
from babel.core import UnknownLocaleError, get_global
from babel.numbers import (
    get_currency_symbol,
    get_decimal_symbol,
    get_group_symbol,
    get_territory_currencies,
)

from app.domain.dates import format_date, is_date_format
from app.domain.masked import CellStyle, FloatArray

#: Formats that MDX knows by name, as format strings.
_NAMED = {
    "standard": "#,##0.00",
    "fixed": "0.00",
    "percent": "0.00%",
    "currency": "#,##0.00",
    "scientific": "0.00E+00",
}
_GENERAL = ("", "general", "general number")
#: Names of formats that print one word for zero and another for everything else.
_WORDS = {"yes/no": ("Yes", "No"), "true/false": ("True", "False"), "on/off": ("On", "Off")}
_DEFAULT = "#,##0"
_TOKEN = re.compile(r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|(?P<power>[Ee][+-]0+)|(?P<plain>.)', re.DOTALL)
#: From here on a double has nothing behind the point.
_WHOLE = 2.0**53
#: Halves are rounded away from zero, as MDX formats do.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)


@cache
def locale_of(language: str) -> Locale:
    """Babel's locale; English for a language that CLDR doesn't know."""
    try:
        return Locale.parse(language, sep="-")
    except (UnknownLocaleError, ValueError):
        return Locale("en")


@dataclass(frozen=True)
class _Section:
    """A part of a format string; ``digits`` False: it prints its words alone.

    ``least`` and ``most`` are digits behind the point, ``whole`` those before it that are always there.
    ``scale`` is the power of ten that the printed number exceeds the value by. ``power`` is the number
    of digits of an exponent, 0 for none.
    """

    before: str
    after: str
    digits: bool
    whole: int
    least: int
    most: int
    grouped: bool
    scale: int
    power: int
    percent: bool


def _sections(form: str) -> list[str]:
    """The format cut at its semicolons, but for those in quotes."""
    parts = [""]
    for found in _TOKEN.finditer(form):
        if found["plain"] == ";":
            parts.append("")
        else:
            parts[-1] += found.group()
    return parts


def _section(form: str) -> _Section:
    before, after, mask, power, percents = "", "", "", 0, 0
    for found in _TOKEN.finditer(form):
        word = found["quoted"] if found["quoted"] is not None else found["escaped"]
        if found["power"] and mask:
            power = len(found["power"]) - 2
            continue
        if word is None:
            word = found.group()
            if word in "0#,." and not after and (mask or word in "0#."):
                mask += word
                continue
            if word in "0#":
                mask, after = mask + word, ""
                continue
            if word == "%":
                percents += 1
        if mask:
            after += word
        else:
            before += word
    whole, _, fraction = mask.partition(".")
    thousands = len(whole) - len(whole.rstrip(","))
    grouped = "," in whole.rstrip(",")
    return _Section(
        before,
        after,
        bool(set(mask) & set("0#")),
        whole.count("0"),
        fraction.rstrip("#").count("0") + fraction.rstrip("#").count("#"),
        fraction.count("0") + fraction.count("#"),
        grouped,
        2 * percents - 3 * thousands,
        power,
        percents > 0,
    )


@dataclass(frozen=True)
class _Format:
    positive: _Section
    negative: _Section | None
    zero: _Section | None
    empty: str


@lru_cache(maxsize=512)
def _parse(form: str) -> _Format:
    parts = _sections(_NAMED.get(form.strip().lower(), form))
    first = _section(parts[0])
    negative, zero = (
        _section(parts[place]) if len(parts) > place and parts[place] else None for place in (1, 2)
    )
    empty = _section(parts[3]) if len(parts) > 3 else None
    return _Format(first, negative, zero, "" if empty is None else empty.before + empty.after)


@lru_cache(maxsize=512)
def _printer(form: str, decimals: int | None, language: str) -> Callable[[float], str]:
    """How a format string prints numbers; ``decimals`` None: as many as it says itself."""
    found = _parse(form)
    if not found.positive.digits and (decimals is not None or found.negative is None):
        found = _parse(_DEFAULT)
    locale = locale_of(language)
    signs = str.maketrans({",": get_group_symbol(locale), ".": get_decimal_symbol(locale)})
    percent = locale.percent_formats[None].suffix[0]
    first = found.positive
    bare = (first.before, first.after, first.scale, first.power) == ("", "", 0, 0) and first.whole < 2
    if decimals is not None and bare and found.negative is None and found.zero is None:
        # Published values are rounded already: what most cells of a page are printed by.
        spec = f"{',' if first.grouped else ''}.{decimals}f"

        def plain(value: float) -> str:
            digits = format(value, spec)
            if digits.startswith("-") and not digits.strip("-0.,"):
                digits = digits[1:]
            return digits.translate(signs)

        return plain

    def dressed(value: float) -> str:
        section, sign = first, ""
        number = abs(Decimal(repr(float(value))))
        if value < 0:
            section, sign = (first, "-") if found.negative is None else (found.negative, "")
        elif value == 0 and found.zero is not None:
            section = found.zero
        digits = _digits(number, section, decimals) if section.digits else ""
        if sign and not digits.strip("0.,"):
            sign = ""
        before, after = (
            text.replace("%", percent) if section.percent else text
            for text in (section.before, section.after)
        )
        return f"{sign}{before}{digits.translate(signs)}{after}"

    return dressed


def _digits(number: Decimal, section: _Section, decimals: int | None) -> str:
    least, most = section.least, section.most
    power = ""
    if section.power:
        exponent = number.adjusted() if number else 0
        number = number.scaleb(-exponent, _EXACT)
        power = f"E{'-' if exponent < 0 else '+'}{abs(exponent):0{section.power}d}"
    else:
        number = number.scaleb(section.scale, _EXACT)
        if decimals is not None:
            least = most = max(decimals - section.scale, 0)
    text = format(number.quantize(Decimal(1).scaleb(-most), context=_EXACT), "f")
    whole, _, fraction = text.partition(".")
    while len(fraction) > least and fraction.endswith("0"):
        fraction = fraction[:-1]
    if whole == "0" and section.whole == 0 and decimals is None:
        whole = ""
    whole = whole.rjust(section.whole, "0")
    if section.grouped and whole:
        whole = re.sub(r"(?<=\d)(?=(?:\d{3})+$)", ",", whole)
    return f"{whole}{'.' if fraction else ''}{fraction}{power}"


def format_decimals(form: str | None) -> int | None:
    """Decimals of the value that a format string shows: two more for percentages."""
    if form is None:
        return None
    first = _parse(form).positive
    return max(first.most + first.scale, 0)


def decimals_format(decimals: int) -> str:
    """The format of numbers with so many decimals."""
    return "#,##0" + ("." + "0" * decimals if decimals else "")


def spelled_out(form: str, language: str) -> str:
    """A format string with its currency said: ``Currency`` is that of the country of a language.

    It is spelled out where a cube or query is read, by the language of the publication: what is in euros is
    in euros in all of its languages.
    """
    if form.startswith("|"):
        # As of ``|#,##0|style=red``, which some clients paint: what stands between the bars.
        form = form.split("|")[1]
    return _currency(language) if form.strip().lower() == "currency" else form


@cache
def _currency(language: str) -> str:
    locale = locale_of(language)
    territory = locale.territory or Locale.parse(get_global("likely_subtags")[locale.language]).territory
    sign = get_currency_symbol(next(iter(get_territory_currencies(territory or "")), "EUR"), locale)
    pattern = locale.currency_formats["accounting"]
    parts = (f"{before}#,##0.00{after}" for before, after in zip(pattern.prefix, pattern.suffix, strict=True))
    return ";".join(part.replace("¤", f'"{sign}"').replace("\N{NO-BREAK SPACE}", " ") for part in parts)


def percent_scale(style: CellStyle) -> int:
    """Power of ten by which the printed number exceeds the published one: 2 for a percentage."""
    return 2 if _parse(style.format).positive.percent else 0


def rounded(values: FloatArray, digits: int) -> FloatArray:
    """Values at so many digits behind the point, halves away from zero; never a negative zero.

    What is half is said by the shortest digits that give a number back: what is published, what `Round` gives
    and what a format string prints are one.
    """
    scaled = np.abs(values) * 10.0**digits
    result: FloatArray = np.where(scaled < _WHOLE, np.round(values, digits), values) + 0.0
    near = np.abs(scaled - np.floor(scaled) - 0.5) <= 1e-6 + scaled * 1e-15
    for place in np.flatnonzero(near & (scaled < _WHOLE)).tolist():
        exact = Decimal(repr(float(values[place]))).quantize(Decimal(1).scaleb(-digits), context=_EXACT)
        result[place] = float(exact)
    return result


def format_value(value: float, style: CellStyle, language: str) -> str:
    """A published value as the site prints it, with all its published digits."""
    form = "" if style.format.strip().lower() in _GENERAL else style.format
    return _printer(form or _DEFAULT, style.decimals, language)(value)


def format_text(value: float, form: str, language: str) -> str:
    """Any value as its format string alone says; nan is an empty cell."""
    name = form.strip().lower()
    if math.isnan(value):
        return _parse(form).empty
    if name in _GENERAL:
        signs = str.maketrans({".": get_decimal_symbol(locale_of(language))})
        return plain_number(value).translate(signs)
    if name in _WORDS:
        return _WORDS[name][value == 0]
    if is_date_format(form):
        return format_date(value, form, locale_of(language))
    return _printer(form, None, language)(value)


def plain_number(value: float) -> str:
    """A value for machines: the shortest digits that give the number back, no exponent."""
    text = float.__repr__(float(value))
    if text.endswith(".0"):
        return text[:-2]
    return text if "e" not in text else str(np.format_float_positional(value, trim="-"))
