"""Charts of masked cells: where each mark stands, ready for the SVG templates.

Horizontal positions are percentages, so that a chart fits any width with its letters at full size;
vertical ones are pixels. A hidden cell has no position of its own: its hatching always covers the same
place, whatever the value, and scales are made from shown values alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from babel.numbers import format_compact_decimal
from markupsafe import Markup

from app.domain.errors import InternalError
from app.domain.masked import AxisMember, CellStatus, CellStyle, MaskedCellSet
from app.domain.numbers import format_value, locale_of
from app.web.scales import Scale, scale_over
from app.web.tables import caption, grid_of

Kind = Literal["bar", "line", "stacked"]

#: As many colours as the style sheet has.
COLOURS = 8

_BAR = 18
_GROUPED_BAR = 13
_GAP = 9
_TOP = 6
_AXIS = 26
_LINE_HEIGHT = 300


@dataclass(frozen=True)
class Tick:
    """A line of the grid: its position (per cent or pixels) and what it says.

    ``sparse`` ones keep their text when there is little room.
    """

    at: float
    text: str
    sparse: bool = True


@dataclass(frozen=True)
class Mark:
    """A bar, a segment of one, or a point. ``state`` as in a table's cell."""

    state: str
    series: int
    label: str
    text: str = ""
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    negative: bool = False


@dataclass(frozen=True)
class Label:
    """The name of a category; ``sparse`` ones stay when there is little room."""

    text: str
    at: float
    sparse: bool = True


@dataclass(frozen=True)
class Segment:
    """A stroke between two points of a series that follow one another."""

    series: int
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True)
class Chart:
    """A chart's geometry; which lists are filled depends on its kind, ``stub`` is a size."""

    kind: Kind
    height: float
    zero: float
    ticks: tuple[Tick, ...]
    categories: tuple[Label, ...]
    series: tuple[str, ...]
    marks: tuple[Mark, ...]
    segments: tuple[Segment, ...]
    hidden: int
    stub: str


@dataclass(frozen=True, eq=False)
class _Data:
    categories: tuple[str, ...]
    series: tuple[str, ...]
    #: [category][series] → value where shown
    values: list[list[float]]
    states: list[list[int]]
    texts: list[list[str]]
    style: CellStyle | None
    language: str

    def shown(self) -> list[float]:
        return [
            value
            for values, states in zip(self.values, self.states, strict=True)
            for value, state in zip(values, states, strict=True)
            if state == CellStatus.SHOWN
        ]


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
        ``chart`` is ``bar``, ``line`` or ``stacked`` (``line`` when there is time on an axis, else
        ``bar``); ``x`` is ``rows`` or ``columns``, the axis of the categories.
    time : frozenset of str
        Hierarchies of time, which a line runs along.
    language : str
    """
    data = _data(masked, options, time, language)
    kind = options.get("chart") or ("line" if _runs_along_time(masked, time) else "bar")
    if kind == "line":
        return _line(data)
    if kind == "stacked" and all(value >= 0 for value in data.shown()):
        return _stacked(data)
    if kind in ("bar", "stacked"):
        return _bar(data)
    raise InternalError(f"a chart of unknown kind: {kind}")


def _runs_along_time(masked: MaskedCellSet, time: frozenset[str]) -> bool:
    return any(hierarchy in time for axis in masked.axes for hierarchy in axis.hierarchies)


def _data(masked: MaskedCellSet, options: Mapping[str, Any], time: frozenset[str], language: str) -> _Data:
    grid = grid_of(masked)
    along = options.get("x")
    if along is None:
        in_columns = any(h in time for h in (masked.axes[0].hierarchies if masked.axes else ()))
        in_rows = any(h in time for axis in masked.axes[1:] for h in axis.hierarchies)
        along = "columns" if options.get("chart") == "line" and in_columns and not in_rows else "rows"
    values, status, style = grid.values, grid.status, grid.style
    rows, columns = grid.rows, grid.columns
    if along == "columns":
        values, status, style, rows, columns = values.T, status.T, style.T, columns, rows
    styles = masked.styles
    texts = [
        [
            format_value(v, styles[number], language) if state == CellStatus.SHOWN else ""
            for v, state, number in zip(vs, states, numbers, strict=True)
        ]
        for vs, states, numbers in zip(values.tolist(), status.tolist(), style.tolist(), strict=True)
    ]
    return _Data(
        categories=_labels(rows, language),
        series=_labels(columns, language),
        values=values.tolist(),
        states=status.tolist(),
        texts=texts,
        style=styles[int(style.flat[0])] if style.size else None,
        language=language,
    )


def _labels(positions: Sequence[tuple[AxisMember, ...]], language: str) -> tuple[str, ...]:
    """Captions of tuples, without the members that all of them share."""
    if not positions:
        return ()
    width = len(positions[0])
    telling = [k for k in range(width) if len({position[k].unique_name for position in positions}) > 1]
    chosen = telling or list(range(width))[-1:]
    return tuple(" · ".join(caption(position[k], language) for k in chosen) for position in positions)


def _ticks(scale: Scale, data: _Data, place: Any) -> tuple[Tick, ...]:
    last = len(scale.ticks) - 1
    return tuple(
        Tick(place(tick), _tick_text(tick, scale, data), index in (0, last, last / 2))
        for index, tick in enumerate(scale.ticks)
    )


def _tick_text(value: float, scale: Scale, data: _Data) -> str:
    if max(abs(tick) for tick in scale.ticks) >= 1e5:
        return str(format_compact_decimal(value, locale=locale_of(data.language), fraction_digits=1))
    step = abs(scale.ticks[1] - scale.ticks[0])
    style = data.style or CellStyle("#,##0", 0, {})
    needed = next((digits for digits in range(7) if abs(round(step, digits) - step) < 1e-12), 6)
    return format_value(value, CellStyle(style.format, needed, style.unit), data.language)


def _bar(data: _Data) -> Chart:
    scale = scale_over(data.shown())
    count = len(data.series)
    thick = _BAR if count == 1 else _GROUPED_BAR
    pitch = thick * count + _GAP
    zero = 100 * scale.place(0.0)
    marks = []
    for c, category in enumerate(data.categories):
        for s in range(count):
            y = _TOP + c * pitch + _GAP / 2 + s * thick
            label = category if count == 1 else f"{category}, {data.series[s]}"
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
                marks.append(_absent(state, s, label, y, thick - 2))
    return _rows("bar", data, scale, zero, pitch, marks)


def _stacked(data: _Data) -> Chart:
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
        absent = [data.series[s] for s, st in enumerate(data.states[c]) if st == CellStatus.CONFIDENTIAL]
        if absent:
            # What is left of the row: it says that something is missing, not how much.
            label = f"{category}, {', '.join(absent)}"
            marks.append(
                Mark("hidden", 0, label, x=min(end, 88.0), y=y, width=100 - min(end, 88.0), height=_BAR + 4)
            )
    return _rows("stacked", data, scale, 0.0, pitch, marks)


def _rows(kind: Kind, data: _Data, scale: Scale, zero: float, pitch: float, marks: list[Mark]) -> Chart:
    """A chart with a row of bars for each category."""
    return Chart(
        kind=kind,
        height=_TOP + pitch * len(data.categories) + _AXIS,
        zero=zero,
        ticks=_ticks(scale, data, lambda tick: 100 * scale.place(tick)),
        categories=tuple(
            Label(category, _TOP + c * pitch + pitch / 2) for c, category in enumerate(data.categories)
        ),
        series=data.series,
        marks=tuple(marks),
        segments=(),
        hidden=_hidden(data),
        stub=_stub(data.categories, 12, 22),
    )


def _line(data: _Data) -> Chart:
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
        absent = [data.series[s] for s, st in enumerate(data.states[c]) if st == CellStatus.CONFIDENTIAL]
        if absent:
            label = f"{category}, {', '.join(absent)}"
            marks.append(Mark("hidden", 0, label, x=across(c) - 2.5, y=_TOP, width=5, height=bottom - _TOP))
    ticks = _ticks(scale, data, down)
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
        hidden=_hidden(data),
        stub=_stub([tick.text for tick in ticks], 4, 9),
    )


def _absent(state: int, series: int, label: str, y: float, height: float) -> Mark:
    """A cell without a figure: across the whole plot, wherever its value would lie."""
    name = "hidden" if state == CellStatus.CONFIDENTIAL else "empty"
    return Mark(name, series % COLOURS, label, x=0.0, y=y, width=100.0, height=height)


def _stub(labels: Sequence[str], short: int, middling: int) -> str:
    """How much room the labels beside the plot take, as a class of the style sheet."""
    longest = max((len(label) for label in labels), default=0)
    return "short" if longest <= short else "middling" if longest <= middling else "long"


def _hidden(data: _Data) -> int:
    return sum(state == CellStatus.CONFIDENTIAL for states in data.states for state in states)


def pixels(value: float) -> Markup:
    """A coordinate with no more digits than an eye can tell."""
    return Markup(f"{value:.2f}".rstrip("0").rstrip(".") or "0")
