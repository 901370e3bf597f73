"""What charts are made of: places of marks, ready for the SVG templates, and the figures behind them.

Horizontal positions are percentages, so that a chart fits any width with its letters at full size;
vertical ones are pixels. A hidden cell has no position of its own: in place of a bar stands a short hatched
mark of always the same size, of a point hatching from edge to edge, whatever the value. Scales are made from
shown values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from babel.numbers import format_compact_decimal
from markupsafe import Markup

from app.domain.masked import AxisMember, CellStatus, CellStyle, MaskedCellSet
from app.domain.numbers import format_value, locale_of
from app.web.scales import Scale
from app.web.tables import STATES, caption, grid_of

Kind = Literal["bar", "line", "stacked", "pyramid", "scatter"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: As many colours as the style sheet has.
COLOURS = 8
#: Pixels across of the mark that stands for a hidden bar, and of it with its sign and some room.
SHORT, PLACE = 14, 40


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
    """A bar, a segment of one, or a point. ``state`` as in a table's cell.

    A mark of a fixed size has no ``width`` but a ``shift``, the pixels by which it stands beside ``x``.
    """

    state: str
    series: int
    label: str
    text: str = ""
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    negative: bool = False
    shift: float = 0.0


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
    """A chart's geometry; which lists are filled depends on its kind, ``stub`` is a size.

    ``across`` are the ticks of the horizontal axis and ``axes`` name both, where points stand by two figures.
    """

    kind: Kind
    height: float
    zero: float
    ticks: tuple[Tick, ...]
    categories: tuple[Label, ...]
    series: tuple[str, ...]
    marks: tuple[Mark, ...]
    segments: tuple[Segment, ...]
    hidden: int
    unreleased: int
    stub: str
    across: tuple[Tick, ...] = ()
    axes: tuple[str, str] = ("", "")


@dataclass(frozen=True, eq=False)
class Data:
    """The figures of a chart: ``values``, ``states`` and ``texts`` by category, then by series."""

    categories: tuple[str, ...]
    series: tuple[str, ...]
    values: list[list[float]]
    states: list[list[int]]
    texts: list[list[str]]
    style: CellStyle | None
    styles: list[list[CellStyle]]
    language: str

    def shown(self) -> list[float]:
        return [
            value
            for values, states in zip(self.values, self.states, strict=True)
            for value, state in zip(values, states, strict=True)
            if state == CellStatus.SHOWN
        ]


def data_of(masked: MaskedCellSet, options: Mapping[str, Any], time: frozenset[str], language: str) -> Data:
    """The figures of a masked cellset, by categories and series."""
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
    return Data(
        categories=labels_of(rows, language),
        series=labels_of(columns, language),
        values=values.tolist(),
        states=status.tolist(),
        texts=texts,
        style=styles[int(style.flat[0])] if style.size else None,
        styles=[[styles[number] for number in numbers] for numbers in style.tolist()],
        language=language,
    )


def labels_of(positions: Sequence[tuple[AxisMember, ...]], language: str) -> tuple[str, ...]:
    """Captions of tuples, without the members that all of them share."""
    if not positions:
        return ()
    width = len(positions[0])
    telling = [k for k in range(width) if len({position[k].unique_name for position in positions}) > 1]
    chosen = telling or list(range(width))[-1:]
    return tuple(" · ".join(caption(position[k], language) for k in chosen) for position in positions)


def ticks_of(
    scale: Scale, data: Data, place: Callable[[float], float], style: CellStyle | None = None
) -> tuple[Tick, ...]:
    """The grid of a scale; figures are said in a style of their own where the axes differ."""
    last = len(scale.ticks) - 1
    return tuple(
        Tick(place(tick), _tick_text(tick, scale, data, style or data.style), index in (0, last, last / 2))
        for index, tick in enumerate(scale.ticks)
    )


def _tick_text(value: float, scale: Scale, data: Data, style: CellStyle | None) -> str:
    if max(abs(tick) for tick in scale.ticks) >= 1e5:
        return str(format_compact_decimal(value, locale=locale_of(data.language), fraction_digits=1))
    step = abs(scale.ticks[1] - scale.ticks[0])
    style = style or CellStyle("#,##0", 0, {})
    needed = next((digits for digits in range(7) if abs(round(step, digits) - step) < 1e-12), 6)
    return format_value(value, CellStyle(style.format, needed, style.unit), data.language)


def absent(
    state: int, series: int, label: str, x: float, y: float, height: float, shift: float = 0.0
) -> Mark:
    """A cell without a figure: a mark of a fixed size where bars begin, which looks like no value."""
    return Mark(STATES[state], series % COLOURS, label, x=x, y=y, height=height, shift=shift)


def veils(
    names: Sequence[str], states: Sequence[int], before: str, x: float, y: float, width: float, height: float
) -> Iterator[Mark]:
    """Hatching for the hidden cells of a place, side by side for each reason; it tells their names."""
    reasons = list(_hidden_of(names, states, before))
    for number, (state, label) in enumerate(reasons):
        part = width / len(reasons)
        yield Mark(state, 0, label, x=x + number * part, y=y, width=part, height=height)


def leftovers(
    names: Sequence[str], states: Sequence[int], before: str, x: float, y: float, height: float
) -> Iterator[Mark]:
    """As `veils`, in marks of a fixed size behind the shown part of a row of bars."""
    for number, (state, label) in enumerate(_hidden_of(names, states, before)):
        yield Mark(state, 0, label, x=x, y=y, height=height, shift=PLACE * number)


def _hidden_of(names: Sequence[str], states: Sequence[int], before: str) -> Iterator[tuple[str, str]]:
    """The reasons why figures of a place aren't shown, each with the names of those."""
    for status in (CellStatus.CONFIDENTIAL, CellStatus.UNRELEASED):
        told = [name for name, state in zip(names, states, strict=True) if state == status]
        if told:
            yield STATES[status], ", ".join([*filter(None, [before]), *told])


def room_for(labels: Sequence[str], short: int, middling: int) -> str:
    """How much room the labels beside the plot take, as a class of the style sheet."""
    longest = max((len(label) for label in labels), default=0)
    return "short" if longest <= short else "middling" if longest <= middling else "long"


def count(data: Data, status: CellStatus) -> int:
    """How many figures have a status."""
    return sum(state == status for states in data.states for state in states)


def pixels(value: float) -> Markup:
    """A coordinate with no more digits than an eye can tell."""
    return Markup(f"{value:.2f}".rstrip("0").rstrip(".") or "0")
