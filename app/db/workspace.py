"""Versions of the publication and uploaded facts, over one database."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.db import tables as t
from app.db.database import Database
from app.domain.errors import ConflictError, InternalError, OperatorError, UserError
from app.domain.version import Files, Upload, Version, text_digest

CHUNK = 1 << 20


class WorkspaceStore:
    """Rows of versions, files and uploads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # ------------------------------------------------------------------ versions

    def current(self) -> Version | None:
        """The current version; None before the first."""
        with self._database.reading() as connection:
            return _version(connection, t.version.c.state == "current")

    def version(self, identity: int) -> Version | None:
        """A version by its number."""
        with self._database.reading() as connection:
            return _version(connection, t.version.c.id == identity)

    def versions(self, states: Sequence[str], limit: int = 200, author: str = "") -> tuple[Version, ...]:
        """Versions in some states, newest first."""
        query = sa.select(t.version).where(t.version.c.state.in_(list(states)))
        if author:
            query = query.where(t.version.c.author == author)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(t.version.c.id.desc()).limit(limit)).all()
        return tuple(Version(**row._mapping) for row in rows)

    def files(self, identity: int) -> Files:
        """The files of a version.

        Raises
        ------
        OperatorError
            If a text isn't what was written.
        """
        columns = t.version_file.c
        query = (
            sa.select(columns.path, columns.text_digest, columns.upload_digest, t.text_body.c.body)
            .join(t.text_body, t.text_body.c.digest == columns.text_digest, isouter=True)
            .where(columns.version_id == identity)
            .order_by(columns.path)
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        texts: dict[str, str] = {}
        uploads: dict[str, str] = {}
        for row in rows:
            if row.text_digest is None:
                uploads[row.path] = row.upload_digest
            elif text_digest(row.body) != row.text_digest:
                raise OperatorError(f"File {row.path} of version {identity} is damaged in the database.")
            else:
                texts[row.path] = row.body
        return Files(texts, uploads)

    def add(self, files: Files, parent: int | None, author: str, message: str, state: str) -> Version:
        """A new version; as ``current`` only over the one that is its ``parent``.

        Raises
        ------
        UserError
            If another version became current since, or an upload isn't there.
        """
        with self._database.writing() as connection:
            _lock(connection)
            if state == "current":
                _retire(connection, parent)
            values = {
                "parent": parent,
                "state": state,
                "author": author,
                "message": message,
                "created": datetime.now(UTC),
                "revision": 0,
                "digest": files.digest,
            }
            result = connection.execute(sa.insert(t.version).values(**values))
            identity = int(result.inserted_primary_key[0])  # type: ignore[index]
            _put_files(connection, identity, files)
        return Version(id=identity, **values)  # type: ignore[arg-type]

    def edit(self, identity: int, revision: int, files: Files, parent: int | None = None) -> Version:
        """Put other files into a draft, and give it another parent if one is named.

        Raises
        ------
        ConflictError
            If it is no draft, or was saved by somebody else since ``revision``.
        """
        moved = {} if parent is None else {"parent": parent}
        with self._database.writing() as connection:
            _lock(connection)
            _require_draft(connection, identity, revision)
            connection.execute(sa.delete(t.version_file).where(t.version_file.c.version_id == identity))
            _put_files(connection, identity, files)
            connection.execute(
                sa.update(t.version)
                .where(t.version.c.id == identity)
                .values(revision=revision + 1, digest=files.digest, **moved)
            )
            return _expect(_version(connection, t.version.c.id == identity))

    def promote(self, identity: int, revision: int, message: str) -> Version:
        """Make a draft the current version, if its parent still is.

        Raises
        ------
        ConflictError
            If it is no draft, was saved since ``revision``, or its parent is current no more.
        """
        with self._database.writing() as connection:
            _lock(connection)
            draft = _require_draft(connection, identity, revision)
            _retire(connection, draft.parent)
            connection.execute(
                sa.update(t.version)
                .where(t.version.c.id == identity)
                .values(state="current", message=message, created=datetime.now(UTC))
            )
            return _expect(_version(connection, t.version.c.id == identity))

    def drop_draft(self, identity: int, revision: int) -> None:
        """Throw a draft away; its number isn't given to another, for which forms of this one would be taken.

        Raises
        ------
        ConflictError
            If it is no draft, or was saved by somebody else since ``revision``.
        """
        with self._database.writing() as connection:
            _lock(connection)
            _require_draft(connection, identity, revision)
            connection.execute(sa.delete(t.version_file).where(t.version_file.c.version_id == identity))
            over = sa.update(t.version).where(t.version.c.id == identity)
            connection.execute(over.values(state="discarded", digest=Files({}).digest))

    # ------------------------------------------------------------------ uploads

    def put_upload(self, path: Path, name: str, author: str) -> Upload:
        """Keep a file. The bytes of one that is kept already are left as they are, and are ``author``'s too,
        under the name that they came with.

        Raises
        ------
        OperatorError
            If the file can't be read or the database can't take it.
        """
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = path.stat().st_size
            upload = Upload(digest, name[:255], size, author, datetime.now(UTC))
            with self._database.writing() as connection, path.open("rb") as file:
                _lock(connection)
                row = connection.execute(sa.select(t.upload).where(t.upload.c.digest == digest)).one_or_none()
                if row is not None:
                    # It counts as new, so that it isn't forgotten before it is used.
                    again = sa.update(t.upload).where(t.upload.c.digest == digest)
                    connection.execute(again.values(created=upload.created))
                    _hold(connection, upload)
                    return upload
                connection.execute(sa.insert(t.upload).values(**vars(upload)))
                for number, body in enumerate(iter(lambda: file.read(CHUNK), b"")):
                    connection.execute(
                        sa.insert(t.upload_chunk).values(upload_digest=digest, number=number, body=body)
                    )
                _hold(connection, upload)
        except OSError as error:
            raise OperatorError(f"File {name} can't be read: {error.strerror}.") from error
        return upload

    def forget_uploads(self, before: datetime) -> tuple[Upload, ...]:
        """Take out uploads from before a moment that no version and no draft holds; gives them."""
        used = sa.select(t.version_file.c.upload_digest).where(t.version_file.c.upload_digest.is_not(None))
        unused = sa.and_(t.upload.c.created < before, t.upload.c.digest.not_in(used))
        with self._database.writing() as connection:
            _lock(connection)
            rows = connection.execute(sa.select(t.upload).where(unused)).all()
            digests = [row.digest for row in rows]
            for table in (t.upload_chunk, t.upload_holder):
                connection.execute(sa.delete(table).where(table.c.upload_digest.in_(digests)))
            connection.execute(sa.delete(t.upload).where(t.upload.c.digest.in_(digests)))
        return tuple(Upload(**row._mapping) for row in rows)

    def upload(self, digest: str, person: str = "") -> Upload | None:
        """What is known of an upload; as ``person`` uploaded it, or None, where one is named."""
        query = sa.select(t.upload).where(t.upload.c.digest == digest)
        if person:
            columns = t.upload_holder.c
            query = (
                sa.select(
                    t.upload.c.digest,
                    columns.name,
                    t.upload.c.size,
                    columns.person.label("author"),
                    t.upload.c.created,
                )
                .join(t.upload_holder, columns.upload_digest == t.upload.c.digest)
                .where(t.upload.c.digest == digest, columns.person == person)
            )
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else Upload(**row._mapping)

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The bytes of an upload.

        Raises
        ------
        OperatorError
            At their end, if they aren't what was put in.
        """
        whole = hashlib.sha256()
        number = 0
        while True:
            with self._database.reading() as connection:
                body = connection.scalar(
                    sa.select(t.upload_chunk.c.body).where(
                        t.upload_chunk.c.upload_digest == digest, t.upload_chunk.c.number == number
                    )
                )
            if body is None:
                break
            whole.update(body)
            yield body
            number += 1
        if whole.hexdigest() != digest:
            raise OperatorError("An uploaded file is damaged in the database. Upload it again.")

    # ------------------------------------------------------------------ settings

    def setting(self, name: str) -> str | None:
        """An option of the workspace."""
        with self._database.reading() as connection:
            return connection.scalar(sa.select(t.setting.c.value).where(t.setting.c.name == name))

    def set_setting(self, name: str, value: str) -> None:
        """Keep an option in place of what it was."""
        with self._database.writing() as connection:
            _lock_settings(connection)
            connection.execute(sa.delete(t.setting).where(t.setting.c.name == name))
            connection.execute(sa.insert(t.setting).values(name=name, value=value))

    def hold_settings(self) -> None:
        """Keep others from changing options until the transaction ends that this is called within."""
        with self._database.writing() as connection:
            _lock_settings(connection)

    def setting_or(self, name: str, value: str) -> str:
        """An option of the workspace, which becomes ``value`` if it has none; one wins when several ask."""
        with self._database.writing() as connection:
            _lock_settings(connection)
            found = connection.scalar(sa.select(t.setting.c.value).where(t.setting.c.name == name))
            if found is None:
                connection.execute(sa.insert(t.setting).values(name=name, value=value))
            return value if found is None else str(found)


def _hold(connection: sa.Connection, upload: Upload) -> None:
    """An upload is its author's too, under the name that it came with."""
    columns = t.upload_holder.c
    mine = sa.and_(columns.upload_digest == upload.digest, columns.person == upload.author)
    connection.execute(sa.delete(t.upload_holder).where(mine))
    values = {"upload_digest": upload.digest, "person": upload.author, "name": upload.name}
    connection.execute(sa.insert(t.upload_holder).values(**values))


def _lock(connection: sa.Connection) -> None:
    """Writers of versions wait for each other; on SQLite the transaction is the only writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("lock table version, upload, text_body in share row exclusive mode"))


def _lock_settings(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("lock table setting in share row exclusive mode"))


def _version(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> Version | None:
    row = connection.execute(sa.select(t.version).where(condition)).one_or_none()
    return None if row is None else Version(**row._mapping)


def _expect(version: Version | None) -> Version:
    if version is None:
        raise InternalError("a version vanished in its own transaction")
    return version


def _require_draft(connection: sa.Connection, identity: int, revision: int) -> Version:
    found = _version(connection, t.version.c.id == identity)
    if found is None or found.state != "draft":
        raise ConflictError("This draft was published or thrown away meanwhile. Begin another one.")
    if found.revision != revision:
        raise ConflictError("This draft was saved elsewhere meanwhile. Open it again and repeat the change.")
    return found


def _retire(connection: sa.Connection, parent: int | None) -> None:
    """The current version becomes past, if it is the one that the new one was made from."""
    current = connection.scalar(sa.select(t.version.c.id).where(t.version.c.state == "current"))
    if current != parent:
        raise ConflictError("Another version became current meanwhile. Bring the draft up to date first.")
    connection.execute(sa.update(t.version).where(t.version.c.state == "current").values(state="past"))


def _put_files(connection: sa.Connection, identity: int, files: Files) -> None:
    bodies = {text_digest(text): text for text in files.texts.values()}
    known = _known(connection, t.text_body.c.digest, bodies)
    new = [{"digest": digest, "body": body} for digest, body in bodies.items() if digest not in known]
    if new:
        connection.execute(sa.insert(t.text_body), new)
    lost = set(files.uploads.values()) - _known(connection, t.upload.c.digest, files.uploads.values())
    if lost:
        raise UserError("A file of facts was never uploaded. Upload it first.")
    rows: list[dict[str, Any]] = [
        {"version_id": identity, "path": path, "text_digest": text_digest(text), "upload_digest": None}
        for path, text in files.texts.items()
    ]
    rows += [
        {"version_id": identity, "path": path, "text_digest": None, "upload_digest": digest}
        for path, digest in files.uploads.items()
    ]
    if rows:
        connection.execute(sa.insert(t.version_file), rows)


def _known(connection: sa.Connection, column: sa.Column[str], digests: Any) -> set[str]:
    wanted = sorted(set(digests))
    found: set[str] = set()
    for start in range(0, len(wanted), 500):
        found |= set(connection.scalars(sa.select(column).where(column.in_(wanted[start : start + 500]))))
    return found
