"""How the command line's server speaks to its clients."""

from __future__ import annotations

import asyncio
import socket

import pytest

from app.cli.serving import reserve


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
