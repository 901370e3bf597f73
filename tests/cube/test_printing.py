"""How calculated members print that say nothing of it, and what is a text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cube.duckdb import open_cube
from app.cube.server import Server
from app.domain.numbers import format_text, rounded, spelled_out
from app.mdx import parse
from app.pipeline.explore import Answer, explore
from tests.cube.office import office

CALCULATED = (("[Measures]", "As text", 'Format([Measures].[Income], "0.0")'),)


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    opened = open_cube(office(tmp_path_factory.mktemp("office"), CALCULATED))
    yield opened
    opened.close()


def answered(cube: Server, formula: str, properties: str = "") -> Answer:
    text = f"WITH MEMBER [Measures].[X] AS {formula}{properties} SELECT {{[Income], [X]}} ON 0 FROM Tax"
    return explore(cube, parse(f"{text} WHERE [Time].[2022]"), "en")


@pytest.mark.parametrize(
    ("formula", "form"),
    [
        ("[Income] - [Tax]", "#,##0.00"),
        ("[Income] - [People]", "#,##0"),
        ("Sum([Place].[Town].Members, [Income]) + 1", "#,##0"),
        ("([Income], [Place].[Madrid])", "#,##0"),
        ("[Income] * 1.25", "#,##0.00"),
        ("[Income] + 0.5", "#,##0.0"),
        ("Count([Place].Members)", "#,##0"),
        ("IIF([Tax] > 0.123, [Income], NULL)", "#,##0"),
        ("CASE WHEN [Tax] > 0.123 THEN [Income] ELSE 0 END", "#,##0"),
        ("[Income] / 3", "#,##0.00"),
        ("[Income] / [Tax]", "#,##0.00"),
        ("[Income] * [Tax]", "#,##0.00"),
        ("Avg([Place].[Town].Members, [Income])", "#,##0.00"),
        ("[Income] / 3 - [Tax]", "#,##0.00"),
    ],
)
def test_a_formula_prints_as_its_measures_where_it_has_no_more_digits(
    cube: Server, formula: str, form: str
) -> None:
    answer = answered(cube, formula)
    assert answer.texts[1] == format_text(float(answer.values[1]), form, "en")


def test_what_formats_a_value_is_a_text_to_the_analyst(cube: Server) -> None:
    answer = answered(cube, 'Format([Income] / 3, "#,##0.0")')
    assert answer.words == {1}
    assert answer.texts[1] == format_text(float(answer.values[0]) / 3, "#,##0.0", "en")
    assert not answered(cube, "[Income] / 3", ", FORMAT_STRING = '#,##0.0'").words
    assert not answered(cube, 'Format(NULL, "0")').words
    of_cube = explore(cube, parse("SELECT [As text] ON 0 FROM Tax WHERE [Time].[2022]"), "en")
    assert of_cube.words == {0}
    # What is published keeps its number.
    published = cube.execute(parse("SELECT [As text] ON 0 FROM Tax WHERE [Time].[2022]"))
    assert not published.texts
    assert not math.isnan(published.values[0])


@pytest.mark.parametrize(
    ("language", "amount", "loss"),
    [
        ("en", "$1,234.50", "($1,234.50)"),
        ("es", "1.234,50 €", "-1.234,50 €"),
        ("ca", "1.234,50 €", "(1.234,50 €)"),
    ],
)
def test_currency_has_the_sign_of_the_country(language: str, amount: str, loss: str) -> None:
    form = spelled_out(" currency ", language)
    assert format_text(1234.5, form, language) == amount
    assert format_text(-1234.5, form, language) == loss
    assert spelled_out("0.0", language) == "0.0"
    assert spelled_out("|0.0|style=red", language) == "0.0"


@given(st.floats(-(10**12), 10**12, allow_nan=False), st.integers(-3, 6))
def test_halves_are_rounded_away_from_zero_as_they_are_printed(value: float, digits: int) -> None:
    wanted = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    assert float(rounded(np.array([value]), digits)[0]) == pytest.approx(float(wanted), rel=1e-15)


@given(st.integers(-(10**9), 10**9), st.integers(0, 4))
def test_ties_go_away_from_zero(units: int, digits: int) -> None:
    value = float(Decimal(units) / 10**digits + Decimal(5 if units >= 0 else -5).scaleb(-digits - 1))
    found = rounded(np.array([value]), digits)[0]
    assert found == float((Decimal(units) + (1 if units >= 0 else -1)) / 10**digits)
    if digits:
        assert float(format_text(value, f"0.{'0' * digits}", "en")) == found
