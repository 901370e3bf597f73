"""Charts of masked cells: bars, stacked bars and lines; population pyramids and scatters beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.domain.errors import InternalError
from app.domain.masked import CellStatus, MaskedCellSet
from app.web.marks import (
    COLOURS,
    KINDS,
    SHORT,
    Chart,
    Data,
    Kind,
    Label,
    Mark,
    Segment,
    Tick,
    absent,
    count,
    data_of,
    leftovers,
    pixels,
    room_for,
    ticks_of,
    veils,
)
from app.web.pairs import pyramid, scatter
from app.web.scales import Scale, scale_over

_BAR = 18
_GROUPED_BAR = 13
_GAP = 9
_TOP = 6
_AXIS = 26
_LINE_HEIGHT = 300
#: As many figures and as many colours as an eye takes in at once, where a reader asks for the chart.
_MOST_MARKS, _MOST_SERIES = 600, 12


def draw(
    masked: MaskedCellSet,
    options: Mapping[str, Any],
    time: frozenset[str],
    language: str,
) -> Chart:
    """The chart of a masked cellset.

    Parameters
    ----------
    masked : MaskedCellSet
    options : mapping
        ``chart`` is ``bar``, ``line``, ``stacked``, ``pyramid`` or ``scatter`` (``line`` when there is time
        on an axis, else ``bar``); what the figures don't allow is drawn as bars. ``x`` is ``rows`` or
        ``columns``, the axis of the categories.
    time : frozenset of str
        Hierarchies of time, which a line runs along.
    language : str
    """
    data = data_of(masked, options, time, language)
    kind = usual(masked, options, time)
    if kind == "line":
        return _line(data)
    if kind == "scatter" and len(data.series) > 1:
        return scatter(data)
    if kind == "pyramid" and len(data.series) == 2 and all(value >= 0 for value in data.shown()):
        return pyramid(data)
    if kind == "stacked" and all(value >= 0 for value in data.shown()):
        return _stacked(data)
    if kind in ("bar", "stacked", "pyramid", "scatter"):
        return _bar(data)
    raise InternalError(f"a chart of unknown kind: {kind}")


def usual(masked: MaskedCellSet, options: Mapping[str, Any], time: frozenset[str]) -> str:
    """The kind of chart that a query is drawn as where no reader says another."""
    return str(options.get("chart") or ("line" if _runs_along_time(masked, time) else "bar"))


def as_kind(options: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """A query's options with a reader's kind of chart; a line finds its axis by itself."""
    own = {**options, "chart": kind}
    return {name: value for name, value in own.items() if name != "x"} if kind == "line" else own


def kinds_for(
    masked: MaskedCellSet, options: Mapping[str, Any], time: frozenset[str], language: str, adds_up: bool
) -> tuple[Kind, ...]:
    """The kinds of chart that make sense of the figures, hidden ones left aside.

    ``adds_up``: the columns are parts of a whole, none of them a total of others.
    """
    if not 0 < masked.status.size <= _MOST_MARKS:
        return ()
    data = data_of(masked, as_kind(options, "bar"), time, language)
    alike = len({tuple(sorted(style.unit.items())) for styles in data.styles for style in styles}) == 1
    positive = all(value >= 0 for value in data.shown())
    across, down = len(data.series), len(data.categories)
    runs = _runs_along_time(masked, time)
    points = len(data_of(masked, as_kind(options, "line"), time, language).categories) if runs else 0
    may = {
        "bar": alike and across <= _MOST_SERIES and down > 1,
        "line": alike and masked.status.size <= _MOST_SERIES * points and points > 2,
        "stacked": alike and positive and adds_up and 1 < across <= _MOST_SERIES and down > 1,
        "pyramid": alike and positive and across == 2 and down > 2,
        "scatter": across == 2 and down > 2,
    }
    return tuple(kind for kind in KINDS if may[kind])


def _runs_along_time(masked: MaskedCellSet, time: frozenset[str]) -> bool:
    return any(hierarchy in time for axis in masked.axes for hierarchy in axis.hierarchies)


def _bar(data: Data) -> Chart:
    scale = scale_over(data.shown())
    several = len(data.series)
    thick = _BAR if several == 1 else _GROUPED_BAR
    pitch = thick * several + _GAP
    zero = 100 * scale.place(0.0)
    # On the axis where there are two sides, so that it is on neither.
    shift = -SHORT / 2 if scale.ticks[0] < 0 else 0.0
    marks = []
    for c, category in enumerate(data.categories):
        for s in range(several):
            y = _TOP + c * pitch + _GAP / 2 + s * thick
            label = category if several == 1 else f"{category}, {data.series[s]}"
            state = data.states[c][s]
            if state == CellStatus.SHOWN:
                end = 100 * scale.place(data.values[c][s])
                marks.append(
                    Mark(
                        "shown",
                        s % COLOURS,
                        label,
                        data.texts[c][s],
                        x=min(zero, end),
                        y=y,
                        width=abs(end - zero),
                        height=thick - 2,
                        negative=end < zero,
                    )
                )
            else:
                marks.append(absent(state, s, label, zero, y, thick - 2, shift))
    return _rows("bar", data, scale, zero, pitch, marks)


def _stacked(data: Data) -> Chart:
    sums = [
        sum(v for v, state in zip(values, states, strict=True) if state == CellStatus.SHOWN)
        for values, states in zip(data.values, data.states, strict=True)
    ]
    scale = scale_over(sums)
    pitch = _BAR + 4 + _GAP
    marks = []
    for c, category in enumerate(data.categories):
        y = _TOP + c * pitch + _GAP / 2
        end = 0.0
        for s, series in enumerate(data.series):
            label = f"{category}, {series}"
            if data.states[c][s] == CellStatus.SHOWN:
                width = 100 * scale.place(data.values[c][s])
                marks.append(Mark("shown", s % COLOURS, label, data.texts[c][s], end, y, width, _BAR + 4))
                end += width
        marks += leftovers(data.series, data.states[c], category, end, y, _BAR + 4)
    return _rows("stacked", data, scale, 0.0, pitch, marks)


def _rows(kind: Kind, data: Data, scale: Scale, zero: float, pitch: float, marks: list[Mark]) -> Chart:
    """A chart with a row of bars for each category."""
    return Chart(
        kind=kind,
        height=_TOP + pitch * len(data.categories) + _AXIS,
        zero=zero,
        ticks=ticks_of(scale, data, lambda tick: 100 * scale.place(tick)),
        categories=tuple(
            Label(category, _TOP + c * pitch + pitch / 2) for c, category in enumerate(data.categories)
        ),
        series=data.series,
        marks=tuple(marks),
        segments=(),
        hidden=count(data, CellStatus.CONFIDENTIAL),
        unreleased=count(data, CellStatus.UNRELEASED),
        stub=room_for(data.categories, 12, 22),
    )


def _line(data: Data) -> Chart:
    scale = scale_over(data.shown(), with_zero=False)
    n = len(data.categories)
    bottom = _TOP + 12 + _LINE_HEIGHT

    def across(c: int) -> float:
        return 50.0 if n == 1 else 3 + 94 * c / (n - 1)

    def down(value: float) -> float:
        return bottom - _LINE_HEIGHT * scale.place(value)

    marks, segments = [], []
    for s, series in enumerate(data.series):
        before: Mark | None = None
        for c, category in enumerate(data.categories):
            if data.states[c][s] != CellStatus.SHOWN:
                before = None
                continue
            point = Mark(
                "shown",
                s % COLOURS,
                f"{category}, {series}",
                data.texts[c][s],
                across(c),
                down(data.values[c][s]),
            )
            if before is not None:
                segments.append(Segment(s % COLOURS, before.x, before.y, point.x, point.y))
            marks.append(point)
            before = point
    for c, category in enumerate(data.categories):
        marks += veils(data.series, data.states[c], category, across(c) - 2.5, _TOP, 5, bottom - _TOP)
    ticks = ticks_of(scale, data, down)
    step = max(1, -(-n // 6))
    return Chart(
        kind="line",
        height=bottom + _AXIS,
        zero=bottom,
        ticks=ticks,
        categories=tuple(
            Label(category, across(c), sparse=(n - 1 - c) % step == 0)
            for c, category in enumerate(data.categories)
        ),
        series=data.series,
        marks=tuple(marks),
        segments=tuple(segments),
        hidden=count(data, CellStatus.CONFIDENTIAL),
        unreleased=count(data, CellStatus.UNRELEASED),
        stub=room_for([tick.text for tick in ticks], 4, 9),
    )


__all__ = [
    "Chart",
    "Kind",
    "Label",
    "Mark",
    "Segment",
    "Tick",
    "as_kind",
    "draw",
    "kinds_for",
    "pixels",
    "usual",
]
