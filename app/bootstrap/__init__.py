"""Wires the adapters once: which storage, which cube engine, for which publication."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from app.bootstrap.engines import open_cube
from app.cube.explanation import Explanation
from app.db.store import Store, open_store
from app.domain.errors import Mistake, OperatorError, UserError
from app.domain.people import command_line
from app.domain.progress import ProgressCallback
from app.domain.publication import Publication
from app.domain.release_life import Trail
from app.mdx import parse, substitute
from app.office.keys import signer_of
from app.pipeline.check import check_publication as check
from app.pipeline.define import draft_publication, load_cubes, load_publication
from app.pipeline.earlier import NO_PAST, Past
from app.pipeline.explore import Answer, cube_asked, explore
from app.pipeline.export import ExportedProblem
from app.pipeline.export import export_problems as write_problems
from app.pipeline.mondrian import import_schema, write_files
from app.pipeline.promises import read_promises
from app.pipeline.run import STEP_NAMES, Outcome, released_id, remembered, run
from app.pipeline.running import Wish
from app.redteam.attack import Promises
from app.redteam.report import Promise
from app.serve.adhoc import Adhoc
from app.serve.port import Asker

#: Folder in a publication's where its state is kept.
STATE = ".celosia"
DATABASE_VARIABLE = "CELOSIA_DATABASE_URL"


def store_url(folder: Path) -> str:
    """Where a publication's state lives: the database of the environment, or a file in its folder."""
    return os.environ.get(DATABASE_VARIABLE) or f"sqlite:///{folder / '.celosia' / 'celosia.sqlite3'}"


@contextmanager
def publication_store(folder: Path, new: bool = False) -> Iterator[Store]:
    """The open store of a publication folder.

    Parameters
    ----------
    new : bool
        Whether the folder may be one that holds no publication yet.

    Raises
    ------
    UserError
        ``folder`` is no publication.
    OperatorError
        The storage can't be reached or written.
    """
    if not new and not (folder / "publication.toml").is_file():
        raise UserError(
            f"{folder} is no publication: it has no publication.toml. Start one with: celosia init {folder}"
        )
    try:
        _make_state_folder(folder / ".celosia")
    except OSError as error:
        raise OperatorError(f"Can't write into {folder}: {error.strerror}.") from error
    store = open_store(store_url(folder))
    try:
        yield store
    finally:
        store.close()


def _make_state_folder(state: Path) -> None:
    """The folder for state: with its hidden numbers it is for its owner's eyes, and no part of git."""
    if not state.is_dir():
        state.parent.mkdir(parents=True, exist_ok=True)
        state.mkdir(mode=0o700)
        (state / ".gitignore").write_text("*\n", encoding="utf-8")


def run_publication(
    folder: Path,
    step: str | None = None,
    progress: ProgressCallback | None = None,
    user: str = "operator",
    accepted: bool = False,
) -> Outcome:
    """Run a publication, or one step of it, as far as it isn't done yet; ``user`` is who made the release.

    ``accepted``: it is shown even if cells that it newly hides tell where few changed.
    """
    publication = load_publication(folder)
    with publication_store(folder) as store:
        steps = STEP_NAMES if step is None else (step,)
        name = command_line(user).name
        trail = Trail(name, "command line")
        wish = Wish(name, signer=signer_of(folder / STATE), trail=trail, accepted=accepted)
        return run(publication, store, open_cube, steps, progress, wish)


def check_publication(folder: Path) -> Publication:
    """The publication, once everything in it has been tried.

    Raises
    ------
    UserError
        With every mistake of all files.
    """
    publication, mistakes = draft_publication(folder)
    if publication is not None:
        try:
            with _remembered(folder) as past:
                check(publication, open_cube, past, {mistake.file for mistake in mistakes})
        except UserError as error:
            mistakes += error.mistakes
        except OperatorError as error:
            if not mistakes:
                raise
            mistakes += (Mistake("", 0, 0, str(error)),)
    if mistakes or publication is None:
        raise UserError(mistakes)
    return publication


@contextmanager
def _remembered(folder: Path) -> Iterator[Past]:
    """What readers may remember of a folder's releases; nothing where it never had any."""
    if not (folder / STATE).is_dir() and not os.environ.get(DATABASE_VARIABLE):
        yield NO_PAST
        return
    with publication_store(folder) as store:
        yield remembered(store)


def explore_cube(
    folder: Path,
    text: str,
    file: str = "",
    language: str | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Answer:
    """The raw answer to a query, for whoever may see the data.

    Parameters
    ----------
    language
        Of captions and numbers, one of the publication's; None: its first.
    parameters
        Members by the name of the parameter that they are for.

    Raises
    ------
    UserError
        With its place in the query, or what is wrong with the cubes.
    """
    languages, cubes = load_cubes(folder)
    query = substitute(parse(text, file), parameters or {})
    spoken = language or languages[0]
    if spoken not in languages:
        raise UserError(f"The publication isn't in {spoken}. It is in {', '.join(languages)}.")
    with closing(open_cube(cube_asked(cubes, query))) as server:
        return explore(server, query, spoken)


def explain_formulas(
    folder: Path, text: str, file: str = "", parameters: Mapping[str, str] | None = None
) -> tuple[Explanation, ...]:
    """What each calculated member of a query becomes.

    Raises
    ------
    UserError
        With its place in the query, or what is wrong with the cubes.
    """
    _, cubes = load_cubes(folder)
    query = substitute(parse(text, file), parameters or {})
    with closing(open_cube(cube_asked(cubes, query))) as server:
        return server.explain(query)


def query_asker() -> Asker:
    """Answers readers' own queries over the released cells."""
    return Adhoc()


def import_mondrian(
    schema: Path, out: Path, url: str, role: str | None = None
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write the cubes of a Mondrian 3 schema into a folder: the files, and what was left."""
    imported = import_schema(schema, url, role=role)
    return tuple(write_files(imported.files, out)), imported.left


def read_status(folder: Path) -> dict[str, Any]:
    """The live release and the figures of the last run."""
    with publication_store(folder) as store:
        return store.of_last_run().status()


def export_problems(folder: Path, out: Path) -> tuple[ExportedProblem, ...]:
    """Write the problems of the last run, as they were solved, into ``out``."""
    with publication_store(folder) as store:
        return write_problems(store.of_last_run(), out)


def _of_release(store: Store) -> Store:
    """The scope that the live release came from; the last run's before there is one."""
    live = store.live_release_id()
    for scope, result in store.scopes().items():
        if result is not None and released_id(result) == live:
            return store.scoped(scope)
    return store.of_last_run()


def promises(folder: Path) -> Promises:
    """What the office knows and the red team's findings are held against."""
    with publication_store(folder) as store:
        return {
            cube: {
                (item.measure, *item.members): Promise(item.lower, item.upper, item.width)
                for item in promised
            }
            for cube, promised in read_promises(_of_release(store)).items()
        }
