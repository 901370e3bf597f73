"""MDX functions of dates: texts such as ``2021-03-05``, or numbers of days as Visual Basic counts them.

Nothing tells today's date: a published table has to be the same tomorrow.
"""

from __future__ import annotations

import calendar
from datetime import datetime, timedelta
from fractions import Fraction

from app.cube.context import Context
from app.cube.evaluate import Evaluator, function
from app.cube.values import Value
from app.domain.dates import of_serial, serial_of, to_serial
from app.domain.formula import Linear, constant
from app.mdx import brief
from app.mdx.tree import Call, Expression

_PARTS = {
    "yyyy": lambda date: date.year,
    "q": lambda date: (date.month + 2) // 3,
    "m": lambda date: date.month,
    "y": lambda date: date.timetuple().tm_yday,
    "d": lambda date: date.day,
    "w": lambda date: date.isoweekday() % 7 + 1,
    "h": lambda date: date.hour,
    "n": lambda date: date.minute,
    "s": lambda date: date.second,
}
_OF_FUNCTIONS = {
    "YEAR": "yyyy",
    "MONTH": "m",
    "DAY": "d",
    "HOUR": "h",
    "MINUTE": "n",
    "SECOND": "s",
    "WEEKDAY": "w",
}
_MONTHS = {"yyyy": 12, "q": 3, "m": 1}
_SECONDS = {"ww": 604_800, "w": 86_400, "d": 86_400, "y": 86_400, "h": 3_600, "n": 60, "s": 1}


def _date(ev: Evaluator, node: Expression | None, ctx: Context, call: Call) -> datetime:
    value = ev.evaluate(ev.given(node, ctx), ctx)
    serial = None
    if isinstance(value, str):
        serial = serial_of(value)
    elif isinstance(value, Linear) and value.is_constant and value.constant is not None:
        serial = float(value.constant)
    date = None if serial is None else of_serial(serial)
    if date is None:
        cause = f"{call.function} takes a date such as '2021-03-05', the same in all cells."
        raise ev.error(ctx, call.at, cause)
    return date


def _serial(date: datetime) -> Value:
    return constant(Fraction(to_serial(date)).limit_denominator(86_400))


def _interval(ev: Evaluator, node: Expression | None, ctx: Context, call: Call) -> str:
    word = ev.to_text(node, ctx).lower()
    if word not in _MONTHS and word not in _SECONDS:
        cause = (
            f"{call.function} knows no interval {brief(word)}; there are: {', '.join([*_MONTHS, *_SECONDS])}."
        )
        raise ev.error(ctx, call.at, cause)
    return word


@function("CDATE", "DATEVALUE")
def _as_date(ev: Evaluator, call: Call, ctx: Context) -> Value:
    date = _date(ev, ev.arguments(call, 1, 1, ctx)[0], ctx, call)
    if call.function.upper() == "DATEVALUE":
        date = date.replace(hour=0, minute=0, second=0)
    return _serial(date)


@function("DATESERIAL")
def _of_numbers(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """Months and days beyond the year's or the month's go on into the next ones."""
    year, month, day = (ev.to_integer(node, ctx) for node in ev.arguments(call, 3, 3, ctx))
    try:
        return _serial(_months_on(datetime(year, 1, 1), month - 1) + timedelta(days=day - 1))
    except (ValueError, OverflowError):
        raise ev.error(ctx, call.at, "There is no such date.") from None


@function(*_OF_FUNCTIONS)
def _part_of(ev: Evaluator, call: Call, ctx: Context) -> Value:
    date = _date(ev, ev.arguments(call, 1, 1, ctx)[0], ctx, call)
    return constant(_PARTS[_OF_FUNCTIONS[call.function.upper()]](date))


@function("DATEPART")
def _named_part(ev: Evaluator, call: Call, ctx: Context) -> Value:
    which, node = ev.arguments(call, 2, 2, ctx)
    word, date = _interval(ev, which, ctx, call), _date(ev, node, ctx, call)
    if word == "ww":
        # The first week is that of January 1, and weeks begin on Sundays.
        first = date.replace(month=1, day=1).isoweekday() % 7
        return constant((date.timetuple().tm_yday - 1 + first) // 7 + 1)
    return constant(_PARTS[word](date))


@function("DATEADD")
def _later(ev: Evaluator, call: Call, ctx: Context) -> Value:
    which, count, node = ev.arguments(call, 3, 3, ctx)
    word, date, n = _interval(ev, which, ctx, call), _date(ev, node, ctx, call), ev.to_integer(count, ctx)
    try:
        if word in _MONTHS:
            return _serial(_months_on(date, n * _MONTHS[word]))
        return _serial(date + timedelta(seconds=n * _SECONDS[word]))
    except (ValueError, OverflowError):
        raise ev.error(ctx, call.at, "There is no such date.") from None


def _months_on(date: datetime, n: int) -> datetime:
    """So many months later, on the month's last day where it has no such day."""
    years, month = divmod(date.year * 12 + date.month - 1 + n, 12)
    if not 1 <= years <= 9_999:
        raise ValueError("no such year")
    return date.replace(
        year=years, month=month + 1, day=min(date.day, calendar.monthrange(years, month + 1)[1])
    )


@function("DATEDIFF")
def _between(ev: Evaluator, call: Call, ctx: Context) -> Value:
    """How many intervals begin between two dates, as Visual Basic counts them."""
    which, one, other = ev.arguments(call, 3, 3, ctx)
    word = _interval(ev, which, ctx, call)
    first, last = (_date(ev, node, ctx, call) for node in (one, other))
    if word in _MONTHS:
        places = [(date.year * 12 + date.month - 1) // _MONTHS[word] for date in (first, last)]
        return constant(places[1] - places[0])
    if word == "w":
        return constant(int((last - first) / timedelta(days=7)))
    # Weeks begin on Sundays; day 1 of the count is one.
    places = [int(to_serial(date) * 86_400 + 0.5) for date in (first, last)]
    if word == "ww":
        places = [place - 86_400 for place in places]
    return constant(places[1] // _SECONDS[word] - places[0] // _SECONDS[word])
