"""A cube's file with anything missing or of another kind: what is wrong is named, wherever it is asked."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from app.bootstrap import check_publication
from app.domain.errors import Mistake, UserError
from app.domain.toml import read_toml
from app.domain.version import Files
from app.office.office import Office
from app.pipeline.define import load_publication
from tests.studio.visitors import starter_office

CUBE, SHEET = "cubes/firms.toml", "sheets/economy/towns.toml"
#: What stands in a place instead; none of them takes a table's place.
OTHERS: tuple[Any, ...] = (None, [], ["activity"], 3)
#: Of these nothing hangs.
WORDS = ("caption", "unit", "format")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("half-read") / "firms"
    return made


@pytest.fixture(scope="module")
def office(folder: Path) -> Iterator[Office]:
    with starter_office(folder) as (made, _):
        made.versions.import_folder(folder, "ana")
        yield made


def places(node: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key of a document, and the first item of every list: the others are alike."""
    items = node.items() if isinstance(node, dict) else enumerate(node[:1]) if isinstance(node, list) else ()
    for key, inner in items:
        if key not in WORDS:
            yield (*here, key)
            yield from places(inner, (*here, key))


def changed(document: dict[str, Any], place: tuple[Any, ...], other: Any) -> str:
    found = copy.deepcopy(document)
    node: Any = found
    for key in place[:-1]:
        node = node[key]
    if other is None:
        del node[place[-1]]
    else:
        node[place[-1]] = other
    return tomlkit.dumps(found)


def mistakes_of(work: Any, *given: Any) -> tuple[Mistake, ...]:
    try:
        work(*given)
    except UserError as error:
        return error.mistakes
    return ()


@pytest.mark.parametrize("other", OTHERS, ids=repr)
def test_what_is_wrong_in_a_cube_is_named_by_check_and_run_and_at_the_studio(
    office: Office, folder: Path, other: Any
) -> None:
    """`check` opened a cube that was half read, and ended in a fault where `run` named the mistake."""
    files = office.versions.files(office.versions.current())
    text = files.texts[CUBE]
    wrong = 0
    try:
        for place in places(read_toml(text)):
            mine = changed(read_toml(text), place, other)
            (folder / CUBE).write_text(mine, encoding="utf-8")
            told = mistakes_of(load_publication, folder)
            checked = mistakes_of(check_publication, folder)
            assert set(told) <= set(checked), (place, other)
            if not told:
                continue
            wrong += 1
            draft = Files({**files.texts, CUBE: mine}, files.uploads)
            office.previews.check(draft, SHEET)
            assert office.previews.check(draft, CUBE) or any(item.file != CUBE for item in told)
    finally:
        (folder / CUBE).write_text(text, encoding="utf-8")
    assert wrong > 10
