"""Linear formulas of every kind become equations that the facts satisfy exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.domain.cellset import CellSet
from app.mdx import parse
from tests.cube.shop import shop
from tests.cube.test_random import check_relations

NUMBERS = st.sampled_from(["2", "-1", "0.5", "(3 - 1)", "100", "1 / 4", "2 ^ 3"])
PLACES = st.sampled_from(
    [
        "[Place].[Store].Members",
        "[Place].CurrentMember.Children",
        "{[Place].[Alba], [Place].[Alba], [Place].[s4]}",
        "Descendants([Place].[North], 1)",
        "Some",
        "[Place].[Region].Members",
        "Filter([Place].[City].Members, [Place].CurrentMember.Name > 'B')",
        "{}",
    ]
)
TIMES = st.sampled_from(
    [
        "Ytd()",
        "PeriodsToDate()",
        "PeriodsToDate([Time].[Year])",
        "LastPeriods(3)",
        "LastPeriods(-2)",
        "[Time].[2021].[Q1] : [Time].[2021].[Q3]",
        "NULL : [Time].CurrentMember",
        "[Time].CurrentMember.Siblings",
    ]
)
MOVES = st.sampled_from(
    [
        "[Time].PrevMember",
        "ParallelPeriod()",
        "ParallelPeriod([Time].[Year], 1)",
        "ClosingPeriod([Time].[Month])",
        "OpeningPeriod()",
        "[Place].[All]",
        "[Place].CurrentMember.Parent",
        "[Place].[Mixed]",
        "[Product].[Drink]",
        "Ancestor([Time].CurrentMember, [Time].[Year])",
    ]
)
TESTS = st.sampled_from(
    [
        "1 = 1",
        "1 > 2",
        "[Time].CurrentMember.Level IS [Time].[Month]",
        "[Place].CurrentMember.Name = 'All Place' OR [Place].CurrentMember IS [Place].[s1]",
        "Count([Place].CurrentMember.Children) > 1",
    ]
)
LEAVES = st.sampled_from(["[Units]", "[Amount]", "[Lines]", "[Net]"])


@st.composite
def linear(draw: st.DrawFn, depth: int) -> str:
    if depth == 0:
        return draw(LEAVES)
    inner, other = draw(linear(depth - 1)), draw(linear(draw(st.integers(0, depth - 1))))
    shape = draw(
        st.sampled_from(
            [
                "({a}) + ({b})",
                "({a}) - ({b})",
                "-({a})",
                "({a}) * {n}",
                "({a}) / {n}",
                "{n} * ({a}) - {n}",
                "Sum({p}, {a})",
                "Sum({t}, {a})",
                "({leaf}, {m})",
                "Aggregate({p}, {leaf})",
                "Aggregate({t}, {leaf})",
                "IIF({c}, {a}, {b})",
                "CASE WHEN {c} THEN {a} ELSE {b} END",
                "Sum({p} * {{[Product].[Food], [Product].[soap]}}, {leaf})",
                "({a})",
            ]
        )
    )
    return shape.format(
        a=inner,
        b=other,
        n=draw(NUMBERS),
        p=draw(PLACES),
        t=draw(TIMES),
        m=draw(MOVES),
        c=draw(TESTS),
        leaf=draw(LEAVES.filter(lambda leaf: leaf != "[Net]")),
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    definition, base = shop(tmp_path_factory.mktemp("shop"))
    base.close()
    opened = open_cube(definition)
    yield opened
    opened.close()


def facts_agree(server: Server, answer: CellSet) -> None:
    """Operands that are cells of the cube hold what the facts say, whatever asked for them."""
    own = np.array([len(answer.cube.measures), *(tree.size for tree in answer.cube.hierarchies)])
    plain = (answer.coords < own).all(axis=1)
    assert np.array_equal(server.values(answer.coords[plain]), answer.values[plain], equal_nan=True)
    for index, row in enumerate(answer.linear.cell.tolist()):
        entries = slice(answer.linear.indptr[index], answer.linear.indptr[index + 1])
        operands = answer.linear.indices[entries]
        # Nothing that is worked out again is left, but groups of members, which facts belong to.
        assert (answer.coords[operands, 0] < own[0]).all()
        if np.isnan(answer.values[operands]).all() and not answer.linear.constant[index]:
            assert math.isnan(answer.values[row]) or answer.values[row] == 0


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 4).flatmap(linear), st.sampled_from(["Shop", "part"]))
def test_linear_formulas_become_equations(server: Server, formula: str, source: str) -> None:
    cube = "Shop"
    if source == "part":
        cube = "(SELECT {[Place].[s1], [Place].[s3], [Place].[South]} ON 0 FROM Shop)"
    query = parse(
        "WITH SET Some AS Head([Place].[City].Members, 2) "
        "MEMBER [Place].[Mixed] AS Aggregate({[Place].[s1], [Place].[South]}) "
        "MEMBER [Measures].[Net] AS [Amount] - 0.21 * [Units] "
        f"MEMBER [Measures].[X] AS {formula} "
        "SELECT {[X]} ON 0, "
        "{[Time].[2021].[Q2], [Time].[2022].[Q1].[02]} * {[Place].[All], [Place].[s1]} ON 1 "
        f"FROM {cube}"
    )
    answer = server.execute(query)
    assert not len(answer.nonlinear.cell)
    check_relations(answer)
    facts_agree(server, answer)
