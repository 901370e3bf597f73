"""Finished responses by release and address, in memory, bounded by bytes.

Raw ASGI right inside the guard, so that a page which was made once costs a lookup. The key holds the
release id, and path and query string, which hold query, choice, format and language: a switch of
releases empties nothing and mixes nothing, the old entries just stop being asked for. It holds scheme and
host too, because pages name their own address: nobody's wrong one gets into another's page.
"""

from __future__ import annotations

from collections import OrderedDict

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.web.locate import LOCATED, RELEASE
from app.web.reply import REPLY, Reply

_Key = tuple[str | None, str, bytes, str, str, bytes]


class ReplyCache:
    """Keep replies to GET requests; ``capacity`` in bytes, the least recently used leave first."""

    def __init__(self, app: ASGIApp, capacity: int = 64 << 20) -> None:
        self._app = app
        self._capacity = capacity
        self._size = 0
        self._replies: OrderedDict[_Key, Reply] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        below = scope[LOCATED].prefix
        key: _Key = (
            scope[RELEASE],
            scope["scheme"],
            host,
            below,
            scope["path"],
            scope["query_string"],
        )
        reply = self._replies.get(key)
        if reply is not None:
            self._replies.move_to_end(key)
            await reply(scope, receive, send)
            return

        async def remember(message: Message) -> None:
            made = message.get(REPLY)
            if isinstance(made, Reply) and made.keep:
                self._keep(key, made)
            await send(message)

        await self._app(scope, receive, remember)

    def _keep(self, key: _Key, reply: Reply) -> None:
        previous = self._replies.pop(key, None)
        self._size += reply.size - (previous.size if previous is not None else 0)
        self._replies[key] = reply
        while self._size > self._capacity:
            _, oldest = self._replies.popitem(last=False)
            self._size -= oldest.size
