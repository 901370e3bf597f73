"""No client keeps others out by connections alone, and none is held for ever."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from time import monotonic

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from app.cli.connections import Bounds, bounds_here
from app.cli.serving import Server, reserve

#: Short, so that tests take no time; a sweep is a second.
QUICK = Bounds(head=0.3, body=0.3, answer=0.3)
#: Bytes that no machine keeps for a reader who takes none.
LONG = 64 << 20
HEAD = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def site(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads what it is sent; ``/long`` is long, and ``/wait`` ends when its reader leaves."""
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    if scope["path"] == "/wait":
        await receive()
    body = b"x" * (LONG if scope["path"] == "/long" else 2)
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(bounds: Bounds) -> Iterator[int]:
    """The port of a site with such bounds, in which this machine is no trusted proxy."""
    listener = reserve("127.0.0.1", 0)
    server = Server(site, bounds=bounds)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(autouse=True)
def untrusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")


def connect(port: int, *sent: bytes) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=10)
    for part in sent:
        found.sendall(part)
    return found


def ended(one: socket.socket) -> bytes:
    """All that comes until the other side ends it; fails after a while."""
    found = b""
    try:
        while part := one.recv(1 << 16):
            found += part
    except ConnectionError:
        pass
    one.close()
    return found


@pytest.mark.parametrize(
    "sent",
    [
        (),
        (b"GET / HT",),
        (b"GET / HTTP/1.1\r\nHost: here\r\nX-A: ",),
        (HEAD, b"G"),
        (HEAD, HEAD[:-2]),
        (b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n",),
        (b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n12345678",),
        (b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n123",),
        (b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",),
    ],
)
def test_what_never_comes_isnt_waited_for(sent: tuple[bytes, ...]) -> None:
    with serving(QUICK) as port:
        said = ended(connect(port, *sent))
        assert said.count(b"HTTP/1.1 200") == sent.count(HEAD)
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200


def test_an_answer_that_nobody_takes_is_given_up() -> None:
    with serving(QUICK) as port:
        one = connect(port, HEAD.replace(b"/ ", b"/long ", 1))
        # The far end resets what it gives up; until then this end hears nothing and reads nothing.
        one.setblocking(False)
        asyncio.run(_reset(one))
        assert len(ended(one)) < LONG


async def _reset(one: socket.socket) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def look() -> None:
        try:
            one.send(b"\r\n")
        except BlockingIOError:
            pass
        except ConnectionError:
            over.set()
            return
        loop.call_later(0.05, look)

    look()
    await asyncio.wait_for(over.wait(), 10)


def test_a_long_body_that_keeps_coming_and_a_long_answer_that_is_taken_are_let_be() -> None:
    with serving(QUICK) as port:
        sent = httpx.post(f"http://127.0.0.1:{port}/", content=b"x" * (8 << 20))
        assert sent.status_code == 200
        assert len(httpx.get(f"http://127.0.0.1:{port}/long").content) == LONG


@pytest.mark.parametrize("bounds", [Bounds(connections=8), Bounds(client=8)], ids=["in all", "of one client"])
def test_idle_connections_keep_nobody_out(bounds: Bounds, caplog: pytest.LogCaptureFixture) -> None:
    with serving(bounds) as port, ExitStack() as stack, caplog.at_level(logging.WARNING):
        idle = [stack.enter_context(connect(port, HEAD[: n % 9])) for n in range(40)]
        assert httpx.get(f"http://127.0.0.1:{port}/").text == "xx"
        # Those that have waited longest went.
        assert ended(idle[0]) == ended(idle[20]) == b""
        idle[-1].sendall(HEAD[39 % 9 :])
        assert idle[-1].recv(15) == b"HTTP/1.1 200 OK"
    assert not caplog.records


def test_bodies_that_pause_do_not_keep_the_server_from_ending(caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as stack, caplog.at_level(logging.WARNING):
        with serving(Bounds(head=1.0)) as port:
            sent = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n1"
            paused = stack.enter_context(connect(port, sent))
            until = monotonic() + 0.3
            while monotonic() < until:
                assert httpx.get(f"http://127.0.0.1:{port}/").text == "xx"
            began = monotonic()
        assert monotonic() - began < 5
        assert ended(paused) == b""
    assert not caplog.records


@pytest.mark.parametrize("language", ["en", "es", "ca"])
@pytest.mark.parametrize("bounds", [Bounds(connections=4), Bounds(client=4)], ids=["in all", "of one client"])
def test_while_all_are_answered_who_comes_is_told_to_come_again(bounds: Bounds, language: str) -> None:
    with serving(bounds) as port, ExitStack() as stack:
        address = f"http://127.0.0.1:{port}"
        waiting = [stack.enter_context(connect(port, HEAD.replace(b"/ ", b"/wait ", 1))) for _ in range(4)]
        for _ in range(3):
            refused = httpx.get(f"{address}/{language}/", headers={"Accept-Language": language})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
            assert f'lang="{language}"' in refused.text
        api = httpx.get(f"{address}/api/v1/")
        assert (api.status_code, api.headers["content-type"]) == (503, "application/problem+json")
        for one in waiting:
            one.close()
        answers = (httpx.get(address).status_code for _ in range(100))
        assert 200 in answers


def test_bounds_are_what_this_process_can_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for limit in (256, 1024, 4096):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
            found = bounds_here()
            assert 8 <= found.connections <= min(1000, limit - 3 * found.waiting - 64)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
