"""Letters that no database or page can hold, and texts that swell: at every route, on both databases."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from app.db import open_store
from app.domain.people import Role
from app.domain.toml import MOST_PARTS, read_toml
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.routes import gather
from app.web.studio.shell import create_studio
from demo import create_starter
from tests.databases import KINDS, database_url
from tests.studio.visitors import BASE, Visitor, staffed

ROUTES, _TABS = gather(PARTS)
#: As JSON writes them: nothing that a text column or UTF-8 takes.
LETTERS = ("\\u0000", "\\ud800", "a\\udfffb")


@pytest.fixture(scope="module", params=KINDS)
def office(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("odd")
    create_starter(folder / "firms")
    with database_url(request.param, folder) as url:
        store = open_store(url)
        made = staffed(folder / "firms", store)
        made.versions.import_folder(folder / "firms", "ada")
        made.versions.begin("ada")
        yield made
        made.previews.close()
        store.close()


def test_no_route_fails_at_letters_that_nothing_holds(office: Office) -> None:
    visitor = Visitor(create_studio(office, PARTS, BASE)).sign_in(Role.ADMIN)
    draft = office.versions.drafts()[0]
    for route in (route for route in ROUTES if "/sign-" not in route.path):
        for part in ("nul%00l", "half%ED%A0%80"):
            known = {"draft": str(draft.id), "version": "1", "job": "1", "release": part}
            path = re.sub(
                r"\{([a-z_]+)(?::([a-z]+))?\}",
                lambda m, known=known, part=part: known.get(m[1], "7" if m[2] == "int" else part),
                route.path,
            )
            asked = "&".join(
                f"{name}={part}" for name in ("actor", "action", "cell", "in", "p.x", "before", "next")
            )
            if route.method == "GET" and "/events" not in path:
                assert visitor.get(f"{path}?{asked}").status_code < 500, path
        for letter in LETTERS if route.method == "POST" else ():
            texts = ", ".join(
                f'"{name}": "{letter}"' for name in ("text", "message", "revision", "query", "x")
            )
            files = f'{{"sheets/{letter}.toml": "{letter}"}}'
            body = f'{{"parent": 1, "at": 0, "version": 1, "files": {files}, {texts}}}'
            headers = {"x-csrf-token": visitor.token, "content-type": "application/json"}
            answer = visitor.ask("POST", path, content=body, headers=headers)
            # Whoever completes a text may be asked about any letter; none is kept.
            assert answer.status_code < 500, (path, answer.text)
            if letter != LETTERS[0] or path == "/studio/api/versions":
                assert answer.status_code == 400, (path, answer.text)
    assert visitor.get("/studio/account").status_code == 200
    assert office.versions.draft(draft.id) == draft


LONG = {
    "a long dotted key": "a" + ".a" * 60_000 + " = 1",
    "with blanks and quotes": "'a' . " * 60_000 + "a = 1",
    "a long header": "[" + ".".join(["a"] * 60_000) + "]",
    "in an inline table": "x = {" + "a." * 60_000 + "a = 1}",
    "deep lists": "a = " + "[" * 60_000 + "]" * 60_000,
    "deep tables": "a = " + "{a = " * 60_000 + "1" + "}" * 60_000,
    "names": "a" * 900_000,
    "quotes": "\"'" * 400_000,
    "dots": "." * 900_000,
    "tables": "[[a]]\n" * 150_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_a_text_that_swells_is_read_or_refused_at_once(kind: str) -> None:
    """The reader's time and memory grew by the square of a key's parts: 200 KB took all memory."""
    started = time.process_time()
    with suppress(ValueError, RecursionError):
        read_toml(LONG[kind])
    assert time.process_time() - started < 10


def test_keys_as_people_write_them_are_read() -> None:
    parts = ".".join(f'"{n}"' for n in range(MOST_PARTS))
    assert read_toml(f"{parts} = 1")
    assert read_toml("\ufeffa = '''" + "[a].[b].&[1.2.3], " * 500 + "'''")
    with pytest.raises(RecursionError):
        read_toml(f"{parts}.x = 1")


def test_a_draft_that_holds_such_a_text_is_told_of_and_mended(office: Office) -> None:
    visitor = Visitor(create_studio(office, PARTS, BASE)).sign_in(Role.ADMIN)
    visitor.get("/studio/publication")
    draft = visitor.post("/studio/drafts").headers["location"]
    for path in ("publication.toml", "cubes/firms.toml", "sheets/economy/towns.toml"):
        saved = visitor.save(f"{draft}/text/{path}", {"text": LONG["a long dotted key"]})
        assert saved.status_code in (200, 303)
        for page in ("", "/changes", f"/text/{path}"):
            assert visitor.get(f"{draft}{page}").status_code == 200
    assert "nested too deeply" in visitor.get(draft).text
    assert visitor.save(f"{draft}/publish", {"message": "m"}).status_code == 422
    assert visitor.save(f"{draft}/discard").status_code == 303
