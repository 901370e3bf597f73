"""A publication folder is read whole, or refused with every mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.domain.errors import Mistake, UserError
from app.domain.publication import Contact
from app.pipeline.define import load_publication
from tests.pipeline.offices import CUBE, PUBLICATION, SHEETS, write_office


def mistakes(folder: Path) -> tuple[Mistake, ...]:
    with pytest.raises(UserError) as caught:
        load_publication(folder)
    return caught.value.mistakes


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_a_publication_is_read_as_written(tmp_path: Path) -> None:
    publication = load_publication(write_office(tmp_path))
    assert publication.languages == ("en", "es")
    assert publication.title == {"en": "Small office", "es": "Oficina pequeña"}
    assert [sheet.id for sheet in publication.sheets()] == ["coast", "activity/by-place", "activity/sizes"]
    cube = publication.cubes[0]
    assert cube.facts.respondent == "firm"
    assert cube.facts.file == str(tmp_path / "data/firms.csv")
    assert [dimension.name for dimension in cube.dimensions] == ["Place", "Activity", "Size"]
    assert cube.dimensions[0].hierarchies[0].all_captions == {"en": "Everywhere"}
    assert cube.dimensions[0].hierarchies[0].levels[1].caption_columns == {"en": "town_name"}
    assert [measure.name for measure in cube.measures] == ["Firms", "Turnover"]
    firms, turnover = publication.confidentiality.measures
    assert (firms.associated_with, turnover.associated_with) == (None, "Firms")
    assert [rule.name for rule in turnover.rules] == ["p-percent", "dominance"]
    sizes = next(sheet for sheet in publication.sheets() if sheet.id == "activity/sizes")
    assert sizes.parameters[0].cube == "Firms"
    text = SHEETS["activity/sizes"]
    assert sizes.queries[0].at.line == line_of(text, "SELECT")


def test_the_digest_is_of_the_texts(tmp_path: Path) -> None:
    first = load_publication(write_office(tmp_path)).digest
    assert load_publication(tmp_path).digest == first
    sheet = tmp_path / "sheets/coast.toml"
    sheet.write_text(sheet.read_text().replace("Coast", "Seaside", 1))
    assert load_publication(tmp_path).digest != first


@pytest.mark.parametrize(
    "name",
    ["{outside}", "../secret.{kind}", "maps/../../secret.{kind}", "~/secret.{kind}", "/dev/null", "/", ".",
     "maps", "nowhere", "a\\u0000b", "x" * 5000],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["svg", "json"])
def test_what_a_publication_draws_lies_in_its_folder(tmp_path: Path, kind: str, name: str) -> None:
    """Who writes a draft needn't be who may read the machine, nor learn which files it has."""
    (tmp_path / "secret.svg").write_text("<svg/>")
    (tmp_path / "secret.json").write_text('{"type": "FeatureCollection", "features": []}')
    named = name.format(outside=tmp_path / f"secret.{kind}", kind=kind)
    theme = f'\n[theme]\nlogo = "{named}"\n' if kind == "svg" else ""
    options = f'[query.options]\nshapes = "{named}"\n' if kind == "json" else ""
    sheets = {"coast": SHEETS["coast"].replace('[[query]]\nid = "part"', f'{options}[[query]]\nid = "part"')}
    (tmp_path / "office/maps").mkdir(parents=True)
    told = mistakes(write_office(tmp_path / "office", publication=PUBLICATION + theme, sheets=sheets))
    assert any("There is no" in mistake.cause for mistake in told)


def test_whom_to_ask_and_when_more_is_to_come(tmp_path: Path) -> None:
    contact = '\n[contact]\nname.es = "Atención"\nphone = "+34 (900) 123-456"\n'
    publication = f"next-release = 2027-03-15\n{PUBLICATION}{contact}"
    coast = f'next-release = "2027-11"\n{SHEETS["coast"]}\n[contact]\nemail = "coast@o.example"\n'
    sheets = {**SHEETS, "coast": coast}
    read = load_publication(write_office(tmp_path, publication=publication, sheets=sheets))
    assert read.contact == Contact({"es": "Atención"}, phone="+34 (900) 123-456")
    assert read.next_release == "2027-03-15"
    found = {sheet.id: sheet for sheet in read.sheets()}
    assert found["coast"].contact == Contact(email="coast@o.example")
    assert found["coast"].next_release == "2027-11"
    assert not any(sheet.contact or sheet.next_release for sheet in found.values() if sheet.id != "coast")


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ('[contact]\nname.en = "Anna"', "[contact]", "how to ask"),
        ('[contact]\nemail = "nobody"', "email", "email"),
        ('[contact]\nemail = "a@b.example\\nBcc: c@d.example"', "email", "email"),
        ('[contact]\nphone = "call us"', "phone", "phone"),
        ('[contact]\npage = "javascript:alert(1)"', "page", "page"),
        ('[contact]\nphone = "1234"\nfax = "1234"', "fax", "fax"),
        ('next-release = "spring"', "next-release", "date"),
        ('next-release = "2027-13"', "next-release", "date"),
        ('next-release = "2027-02-30"', "next-release", "date"),
        ('next-release = "2027-W10"', "next-release", "date"),
        ("next-release = 2027", "next-release", "wrong type"),
    ],
)
def test_a_contact_or_date_that_cannot_be_is_told(tmp_path: Path, text: str, at: str, words: str) -> None:
    publication = f"{PUBLICATION}\n{text}\n" if text.startswith("[") else f"{text}\n{PUBLICATION}"
    (told,) = mistakes(write_office(tmp_path, publication=publication))
    assert words in told.cause
    assert told.line == line_of(publication, at)


def test_every_mistake_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    publication = PUBLICATION.replace("n = 3", "n = 1").replace("k = 85", "k = 185") + '\nfoo = "x"\n'
    cube = CUBE.replace('column = "turnover"', 'column = "turnovr"').replace('"count"', '"cuont"')
    sheets = {
        **SHEETS,
        "coast": SHEETS["coast"].replace("ON ROWS", "ON ROWZ", 1),
        "activity/sizes": SHEETS["activity/sizes"].replace("(@activity)", "(@actvity)"),
        "broken": 'title.en = = "x"\nok = 1\nbad\n',
    }
    found = mistakes(write_office(tmp_path, publication=publication, cube=cube, sheets=sheets))
    told = {(item.file, item.line): item for item in found}
    assert "turnover" in told["cubes/firms.toml", line_of(cube, 'column = "turnovr"')].remedy
    assert "count" in told["cubes/firms.toml", line_of(cube, '"cuont"')].remedy
    assert ("publication.toml", line_of(publication, "n = 1")) in told
    assert ("publication.toml", line_of(publication, "k = 185")) in told
    assert "foo" in told["publication.toml", line_of(publication, "foo")].cause
    assert ("sheets/coast.toml", line_of(sheets["coast"], "ON ROWZ")) in told
    assert "activity" in told["sheets/activity/sizes.toml", line_of(SHEETS["activity/sizes"], "mdx")].remedy
    assert ("sheets/broken.toml", 1) in told
    assert ("sheets/broken.toml", 3) in told


@pytest.mark.parametrize(
    ("old", "new", "file", "at", "words"),
    [
        ('key = "region"', 'key = "regoin"', "cubes/firms.toml", 'key = "regoin"', "region"),
        ('file = "../data/firms.csv"', 'file = "../data/none.csv"', "cubes/firms.toml", "none.csv", "none"),
        ("respondent", "respondant", "cubes/firms.toml", "respondant", "respondent"),
        ('name = "Size"\n[[dimension.h', 'name = "Place"\n[[dimension.h', "cubes/firms.toml", None, "Place"),
        ('formula = "[Measures].[Turnover] /', 'formula = "[Measures].[Turnover] / /', "cubes/firms.toml",
         'formula = "[Measures].[Turnover] / /', "found"),
        ('aggregator = "sum"', 'aggregator = "avg"', "cubes/firms.toml", 'aggregator = "avg"', "divided"),
        ('name = "Turnover"', "name = 3", "cubes/firms.toml", "name = 3", "text"),
    ],
)  # fmt: skip
def test_a_cube_is_checked_against_its_data(
    tmp_path: Path, old: str, new: str, file: str, at: str | None, words: str
) -> None:
    cube = CUBE.replace(old, new, 1)
    assert cube != CUBE
    found = [item for item in mistakes(write_office(tmp_path, cube=cube)) if item.file == file]
    assert any(words in str(item) and (at is None or item.line == line_of(cube, at)) for item in found), found


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('with = "Firms"', 'with = "Turnover"', "no other measure"),
        ('."Turnover"]', '."Turnovers"]', "Turnover"),
        ('rule = "threshold"', 'rule = "treshold"', "threshold"),
        (", n = 3 }", " }", "needs n"),
        ('weight = "unit"', 'weight = "units"', "unit"),
        ('weight = "unit"', 'weight = { measure = "Turnovers" }', "Did you mean Turnover?"),
        ('weight = "unit"', "weight = {}", "measure is missing"),
        ('weight = "unit"', 'unions = "yes"', "Key unions is of the wrong type. It takes true or false."),
        ('weight = "unit"', "union = true", "Did you mean unions?"),
        ('languages = ["en", "es"]', 'languages = ["en"]', "es"),
        ("[confidentiality.Firms.", "[confidentiality.Firm.", "Firms"),
    ],
)
def test_rules_are_checked(tmp_path: Path, old: str, new: str, words: str) -> None:
    found = mistakes(write_office(tmp_path, publication=PUBLICATION.replace(old, new)))
    assert any(words in str(item) for item in found), found


def test_unions_are_of_measures_that_add_up(tmp_path: Path) -> None:
    text = PUBLICATION.replace("weight =", "unions = true\nweight =")
    rules = load_publication(write_office(tmp_path / "sums", publication=text)).confidentiality
    assert [item.unions for item in rules.measures] == [True, True]
    cube = CUBE.replace('aggregator = "sum"', 'aggregator = "max"')
    (found,) = [
        item
        for item in mistakes(write_office(tmp_path / "most", publication=text, cube=cube))
        if "unions" in str(item)
    ]
    assert "Measure Turnover doesn't add up" in str(found)
    assert text.splitlines()[found.line - 1] == "unions = true"


@pytest.mark.parametrize(
    ("old", "new", "measures"),
    [
        (PUBLICATION[PUBLICATION.index("[confidentiality.Firms") :], "", ["Firms", "Turnover"]),
        (PUBLICATION[PUBLICATION.index('[confidentiality.Firms."Turnover') :], "", ["Turnover"]),
        ('rules = [{ rule = "threshold", n = 3 }]', "", ["Firms"]),
    ],
)
def test_silence_about_a_measure_does_not_publish_it(
    tmp_path: Path, old: str, new: str, measures: list[str]
) -> None:
    assert old in PUBLICATION
    told = mistakes(write_office(tmp_path, publication=PUBLICATION.replace(old, new)))
    assert [name for mistake in told for name in measures if f"easure {name} " in mistake.cause] == measures
    assert all("rules = []" in mistake.remedy for mistake in told)


def test_a_measure_is_published_as_it_is_when_that_is_written(tmp_path: Path) -> None:
    written = PUBLICATION.replace('rules = [{ rule = "threshold", n = 3 }]', "rules = []")
    (firms, _) = load_publication(write_office(tmp_path, publication=written)).confidentiality.measures
    assert firms.rules == ()


def test_measures_that_protect_each_other_are_refused(tmp_path: Path) -> None:
    publication = PUBLICATION.replace('weight = "unit"', 'weight = "unit"\nwith = "Turnover"')
    assert any("circle" in item.cause for item in mistakes(write_office(tmp_path, publication=publication)))


def test_a_manual_decision_needs_its_reason(tmp_path: Path) -> None:
    publication = PUBLICATION + (
        '[[confidentiality.cells]]\nmeasure = "Firms"\nmembers = []\ndecision = "hid"\npercent = 0\n'
    )
    told = " ".join(map(str, mistakes(write_office(tmp_path, publication=publication))))
    assert "reason is missing" in told
    assert "Did you mean hide?" in told
    assert "percent" in told


@pytest.mark.parametrize("damage", [b"\xff\xfe junk", b"PAR1 not really"])
def test_a_damaged_data_file_is_told(tmp_path: Path, damage: bytes) -> None:
    cube = CUBE.replace("firms.csv", "firms.parquet")
    write_office(tmp_path, cube=cube)
    (tmp_path / "data/firms.parquet").write_bytes(damage)
    assert any("firms.parquet" in item.cause for item in mistakes(tmp_path))


def test_missing_folders_and_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no folder"):
        load_publication(tmp_path / "none")
    told = {item.file for item in mistakes(tmp_path)}
    assert {"publication.toml", "cubes"} <= told


def test_names_that_no_database_has_room_for_are_told_before_a_run(tmp_path: Path) -> None:
    name = "f" * 201
    sheet = SHEETS["coast"].replace('id = "table"', f'id = "{name}"').replace("[Firms]\n", f"[{name}]\n")
    cube = CUBE.replace('name = "Firms"', f'name = "{name}"', 1)
    rules = PUBLICATION.replace("confidentiality.Firms", f"confidentiality.{name}")
    write_office(tmp_path, publication=rules, cube=cube, sheets={f"{name}/{name}/x": sheet, "y": sheet})
    told = {(item.file, item.cause) for item in mistakes(tmp_path)}
    assert {file for file, _ in told} == {"cubes/firms.toml", f"sheets/{name}/{name}", "sheets/y.toml"}


def test_stray_and_badly_named_files_are_told(tmp_path: Path) -> None:
    write_office(tmp_path)
    (tmp_path / "sheets/notes.txt").write_text("x")
    (tmp_path / "sheets/a b.toml").write_text('title.en = "x"')
    (tmp_path / "sheets/bytes.toml").write_bytes(b'title.en = "x"\n# \xe9\n')
    told = {(item.file, item.line) for item in mistakes(tmp_path)}
    assert {("sheets/notes.txt", 0), ("sheets/a b.toml", 0), ("sheets/bytes.toml", 2)} <= told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("order = [" + "1," * 200_000 + "]", "more than 100000 values"),
        ("".join(f"k{n} = 1\n" for n in range(2000)), "more than 500 mistakes"),
        ("= x\n" * 2000, "Invalid statement"),
        ('[[query]]\nid = "q"\nmdx = "SELECT"\n' * 101, "101 query here"),
    ],
    ids=["values", "unknown keys", "broken lines", "queries"],
)
def test_a_text_of_more_than_anybody_writes_is_refused_in_few_words(
    tmp_path: Path, text: str, said: str
) -> None:
    folder = write_office(tmp_path)
    (folder / "sheets/coast.toml").write_text(text)
    found = mistakes(folder)
    assert len(found) <= 501
    assert any(said in mistake.cause for mistake in found)
