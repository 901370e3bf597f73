"""Signs of life, limits, metrics, logs and traces: what operators are told, and that it holds no value."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from threading import Event

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.types import ASGIApp, Message

from app.bootstrap import query_asker
from app.bootstrap.operations import counts, readiness
from app.db.engine import migrate
from app.db.jobs import JobTable
from app.domain.errors import OperatorError, UserError
from app.watch import traces
from app.watch.logs import install_logs
from app.watch.metrics import Metrics
from app.web.app import create_app
from app.web.operate import Limits, Operations, part_of
from tests.databases import new_store
from tests.web.office import MemoryStore


def ask(app: ASGIApp, path: str, method: str = "GET", content: object = None) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, content=content)  # type: ignore[arg-type]

    return asyncio.run(send())


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    """The log, as JSON lines."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = io.StringIO()
    install_logs("json", stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def test_it_lives_even_without_its_database_but_is_not_ready() -> None:
    def broken() -> str:
        raise OperatorError("password of the database: hunter2")

    app = Operations(create_app(MemoryStore()), broken)
    assert ask(app, "/healthz").json() == {"status": "ok"}
    response = ask(app, "/readyz")
    assert (response.status_code, response.json()) == (503, {"status": "database"})
    assert "hunter2" not in response.text
    assert ask(Operations(create_app(MemoryStore()), lambda: ""), "/readyz").status_code == 200
    assert ask(app, "/healthz", "HEAD").content == b""


def test_a_store_that_hangs_holds_up_those_alone_who_ask_it() -> None:
    store, asked, gate = MemoryStore(), Event(), Event()
    releases = store.releases

    def hanging() -> object:
        asked.set()
        assert gate.wait(60)
        return releases()

    store.releases = hanging  # type: ignore[method-assign,assignment]
    app = Operations(create_app(store), lambda: "")

    async def both() -> tuple[httpx.Response, list[httpx.Response]]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
            pages = [asyncio.create_task(client.get("/en/")) for _ in range(3)]
            await asyncio.to_thread(asked.wait)
            alive = await client.get("/healthz")
            assert not any(page.done() for page in pages)
            gate.set()
            return alive, [await page for page in pages]

    alive, pages = asyncio.run(both())
    assert alive.status_code == 200
    assert [page.status_code for page in pages] == [200] * 3


def test_it_is_not_ready_while_the_tables_are_of_another_version(tmp_path: Path) -> None:
    store = new_store(tmp_path / "x.sqlite3")
    assert readiness(store) == ""
    migrate(store.database.engine, "0001")
    assert readiness(store) == "migrations"
    store.close()


def test_requests_beyond_the_limits_are_refused_before_anything_reads_them() -> None:
    app = Operations(create_app(MemoryStore()), lambda: "", limits=Limits(address=200, bodies=(("", 100),)))
    assert ask(app, "/en/?x=" + "a" * 200).status_code == 414
    assert ask(app, "/en/", "POST", b"x" * 101).status_code == 413
    # In one sentence, and in the reader's language.
    for path, word in (("/en/", "long"), ("/es/", "larga"), ("/ca/", "llarga")):
        refused = ask(app, path + "?x=" + "a" * 200)
        assert refused.headers["content-type"].startswith("text/html")
        assert f'lang="{path.strip("/")}"' in refused.text
        assert word in refused.text
    told = ask(app, "/api/v1/mdx", "POST", b"x" * 101)
    assert told.headers["content-type"] == "application/problem+json"
    assert told.json()["status"] == 413
    assert ask(app, "/en/", "POST", b"x" * 99).status_code == 405

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 10

    seen = []

    async def reading(scope: object, receive: object, send: object) -> None:
        while True:
            message = await receive()  # type: ignore[operator]
            seen.append(len(message.get("body", b"")))
            if message["type"] == "http.disconnect":
                raise ConnectionError
            if not message.get("more_body"):
                return

    ask(Operations(reading, lambda: "", limits=Limits(bodies=(("", 100),))), "/", "POST", endless())
    assert sum(seen) <= 100


@pytest.mark.parametrize("path", ["/api/v1/mdx", "/xmla"])
def test_a_body_that_grows_too_long_is_told_so(path: str, said: io.StringIO) -> None:
    """Sent in chunks it has no length to refuse it by: no failure of ours, and none in the log."""

    async def growing() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * 10

    site = create_app(MemoryStore(), asker=query_asker())
    limited = Operations(site, lambda: "", limits=Limits(bodies=(("", 100),)))
    assert ask(limited, path, "POST", growing()).status_code == 413
    assert "ERROR" not in said.getvalue().upper()


def test_metrics_count_requests_by_part_and_jobs_by_state(tmp_path: Path) -> None:
    store = new_store(tmp_path / "x.sqlite3")
    JobTable(store.database).submit(None, "folder", {}, "ana")
    metrics = Metrics(lambda: counts(store))
    port, end = metrics.serve("127.0.0.1:0")
    app = Operations(create_app(MemoryStore()), lambda: "", metrics)
    for path in ("/en/", "/en/s/nope", "/static/site.css", "/healthz"):
        ask(app, path)
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    assert 'celosia_requests_total{part="page",status="2xx"} 1.0' in text
    assert 'celosia_requests_total{part="sheet",status="4xx"} 1.0' in text
    assert 'celosia_jobs{state="queued"} 1.0' in text
    assert "celosia_database_up 1.0" in text
    assert "celosia_release_live 0.0" in text
    end()
    store.close()
    assert ask(app, "/metrics").status_code == 404


def test_metrics_go_on_without_the_database() -> None:
    def broken() -> tuple[dict[str, int], bool]:
        raise OperatorError("gone")

    metrics = Metrics(broken)
    port, end = metrics.serve("127.0.0.1:0")
    assert "celosia_database_up 0.0" in httpx.get(f"http://127.0.0.1:{port}/metrics").text
    for wrong in ("here", "127.0.0.1:port", "127.0.0.1:99999"):
        with pytest.raises(UserError, match="CELOSIA_METRICS"):
            metrics.serve(wrong)
    with pytest.raises(OperatorError):
        metrics.serve(f"127.0.0.1:{port}")
    end()


def test_log_lines_are_objects_and_hold_neither_addresses_nor_texts_of_faults(said: io.StringIO) -> None:
    app = Operations(create_app(MemoryStore()), lambda: "")
    ask(app, "/en/search?q=a-secret-wish")
    try:
        raise ValueError("cell 12345 of the bank")
    except ValueError:
        logging.getLogger("celosia.x").exception("it broke", extra={"job": 7})
    logging.getLogger("httpx").info("GET https://site/?q=a-secret-wish")
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    request = next(line for line in lines if line["event"] == "request")
    assert (request["part"], request["status"], request["method"]) == ("search", 200, "GET")
    broke = next(line for line in lines if line["event"] == "it broke")
    assert broke["job"] == 7
    assert broke["fault"].startswith("ValueError at ")
    assert "secret" not in said.getvalue()
    assert "12345" not in said.getvalue()
    with pytest.raises(UserError, match="CELOSIA_LOG"):
        install_logs("xml")


def test_spans_name_parts_and_never_addresses() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces.use_tracer(provider.get_tracer("test"))
    try:
        ask(Operations(create_app(MemoryStore()), lambda: ""), "/en/search?q=a-secret-wish")
    finally:
        traces.use_tracer(None)
    (span,) = exporter.get_finished_spans()
    assert span.name == "request"
    assert dict(span.attributes or {}) == {
        "celosia.part": "search",
        "celosia.method": "GET",
        "http.response.status_code": 200,
    }


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/", "page"),
        ("", "page"),
        ("/en/s/a/b", "sheet"),
        ("/studio/jobs/1", "studio"),
        ("/api/v1/x", "api"),
        ("/<script>/s", "sheet"),
        ("/<script>/<b>", "page"),
    ],
)
def test_parts_are_few(path: str, part: str) -> None:
    assert part_of(path) == part


@pytest.mark.parametrize("target", ["http://stats.example.org{}", "HTTPS://stats.example.org:8443{}"])
def test_a_target_may_be_a_whole_address(target: str) -> None:
    """As proxies write it; the host that it names is the request's."""
    app = Operations(create_app(MemoryStore()), lambda: "")

    def fetch(path: str, query: bytes = b"") -> tuple[int, bytes]:
        raw, got = target.format(path), list[Message]()
        scope = {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "path": raw,
            "raw_path": raw.encode(),
            "query_string": query,
            "headers": [(b"host", b"other")],
            "client": ("127.0.0.1", 1),
        }

        async def receive() -> Message:
            return {"type": "http.request"}

        async def send(message: Message) -> None:
            got.append(message)

        asyncio.run(app(scope, receive, send))
        return got[0]["status"], b"".join(message.get("body", b"") for message in got[1:])

    assert fetch("/healthz")[0] == 200
    assert fetch("/en/search", b"q=places")[0] == 200
    assert fetch("/en/nowhere")[0] == 404
    status, page = fetch("/sitemap.xml")
    assert status == 200
    assert b"http://stats.example.org" in page
    assert b"other" not in page
