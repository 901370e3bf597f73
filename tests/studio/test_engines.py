"""Drafts may name any server; the studio asks only those that an admin has named, by the engine they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from lxml import html

from app.domain.people import Role, command_line
from app.office.office import Office
from app.web.studio.parts import PARTS
from app.web.studio.shell import create_studio
from tests.studio.test_drafts import SHEET, begin, revision
from tests.studio.visitors import BASE, Visitor, starter_office

REMOTE = """name = "Firms"
engine = "{engine}"
[server]
url = "http://127.0.0.1:{port}{path}"
user = "OLAP_USER"
password = "OLAP_PASSWORD"
[contributors]
count = "Firms"
[[measure]]
name = "Firms"
aggregator = "count"
"""
FACTS = 'engine = "postgresql"\n[facts]\nurl = "postgresql://ana@127.0.0.1:{port}/x"\ntable = "t"\n'


class Listener(ThreadingHTTPServer):
    """Notes who comes, and turns everybody away."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Refusal)
        self.callers = 0
        self.asked: list[bytes] = []

    def verify_request(self, *_: object) -> bool:
        self.callers += 1
        return True


class Refusal(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Listener)
        self.server.asked.append(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.send_response(503)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Nothing: the log is the test's."""


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def firms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("engines") / "firms"
    with starter_office(folder) as (office, _):
        office.versions.import_folder(folder, "ada")
        yield office


@pytest.fixture
def ana(firms: Office, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    monkeypatch.setenv("OLAP_USER", "ana")
    monkeypatch.setenv("OLAP_PASSWORD", "s3cret")
    return Visitor(create_studio(firms, PARTS, BASE)).sign_in(Role.ANALYST)


def text_of(ana: Visitor, draft: str, file: str) -> str:
    page = ana.get(f"{draft}/text/{file}").text
    return str(html.fromstring(page).xpath("string(//textarea[@name='text'])"))


def rewritten(ana: Visitor, draft: str, text: str, file: str = "cubes/firms.toml") -> str:
    """Save a file; what the editor says is wrong."""
    address = f"{draft}/text/{file}"
    response = ana.post(address, {"text": text, "revision": revision(ana, address)})
    if response.status_code == 303:
        return ""
    return str(html.fromstring(response.text).xpath("string(//ul[@class='mistakes'])"))


def look(ana: Visitor, draft: str) -> list[int]:
    """Everything of a draft that looks at its cubes."""
    api = f"/studio/api{draft.removeprefix('/studio')}"
    headers = {"x-csrf-token": ana.token}
    asked = {"text": "SELECT [", "caret": 8, "parameters": []}
    return [
        ana.get(f"{draft}/preview/{SHEET}").status_code,
        ana.ask("POST", f"{api}/complete", json=asked, headers=headers).status_code,
        ana.post(f"{draft}/publish", {"message": "x", "revision": "1"}).status_code,
    ]


@pytest.mark.parametrize(
    "text",
    [
        FACTS,
        FACTS.replace('"postgresql"\n', '"duckdb"\n'),
        FACTS.replace('"postgresql"\n', '"spark"\n'),
        REMOTE.replace("{engine}", "xmla").replace("{path}", "/xmla"),
        REMOTE.replace("{engine}", "atoti").replace("{path}", ""),
        REMOTE.replace("{engine}", "xmla").replace("{path}", "/named/../xmla"),
    ],
    ids=["postgresql", "duckdb", "spark", "xmla", "atoti", "path"],
)
def test_a_server_that_no_admin_named_is_never_asked(
    firms: Office, ana: Visitor, listener: Listener, text: str
) -> None:
    draft = begin(ana)
    port = str(listener.server_port)
    named = (f"http://127.0.0.1:{port}/named", "http://127.0.0.1/xmla", "postgresql://ana@127.0.0.1/x")
    firms.settings.set_sources(command_line("t"), named)
    file = text.replace("{port}", port)
    if "[server]" not in text:
        whole = text_of(ana, draft, "cubes/firms.toml")
        start, rest = re.split(r"^\[facts\]\n", whole, maxsplit=1, flags=re.MULTILINE)
        file = start + file + re.sub(r"^file = .*\n", "", rest, count=1, flags=re.MULTILINE)
    assert "no admin has named" in rewritten(ana, draft, file)
    assert look(ana, draft)[0] == 422
    assert listener.callers == 0


def test_a_server_that_an_admin_named_is_asked_by_its_engine(
    firms: Office, ana: Visitor, listener: Listener
) -> None:
    draft = begin(ana)
    url = f"http://127.0.0.1:{listener.server_port}/xmla"
    firms.settings.set_sources(command_line("t"), (url,))
    whole = text_of(ana, draft, "publication.toml")
    protection = '[confidentiality]\ninsiders = false\n[confidentiality.Firms."Firms"]\nrules = []\n'
    rewritten(ana, draft, whole.split("[confidentiality")[0] + protection, "publication.toml")
    text = REMOTE.format(engine="xmla", port=listener.server_port, path="/xmla")
    assert "no admin" not in rewritten(ana, draft, text)
    page = ana.get(f"{draft}/preview/{SHEET}")
    assert page.status_code != 200
    assert "s3cret" not in page.text
    assert any(b"Discover" in body for body in listener.asked)
    assert url not in ana.get(f"{draft}/data").text
    assert ana.save(f"{draft}/source", {"source": "0", "sql": "select 1"}).status_code == 400
