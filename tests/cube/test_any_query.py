"""Any query is answered or refused: no other way out of the evaluator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from app.cube.duckdb import open_cube
from app.cube.evaluate import FUNCTIONS
from app.cube.port import Shown
from app.cube.server import Server
from app.domain.errors import UserError
from app.mdx import parse
from app.mdx.expressions import PROPERTIES
from tests.cube.office import office

HIERARCHIES = ("[Place]", "[Time]", "[Sex]", "[Measures]")
LEVELS = ("[Place].[Town]", "[Place].[Province]", "[Time].[Year]", "[Time].[Month]", "[Sex].[Sex]")
MEMBERS = (
    "[Place].[Madrid]", "[Place].[All]", "[Place].[Big]", "[Place].[Getafe]", "[Time].[2022]", "[Sex].[W]",
    "[Time].[2023].[01]", "[Measures].[Income]", "[Measures].[Persons]", "[Measures].[Rate]",
    "[Measures].[X]", "[Measures].[Mean]",
)  # fmt: skip
OTHERS = ("[nothing]", "s", "2.5", "'a'", "NULL", "{}", "ALL", "LEAVES", "DESC", "EXCLUDEEMPTY", "@p")
CALCULATED = (
    ("[Measures]", "Rate", "[Measures].[Tax] / [Measures].[Income]"),
    ("[Place]", "Big", "Aggregate({[Place].[Alcalá], [Place].[Badalona]})"),
)
SIGNS = ("+", "-", "*", "/", ":", "=", "<>", "<", "AND", "OR", "XOR", "IS", "IN", "NOT IN", "||")
ANY_NAME = st.sampled_from((*HIERARCHIES, *LEVELS, *MEMBERS, *OTHERS, "0", "1", "-1"))


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Anything that can be written, whatever it means."""
    called = st.sampled_from(sorted(FUNCTIONS))
    listed = st.lists(inner, max_size=3).map(", ".join)
    return st.one_of(
        st.builds("{}({})".format, called, listed),
        st.builds("{}.{}".format, inner, st.sampled_from(sorted(PROPERTIES))),
        st.builds("{}.{}({})".format, inner, called, listed),
        st.builds("({} {} {})".format, inner, st.sampled_from(SIGNS), inner),
        st.builds("{{{}}}".format, listed),
        st.builds("({})".format, st.lists(inner, min_size=1, max_size=3).map(", ".join)),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, inner, inner, inner),
        st.builds("{} {}".format, st.sampled_from(("NOT", "-", "EXISTING")), inner),
    )


WILD = st.recursive(ANY_NAME, grown, max_leaves=6)


@st.composite
def members(draw: st.DrawFn, depth: int) -> str:
    if depth == 0:
        return draw(st.sampled_from((*MEMBERS, *(f"{name}.CurrentMember" for name in HIERARCHIES))))
    inner = draw(members(depth - 1))
    shape = draw(st.sampled_from((
        "{m}.Parent", "{m}.FirstChild", "{m}.LastChild", "{m}.PrevMember", "{m}.Lead({n})", "{s}.Item({n})",
        "Ancestor({m}, {n})", "Cousin({m}, {m})", "ParallelPeriod([Time].[Year], {n})", "{m}.FirstSibling",
        "ClosingPeriod([Time].[Month], {m})", "{m}.Hierarchy.DefaultMember", "({m}, {k})",
    )))  # fmt: skip
    number, other = draw(st.integers(-1, 3)), draw(members(0))
    return shape.format(m=inner, n=number, k=other, s=draw(sets(depth - 1)) if "{s}" in shape else "")


@st.composite
def sets(draw: st.DrawFn, depth: int) -> str:
    if depth == 0:
        whole = st.sampled_from((*HIERARCHIES, *LEVELS)).map("{}.Members".format)
        return draw(st.one_of(whole, members(0).map("{{{}}}".format)))
    shape = draw(st.sampled_from((
        "{m}.Children", "{m}.Siblings", "Descendants({m})", "Descendants({m},, LEAVES)", "Ascendants({m})",
        "Descendants({s}, {n}, SELF_AND_BEFORE)", "{s} * {t}", "Union({s}, {t})", "Except({s}, {t})",
        "Intersect({s}, {t}, ALL)", "Head({s}, {n})", "Tail({s}, {n})", "Hierarchize({s}, POST)",
        "Filter({s}, {v} > {n})", "Order({s}, {v}, BDESC)", "Order({s}, {v})", "TopCount({s}, {n}, {v})",
        "TopPercent({s}, 50, {v})", "BottomSum({s}, 9, {v})", "Generate({s}, {t})", "NonEmpty({s}, {t})",
        "DrilldownLevel({s})", "DrilldownMember({s}, {t})", "ToggleDrillState({s}, {t})", "DrillupLevel({s})",
        "PeriodsToDate([Time].[Year], {m})", "YTD()", "LastPeriods({n}, {m})", "EXISTING {s}", "{{{s}, {t}}}",
        "Extract({s}, [Place])", "AddCalculatedMembers({s})", "Subset({s}, 1, {n})", "{m} : {m}",
        "NonEmptyCrossJoin({s}, {t})", "Distinct({s})", "{s} - {t}",
    )))  # fmt: skip
    return shape.format(
        m=draw(members(depth - 1)),
        n=draw(st.integers(-1, 3)),
        s=draw(sets(depth - 1)),
        t=draw(sets(depth - 1)),
        v=draw(values(depth - 1)) if "{v}" in shape else "",
    )


@st.composite
def values(draw: st.DrawFn, depth: int) -> str:
    if depth == 0:
        return draw(st.one_of(members(0), st.integers(0, 9).map(str)))
    shape = draw(st.sampled_from((
        "({v} + {w})", "({v} - {w})", "({v} * {w})", "({v} / {w})", "-{v}", "({m}, {k})", "Sum({s}, {v})",
        "Aggregate({s})", "Aggregate({s}, {v})", "Avg({s}, {v})", "Max({s}, {v})", "Median({s}, {v})",
        "Stdev({s}, {v})", "Count({s})", "Count({s}, EXCLUDEEMPTY)", "Rank({m}, {s})", "Rank({m}, {s}, {v})",
        "IIF({v} > {w}, {v}, {w})", "IIF(IsEmpty({v}), 0, {w})", "CoalesceEmpty({v}, {w})", "Abs({v})",
        "Round({v}, 1)", "{m}.Level.Ordinal", "CASE WHEN {v} = {w} THEN {v} ELSE NULL END", "Int({v})",
        "IIF({m} IS {k}, {v}, {w})", "IIF({m}.Name = 'W', {v}, {w})", "IIF({m} IN {s}, {v}, {w})",
    )))  # fmt: skip
    return shape.format(
        v=draw(values(depth - 1)),
        w=draw(values(depth - 1)),
        m=draw(members(depth - 1)),
        k=draw(members(0)),
        s=draw(sets(depth - 1)) if "{s}" in shape else "",
    )


FORMULAS = st.one_of(values(1), values(2), values(2), values(3), WILD)
SETS = st.one_of(sets(1), sets(2), sets(3), WILD)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = open_cube(office(tmp_path_factory.mktemp("office"), CALCULATED))
    yield opened
    opened.close()


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_query(server: Server, data: st.DataObject) -> None:
    draw = data.draw
    formula, named, shown = draw(FORMULAS), draw(SETS), draw(SETS)
    column = draw(st.sampled_from(("[Measures].[X]", "[Place].[X]", "[Sex].[X]")))
    axis = draw(st.sampled_from((shown, f"{{{column}}}", f"[Time].Members * {{{column}}}")))
    text = f"WITH MEMBER {column} AS {formula} SET s AS {named} SELECT {axis} ON 0 FROM Tax"
    if draw(st.integers(0, 3)) == 0:
        text += f" WHERE {draw(SETS)}"
    try:
        told = [item for item in server.explain(parse(text)) if item.member.endswith(".[X]")]
        assert all(item.cases or item.refusal for item in told)
    except UserError as error:
        event(f"unexplained: {error.mistakes[0].cause.split(' ')[0]}")
    for ask in (server.execute, server.explore):
        try:
            answer = ask(parse(text))
        except UserError as error:
            event(error.mistakes[0].cause.split(" ")[0])
            continue
        event("answered")
        if answer.n_read:
            read = slice(answer.n_cells, answer.n_cells + answer.n_read)
            hidden = np.arange(answer.n_read) % 3 == 0
            shown_cells = Shown(answer.coords[read], np.where(hidden, np.nan, answer.values[read]), hidden)
            made = server.arrange(parse(text), shown_cells)
            for chosen, candidates in zip(made.axes, answer.axes, strict=True):
                assert all(position in candidates.positions for position in chosen.positions)
        calculated = {*answer.linear.cell.tolist(), *answer.nonlinear.cell.tolist()}
        sizes = [len(answer.cube.measures), *(tree.size for tree in answer.cube.hierarchies)]
        assert calculated == set(np.flatnonzero((answer.coords >= np.array(sizes)).any(axis=1)).tolist())
        assert not np.isinf(answer.values).any()
