"""Charts of pairs: population pyramids (two series back to back) and scatters (two figures a point)."""

from __future__ import annotations

from app.domain.masked import CellStatus
from app.web.marks import (
    SHORT,
    Chart,
    Data,
    Label,
    Mark,
    absent,
    count,
    room_for,
    ticks_of,
    veils,
)
from app.web.scales import scale_over

_BAR = 18
_PITCH = 24
_TOP = 6
_AXIS = 26
_HEIGHT = 320
#: Share of a scatter's width that is kept for the hatching of points without a place.
_ASIDE = 7.0
_HIDDEN = (CellStatus.CONFIDENTIAL, CellStatus.UNRELEASED)


def pyramid(data: Data) -> Chart:
    """Two series back to back, the first category at the bottom.

    Each half is a plot of its own, from its middle edge outwards, where a hidden cell's mark stands as well.
    """
    scale = scale_over(data.shown(), steps=4)
    marks = []
    n = len(data.categories)
    for c, category in enumerate(data.categories):
        y = _TOP + (n - 1 - c) * _PITCH + (_PITCH - _BAR) / 2
        for s, series in enumerate(data.series):
            label = f"{category}, {series}"
            if data.states[c][s] != CellStatus.SHOWN:
                middle, shift = (0.0, 0.0) if s else (100.0, -float(SHORT))
                marks.append(absent(data.states[c][s], s, label, middle, y, _BAR, shift))
                continue
            width = 100 * scale.place(data.values[c][s])
            x = 100 - width if s == 0 else 0.0
            marks.append(Mark("shown", s, label, data.texts[c][s], x, y, width, _BAR, negative=s == 0))
    return Chart(
        kind="pyramid",
        height=_TOP + _PITCH * n + _AXIS,
        zero=0.0,
        ticks=ticks_of(scale, data, lambda tick: 100 * scale.place(tick)),
        categories=tuple(
            Label(category, _TOP + (n - 1 - c) * _PITCH + _PITCH / 2)
            for c, category in enumerate(data.categories)
        ),
        series=data.series,
        marks=tuple(marks),
        segments=(),
        hidden=count(data, CellStatus.CONFIDENTIAL),
        unreleased=count(data, CellStatus.UNRELEASED),
        stub=room_for(data.categories, 8, 14),
    )


def scatter(data: Data) -> Chart:
    """A point for each category: across by the first series, up by the second.

    A category with a hidden figure has no place: all of those share one hatched strip at the edge.
    """
    pairs = [
        (c, values)
        for c, (values, states) in enumerate(zip(data.values, data.states, strict=True))
        if states[0] == states[1] == CellStatus.SHOWN
    ]
    along = scale_over([values[0] for _, values in pairs], with_zero=False)
    up = scale_over([values[1] for _, values in pairs], with_zero=False)
    worst = [
        next((status for status in _HIDDEN if status in states[:2]), CellStatus.SHOWN)
        for states in data.states
    ]
    hidden = any(status in _HIDDEN for status in worst)
    room = 100 - _ASIDE if hidden else 100.0
    bottom = _TOP + 12 + _HEIGHT

    def across(value: float) -> float:
        return room * along.place(value)

    def down(value: float) -> float:
        return bottom - _HEIGHT * up.place(value)

    marks = [
        Mark(
            "shown",
            0,
            data.categories[c],
            " · ".join(data.texts[c][:2]),
            across(values[0]),
            down(values[1]),
        )
        for c, values in pairs
    ]
    if hidden:
        aside = 100 - _ASIDE + 1
        marks += veils(data.categories, worst, "", aside, _TOP, _ASIDE - 1, bottom - _TOP)
    styles = data.styles[0] if data.styles else [None, None]
    ticks = ticks_of(up, data, down, styles[1])
    return Chart(
        kind="scatter",
        height=bottom + _AXIS + 22,
        zero=bottom,
        ticks=ticks,
        categories=(),
        series=data.series[:1],
        marks=tuple(marks),
        segments=(),
        hidden=sum(states[:2].count(int(CellStatus.CONFIDENTIAL)) for states in data.states),
        unreleased=sum(states[:2].count(int(CellStatus.UNRELEASED)) for states in data.states),
        stub=room_for([tick.text for tick in ticks], 4, 9),
        across=ticks_of(along, data, across, styles[0]),
        axes=(data.series[0], data.series[1]),
    )
