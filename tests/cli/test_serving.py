"""How the command line's server speaks to its clients."""

from __future__ import annotations

import asyncio
import socket

import pytest

from app.cli.serving import reserve, shared
from app.domain.errors import UserError


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_answers_are_sent_at_once_whatever_the_client_has_acknowledged(host: str) -> None:
    """Headers and body are two writes: under Nagle's algorithm the second waits 40 ms for the first."""

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            own: socket.socket = writer.get_extra_info("socket")
            found.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = reserve(host, 0)
        server = await asyncio.start_server(met, sock=listener)
        _, writer = await asyncio.open_connection(host, listener.getsockname()[1])
        answer = await found
        writer.close()
        server.close()
        return answer

    assert asyncio.run(accepted()) != 0


def test_processes_get_their_share_of_the_connections() -> None:
    """And nobody else a part of the port."""
    listeners = shared(reserve("127.0.0.1", 0), 2)
    port = listeners[0].getsockname()[1]
    assert {listener.getsockname()[1] for listener in listeners} == {port}
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(64)]
    taken = []
    for listener in listeners:
        listener.setblocking(False)
        taken.append(0)
        while True:
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                break
            taken[-1] += 1
    assert sum(taken) == 64
    assert min(taken) >= 8
    with pytest.raises(UserError, match="is taken"):
        reserve("127.0.0.1", port)
    for client in (*clients, *listeners):
        client.close()
