"""Options of the workspace that admins change while it runs."""

from __future__ import annotations

import hashlib
import json

from app.db.engine import has_password
from app.db.releases import FOUR_EYES
from app.db.workspace import WorkspaceStore
from app.domain.errors import ConflictError, UserError
from app.domain.people import Actor
from app.office.journal import Journal

_SOURCES = "sources"


class Settings:
    """The options of one office. Made by `app.bootstrap`."""

    def __init__(self, store: WorkspaceStore, journal: Journal) -> None:
        self._store = store
        self._journal = journal

    def digest(self) -> str:
        """Names the options as they are: whoever changes them says what they were when that was decided."""
        return hashlib.sha256(json.dumps([self.four_eyes(), self.sources()]).encode()).hexdigest()[:16]

    def change(
        self, actor: Actor, read: str, four_eyes: bool, sources: tuple[str, ...], origin: str = ""
    ) -> None:
        """Change what differs from what is.

        Raises
        ------
        ConflictError
            If the options aren't those of the digest ``read`` any more.
        UserError
            As `set_sources`.
        """
        with self._journal.together():
            self._store.hold_settings()
            if read != self.digest():
                raise ConflictError("The settings were saved elsewhere meanwhile. Repeat the change.")
            if sources != self.sources():
                self.set_sources(actor, sources, origin)
            self.set_four_eyes(actor, four_eyes, origin)

    def four_eyes(self) -> bool:
        """Whether a release must be approved by another admin than the one who prepared it."""
        return self._store.setting(FOUR_EYES) == "yes"

    def set_four_eyes(self, actor: Actor, wanted: bool, origin: str = "") -> None:
        """Turn the option on or off."""
        before = self.four_eyes()
        if before != wanted:
            with self._journal.together():
                self._store.set_setting(FOUR_EYES, "yes" if wanted else "no")
                self._journal.record(
                    actor, "settings.four-eyes", "approval", {"on": before}, {"on": wanted}, origin
                )

    def sources(self) -> tuple[str, ...]:
        """Databases that cubes may read facts from, as SQLAlchemy URLs, and addresses of OLAP servers."""
        return tuple(json.loads(self._store.setting(_SOURCES) or "[]"))

    def databases(self) -> tuple[str, ...]:
        """Those of the sources that SQL can be asked of."""
        return tuple(url for url in self.sources() if not url.startswith(("http://", "https://")))

    def set_sources(self, actor: Actor, urls: tuple[str, ...], origin: str = "") -> None:
        """Name the databases and servers that cubes may read.

        Raises
        ------
        UserError
            If one isn't a URL, or holds a password.
        """
        if any(has_password(url) for url in urls):
            remedy = "Keep it in the server's .pgpass or service file."
            raise UserError(f"Leave the password out of the URL. {remedy}")
        before = self.sources()
        with self._journal.together():
            self._store.set_setting(_SOURCES, json.dumps(list(urls)))
            self._journal.record(
                actor, "settings.sources", "sources", {"urls": list(before)}, {"urls": list(urls)}, origin
            )
