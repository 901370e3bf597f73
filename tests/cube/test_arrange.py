"""Published sets that are chosen or ordered by values: made of what readers see, and of nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.cube.duckdb import open_cube
from app.cube.port import CubeServer, Shown
from app.domain.cellset import CellSet
from app.mdx import parse
from tests.cube.office import ROWS, office


def other_incomes() -> list[Sequence[str]]:
    """The same respondents and empty cells, every amount another one."""
    return [
        (*row[:4], row[4] and str(9_000 - 7 * n - int(row[4])), row[5], *row[6:])
        for n, row in enumerate(ROWS)
    ]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[CubeServer]]:
    made = [
        open_cube(office(tmp_path_factory.mktemp("office"), rows=rows)) for rows in (ROWS, other_incomes())
    ]
    yield made  # type: ignore[misc]
    for server in made:
        server.close()


def shown(candidates: CellSet, hidden: Sequence[str] = ()) -> Shown:
    """What readers see when some members' cells are hidden; an amount for every other cell."""
    start = candidates.n_cells
    coords = candidates.coords[start : start + candidates.n_read]
    values = candidates.values[start : start + candidates.n_read].copy()
    tree = candidates.cube.hierarchies[1]
    covered = np.array([tree.keys[row[2]] in hidden for row in coords])
    values[covered] = np.nan
    return Shown(coords, values, covered)


def keys(answer: CellSet) -> str:
    return " ".join(
        " ".join(member.unique_name.split("&")[-1].strip("[]").split("[")[-1] for member in position)
        for position in answer.axes[0].positions
    )


def arranged(server: CubeServer, text: str, hidden: Sequence[str]) -> str:
    query = parse(f"SELECT {text} ON 0 FROM Tax WHERE {{[Time].[2022], [Time].[2023]}}")
    return keys(server.arrange(query, shown(server.execute(query), hidden)))


# Incomes: Badalona 08001 300, Alcalá 28001 470, Getafe 28002 75; Barcelona 08 300, Madrid 28 545.
TOWNS = "[Place].[Town].Members"


@pytest.mark.parametrize(
    ("text", "everything", "without_alcala"),
    [
        (f"Order({TOWNS}, [Income], BDESC)", "28001 08001 28002", "08001 28002 28001"),
        (f"Order({TOWNS}, [Income], BASC)", "28002 08001 28001", "28002 08001 28001"),
        ("Order([Place].[Madrid].Children, [Income], DESC)", "28001 28002", "28002 28001"),
        (f"TopCount({TOWNS}, 2, [Income])", "28001 08001", "08001 28002"),
        (f"TopCount({TOWNS}, 3, [Income])", "28001 08001 28002", "08001 28002"),
        (f"BottomCount({TOWNS}, 1, [Income])", "28002", "28002"),
        (f"TopPercent({TOWNS}, 50, [Income])", "28001", "08001"),
        (f"TopSum({TOWNS}, 400, [Income])", "28001", "08001 28002"),
        (f"Filter({TOWNS}, [Income] > 100)", "08001 28001", "08001"),
        (f"Filter({TOWNS}, NOT [Income] > 100)", "28002", "28002"),
        (f"Head(Order({TOWNS}, [Income], BDESC), 1)", "28001", "08001"),
        (f"Tail(Order({TOWNS}, [Income], BDESC), 2)", "08001 28002", "28002 28001"),
        (f"Subset(Order({TOWNS}, [Income], BDESC), 1, 1)", "08001", "28002"),
        (f"Except({TOWNS}, TopCount({TOWNS}, 1, [Income]))", "08001 28002", "28001 28002"),
        (f"{TOWNS} - TopCount({TOWNS}, 1, [Income])", "08001 28002", "28001 28002"),
        (f"Intersect({TOWNS}, TopCount({TOWNS}, 2, [Income]))", "08001 28001", "08001 28002"),
        (f"{{[Place].[All], TopCount({TOWNS}, 1, [Income])}}", "All 28001", "All 08001"),
        (f"{{[Sex].[W]}} * TopCount({TOWNS}, 1, [Income])", "W 28001", "W 08001"),
        (f"Hierarchize({{[Place].[All], TopCount({TOWNS}, 1, [Income])}})", "All 28001", "All 08001"),
        (
            "Generate([Place].[Province].Members, TopCount([Place].CurrentMember.Children, 1, [Income]))",
            "08001 28001",
            "08001 28002",
        ),
        (
            f"Filter({TOWNS}, Rank([Place].CurrentMember, {TOWNS}, [Income]) <= 1)",
            "28001",
            "08001",
        ),
        (f"TopCount({TOWNS}, 1, [Income] / [People])", "28001", "08001"),
    ],
)
def test_hidden_cells_neither_lead_nor_enter(
    servers: list[CubeServer], text: str, everything: str, without_alcala: str
) -> None:
    assert arranged(servers[0], text, ()) == everything
    assert arranged(servers[0], text, ("28001",)) == without_alcala


@pytest.mark.parametrize("set_text", [TOWNS, f"Order({TOWNS}, [Income], BDESC)"])
def test_a_rank_is_taken_among_what_is_shown(servers: list[CubeServer], set_text: str) -> None:
    value = ", [Income]" if set_text == TOWNS else ""
    query = parse(
        f"WITH SET Towns AS {set_text} "
        f"MEMBER [Measures].[R] AS Rank([Place].CurrentMember, Towns{value}) "
        f"SELECT {TOWNS} ON 0 FROM Tax WHERE {{[R]}} * {{[Time].[2022], [Time].[2023]}}"
    )
    candidates = servers[0].execute(query)
    assert np.isnan(candidates.values[:3]).all()
    everything = servers[0].arrange(query, shown(candidates))
    assert everything.values[:3].tolist() == [2, 1, 3]
    covered = servers[0].arrange(query, shown(candidates, ("28001",)))
    assert covered.values[[0, 2]].tolist() == [1, 2]
    assert math.isnan(covered.values[1])
    assert covered.nonlinear.kind == ("rank",)


POOL = (
    "[Income]",
    "-[Income]",
    "[Income] / [People]",
    "([Income], [Sex].[M])",
    "[Income] - [Tax]",
    "IIF([Income] > 100, [Tax], 0)",
)
SETS = ("[Place].[Town].Members", "[Place].Members", "[Place].[Province].Members * [Sex].[Sex].Members")
WRAPS = (
    "Order({0}, {1}, {flag})",
    "Head(Order({0}, {1}, B{flag}), {n})",
    "TopCount({0}, {n}, {1})",
    "BottomPercent({0}, {percent}, {1})",
    "TopSum({0}, {percent}, {1})",
    "Filter({0}, {1} > {percent})",
    "Union({{Head({0})}}, TopCount({0}, {n}, {1}))",
    "Except({0}, BottomCount({0}, {n}, {1}))",
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_answer_hangs_on_nothing_but_what_is_shown(
    servers: list[CubeServer], data: st.DataObject
) -> None:
    """Two cubes of other amounts: the same answer wherever readers see the same."""
    text = data.draw(st.sampled_from(WRAPS)).format(
        data.draw(st.sampled_from(SETS)),
        data.draw(st.sampled_from(POOL)),
        n=data.draw(st.integers(0, 4)),
        percent=data.draw(st.integers(0, 400)),
        flag=data.draw(st.sampled_from(["ASC", "DESC"])),
    )
    query = parse(f"SELECT {text} ON 0, [Time].[Year].Members ON 1 FROM Tax")
    one, other = (server.execute(query) for server in servers)
    read = slice(one.n_cells, one.n_cells + one.n_read)
    assert one.coords[read].tolist() == other.coords[read].tolist()
    values = one.values[read].copy()
    hidden = np.array(
        data.draw(st.lists(st.booleans(), min_size=one.n_read, max_size=one.n_read)), dtype=bool
    )
    values[hidden] = np.nan
    seen = Shown(one.coords[read], values, hidden)
    answers = [server.arrange(query, seen) for server in servers]
    assert answers[0].axes == answers[1].axes
    candidates = one.axes[0].positions
    assert all(position in candidates for position in answers[0].axes[0].positions)
