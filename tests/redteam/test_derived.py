"""Shares, changes and indices of hidden cells, told by the site itself."""

from __future__ import annotations

import math

import pytest

from app.redteam.derived import derived_leaks
from app.redteam.report import PageLeak
from app.redteam.structure import Member, PublicHierarchy, PublicMeasure, Structure
from app.redteam.tables import TableRow

COUNT = "[Measures].[Count]"
REGIONS = {"All": None, "N": "All", "N1": "N", "N2": "N"}
YEARS = ("2021", "2022", "2023")
STRUCTURE = Structure(
    "Test",
    (
        PublicHierarchy("Place", {n: Member(n, up, str(up)) for n, up in REGIONS.items()}, "All"),
        PublicHierarchy("Year", {year: Member(year, None, "Year") for year in YEARS}, "2021", time=True),
    ),
    {COUNT: PublicMeasure(COUNT, True, True, True, 0)},
)
TRUTH = {("All", "2021"): 100.0, ("All", "2022"): 80.0, ("N1", "2021"): 20.0, ("N1", "2022"): 30.0}


def table(figures: dict[tuple[str, str], float | None], digits: int = 0) -> list[TableRow]:
    return [
        TableRow({"Place": place, "Year": year, "[Measures]": COUNT}, {}, value, digits, value is None)
        for (place, year), value in figures.items()
    ]


def told(show: str, figure: tuple[str, str], value: float, *hidden: tuple[str, str]) -> list[PageLeak]:
    """The leaks of a table that derives one figure, of one that hides some cells."""
    listed = table({place: None if place in hidden else known for place, known in TRUTH.items()})
    made = table({place: value if place == figure else None for place in TRUTH}, 0 if show == "change" else 1)
    return list(derived_leaks(show, made, listed, STRUCTURE))


@pytest.mark.parametrize(
    ("show", "figure", "value", "base"),
    [
        ("share-0", ("N1", "2022"), 37.5, ("All", "2022")),
        ("change", ("N1", "2022"), 10.0, ("N1", "2021")),
        ("growth", ("N1", "2022"), 50.0, ("N1", "2021")),
        ("index", ("N1", "2022"), 150.0, ("N1", "2021")),
    ],
)
def test_either_cell_of_a_figure_is_found_as_closely_as_it_is_printed(
    show: str, figure: tuple[str, str], value: float, base: tuple[str, str]
) -> None:
    assert not told(show, figure, value)
    for hidden in (figure, base):
        (leak,) = told(show, figure, value, hidden)
        assert list(TRUTH)[leak.row] == hidden
        assert leak.lower < TRUTH[hidden] < leak.upper
        assert leak.upper - leak.lower <= max(1.0, 0.01 * TRUTH[hidden])
    (leak,) = told(show, figure, value, figure, base)
    assert (leak.lower, leak.upper) == (-math.inf, math.inf)


def test_a_figure_without_a_base_tells_its_own_cell() -> None:
    (leak,) = told("change", ("N1", "2021"), 20.0, ("N1", "2021"))
    assert list(TRUTH)[leak.row] == ("N1", "2021")
    assert not told("share-0", ("All", "2021"), 100.0)


def test_what_is_nearly_nothing_of_a_hidden_total_says_little() -> None:
    (leak,) = told("share-0", ("N1", "2022"), 0.0, ("All", "2022"))
    assert (leak.lower, leak.upper) == (-math.inf, math.inf)
