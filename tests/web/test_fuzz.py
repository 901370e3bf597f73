"""Anything at all in an address: one clear sentence in the reader's language, and never a 5xx."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import httpx
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from lxml import html

from app.bootstrap import query_asker
from app.web.app import create_app
from tests.web.office import MemoryStore
from tests.web.visitor import ask

SITE = create_app(MemoryStore(), asker=query_asker())

WORDS = """. .. ../.. %00 ~ -1 1e309 NaN null [] {} <script> {{7*7}} ${x} %(name)s %s"""
SEGMENTS = """en es s f embed r r1 api v1 data dataflow structure query time years table.csv table.exe
    territory places * Tax 1.0.0 static"""
NAMES = """p.year p.region sort.table turn.table page.table c[Sex] c[ Sex asOf limit offset format lang mdx
    cube build measure place.0 member.0 q edit tick.table fold.table startPeriod lastNObservations"""
VALUES = """2021 W 1 -1 0-1~2 en csv rows ge:2020 eq: 2026-11-28"""
ODD = ["", "\x00", "\u202e", "\ufeff", "𝕏", "é", "e\u0301", "9" * 400, "a" * 3000, "\\", "'", '"', ";"]
TARGETS = [
    path.split()
    for path in (
        "en s time years",
        "en s territory places",
        "es s time years table.csv",
        "api v1 data dataflow * Tax *",
        "en query",
        "en search",
        "en query.csv",
    )
]


def words(text: str) -> list[str]:
    """What stands between the spaces of a text."""
    return text.split()


FIELDS = words("""place which since count one tick looked at look find part pick fold open""")
STATES = [
    *words("edit pivot.table sort.table totals.table show.table empty.table page.table chart.table"),
    *words("cell.table p.year find.p.year"),
    *words("spot.table.row spot.table.column spot.table spot.bars.row part.p.year edit.table"),
    *(
        f"{field}.{place}"
        for field in FIELDS
        for place in words("table.0 table.1 table.2 table.9 table.x bars.0")
    ),
]
SAID = words("""table rows columns fixed ticked level:1 level:9 from:2021 last:2 last:0 N1 E,W All N1,Income,W
    0~1~2 2~0-1 ~0-1-2 0-1 1~2 bar line stacked pyramid scatter no
    share-0 share-9 growth index 1 2 14 15 -1 99999999999999 N2%2C""")


odd = st.one_of(st.text(max_size=30), st.sampled_from([*ODD, *words(WORDS)]))
segments = st.one_of(odd, st.sampled_from(words(SEGMENTS)))
values = st.one_of(odd, st.sampled_from(words(VALUES)))
queries = st.lists(st.tuples(st.one_of(odd, st.sampled_from(words(NAMES))), values), max_size=4)
targets = st.one_of(st.lists(segments, min_size=1, max_size=7), st.sampled_from(TARGETS))


def spoken(response_text: str, kind: str) -> str:
    """The sentence that an error says."""
    if kind.startswith("application/problem+json"):
        return str(json.loads(response_text)["title"])
    return str(html.fromstring(response_text.encode()).xpath("string(//h1)")).strip()


@settings(max_examples=150, deadline=None)
@given(targets, queries, st.sampled_from(["en", "es"]), st.booleans())
def test_any_address_is_answered_or_refused_in_one_sentence(
    path: list[str], query: list[tuple[str, str]], language: str, raw: bool
) -> None:
    safe = "%[]:*" if raw else ""
    address = "/" + "/".join(quote(part, safe=safe + "*.", errors="replace") for part in path)
    if query:
        address += "?" + urlencode(query, safe=safe, errors="replace")
    try:
        response = ask(SITE, address, headers={"accept-language": language})
    except httpx.InvalidURL:
        # The client itself won't send it.
        reject()
    assert response.status_code < 500, address
    if response.status_code >= 400 and path[:2] != ["en", "query"]:
        sentence = spoken(response.text, response.headers["content-type"])
        assert 10 < len(sentence) < 400
        assert "Traceback" not in response.text


@settings(max_examples=80, deadline=None)
@given(
    st.binary(max_size=200),
    st.sampled_from(["application/json", "text/plain", "", "x/y", "application/json; q"]),
)
def test_any_body_is_answered_or_refused_in_one_sentence(body: bytes, kind: str) -> None:
    response = ask(SITE, "/api/v1/mdx", "POST", {"content-type": kind, "accept-language": "es"}, body)
    assert response.status_code in (200, 400, 413, 415)
    if response.status_code != 200:
        assert json.loads(response.text)["title"]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [
            "accept",
            "accept-language",
            "accept-encoding",
            "range",
            "if-none-match",
            "if-range",
            "host",
            "cookie",
        ]
    ),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
)
def test_any_header_is_taken_or_refused(name: str, value: str) -> None:
    for path in ("/es/s/time/years", "/api/v1/data/dataflow/*/Tax/*"):
        response = ask(SITE, path, headers={name: value})
        assert response.status_code in (200, 206, 304, 400, 406, 416), (name, value)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(STATES), st.one_of(st.sampled_from(SAID), st.sampled_from(ODD))),
        min_size=1,
        max_size=7,
        unique_by=lambda pair: pair[0],
    )
)
def test_any_form_leads_to_a_page_or_is_refused(query: list[tuple[str, str]]) -> None:
    response = ask(SITE, f"/en/s/territory/places?{urlencode(query, errors='replace')}")
    if response.status_code == 307:
        led = response.headers["location"]
        assert led.startswith("/en/s/territory/places?")
        response = ask(SITE, led.partition("#")[0])
        assert response.status_code != 307, led
    assert response.status_code in (200, 400, 404)
    if response.status_code != 200:
        assert 10 < len(spoken(response.text, response.headers["content-type"])) < 400
