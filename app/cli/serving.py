"""Serving the site from the command line, and attacking one that isn't served yet."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import typer
import uvicorn
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.bootstrap import publication_store, query_asker, store_url
from app.bootstrap.jobs import Queue, make_queue
from app.bootstrap.office import make_office, take_in_folder
from app.bootstrap.operations import readiness
from app.cli import environment
from app.cli.connections import Bounds, Connections, bounds_here, raise_limit
from app.cli.operations import watched
from app.cli.who import user
from app.domain.errors import OperatorError, UserError
from app.web.app import create_app
from app.web.gate import Allowance, Gate
from app.web.limits import Limits
from app.web.operate import Operations, too_many
from app.web.studio.parts import PARTS
from app.web.studio.shell import beside, create_studio

#: Environment variable with the address that readers find the site at, when it isn't the requests' own.
ADDRESS_VARIABLE = "CELOSIA_PUBLIC_URL"
#: Environment variable with the requests a second that one client may make in the long run; 0 for any number.
RATE_VARIABLE = "CELOSIA_REQUESTS_PER_SECOND"
#: Requests a second where nothing is said, and for how many seconds' worth of them a client may ask at once.
_RATE, _BURST_SECONDS = 20.0, 10
#: Environment variable with the seconds of computing that one query of a reader may take.
SECONDS_VARIABLE = "CELOSIA_QUERY_SECONDS"
#: Seconds that a server may take to end.
PATIENCE = 20.0
#: Of the server, in a second.
_TICKS = 10


def reserve(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises
    ------
    UserError
        The port is taken, or isn't ours to take.
    OperatorError
        There is no such address on this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio doesn't turn off Nagle's algorithm, and the second part of every answer waits
    # for the reader's machine to acknowledge the first: 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"Port {port} is taken. Choose another one with --port, or --port 0.") from None
        if error.errno == errno.EACCES:
            raise UserError(f"Port {port} needs more rights. Choose one above 1023 with --port.") from None
        raise OperatorError(f"Can't serve on {host}: {error.strerror}.") from None
    except OverflowError:
        listener.close()
        raise UserError(f"There is no port {port}.") from None
    return listener


def shared(listener: socket.socket, count: int) -> list[socket.socket]:
    """So many sockets at a listener's address, among which the machine shares connections out evenly.

    Of processes that listen at one and the same socket, one takes nearly all. The address was found free by
    a socket that shares with nobody.
    """
    if count == 1 or not hasattr(socket, "SO_REUSEPORT"):
        return [listener] * count
    address = listener.getsockname()
    listener.close()
    found = []
    for _ in range(count):
        one = socket.socket(listener.family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind(address)
        one.listen(128)
        found.append(one)
    return found


def serve(
    folder: Path,
    listener: socket.socket,
    ready: Callable[[], None],
    studio: bool = False,
    host: str = "",
    jobs: int = 1,
    number: int = 0,
) -> None:
    """Serve a publication's live release until interrupted; ``ready`` is called before the first request.

    Parameters
    ----------
    studio : bool
        Whether the office's side is served too, below ``/studio``.
    host : str
        Name that the listener is bound to; the studio answers under it where no public address is given.
    jobs : int
        How many of the studio's jobs this process works on at once; 0 leaves them to workers.
    number : int
        Which of the processes that serve the publication this is.
    """
    public_url = os.environ.get(ADDRESS_VARIABLE)
    raise_limit()
    if number == 0 and not public_url and not _is_this_machine(host):
        typer.echo(
            f"{ADDRESS_VARIABLE} isn't set: answers name whatever host a request asks for. "
            "Set it to the address that people use.",
            err=True,
        )
    with (
        publication_store(folder, new=studio) as store,
        watched(store, number) as metrics,
        ExitStack() as stack,
    ):
        gate = Gate(allowance())
        site = create_app(store, public_url=public_url, asker=query_asker(), limits=limits(), gate=gate)
        if studio:
            office = make_office(folder, store)
            stack.callback(office.previews.close)
            left = take_in_folder(office, user())
            if left:
                typer.echo(f"The folder wasn't taken in as the first version:\n{left}", err=True)
            hosts = ("localhost", "127.0.0.1", "::1", host)
            site = beside(site, create_studio(office, PARTS, public_url, hosts))
            if jobs:
                stack.enter_context(working(make_queue(store, store_url(folder), folder), jobs))
        ready()
        Server(Operations(site, partial(readiness, store), metrics), gate.end).run(sockets=[listener])


def _is_this_machine(host: str) -> bool:
    """Whether a listener bound to a name is reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host in ("", "localhost")


@contextmanager
def working(queue: Queue, capacity: int) -> Iterator[None]:
    """Work on the queue in a thread as long as the context lasts; jobs in hand go back to it at the end."""
    worker = queue.worker(capacity)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()


def limits() -> Limits | None:
    """How fast one client may ask, from the environment.

    Raises
    ------
    UserError
        What the environment says is no number of requests.
    """

    def made(rate: float) -> Limits | None:
        return Limits(rate, max(1, round(rate * _BURST_SECONDS))) if rate else None

    return environment.number(RATE_VARIABLE, made, _RATE, "a number of requests, or 0")


def allowance() -> Allowance:
    """What readers' own queries may take, from the environment.

    Raises
    ------
    UserError
        What the environment says is no number of seconds.
    """
    return environment.number(SECONDS_VARIABLE, Allowance, Allowance.seconds, "a number of seconds")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a publication served on a free port as long as the context lasts."""
    with publication_store(folder) as store:
        if store.live_release_id() is None:
            raise UserError(f"No release of {folder} is live. Make one with: celosia run {folder}")
        with running(create_app(store, asker=query_asker())) as address:
            yield address


@contextmanager
def running(app: ASGIApp) -> Iterator[str]:
    """The address of an application served on a free port as long as the context lasts."""
    listener = reserve("127.0.0.1", 0)
    server = Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)


class Server(uvicorn.Server):
    """Serves an application; ``end`` is called when a signal ends it, before it waits for its requests.

    Its connections have bounds in number and time: those that this machine can hold where none are given.
    """

    def __init__(
        self, app: ASGIApp, end: Callable[[], None] = lambda: None, bounds: Bounds | None = None
    ) -> None:
        bounds = bounds or bounds_here()
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            backlog=bounds.waiting,
            timeout_graceful_shutdown=int(PATIENCE / 2),
        )
        trusted = ProxyHeadersMiddleware(app, config.forwarded_allow_ips).trusted_hosts  # type: ignore[arg-type]
        self._connections = Connections(bounds, trusted.__contains__, too_many)
        config.http = self._connections.protocol  # type: ignore[assignment]
        super().__init__(config)
        self._end = end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._end()
        super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            self._connections.sweep()
        return await super().on_tick(counter)
