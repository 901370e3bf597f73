"""Every sentence of the interface exists in every language, and numbers are written as readers write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir

from app.domain.masked import CellStyle
from app.domain.numbers import format_value, locale_of, plain_number
from app.web.language import INTERFACE, language_name, long_date, preferred, translations

ROOT = Path(__file__).resolve().parents[2]


def messages() -> set[str | tuple[str, ...]]:
    found = set()
    for folder, method, options in (
        ("app/web", [("**.py", "python")], {}),
        ("templates", [("**.html", "jinja2")], {"**.html": {"newstyle_gettext": "true", "trimmed": "false"}}),
    ):
        for _, _, message, _, _ in extract_from_dir(ROOT / folder, method, options):
            found.add(message if isinstance(message, str) else tuple(part for part in message if part)[:2])
    return found


#: Words that some language shares with English.
SHARED = (
    "null, status %(status)s",
    "%(size)s bytes",
    "Cost",
    "Errors",
    "Format",
    "Notes",
    "Text",
    "Versions",
    "no",
    "Zeros",
    "text",
)


@pytest.mark.parametrize("language", [code for code in INTERFACE if code != "en"])
def test_no_sentence_lacks_its_translation(language: str) -> None:
    catalogue = translations(language)
    found = messages()
    assert len(found) > 40
    for message in found:
        singular = message if isinstance(message, str) else message[0]
        plural = singular if isinstance(message, str) else message[1]
        for count in (1, 2):
            text = (
                catalogue.gettext(singular)
                if isinstance(message, str)
                else catalogue.ngettext(singular, plural, count)
            )
            assert text
            if singular not in SHARED:
                assert text not in (singular, plural), f"{language}: {singular}"
            assert set(re.findall(r"%\(\w+\)s", text)) == set(re.findall(r"%\(\w+\)s", singular))


def style(pattern: str, decimals: int) -> CellStyle:
    return CellStyle(pattern, decimals, {})


@pytest.mark.parametrize(
    ("value", "cell_style", "english", "spanish"),
    [
        (1234567.0, style("#,##0", 0), "1,234,567", "1.234.567"),
        (1234567.0, style("0", 0), "1234567", "1234567"),
        (-1234.5, style("#,##0.0", 1), "-1,234.5", "-1.234,5"),
        (0.0, style("#,##0", 0), "0", "0"),
        (-0.0, style("#,##0.0", 1), "0.0", "0,0"),
        (12.0, style("#,##0", 2), "12.00", "12,00"),
        (0.125, style("0.0%", 3), "12.5%", "12,5\u00a0%"),
        (3.0, style("€ #,##0.00", 2), "€ 3.00", "€ 3,00"),
        (5.0, style("", 0), "5", "5"),
        (5.5, style("not a pattern;;;", 1), "5.5", "5,5"),
    ],
)
def test_numbers_by_locale_with_every_published_digit(
    value: float, cell_style: CellStyle, english: str, spanish: str
) -> None:
    assert format_value(value, cell_style, "en") == english
    assert format_value(value, cell_style, "es") == spanish


@pytest.mark.parametrize("value", [0.1, 1e21, 12345678901234.5, -3.0, 1 / 3, 5e-7])
def test_machine_numbers_give_the_number_back_without_exponent(value: float) -> None:
    text = plain_number(value)
    assert float(text) == value
    assert set(text) <= set("-.0123456789")


def test_the_readers_wish_is_understood_and_nonsense_is_ignored() -> None:
    assert preferred("ca;q=0.8, es;q=0.9", ("en", "es", "ca")) == "es"
    assert preferred("es-MX", ("en", "es")) == "es"
    assert preferred(";;q=x,,*;q=abc" * 50, ("en", "es")) == "en"


def test_languages_are_named_in_themselves() -> None:
    assert [language_name(code) for code in INTERFACE] == ["English", "Español", "Català"]
    assert locale_of("no such language").language == "en"


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("en", "27 November 2026"),
        ("en-US", "November 27, 2026"),
        ("en-GB", "27 November 2026"),
        ("es", "27 de noviembre de 2026"),
        ("ca", "27 de novembre del 2026"),
    ],
)
def test_dates_are_written_as_their_readers_do(language: str, written: str) -> None:
    assert long_date(datetime(2026, 11, 27, tzinfo=UTC), language) == written
