"""Pages that tell too much, one way each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.redteam.pages import block_of, order_tells, parse_page, read_block, rows_as_printed
from app.redteam.report import PageLeak
from app.redteam.tables import TableRow, UnreadableError, read_csv, read_jsonstat

NAMES = ("Alder", "Birch", "Cedar", "Dogwood", "Elm")
VALUES = (40.0, 25.0, None, 70.0, 10.0)


def rows(hidden: Sequence[int] = (2,)) -> list[TableRow]:
    return [
        TableRow({"[Town]": f"[Town].&[{name}]"}, {"[Town]": name}, VALUES[i], 0, i in hidden)
        for i, name in enumerate(NAMES)
    ]


def table(secret: str) -> str:
    body = "".join(
        f"<tr><th>{name}</th>{secret if value is None else f'<td>{value:.0f}</td>'}</tr>"
        for name, value in zip(NAMES, VALUES, strict=True)
    )
    return f"<table><tr><td class=corner></td><th>Firms</th></tr>{body}</table>"


def bar(style: str, says: str, x: str = "0%", width: str = "100%") -> str:
    return f'<rect class="{style}" x="{x}" y="4" width="{width}" height="9"><title>{says}</title></rect>'


def bars(secret: str) -> str:
    marks = "".join(
        secret if value is None else bar("s0", f"{name}: {value:.0f}", width=f"{value * 1.2:.2f}%")
        for name, value in zip(NAMES, VALUES, strict=True)
    )
    return f"<svg>{marks}</svg>"


def leaks_of(inner: str) -> list[PageLeak]:
    page = parse_page(f'<html><body><section id="q">{inner}</section></body></html>')
    block = block_of(page, "q", 0)
    assert block is not None
    leaks, trouble = read_block(block, rows())
    assert not trouble
    return leaks


CLEAN = '<td class="hidden"><abbr title="confidential">[c]</abbr></td>'
VEIL = bar("veil", "Cedar: confidential")


@pytest.mark.parametrize(
    "inner",
    [
        table(CLEAN),
        bars(VEIL),
        bars(bar("veil", "Cedar: confidential", "84%", "14")),
        table(CLEAN) + "<script>const values = [40, 25, null, 70, 10]</script>",
    ],
)
def test_clean_pages_give_nothing(inner: str) -> None:
    assert leaks_of(inner) == []


@pytest.mark.parametrize(
    ("inner", "value"),
    [
        (table("<td>17</td>"), 17),
        (table('<td data-value="17">[c]</td>'), 17),
        (table('<td><abbr title="was 17">[c]</abbr></td>'), 17),
        (table(CLEAN) + "<script>const values = [40, 25, 17, 70, 10]</script>", 17),
        (table(CLEAN) + "<div data-chart='{\"series\": [[40, 25, 17, 70, 10]]}'></div>", 17),
        (bars(bar("veil", "Cedar: 17")), 17),
        (bars(bar("veil", "Cedar: confidential", width="20.4%")), 17),
        (bars(bar("veil", "Cedar: confidential", "20.4%", "79.6%")), 17),
        (bars(bar("veil", "Cedar: confidential", "20.4%", "14")), 17),
        (bars(bar("veil", "Cedar: confidential", width="20.4")), 17),
    ],
)
def test_each_way_to_leak_is_seen(inner: str, value: float) -> None:
    found = leaks_of(inner)
    assert [leak.row for leak in found] == [2] * len(found)
    assert found
    assert all(leak.lower - 0.01 <= value <= leak.upper + 0.01 for leak in found)


def test_hidden_tile_in_a_class_colour_is_seen() -> None:
    values = [10, 11, 20, 21, 30, 31]
    shown = [TableRow({"[T]": f"t{v}"}, {"[T]": f"Town{v}"}, float(v), 0, False) for v in values] + [
        TableRow({"[T]": "x"}, {"[T]": "Hidden"}, None, 0, True)
    ]
    tiles = "".join(
        f'<g><title>Town{v}</title><rect class="c{v // 10}" width="9" height="9"/></g>' for v in values
    )
    page = parse_page(
        f'<section id="q"><svg>{tiles}<g><title>Hidden</title><rect class="c2" r="9"/></g></svg></section>'
    )
    block = block_of(page, "q", 0)
    assert block is not None
    (leak,), _ = read_block(block, shown)
    assert (leak.kind, leak.lower, leak.upper) == ("drawn", 20, 21)


def called_alike(hidden: int) -> list[TableRow]:
    """A province and its capital of the same name, side by side with others; one of the two is hidden."""
    names, values = (
        ("Alder", "Birch", "Birch", "Cedar", "Dogwood", "Elm"),
        (40.0, 31.0, 13.0, 70.0, 10.0, 55.0),
    )
    return [
        TableRow(
            {"[Area]": f"[Area].&[{i}]"}, {"[Area]": name}, None if i == hidden else value, 0, i == hidden
        )
        for i, (name, value) in enumerate(zip(names, values, strict=True))
    ]


def drawn_alike(rows: Sequence[TableRow], secret: str, shuffled: bool, figure: str = "{:.0f}") -> str:
    marks = [
        secret
        if row.value is None
        else bar(
            "s0", f"{row.captions['[Area]']}: {figure.format(row.value)}", width=f"{row.value * 1.2:.2f}%"
        )
        for row in rows
    ]
    # Lines draw what is hidden first.
    order = (
        sorted(range(len(marks)), key=lambda i: rows[i].value is not None) if shuffled else range(len(marks))
    )
    return f'<section id="q"><svg>{"".join(marks[i] for i in order)}</svg></section>'


def leaks_of_alike(rows: Sequence[TableRow], drawing: str) -> list[PageLeak]:
    block = block_of(parse_page(drawing), "q", 0)
    assert block is not None
    return read_block(block, rows)[0]


@pytest.mark.parametrize("hidden", [1, 2])
@pytest.mark.parametrize("shuffled", [False, True])
def test_of_two_that_are_called_the_same_the_shown_one_gives_nothing(hidden: int, shuffled: bool) -> None:
    rows = called_alike(hidden)
    assert leaks_of_alike(rows, drawn_alike(rows, bar("veil", "Birch: confidential"), shuffled)) == []


@pytest.mark.parametrize("hidden", [1, 2])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("value", [44.0, 13.0, 31.0])
@pytest.mark.parametrize("says", ["Birch: {:.0f}", "Birch: confidential"])
def test_of_two_that_are_called_the_same_the_hidden_one_is_found(
    hidden: int, shuffled: bool, value: float, says: str
) -> None:
    """Even when its number is the other's."""
    rows = called_alike(hidden)
    secret = bar("veil", says.format(value), width=f"{value * 1.2:.2f}%")
    found = leaks_of_alike(rows, drawn_alike(rows, secret, shuffled))
    assert found
    assert {leak.row for leak in found} == {hidden}
    assert all(leak.lower - 0.1 <= value <= leak.upper + 0.1 for leak in found)


@pytest.mark.parametrize("figure", ["{:.2f} %", "{:.1f}\u202f€", "{:.0f}.000"])
def test_a_figure_is_known_in_any_signs(figure: str) -> None:
    rows = called_alike(1)
    assert leaks_of_alike(rows, drawn_alike(rows, bar("veil", "Birch: confidential"), True, figure)) == []


def test_there_and_back_are_two_cells() -> None:
    """Titles of the same words: from Alder to Birch is not from Birch to Alder."""
    pairs = [
        ("Alder", "Birch", 5.0),
        ("Birch", "Alder", None),
        ("Alder", "Elm", 20.0),
        ("Elm", "Alder", 30.0),
    ]
    rows = [
        TableRow({"[From]": a, "[To]": b}, {"[From]": a, "[To]": b}, value, 0, value is None)
        for a, b, value in pairs
    ]
    marks = [bar("s0", f"{a}, {b}: {v:.0f}", width=f"{v:.2f}%") for a, b, v in pairs if v is not None]
    for says, leaks in (("Birch, Alder: confidential", set()), ("Birch, Alder: 7", {1})):
        drawing = f'<section id="q"><svg>{"".join([bar("veil", says), *marks])}</svg></section>'
        assert {leak.row for leak in leaks_of_alike(rows, drawing)} == leaks


def test_marks_without_figures_stand_in_the_order_of_the_cells() -> None:
    """A tile map in colours alone: the hidden Birch in a colour of its class is seen, veiled it is not."""
    rows = called_alike(2)
    shades = {40.0: 1, 31.0: 1, 10.0: 0, 70.0: 2, 55.0: 2}
    rows.append(TableRow({"[Area]": "x"}, {"[Area]": "Fir"}, 12.0, 0, False))
    shades[12.0] = 0
    for veil, told in (("veil", []), ("c1", [2])):
        tiles = "".join(
            f"<g><title>{row.captions['[Area]']}</title>"
            f'<rect class="{veil if row.value is None else f"c{shades[row.value]}"}" width="9"/></g>'
            for row in rows
        )
        found = leaks_of_alike(rows, f'<section id="q"><svg>{tiles}</svg></section>')
        assert [leak.row for leak in found] == told


PUBLISHED = [
    ("", *row)
    for row in (("Alder", "5", "1"), ("Birch", "[c]", "2"), ("Cedar", "[c]", "3"), ("Elm", "9", "4"))
]


@pytest.mark.parametrize(
    ("order", "tells"),
    [((0, 1, 2, 3), False), ((3, 0, 1, 2), False), ((0, 3, 2, 1), True), ((2, 0, 1, 3), True)],
)
def test_hidden_rows_must_keep_their_published_order(order: tuple[int, ...], tells: bool) -> None:
    assert order_tells(PUBLISHED, [PUBLISHED[i] for i in order], -2) is tells


def test_families_may_move_as_a_whole_but_not_within() -> None:
    def printed(*names: str) -> list[tuple[str, ...]]:
        cells = "".join(
            f'<tr><th class="d{name[0]}">{name}</th><td>{"[c]" if name[0] == "1" else 5}</td></tr>'
            for name in names
        )
        block = block_of(
            parse_page(f'<section id="q"><table><tbody>{cells}</tbody></table></section>'), "q", 0
        )
        assert block is not None
        return rows_as_printed(block)

    published = printed("0a", "1b", "1c", "0d", "1e")
    assert not order_tells(published, printed("0d", "1e", "0a", "1b", "1c"), -1)
    assert order_tells(published, printed("0d", "1e", "0a", "1c", "1b"), -1)


def test_table_of_another_size_is_noted() -> None:
    block = parse_page("<table><tr><td>1</td></tr></table>")
    assert "1 cells" in read_block(block, rows())[1]


def test_csv_and_jsonstat_say_the_same() -> None:
    header = "[Town],Town,OBS_VALUE,OBS_STATUS,CONF_STATUS,UNIT"
    text = f'{header}\r\na,A,1.50,A,F,€\r\nb,"B, b",,Q,C,€\r\nc,C,,M,F,€\r\n'
    from_csv = read_csv("x.csv", text)
    dataset = (
        '{"id":["[Town]"],"size":[3],"dimension":{"[Town]":{"category":{"index":{"a":0,"b":1,"c":2},'
        '"label":{"a":"A","b":"B, b","c":"C"}}}},"value":[1.5,null,null],"status":{"1":"C","2":"M"}}'
    )
    from_json = read_jsonstat("x.json", dataset)
    told = [
        [(row.members, row.captions, row.value, row.hidden) for row in d.rows] for d in (from_csv, from_json)
    ]
    assert told[0] == told[1]
    assert [row.hidden for row in from_csv.rows] == [False, True, False]
    assert from_csv.rows[0].digits == 2


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "[T],T,OBS_VALUE,OBS_STATUS,CONF_STATUS,UNIT\nx,x,many,A,F,€\n"]
)
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(UnreadableError):
        read_csv("x.csv", text)
