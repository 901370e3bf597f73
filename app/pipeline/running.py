"""What the steps of one run share: what is run, for whom, and the results so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from app.cube.port import CubeServer
from app.db.codec import Codec
from app.db.store import RELEASED_CLASSES, Store
from app.domain import bands, crawled, equation, lattice, nearly, primary
from app.domain.errors import UserError
from app.domain.known import Behind
from app.domain.progress import ProgressCallback
from app.domain.publication import CubeDefinition, Publication
from app.domain.release_life import Trail
from app.pipeline import audit as audit_step
from app.pipeline import build as build_step
from app.pipeline import extremes
from app.pipeline import suppress as suppress_step
from app.pipeline.earlier import Past
from app.pipeline.memory import read_past
from app.pipeline.recognise import recognised
from solver import AuditReport, Exposure, Insider, Instance, Solution

RESULTS = Codec(
    (
        *RELEASED_CLASSES,
        bands.Band,
        audit_step.Breach,
        audit_step.ReleaseAudit,
        build_step.Problem,
        build_step.Problems,
        crawled.Crawl,
        crawled.CubeCells,
        crawled.Derived,
        crawled.Pending,
        equation.Equations,
        lattice.Extra,
        nearly.Nearly,
        Behind,
        primary.CubePrimaries,
        primary.PrimaryResult,
        extremes.Attained,
        suppress_step.Suppression,
        AuditReport,
        Exposure,
        Insider,
        Instance,
        Solution,
    )
)

OpenCube = Callable[[CubeDefinition], CubeServer]


class Signer(Protocol):
    """Signs certificates; ``public`` is the key to check them with, in base64."""

    @property
    def public(self) -> str: ...

    def sign(self, body: bytes) -> str: ...


@dataclass(frozen=True)
class Wish:
    """Who wants a release, whether it goes live at once or waits for approval, and who signs for it.

    ``trail`` is what the journal says of its making; the actor's name when left out. ``accepted``: also one
    that newly hides cells because few changed in them, which tells readers where the change is.
    """

    actor: str = "operator"
    live: bool = True
    signer: Signer | None = None
    trail: Trail | None = None
    accepted: bool = False


#: Who runs it where nobody else is said.
OPERATOR = Wish()


class Context:
    """What the steps of one run share: the publication, its open cubes, and the results so far."""

    def __init__(
        self,
        publication: Publication,
        store: Store,
        open_cube: OpenCube,
        progress: ProgressCallback,
        wish: Wish,
    ) -> None:
        self.publication = publication
        self.wish = wish
        self.basis: tuple[str, ...] = ()
        self.store = store
        self.progress = progress
        self.digests: dict[str, str] = {}
        self._open_cube = open_cube
        self._stack = ExitStack()
        self._servers: dict[str, CubeServer] | None = None
        self._results: dict[str, Any] = {}

    @cached_property
    def past(self) -> Past:
        """What readers may remember of the releases of the basis, under today's names."""
        return recognised(self.publication, self.servers, read_past(self.store, self.basis))

    @property
    def servers(self) -> Mapping[str, CubeServer]:
        """The publication's cubes, opened when first asked for."""
        if self._servers is None:
            self._servers = {}
            for definition in self.publication.cubes:
                server = self._open_cube(definition)
                self._stack.callback(server.close)
                self._servers[definition.name] = server
        return self._servers

    def fingerprints(self) -> dict[str, str]:
        return {name: server.fingerprint() for name, server in self.servers.items()}

    def fresh_fingerprint(self, definition: CubeDefinition) -> str:
        """What the data are right now, not when the cube was opened."""
        self.close()
        server = self._open_cube(definition)
        try:
            return server.fingerprint()
        finally:
            server.close()

    def close(self) -> None:
        self._servers = None
        self._stack.close()

    def keep(self, name: str, digest: str, value: object | None) -> None:
        """Note a step's result; ``value`` None: read it from the store when it is needed."""
        self.digests[name] = digest
        if value is not None:
            self._results[name] = value

    def result(self, name: str) -> Any:
        """The value of a step done before."""
        if name not in self._results:
            stored = self.store.step(name)
            if stored is None or stored.digest != self.digests.get(name):
                raise UserError(f"Step {name} has not been run on these inputs. Run it first.")
            self._results[name] = RESULTS.decode(stored.body)
        return self._results[name]
