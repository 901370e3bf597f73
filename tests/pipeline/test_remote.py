"""Publications of cubes on an XMLA server: what their files say, and a whole run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.bootstrap.engines import open_cube
from app.cli.serving import running
from app.cube import duckdb
from app.db import Store
from app.domain.errors import UserError
from app.domain.masked import CellStatus
from app.pipeline.define import load_publication
from app.pipeline.run import run
from tests.cube.engines import RawXmla
from tests.databases import new_store
from tests.pipeline.offices import PUBLICATION, write_office

CUBE = """
name = "Firms"
engine = "xmla"
[server]
url = "{url}"
catalog = "Celosia"
[contributors]
count = "Firms"
[[measure]]
name = "Firms"
aggregator = "count"
[[measure]]
name = "Turnover"
aggregator = "sum"
unit.en = "euros"
[[calculated]]
on = "[Measures]"
name = "Average"
formula = "[Measures].[Turnover] / [Measures].[Firms]"
decimals = 1
[[calculated]]
on = "[Place]"
name = "Coast"
formula = "Aggregate({{[Place].[Town].&[a1], [Place].[Town].&[b1]}})"
"""
APART = PUBLICATION.replace("[confidentiality]\n", "[confidentiality]\ninsiders = false\n", 1)


def over_xmla(folder: Path, url: str, cube: str = CUBE, publication: str = APART) -> Path:
    """The office's publication with its cube on a server."""
    write_office(folder)
    (folder / "publication.toml").write_text(publication, encoding="utf-8")
    (path,) = (folder / "cubes").glob("*.toml")
    path.write_text(cube.replace("{url}", url).replace("{{", "{").replace("}}", "}"), encoding="utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = new_store(tmp_path / "store.sqlite3")
    yield opened
    opened.close()


def test_a_cube_on_a_server_is_published(tmp_path: Path, store: Store) -> None:
    raw = write_office(tmp_path / "raw")
    facts = duckdb.open_cube(load_publication(raw).cubes[0])
    with running(RawXmla(facts).app) as address:
        publication = load_publication(over_xmla(tmp_path / "office", f"{address}/xmla"))
        run(publication, store, open_cube)
    release = store.live_release()
    assert release is not None
    by_key = dict(zip(release.keys, release.status.tolist(), strict=True))
    assert set(by_key.values()) == set(CellStatus) - {CellStatus.UNRELEASED}
    cube = facts.discover()
    for town, activity in np.ndindex(cube.hierarchies[0].size, cube.hierarchies[1].size):
        coords = np.array([[0, town, activity, 0]], np.int32)
        names = cube.hierarchies[0].unique_names[town], cube.hierarchies[1].unique_names[activity]
        parts = ["Firms", "[Measures].[Firms]", *(name for name in names if not name.endswith("[All]"))]
        count = int(np.nan_to_num(facts.values(coords))[0])
        if 0 < count < 3:
            assert by_key[" | ".join(parts)] == CellStatus.CONFIDENTIAL
    facts.close()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('url = "{url}"', 'url = "ftp://x"', "address of the server"),
        ('url = "{url}"', 'url = "http://ana:s3cret@x/xmla"', "don't belong into a file"),
        ('url = "{url}"', 'url = "http://x"\nuser = "not a variable"', "environment variable"),
        ('url = "{url}"', 'url = "http://x"\npassword = "CELOSIA_OIDC_CLIENT_SECRET"', "begins with OLAP_"),
        ('url = "{url}"', 'url = "http://x"\ntimeout = 0', "timeout"),
        ('[contributors]\ncount = "Firms"\n', "", "who is behind a cell"),
        ('count = "Firms"\n', 'count = "Firms"\n[contributors.top]\nTurnover = ["First"]\n', "2 largest"),
        ('engine = "xmla"', 'engine = "abacus"', "engine"),
        ('unit.en = "euros"', "nonnegative = false", "gains"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, old: str, new: str, told: str) -> None:
    cube = CUBE.replace(old, new)
    assert cube != CUBE
    folder = over_xmla(tmp_path, "http://x/xmla", cube)
    with pytest.raises(UserError, match=told) as caught:
        load_publication(folder)
    assert "s3cret" not in str(caught.value)
    assert all(mistake.file and mistake.line for mistake in caught.value.mistakes)


def test_insiders_need_the_facts(tmp_path: Path) -> None:
    folder = over_xmla(tmp_path, "http://x/xmla", publication=PUBLICATION)
    with pytest.raises(UserError, match="insiders = false"):
        load_publication(folder)
