"""Readers' own queries take no more than they may, whoever asks them and however many."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

import httpx
import pytest
from starlette.types import ASGIApp, Message

from app.bootstrap import query_asker
from app.cli.serving import Server, allowance, reserve
from app.domain.catalogue import Catalogue
from app.domain.errors import UserError
from app.domain.patience import AbandonedError, OverdueError, Patience
from app.domain.release import Release
from app.serve.port import Asked
from app.web.app import create_app
from app.web.builder import QUERY_FORMATS
from app.web.gate import Allowance, Gate
from tests.web.office import MemoryStore
from tests.web.test_xmla import execute
from tests.web.visitor import ask

MDX = "SELECT [Geography].[Town].Members ON 0 FROM [Tax]"
XML = {"content-type": "text/xml"}
TEXT = {"content-type": "text/plain"}


class Endless:
    """Works on every query until nobody waits for it, and says in ``met`` when it begins and why it ended."""

    def __init__(self) -> None:
        self.met: Queue[str] = Queue()

    def ask(self, text: str, release: Release, catalogue: Catalogue, patience: Patience) -> Asked:
        self.met.put("begun")
        try:
            while True:
                patience.check()
        except (AbandonedError, OverdueError) as error:
            self.met.put(type(error).__name__)
            raise


def every_door(site: ASGIApp, language: str) -> list[httpx.Response]:
    """The answers to a query at each of its addresses."""
    told = {"accept-language": language}
    page = f"/{language}/query"
    return [
        ask(site, f"{page}?{httpx.QueryParams({'mdx': MDX})}"),
        ask(site, f"{page}?build=1&place.0=rows&level.0=[Geography].[Town]"),
        ask(site, f"{page}.csv?{httpx.QueryParams({'mdx': MDX})}"),
        ask(site, "/api/v1/mdx", "POST", told | TEXT, MDX.encode()),
        ask(site, "/xmla", "POST", told | XML, execute(MDX).encode()),
    ]


@pytest.mark.parametrize(
    ("language", "words"), [("en", "more than 0 seconds"), ("es", "tarda más de 0 segundos")]
)
def test_a_query_that_takes_too_long_is_refused_in_one_sentence(language: str, words: str) -> None:
    site = create_app(MemoryStore(), asker=query_asker(), gate=Gate(Allowance(seconds=0)))
    *answers, fault = every_door(site, language)
    for answer in answers:
        assert answer.status_code == 400
        assert words in answer.text
    assert words in answers[-1].json()["title"]
    assert answers[-1].headers["content-type"] == "application/problem+json"
    assert "Fault" in fault.text
    assert words in fault.text
    # What the page asked for is still there to be changed.
    assert MDX in answers[0].text
    # Pages aren't questions.
    assert ask(site, f"/{language}/query").status_code == 200


class Left:
    """Answers a query whose reader leaves once the figures are there."""

    def ask(self, text: str, release: Release, catalogue: Catalogue, patience: Patience) -> Asked:
        asked = query_asker().ask(text, release, catalogue, patience)
        patience.give_up()
        return asked


@pytest.mark.parametrize("form", [form.extension for form in QUERY_FORMATS])
def test_a_file_is_made_no_longer_than_somebody_waits_for_it(form: str) -> None:
    site = create_app(MemoryStore(), asker=Left())
    assert ask(site, f"/api/v1/mdx?format={form}", "POST", TEXT, MDX.encode()).status_code == 503
    assert ask(site, f"/en/query.{form}?{httpx.QueryParams({'mdx': MDX})}").status_code == 503


@pytest.mark.parametrize("form", ["Multidimensional", "Tabular"])
def test_a_message_is_written_no_longer_than_somebody_waits_for_it(form: str) -> None:
    site, asked = create_app(MemoryStore(), asker=Left()), execute(MDX, f"<Format>{form}</Format>")
    answer = ask(site, "/xmla", "POST", XML, asked.encode())
    assert answer.status_code == 503
    assert "Fault" in answer.text


class Patient(Endless):
    """Works on a query until it is told to end."""

    def __init__(self) -> None:
        super().__init__()
        self.end = threading.Event()

    def ask(self, text: str, release: Release, catalogue: Catalogue, patience: Patience) -> Asked:
        self.met.put("begun")
        self.end.wait()
        return query_asker().ask(text, release, catalogue, patience)


def test_who_finds_too_many_waiting_is_told_to_come_again() -> None:
    """One is worked on, and nobody may wait: every door says so, and the site goes on."""
    asker = Patient()
    site = create_app(MemoryStore(), asker=asker, gate=Gate(Allowance(at_once=1, waiting=0)))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, site, "/api/v1/mdx", "POST", TEXT, MDX.encode())
        asker.met.get()
        answers, page = every_door(site, "es"), ask(site, "/en/")
        asker.end.set()
        assert first.result().status_code == 200
    assert page.status_code == 200
    for answer in answers:
        assert answer.status_code == 503
        assert "demasiadas preguntas" in answer.text
        assert int(answer.headers["retry-after"]) > 0
    assert ask(site, "/api/v1/mdx", "POST", TEXT, MDX.encode()).status_code == 200


def test_who_waits_in_vain_is_told_so() -> None:
    asker = Patient()
    site = create_app(MemoryStore(), asker=asker, gate=Gate(Allowance(at_once=1, waiting=5, patience=0)))

    async def both() -> tuple[httpx.Response, httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://site") as client:
            first = asyncio.create_task(client.post("/api/v1/mdx", content=MDX, headers=TEXT))
            await asyncio.to_thread(asker.met.get)
            second = await client.post("/api/v1/mdx", content=MDX, headers=TEXT)
            asker.end.set()
            return await first, second

    first, second = asyncio.run(both())
    assert (first.status_code, second.status_code) == (200, 503)
    assert "Too many questions" in second.json()["title"]


def test_pages_are_read_while_queries_are_worked_on() -> None:
    """However many ask: queries have threads of their own."""
    asker = Endless()
    gate = Gate(Allowance(seconds=1000, at_once=2, waiting=100, patience=1000))
    site = create_app(MemoryStore(), asker=asker, gate=gate)

    async def look() -> tuple[list[int], int]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://site") as client:
            asked = [
                asyncio.create_task(client.post("/api/v1/mdx", content=MDX, headers=TEXT)) for _ in range(60)
            ]
            for _ in range(2):
                await asyncio.to_thread(asker.met.get)
            page = await client.get("/en/s/territory/places")
            gate.end()
            return [answer.status_code for answer in await asyncio.gather(*asked)], page.status_code

    statuses, page = asyncio.run(look())
    assert page == 200
    assert statuses == [503] * 60


@pytest.mark.parametrize("path", ["/api/v1/mdx", "/xmla", f"/en/query?{httpx.QueryParams({'mdx': MDX})}"])
def test_a_query_ends_when_its_reader_has_left(path: str) -> None:
    asker = Endless()
    site = create_app(MemoryStore(), asker=asker, gate=Gate(Allowance(seconds=1000)))
    address, _, query = path.partition("?")
    xml = address == "/xmla"
    body = b"" if query else execute(MDX).encode() if xml else MDX.encode()

    async def leave() -> None:
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await asyncio.to_thread(asker.met.get)
            return {"type": "http.disconnect"}

        async def send(_message: Message) -> None:
            pass

        scope = {
            "type": "http",
            "method": "GET" if query else "POST",
            "scheme": "http",
            "path": address,
            "raw_path": address.encode(),
            "query_string": query.encode(),
            "headers": [(b"content-type", b"text/xml" if xml else b"text/plain"), (b"host", b"site")],
            "client": ("127.0.0.1", 1),
        }
        await site(scope, receive, send)

    asyncio.run(leave())
    assert asker.met.get() == "AbandonedError"


def test_a_server_ends_without_waiting_for_queries() -> None:
    """A signal stops them before the server waits for its requests."""
    asker, gate = Endless(), Gate(Allowance(seconds=1000))
    listener = reserve("127.0.0.1", 0)
    server = Server(create_app(MemoryStore(), asker=asker, gate=gate), gate.end)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/api/v1/mdx"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(httpx.post, address, content=MDX, headers=TEXT, timeout=60)
        asker.met.get()
        server.handle_exit(signal.SIGTERM, None)
        answer = waiting.result()
    assert asker.met.get() == "AbandonedError"
    assert answer.status_code == 503
    assert "restarted" in answer.json()["title"]
    thread.join()


@pytest.mark.parametrize("text", ["ten", "-1", "nan", "10s"])
def test_an_odd_number_of_seconds_is_told(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CELOSIA_QUERY_SECONDS", text)
    with pytest.raises(UserError, match="CELOSIA_QUERY_SECONDS"):
        allowance()


def test_patience_is_of_its_clock() -> None:
    now = 5.0
    patience = Patience(2, lambda: now)
    checks: list[Callable[[], None]] = [patience.check] * 2
    for check in checks:
        check()
    now = 6.9
    patience.check()
    now = 7.0
    with pytest.raises(OverdueError):
        patience.check()
