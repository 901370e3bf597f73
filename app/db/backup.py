"""Backups: every table of one moment in one file, which either kind of database can be restored from.

A backup is a zip file with a member for each table (a JSON array per line and row) and, last, a manifest
with the digest and the number of rows of each. The digest of the manifest is the file's comment, so that
nothing that it says can be damaged without being noticed. It holds what the database holds: true values of
hidden cells and digests of passwords. Sign-ins (sessions) aren't part of it: nobody is signed in after a
restore.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

import sqlalchemy as sa
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError

from app.db.database import Database
from app.db.engine import MIGRATIONS, current_revision, migrate
from app.db.tables import UtcDateTime
from app.domain.errors import OperatorError, UserError

FORMAT = "celosia-backup"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
#: Tables that no backup holds.
LEFT_OUT = frozenset({"alembic_version", "session"})

_ROWS = 500
#: Of tables whose rows hold whole files or results of steps.
_LARGE_ROWS = 8
_LONGEST_MANIFEST = 1 << 20
#: How many times its own size a backup may unpack to; some bytes are always allowed.
_SWELLS = 200
_FREE_SWELLING = 16 << 20


@dataclass(frozen=True)
class Backup:
    """What a backup says of itself: rows by table, at which revision of the tables, when it was made."""

    revision: str
    created: datetime
    rows: dict[str, int]


def back_up(database: Database, path: Path) -> Backup:
    """Write a backup into a new file, which appears once it is whole.

    Raises
    ------
    UserError
        If the file exists.
    OperatorError
        If the database can't be read or the file can't be written.
    """
    if path.exists():
        raise UserError(f"{path} exists. Choose a new name.")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    except OSError as error:
        raise OperatorError(f"{path} can't be written: {error.strerror}.") from error
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            made = _write(database, file)
            file.flush()
            os.fsync(file.fileno())
        os.link(fresh, path)
    except OSError as error:
        raise OperatorError(f"{path} can't be written: {error.strerror}.") from error
    finally:
        fresh.unlink(missing_ok=True)
    return made


def _write(database: Database, file: IO[bytes]) -> Backup:
    revision = current_revision(database.engine)
    created = datetime.now(UTC)
    members: dict[str, dict[str, Any]] = {}
    with (
        database.reading() as plain,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out,
    ):
        connection = plain
        if plain.dialect.name == "postgresql":
            connection = plain.execution_options(isolation_level="REPEATABLE READ")
        for table in _tables(connection):
            digest = hashlib.sha256()
            count = 0
            with out.open(f"{table.name}.jsonl", "w", force_zip64=True) as member:
                for row in _rows(connection, table):
                    line = json.dumps([_written(value) for value in row], ensure_ascii=False).encode() + b"\n"
                    digest.update(line)
                    member.write(line)
                    count += 1
            members[table.name] = {
                "columns": [column.name for column in table.columns],
                "rows": count,
                "sha256": digest.hexdigest(),
            }
        manifest = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "revision": revision,
            "created": created.isoformat(),
            "tables": members,
        }
        text = json.dumps(manifest, indent=1).encode()
        out.writestr(MANIFEST, text)
        out.comment = hashlib.sha256(text).hexdigest().encode()
    return Backup(str(revision), created, {name: member["rows"] for name, member in members.items()})


def _rows(connection: sa.Connection, table: sa.Table) -> Iterator[sa.Row[Any]]:
    query = sa.select(table).order_by(*table.primary_key.columns)
    large = any(isinstance(column.type, sa.LargeBinary) for column in table.columns)
    with connection.execution_options(yield_per=_LARGE_ROWS if large else _ROWS).execute(query) as result:
        yield from result


def _tables(connection: sa.Connection) -> list[sa.Table]:
    """The tables as the database has them, those that others refer to first."""
    found = sa.MetaData()
    found.reflect(connection)
    for table in found.tables.values():
        for column in table.columns:
            if isinstance(column.type, sa.DateTime):
                column.type = UtcDateTime()
    return [table for table in found.sorted_tables if table.name not in LEFT_OUT]


def _written(value: object) -> object:
    if isinstance(value, bytes):
        return {"b": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {"t": value.isoformat()}
    return {"j": value} if isinstance(value, dict | list) else value


def _read(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "b":
        return base64.b64decode(inner, validate=True)
    return datetime.fromisoformat(inner) if kind == "t" else inner


def inspect(path: Path) -> Backup:
    """What a backup holds, once every byte of it is as it was written.

    Raises
    ------
    UserError
        If it is damaged, cut short, no backup, or made by a newer program.
    OperatorError
        If it can't be read.
    """
    with _opened(path) as archive:
        return _checked(archive, path)


def restore(database: Database, path: Path) -> Backup:
    """Fill an empty database from a backup: whole or not at all.

    A backup of an older version is brought up to date afterwards.

    Raises
    ------
    UserError
        As `inspect`, or if the database isn't empty.
    OperatorError
        If the file can't be read or the database can't be written.
    """
    with _opened(path) as archive:
        found = _checked(archive, path)
        _refuse_unless_empty(database)
        if current_revision(database.engine) != found.revision:
            migrate(database.engine, "base")
            migrate(database.engine, found.revision)
        manifest = json.loads(archive.read(MANIFEST))
        with database.writing() as connection:
            tables = {table.name: table for table in _tables(connection)}
            if tables.keys() != manifest["tables"].keys():
                raise _damaged(path)
            for name, table in tables.items():
                _fill(connection, table, manifest["tables"][name]["columns"], archive)
                _advance(connection, table)
    migrate(database.engine)
    return found


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise OperatorError(f"{path} can't be read: {error.strerror}.") from error
    except zipfile.BadZipFile:
        raise UserError(f"{path} is no backup of Celosia, or only the beginning of one.") from None


def _checked(archive: zipfile.ZipFile, path: Path) -> Backup:
    allowed = max(_FREE_SWELLING, path.stat().st_size * _SWELLS)
    try:
        if not {entry.compress_type for entry in archive.infolist()} <= {
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        }:
            raise _damaged(path)
        info = archive.getinfo(MANIFEST)
        if info.file_size > _LONGEST_MANIFEST:
            raise _damaged(path)
        text = archive.read(MANIFEST)
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise UserError(f"{path} is no backup of Celosia.")
        if hashlib.sha256(text).hexdigest().encode() != archive.comment:
            raise _damaged(path)
        if manifest["version"] != FORMAT_VERSION or not _is_known(manifest["revision"]):
            raise UserError(f"{path} was made by a newer version of Celosia. Use that one.")
        tables = manifest["tables"]
        if {f"{name}.jsonl" for name in tables} | {MANIFEST} != set(archive.namelist()):
            raise _damaged(path)
        for name, member in tables.items():
            digest = hashlib.sha256()
            with archive.open(f"{name}.jsonl") as lines:
                while chunk := lines.read(1 << 20):
                    allowed -= len(chunk)
                    if allowed < 0:
                        raise UserError(f"{path} unpacks to more than is allowed. Nothing was restored.")
                    digest.update(chunk)
            if digest.hexdigest() != member["sha256"]:
                raise _damaged(path)
        created = datetime.fromisoformat(manifest["created"])
        rows = {name: int(member["rows"]) for name, member in tables.items()}
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is no backup of Celosia.") from None
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, RuntimeError):
        raise _damaged(path) from None
    return Backup(manifest["revision"], created, rows)


def _is_known(revision: str) -> bool:
    try:
        return ScriptDirectory(str(MIGRATIONS)).get_revision(revision) is not None
    except CommandError:
        return False


def _damaged(path: Path) -> UserError:
    return UserError(f"{path} is damaged: it isn't what was written. Nothing was restored.")


def _refuse_unless_empty(database: Database) -> None:
    with database.reading() as connection:
        for table in _tables(connection):
            if connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first() is not None:
                raise UserError("The database isn't empty. Restore into a new one, then use that.")


def _fill(connection: sa.Connection, table: sa.Table, columns: list[str], archive: zipfile.ZipFile) -> None:
    large = any(isinstance(column.type, sa.LargeBinary) for column in table.columns)
    with archive.open(f"{table.name}.jsonl") as lines:
        rows = (dict(zip(columns, map(_read, json.loads(line)), strict=True)) for line in lines)
        try:
            while batch := list(islice(rows, _LARGE_ROWS if large else _ROWS)):
                connection.execute(sa.insert(table), batch)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise UserError(f"{archive.filename} holds what no backup of Celosia does.") from None


def _advance(connection: sa.Connection, table: sa.Table) -> None:
    """Let PostgreSQL number new rows after those that came with their numbers."""
    if connection.dialect.name != "postgresql":
        return
    for column in table.primary_key.columns:
        sequence = connection.scalar(
            sa.text("select pg_get_serial_sequence(:name, :column)"),
            {"name": table.name, "column": column.name},
        )
        if sequence is not None:
            highest = sa.select(sa.func.max(column)).scalar_subquery()
            connection.execute(sa.select(sa.func.setval(sequence, highest)).where(highest.is_not(None)))


__all__ = ["Backup", "back_up", "inspect", "restore"]
