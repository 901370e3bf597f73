"""JSON that is none: every endpoint says what is wrong, where, and what to send instead."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp

from app.serve.adhoc import Adhoc
from app.web.app import create_app
from app.web.documents import DocumentError, read_document
from tests.web.office import MemoryStore
from tests.web.visitor import ask

#: Bodies with the place that is wrong and a word of what is said of it.
WRONG = [
    (b"{mdx: 1}", (1, 2), "field's name"),
    (b"{'mdx': 1}", (1, 2), "field's name"),
    (b'{"mdx": SELECT}', (1, 9), "value is missing"),
    (b'{"mdx" "SELECT"}', (1, 8), "colon"),
    (b'{"mdx": "SELECT" "x"}', (1, 18), "comma"),
    (b'{"mdx": "SELECT"} x', (1, 19), "already ended"),
    (b'{"mdx": "SELECT', (1, 9), "no closing quote"),
    (b'{"mdx": "SEL\nECT"}', (1, 13), "control character"),
    (b'{"mdx": "SEL\\ECT"}', (1, 13), "backslash"),
    (b'{\n "mdx": "SELECT",\n}', (3, 1), "field's name"),
    (b"{", (1, 2), "ends before"),
    (b'{"mdx": ', (1, 9), "ends before"),
    (b"SELECT {} ON 0 FROM [Tax]", (1, 1), "value is missing"),
    (b"", (0, 0), "no body"),
    (b"  \n", (0, 0), "no body"),
    (b'"SELECT"', (0, 0), "no object"),
    (b"[" * 100_000, (0, 0), "within one another"),
    (b'{"mdx": NaN}', (0, 0), "number"),
    (b'{"mdx": ' + b"9" * 5000 + b"}", (0, 0), "number"),
    (b'{"mdx": "\xff"}', (0, 0), "UTF-8: byte 10"),
]


@pytest.fixture(scope="module")
def site() -> ASGIApp:
    return create_app(MemoryStore(), asker=Adhoc())


@pytest.mark.parametrize(("body", "place", "word"), WRONG)
def test_what_is_wrong_with_json_is_said_with_its_place(
    site: ASGIApp, body: bytes, place: tuple[int, int], word: str
) -> None:
    said = {}
    for language in ("en", "es"):
        headers = {"content-type": "application/json", "accept-language": language}
        response = ask(site, "/api/v1/mdx", "POST", headers, body)
        assert response.status_code == 400
        assert response.headers["content-type"] == "application/problem+json"
        said[language] = problem = response.json()
        (error,) = problem["errors"]
        assert (error["line"], error["column"]) == place
        assert problem["title"] == f"{error['cause']} {error['remedy']}"
        assert '{"mdx": "SELECT …"}' in error["remedy"]
        assert "char" not in problem["title"].replace("character", "")
    assert word in said["en"]["title"]
    assert said["en"]["title"] != said["es"]["title"]


def test_a_byte_order_mark_is_no_mistake(site: ASGIApp) -> None:
    assert read_document(b'\xef\xbb\xbf{"mdx": "x"}') == {"mdx": "x"}


@given(body=st.binary(max_size=40) | st.text('{}[]",:\\ \n1eE-.', max_size=30).map(str.encode))
def test_any_bytes_are_a_document_or_have_one_sentence(body: bytes) -> None:
    try:
        found = read_document(body)
    except DocumentError as error:
        for language in ("en", "es", "ca"):
            sentence = error.sentence(language)
            assert sentence.endswith(".")
            assert "%(" not in sentence
    else:
        assert json.loads(body.decode("utf-8-sig")) == found
