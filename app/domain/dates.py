"""Dates as Visual Basic counts them: days since 30 December 1899, the time of day behind the point."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from functools import lru_cache

from babel import Locale
from babel.dates import get_day_names, get_month_names

_ZERO = datetime(1899, 12, 30)
_LEAST, _MOST = -657_434, 2_958_465
_TEXT = re.compile(r"\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[ T](\d{1,2}):(\d{2})(?::(\d{2}))?)?\s*")
_NAMED = {
    "long date": "dddd, mmmm dd, yyyy",
    "medium date": "dd-mmm-yy",
    "short date": "m/d/yyyy",
    "general date": "m/d/yyyy h:nn:ss AM/PM",
    "long time": "h:nn:ss AM/PM",
    "medium time": "h:nn AM/PM",
    "short time": "hh:nn",
}
_TOKEN = re.compile(
    r'"([^"]*)"?|\\(.)|(AM/PM|AMPM|y{1,4}|m{1,4}|d{1,4}|h{1,2}|n{1,2}|s{1,2})|(.)', re.IGNORECASE | re.DOTALL
)


def serial_of(text: str) -> float | None:
    """The date that a text is, as ``2021-03-05`` or ``2021-03-05 17:30``; None of any other."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    try:
        return to_serial(datetime(*(int(part or 0) for part in found.groups())))  # type: ignore[arg-type]
    except ValueError:
        return None


def to_serial(date: datetime) -> float:
    return (date - _ZERO) / timedelta(days=1)


def of_serial(serial: float) -> datetime | None:
    """The moment, to the second; None where there is none."""
    if not _LEAST <= serial <= _MOST or math.isnan(serial):
        return None
    return _ZERO + timedelta(seconds=round(serial * 86_400))


@lru_cache(maxsize=256)
def is_date_format(form: str) -> bool:
    """Whether a format string prints dates: all its letters stand for parts of one."""
    form = _NAMED.get(form.strip().lower(), form)
    parts, letters = 0, 0
    for _, escaped, part, other in _TOKEN.findall(form):
        parts += bool(part) and not escaped
        letters += bool(other) and (other.isalpha() or other in "0#;%")
    return parts > 1 and not letters


def format_date(serial: float, form: str, locale: Locale) -> str:
    """A date as its format string says; an empty text where there is none."""
    date = of_serial(serial)
    if date is None:
        return ""
    form = _NAMED.get(form.strip().lower(), form)
    tokens = _TOKEN.findall(form)
    halves = any(part.upper() in ("AM/PM", "AMPM") for _, _, part, _ in tokens)
    found, of_hours = [], False
    for quoted, escaped, part, other in tokens:
        word = part.lower()
        # Behind hours, m are minutes.
        if word in ("m", "mm") and of_hours:
            word = word.replace("m", "n")
        if part:
            of_hours = word in ("h", "hh")
        found.append(_part(date, word, halves, locale) if part else quoted or escaped or other)
    return "".join(found)


def _part(date: datetime, word: str, halves: bool, locale: Locale) -> str:
    hour = (date.hour - 1) % 12 + 1 if halves else date.hour
    numbers = {
        "y": date.year % 100,
        "m": date.month,
        "d": date.day,
        "h": hour,
        "n": date.minute,
        "s": date.second,
    }
    if word in ("am/pm", "ampm"):
        return "AM" if date.hour < 12 else "PM"
    if word[0] == "y":
        return str(date.year) if len(word) > 2 else f"{date.year % 100:02d}"
    if word in ("mmm", "mmmm"):
        return str(get_month_names("abbreviated" if word == "mmm" else "wide", locale=locale)[date.month])
    if word in ("ddd", "dddd"):
        return str(get_day_names("abbreviated" if word == "ddd" else "wide", locale=locale)[date.weekday()])
    return str(numbers[word[0]]).rjust(len(word), "0")
