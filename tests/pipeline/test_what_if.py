"""What if members of a level were one: the cube that is asked about, and the mistakes of those who ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.bootstrap import run_publication
from app.bootstrap.protection import ask_what_if
from app.cube.duckdb import open_cube
from app.domain.errors import UserError
from app.mdx import parse
from app.office.protection import changed
from app.pipeline.define import load_publication
from app.pipeline.what_if import with_merged
from tests.pipeline.offices import SHEETS, write_office

QUERY = "SELECT {[Measures].[Firms]} ON COLUMNS, {[Size].[Size].Members} ON ROWS FROM [Firms]"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sheets = {"activity/sizes": SHEETS["activity/sizes"]}
    folder = write_office(tmp_path_factory.mktemp("merged") / "office", sheets=sheets)
    run_publication(folder)
    return folder


def counts(folder: Path, *merged: str) -> dict[str, float]:
    """Firms by size, with some sizes merged."""
    publication = load_publication(folder)
    if merged:
        publication = with_merged(publication, "Firms", "Size", merged)
    server = open_cube(publication.cubes[0])
    answer = server.execute(parse(QUERY))
    names = [position[0].unique_name for position in answer.axes[1].positions]
    server.close()
    return dict(zip(names, answer.values[: len(names)].tolist(), strict=True))


def test_merged_members_are_one_with_the_facts_of_all(office: Path) -> None:
    apart = counts(office)
    together = counts(office, "small", "large")
    whole = together.pop("[Size].[Size].&[small+large]")
    assert whole == apart["[Size].[Size].&[small]"] + apart["[Size].[Size].&[large]"]
    assert together == {"[Size].[Size].&[middle]": apart["[Size].[Size].&[middle]"]}


def test_merged_members_take_nobodys_key(tmp_path: Path) -> None:
    folder = write_office(tmp_path / "office", sheets=SHEETS)
    facts = folder / "data/firms.csv"
    facts.write_text(facts.read_text().replace("middle", "small+large"))
    apart, together = counts(folder), counts(folder, "small", "large")
    other = "[Size].[Size].&[small+large]"
    assert together.pop(other) == apart[other]
    (whole,) = together.values()
    assert whole == apart["[Size].[Size].&[small]"] + apart["[Size].[Size].&[large]"]


def test_merging_hides_less_than_it_takes_away(office: Path) -> None:
    answer = ask_what_if(office, changed(None, "", [], "", "Firms.Size", ["middle", "large"]))
    assert answer.then.cells == answer.now.cells * 3 / 4
    assert answer.then.sensitive < answer.now.sensitive
    assert answer.then.hidden < answer.now.hidden
    assert answer.then.lost < answer.now.lost
    assert ask_what_if(office, changed(None, "", [], "", "Size", ["middle", "large"])) == answer


@pytest.mark.parametrize(
    ("level", "members", "said"),
    [
        ("Size", ["small", "small"], "two members at least"),
        ("Size", [], "two members at least"),
        ("Sizes", ["small", "large"], "no level Sizes"),
        ("Shops.Size", ["small", "large"], "no level Size"),
        ("Size", ["small", "50+"], "no member with the key “50\\+”"),
        ("Town", ["a1", "b1"], "stands under"),
    ],
)
def test_members_that_can_t_be_one_are_told(office: Path, level: str, members: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        ask_what_if(office, changed(None, "", [], "", level, members))


def test_a_sheet_that_names_a_merged_member_is_told(tmp_path: Path, office: Path) -> None:
    coast = tmp_path / "coast.toml"
    coast.write_text(SHEETS["coast"])
    with pytest.raises(UserError, match="small"):
        ask_what_if(office, changed(None, "", [], "", "Size", ["small", "large"]), (coast,))
