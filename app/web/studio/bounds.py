"""The chart of both bounds: the cost of the best pattern comes down, what is proven comes up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from babel import Locale
from babel.numbers import format_compact_decimal, format_decimal

from app.domain.numbers import locale_of
from app.office.jobs import BoundsPoint
from app.web.scales import scale_over

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 30, 10, 26


@dataclass(frozen=True)
class Label:
    """A line of the grid and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class BoundsChart:
    """Steps of both bounds, ready for the template: paths in pixels, ticks, and the last values as texts."""

    lower: str
    upper: str
    rows: tuple[Label, ...]
    columns: tuple[Label, ...]
    last_lower: str
    last_upper: str
    gap: str


def bounds_chart(points: Sequence[BoundsPoint], language: str) -> BoundsChart | None:
    """The chart, None while there is nothing to draw."""
    values = [v for point in points for v in (point.lower, point.upper) if math.isfinite(v)]
    if not values:
        return None
    locale = locale_of(language)
    ys = scale_over(values, steps=4)
    xs = scale_over([0.0, *(point.seconds for point in points)], steps=5)

    def x(seconds: float) -> float:
        return round(LEFT + xs.place(seconds) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - ys.place(value) * (HEIGHT - TOP - BOTTOM), 1)

    def path(found: Iterable[tuple[float, float]]) -> str:
        parts: list[str] = []
        for seconds, value in found:
            if math.isfinite(value):
                parts.append(f"H{x(seconds)}V{y(value)}" if parts else f"M{x(seconds)} {y(value)}")
        return "".join(parts) + (f"H{x(points[-1].seconds)}" if parts else "")

    lower, upper = points[-1].lower, points[-1].upper
    both = math.isfinite(lower) and math.isfinite(upper)
    gap = (upper - lower) / upper if both and upper > 0 else 0.0
    return BoundsChart(
        lower=path((point.seconds, point.lower) for point in points),
        upper=path((point.seconds, point.upper) for point in points),
        rows=tuple(Label(y(tick), format_compact_decimal(tick, locale=locale)) for tick in ys.ticks),
        columns=tuple(Label(x(tick), f"{tick:g} s") for tick in xs.ticks),
        last_lower=_number(lower, locale),
        last_upper=_number(upper, locale),
        gap=f"{gap:.2%}" if both else "",
    )


def _number(value: float, locale: Locale) -> str:
    return format_decimal(float(f"{value:.6g}"), locale=locale) if math.isfinite(value) else "…"
