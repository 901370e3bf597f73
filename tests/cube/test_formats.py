"""What MDX format strings print."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.masked import CellStyle
from app.domain.numbers import format_decimals, format_text, format_value

NAN = math.nan


@pytest.mark.parametrize(
    ("form", "value", "english", "spanish"),
    [
        ("#,##0.00", 1234567.891, "1,234,567.89", "1.234.567,89"),
        ("#,##0.00", -0.001, "0.00", "0,00"),
        ("0", 2.675, "3", "3"),
        ("0", 2.5, "3", "3"),
        ("#,##0", 0.5, "1", "1"),
        ("0.00", -1.125, "-1.13", "-1,13"),
        ("0.00", 2.675, "2.68", "2,68"),
        ("#.##", 0.5, ".5", ",5"),
        ("#,##0.0#", 1.5, "1.5", "1,5"),
        ("#,##0.0#", 1.25, "1.25", "1,25"),
        ("000", 7.0, "007", "007"),
        ("Standard", 1234.5, "1,234.50", "1.234,50"),
        ("Fixed", 1234.5, "1234.50", "1234,50"),
        ("percent", 0.1234, "12.34%", "12,34\u00a0%"),
        ("0.0%", -0.5, "-50.0%", "-50,0\u00a0%"),
        ("Scientific", 1234567.0, "1.23E+06", "1,23E+06"),
        ("#,##0.00;(#,##0.00)", -1234.5, "(1,234.50)", "(1.234,50)"),
        ("#,##0;;nothing", -3.0, "-3", "-3"),
        ("#,##0;-#,##0;nothing", 0.0, "nothing", "nothing"),
        ("0;-0;0;none", NAN, "none", "none"),
        ("0", NAN, "", ""),
        ('0.0" € per head"', 3.0, "3.0 € per head", "3,0 € per head"),
        ('0";"', 3.0, "3;", "3;"),
        (r"\#0", 3.0, "#3", "#3"),
        ("€ #,##0", -3.0, "-€ 3", "-€ 3"),
        ("#,##0,", 1234567.0, "1,235", "1.235"),
        ("", 1234.5, "1234.5", "1234,5"),
        ("General Number", 1e21, "1000000000000000000000", "1000000000000000000000"),
        ("Yes/No", 2.0, "Yes", "Yes"),
        ("On/Off", 0.0, "Off", "Off"),
        ("no digits", 5.0, "5", "5"),
        ("yyyy-mm-dd", 44260.0, "2021-03-05", "2021-03-05"),
        ("d/m/yy hh:mm", 44260.75, "5/3/21 18:00", "5/3/21 18:00"),
        ("h:nn AM/PM", 44260.75, "6:00 PM", "6:00 PM"),
        ("d mmmm yyyy", 44260.0, "5 March 2021", "5 marzo 2021"),
        ("Short Date", 44260.0, "3/5/2021", "3/5/2021"),
        ("dddd", 44260.0, "44,260", "44.260"),
        ("#,##0;(#,##0)", -1234.5, "(1,235)", "(1.235)"),
    ],
)
def test_format_strings(form: str, value: float, english: str, spanish: str) -> None:
    assert format_text(value, form, "en") == english
    assert format_text(value, form, "es") == spanish


@given(
    st.text(alphabet='0#,.%;"\\E+- ab€', max_size=12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(0, 6),
)
def test_any_format_prints_any_number(form: str, value: float, decimals: int) -> None:
    format_text(value, form, "es")
    assert format_value(value, CellStyle(form, decimals, {}), "es") is not None
    assert format_decimals(form) in range(25)


@given(st.decimals(-(10**9), 10**9, places=3).map(float), st.sampled_from(["#,##0.000", "0.000", "#,##0.0%"]))
def test_what_is_printed_reads_back(value: float, form: str) -> None:
    text = format_text(value, form, "en").replace(",", "")
    read = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    assert math.isclose(read, value, rel_tol=1e-12, abs_tol=1e-12)
