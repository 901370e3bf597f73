"""Facts come in: however they are written, what is wrong is told by line, and a cube comes of them."""

from __future__ import annotations

import gzip
import io
import re
import tomllib
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from lxml import html
from starlette.types import ASGIApp

from app.bootstrap import check_publication
from app.domain.errors import UserError
from app.domain.people import Role, command_line
from app.domain.version import Files
from app.office.intake import Writing, detect, normalise
from app.office.office import Office
from app.office.survey import Survey, survey
from tests.studio.visitors import Visitor

TOWNS = [
    ("Norteña", "N", "Ávila"),
    ("Norteña", "N", "Béjar"),
    ("Sureña", "S", "Cádiz"),
    ("Sureña", "S", "Denia"),
]


def rows(decimal: str = ".") -> list[list[str]]:
    found = [["firm", "region", "code", "town", "sector", "turnover"]]
    for n in range(120):
        region, code, town = TOWNS[n % 4]
        found.append(
            [f"F{n:03}", region, code, town, f"sector {n % 3}", f"{n * 37}.{n % 10}5".replace(".", decimal)]
        )
    return found


def written(separator: str = ",", decimal: str = ".", encoding: str = "utf-8", end: str = "\n") -> bytes:
    return end.join(separator.join(row) for row in rows(decimal)).encode(encoding)


def surveyed(folder: Path, body: bytes, name: str = "firms.csv") -> Survey:
    place = folder / "upload"
    place.write_bytes(body)
    return survey(place, detect(place, name))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (written(), Writing("csv")),
        (written(";", ","), Writing("csv", separator=";", decimal=",")),
        (written(";", ",", "utf-8-sig", "\r\n"), Writing("csv", bom=True, separator=";", decimal=",")),
        (written("\t", ".", "cp1252"), Writing("csv", "cp1252", separator="\t")),
        (written("|", ",", "utf-16"), Writing("csv", "utf-16", True, "|", ",")),
        (gzip.compress(written(";"), mtime=0), Writing("csv", separator=";")),
    ],
)
def test_how_a_file_is_written_is_found_out_and_made_one_way(
    tmp_path: Path, body: bytes, wanted: Writing
) -> None:
    place = tmp_path / "upload"
    place.write_bytes(body)
    found = detect(place, "firms.csv.gz" if body[:2] == b"\x1f\x8b" else "firms.csv")
    assert found == wanted
    normalise(place, found, tmp_path / "out")
    assert (tmp_path / "out").read_text("utf-8").splitlines() == [",".join(row) for row in rows()]


def test_workbooks_and_parquet_give_the_same_survey(tmp_path: Path) -> None:
    plain = surveyed(tmp_path, written())
    book = openpyxl.Workbook()
    for row in rows():
        book.active.append([float(v) if re.fullmatch(r"\d+\.\d+", v) else v for v in row])  # type: ignore[union-attr]
    body = io.BytesIO()
    book.save(body)
    from_book = surveyed(tmp_path, body.getvalue(), "firms.xlsx")
    columns = dict(zip(rows()[0], zip(*rows()[1:], strict=True), strict=True))
    table = pa.table({**columns, "turnover": [float(v) for v in columns["turnover"]]})
    pq.write_table(table, tmp_path / "f.parquet")
    from_parquet = surveyed(tmp_path, (tmp_path / "f.parquet").read_bytes(), "firms.parquet")
    for other in (from_book, from_parquet):
        assert other.proposals == plain.proposals
        assert other.rows == plain.rows == 120


def test_roles_and_hierarchies_are_proposed(tmp_path: Path) -> None:
    found = {item.column: item for item in surveyed(tmp_path, written()).proposals}
    assert found["firm"].role == "respondent"
    assert (found["town"].role, found["town"].above) == ("level", "region")
    assert (found["region"].role, found["region"].above) == ("level", "")
    assert (found["code"].role, found["code"].labels) == ("label", "region")
    assert (found["sector"].role, found["sector"].above) == ("level", "")
    assert found["turnover"].role == "measure"


def test_who_answers_in_several_rows_is_proposed_as_respondent_and_never_as_a_level(tmp_path: Path) -> None:
    """Each row counted as one, a threshold of three would show two shops that answered in two years."""
    lines = ["shop,owner,town,trade,year,sales"]
    for shop in range(120):
        lines += [
            f"s{shop},o{shop // 2},t{shop // 15},trade {shop % 3},{year},{shop + 0.5}"
            for year in (2023, 2024)
        ]
    found = {item.column: item for item in surveyed(tmp_path, "\n".join(lines).encode()).proposals}
    roles = {name: item.role for name, item in found.items()}
    assert roles == {
        "shop": "respondent",
        "owner": "holding",
        "town": "level",
        "trade": "level",
        "year": "time",
        "sales": "measure",
    }
    assert {item.above for item in found.values()} == {""}


@pytest.mark.parametrize("name", ["id", "NIF", "firm", "Firm_ID", "id empresa", "household id"])
@pytest.mark.parametrize("years", [2, 8])
@pytest.mark.parametrize("prefix", ["", "F"])
def test_the_number_of_a_respondent_in_a_panel_is_no_measure(
    tmp_path: Path, name: str, years: int, prefix: str
) -> None:
    """The file's own totals of numbers of firms would mean nothing, and each row would count as one."""
    lines = [f"year,{name},town,staff"]
    for year in range(2017, 2017 + years):
        lines += [
            f"{year},{prefix}{90_000 + 7 * firm},t{firm % 9},{firm * year % 977}" for firm in range(150)
        ]
    found = surveyed(tmp_path, "\n".join(lines).encode()).proposals
    assert [item.role for item in found] == ["time", "respondent", "level", "measure"]


def test_a_code_of_a_place_with_many_rows_each_is_no_respondent(tmp_path: Path) -> None:
    lines = ["year,town id,firm,staff"]
    lines += [f"{2020 + n % 3},{n % 60},{n // 3},{n * n % 977}.5" for n in range(1200)]
    found = surveyed(tmp_path, "\n".join(lines).encode()).proposals
    assert [item.role for item in found] == ["time", "level", "respondent", "measure"]


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("year", ["1990", "2024", "2100"], "time"),
        ("when", ["2024Q1", "2024Q2", "2025Q1"], "time"),
        ("trimestre", ["2024T1", "2024T4"], "time"),
        ("semestre", ["2024-S1", "2024-S2"], "time"),
        ("month", ["2024-03", "2024-12"], "time"),
        ("mes", ["2024M01", "2024M02"], "time"),
        ("day", ["2024-03-31", "2024-04-01"], "time"),
        ("year", ["2024"], "time"),
        ("quarter", ["2024Q3"], "time"),
        ("month", ["202403"], "time"),
        ("mes", ["202401", "202402", "202412"], "time"),
        ("dia", ["20240331", "20240401"], "time"),
        ("code", ["202413", "202412"], "level"),
        ("code", ["20240332", "20240331"], "level"),
        ("code", ["7"], "nothing"),
        ("year of birth", ["1990"], "nothing"),
        ("year of birth", ["1990", "2001"], "level"),
        ("any de naixement", ["1990", "2001"], "level"),
        ("code", ["1", "2"], "level"),
        ("code", ["2024", "9999"], "level"),
        ("month", ["2024-13", "2024-12"], "level"),
    ],
)
def test_periods_are_levels_of_time(tmp_path: Path, name: str, values: list[str], role: str) -> None:
    lines = [f"{name},sector,sales"]
    lines += [f"{values[n % len(values)]},s{n // 7 % 4},{n}.5" for n in range(120)]
    found = surveyed(tmp_path, "\n".join(lines).encode()).proposals
    assert [item.role for item in found] == [role, "level", "measure"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_periods_of_one_year_are_found_whatever_a_file_is_written_like(tmp_path: Path, encoding: str) -> None:
    """Semicolons, decimal commas and a byte order mark: neither the first column nor a number is misread."""
    lines = ["año;mes;día;sector;ventas"]
    lines += [f"2024;2024{n % 3 + 1:02};2024{n % 3 + 1:02}{n % 28 + 1:02};s{n % 4};{n},5" for n in range(300)]
    found = surveyed(tmp_path, "\r\n".join(lines).encode(encoding))
    assert found.writing.decimal == ","
    roles = {item.column: (item.role, item.above) for item in found.proposals}
    assert roles == {
        "año": ("time", ""),
        "mes": ("time", "año"),
        "día": ("time", "mes"),
        "sector": ("level", ""),
        "ventas": ("measure", ""),
    }


def test_time_has_no_total_in_the_cube_that_is_made(studio: ASGIApp, office: Office, tmp_path: Path) -> None:
    lines = ["firm,year,quarter,sector,sales"]
    for firm in range(100):
        lines += [
            f"{5000 + firm},{year},{year}Q{q},s{firm % 3},{firm}.5" for year in (2023, 2024) for q in (1, 2)
        ]
    ana, draft = begin(studio)
    sent = ana.save(f"{draft}/data", files={"facts": ("f.csv", "\n".join(lines).encode(), "text/csv")})
    address = sent.headers["location"]
    made = ana.post(address.split("?")[0], form_of(ana.get(address).text) | {"cube": "Firms", "all": "All"})
    assert made.status_code == 303, made.text
    version = office.versions.version(int(draft.rsplit("/", 1)[1]))
    sheet = (
        "title.es = 'x'\n[[query]]\nmdx = 'SELECT [quarter].Members ON COLUMNS, "
        "[sector].Members ON ROWS FROM [Firms]'\n"
    )
    office.drafting.put_texts(command_line("t"), version, {"sheets/x.toml": sheet})
    version = office.versions.version(version.id)
    (cube,) = check_publication(office.versions.materialise(version, tmp_path / "out")).cubes
    assert cube.facts.respondent == "firm"
    assert [
        ([level.name for level in h.levels], h.time, bool(h.all_captions))
        for d in cube.dimensions
        for h in d.hierarchies
    ] == [(["year", "quarter"], True, False), (["sector"], False, True)]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("WEIGHT", "weight"),
        ("sample_weight", "weight"),
        ("Factor de elevación", "weight"),
        ("FACTOR_ELEV", "weight"),
        ("Peso", "weight"),
        ("weighted income", "measure"),
        ("factor", "measure"),
    ],
)
def test_a_sampling_weight_is_no_measure(tmp_path: Path, name: str, role: str) -> None:
    body = written().replace(b",sector,turnover", f",{name},turnover".encode()).replace(b"sector ", b"1.0")
    found = surveyed(tmp_path, body)
    (proposal,) = [item for item in found.proposals if item.column == name]
    assert proposal.role in ((role,) if role == "weight" else ("measure", "level"))
    twice = surveyed(tmp_path, body.replace(b"region,code", b"weight,code").replace(b"a,N,", b"a,1,"))
    assert [item.role for item in twice.proposals].count("weight") <= 1


def test_what_is_wrong_is_told_by_line(tmp_path: Path) -> None:
    lines = written().decode().splitlines()
    lines[10] = lines[10].replace("338.", "n/a ").replace("333.", "n/a ")
    lines[20] += ",one too many"
    lines[30] = lines[30].replace("Norteña", "Sureña")
    lines[40] = ",".join([*lines[40].split(",")[:5], ""])
    found = surveyed(tmp_path, "\n".join(lines).encode())
    told = {(problem.line, problem.column, problem.fatal) for problem in found.problems}
    assert (11, "turnover", False) in told
    assert (21, "", True) in told
    assert (41, "turnover", False) in told
    place = tmp_path / "upload"
    with pytest.raises(UserError, match="Line 21"):
        normalise(place, detect(place, "f.csv"), tmp_path / "out")


def test_a_slip_of_the_pen_is_pointed_at(tmp_path: Path) -> None:
    many = [["town", "region"]] + [[f"T{n % 40}", f"R{n % 40 % 4}"] for n in range(800)]
    many[100][1] = "R3" if many[100][1] != "R3" else "R2"
    found = surveyed(tmp_path, "\n".join(",".join(row) for row in many).encode())
    assert [(item.line, item.column) for item in found.problems] == [(101, "town")]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("f.csv", b""),
        ("f.csv", b"\n\n\n"),
        ("f.csv", b"a,,b\n1,2,3\n"),
        ("f.csv", b"a,a\n1,2\n"),
        ("f.csv", b"\0\0\0\0"),
        ("f.csv", b"a" * 200_000),
        ("f.csv.gz", b"\x1f\x8bnonsense"),
        ("f.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-6]),
        ("f.xlsx", b"PK\x03\x04nonsense"),
        ("f.parquet", b"PAR1nonsense"),
        ("f.exe", b"MZ"),
        ("f.xlsx", b"<html>"),
        ("f.csv", ",".join(f"c{n}" for n in range(300)).encode()),
    ],
)
def test_what_is_no_data_is_refused_in_words(tmp_path: Path, name: str, body: bytes) -> None:
    refused = False
    try:
        found = surveyed(tmp_path, body, name)
    except UserError:
        refused = True
    assert refused or any(problem.fatal for problem in found.problems)


def test_a_workbook_reaches_for_nothing(tmp_path: Path) -> None:
    """Entities of XML aren't looked up, and none unfolds without end."""
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    book = openpyxl.Workbook()
    book.active["A1"] = "name"  # type: ignore[index]
    book.active["A2"] = "value"  # type: ignore[index]
    whole = io.BytesIO()
    book.save(whole)
    bomb = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    for entities in (f'<!ENTITY l11 SYSTEM "{secret.as_uri()}">', f'<!ENTITY l0 "lol">{bomb}'):
        body = io.BytesIO()
        with zipfile.ZipFile(whole) as old, zipfile.ZipFile(body, "w") as new:
            for entry in old.infolist():
                content = old.read(entry)
                if entry.filename.endswith("sheet1.xml"):
                    cell = '<c r="A2" t="inlineStr"><is><t>&l11;</t></is></c>'
                    text = re.sub('<c r="A2".*?</c>', cell, content.decode())
                    assert "&l11;" in text, text
                    head, _, rest = text.rpartition("<worksheet")
                    content = f"{head}<!DOCTYPE w [{entities}]><worksheet{rest}".encode()
                new.writestr(entry.filename, content)
        try:
            found = surveyed(tmp_path, body.getvalue(), "f.xlsx")
        except UserError:
            continue
        said = str(found)
        assert "SECRET" not in said
        assert "lollollol" not in said


def begin(studio: ASGIApp) -> tuple[Visitor, str]:
    ana = Visitor(studio).sign_in(Role.ANALYST)
    draft = ana.post("/studio/drafts").headers["location"]
    ana.get(draft)
    ana.save(f"{draft}/start", {"title": "Firms", "publisher": "Office", "languages": "es, en"})
    return ana, draft


def form_of(page: str) -> dict[str, str]:
    form = html.fromstring(page).xpath("//form[.//table]")[0]
    return {name: (value or "").removeprefix("\n") for name, value in form.form_values()}


@pytest.mark.parametrize(
    "name", ["firms.csv", "../../firms.csv", "<img src=x>.csv", "..\\..\\f.csv", "é ñ.csv", ".csv"]
)
def test_an_upload_becomes_a_cube_that_the_pipeline_can_use(
    studio: ASGIApp, office: Office, tmp_path: Path, name: str
) -> None:
    ana, draft = begin(studio)
    sent = ana.save(f"{draft}/data", files={"facts": (name, written(";", ",", "cp1252"), "text/csv")})
    assert sent.status_code == 303, sent.text
    wizard = ana.get(sent.headers["location"])
    assert wizard.status_code == 200
    assert "<img src=x>" not in wizard.text
    assert "A cube of the same name in this draft is replaced." in wizard.text
    fields = form_of(wizard.text)
    assert fields["decimal"] == ","
    assert fields["separator"] == "semicolon"
    made = ana.post(
        sent.headers["location"].split("?")[0],
        fields | {"cube": "Firms", "count": "Empresas", "all": "Total"},
    )
    assert made.status_code == 303, made.text
    number = int(draft.rsplit("/", 1)[1])
    version = office.versions.version(number)
    files = office.versions.files(version)
    assert all(re.fullmatch(r"data/[A-Za-z0-9_.-]+\.csv", path) for path in files.uploads)
    sheet = (
        "title.es = 'x'\n[[query]]\nmdx = 'SELECT [Measures].Members ON COLUMNS, "
        "[town].Members ON ROWS FROM [Firms]'\n"
    )
    office.drafting.put_texts(command_line("t"), version, {"sheets/x.toml": sheet})
    folder = office.versions.materialise(office.versions.version(number), tmp_path / "out")
    publication = check_publication(folder)
    (cube,) = publication.cubes
    assert cube.facts.respondent == "firm"
    assert [[level.name for level in h.levels] for d in cube.dimensions for h in d.hierarchies] == [
        ["region", "town"], ["sector"],
    ]  # fmt: skip
    assert {m.measure: [r.name for r in m.rules] for m in publication.confidentiality.measures} == {
        "Empresas": ["threshold"], "turnover": ["p-percent"],
    }  # fmt: skip
    assert [entry.action for entry in office.journal.latest(4)][:3] == [
        "draft.edit",
        "draft.edit",
        "facts.upload",
    ]


def test_a_cube_made_again_with_more_measures_has_rules_for_each_and_keeps_those_it_had(
    studio: ASGIApp, office: Office
) -> None:
    ana, draft = begin(studio)
    body = written().replace(b",turnover", b",turnover,staff", 1)
    body = b"\n".join(line + b",3.5" * (n > 0) for n, line in enumerate(body.split(b"\n")) if line)
    address = ana.save(f"{draft}/data", files={"facts": ("f.csv", body, "text/csv")}).headers["location"]
    for staff, threshold in (("nothing", "4"), ("measure", "9")):
        fields = form_of(ana.get(address).text) | {"cube": "Mine", "threshold": threshold}
        columns = body.split(b"\n")[0].decode().split(",")
        made = ana.post(address.split("?")[0], fields | {f"c{columns.index('staff')}.role": staff})
        assert made.status_code == 303, made.text
    version = office.versions.version(int(draft.rsplit("/", 1)[1]))
    rules = tomllib.loads(office.versions.files(version).texts["publication.toml"])["confidentiality"]["Mine"]
    assert (rules.keys(), rules["Number"]["rules"][0]["n"]) == ({"Number", "turnover", "staff"}, 4)


def owned(letter: str) -> bytes:
    """Facts that say whose they are."""
    return written().replace(b"F0", letter.encode() + b"0") + b"\n"


def add_cube(ana: Visitor, draft: str, name: str, body: bytes, cube: str) -> None:
    address = ana.save(f"{draft}/data", files={"facts": (name, body, "text/csv")}).headers["location"]
    made = ana.post(address.split("?")[0], form_of(ana.get(address).text) | {"cube": cube})
    assert made.status_code == 303, made.text


def facts_by_cube(office: Office, number: int) -> dict[str, bytes]:
    files = office.versions.files(office.versions.version(number))
    found = {}
    for path, text in files.texts.items():
        if path.startswith("cubes/"):
            cube = tomllib.loads(text)
            place = cube["facts"]["file"].removeprefix("../")
            found[cube["name"]] = b"".join(office.versions.chunks(files.uploads[place]))
    return found


@pytest.mark.parametrize("begun_again", [False, True])
@pytest.mark.parametrize(
    "name",
    ["firms.csv", "FIRMS.csv", "firms.CSV", "a/firms.csv", "firms.csv.gz", "firms.xlsx.csv", "firms.x.csv"],
)
def test_facts_of_another_cube_are_never_replaced(
    studio: ASGIApp, office: Office, name: str, begun_again: bool
) -> None:
    """Files of one name for two cubes: the second took the place of what the first counts, without a word."""
    ana, draft = begin(studio)
    add_cube(ana, draft, "firms.csv", owned("F"), "Firms")
    if begun_again:
        office.versions.publish(office.versions.draft(int(draft.rsplit("/", 1)[1])), "m")
        draft = ana.post("/studio/drafts").headers["location"]
    body = owned("G")
    add_cube(ana, draft, name, gzip.compress(body) if name.endswith("gz") else body, "Farms")
    add_cube(ana, draft, name, gzip.compress(body) if name.endswith("gz") else body, "far-ms")
    # A name that makes the same name of a file.
    add_cube(ana, draft, "firms-2.csv", owned("H"), "far ms")
    found = {
        cube: facts.split(b"\n")[1][:1]
        for cube, facts in facts_by_cube(office, int(draft.rsplit("/", 1)[1])).items()
    }
    assert found == {"Firms": b"F", "Farms": b"G", "far-ms": b"G", "far ms": b"H"}


def test_facts_are_replaced_for_the_cube_that_is_made_again_if_it_alone_counts_them(
    studio: ASGIApp, office: Office
) -> None:
    ana, draft = begin(studio)
    number = int(draft.rsplit("/", 1)[1])
    for letter in "FG":
        add_cube(ana, draft, "firms.csv", owned(letter), "Firms")
        version = office.versions.draft(number)
        assert office.versions.files(version).uploads.keys() == {"data/firms.csv"}
        assert facts_by_cube(office, number)["Firms"] == owned(letter)
    files = office.versions.files(version)
    beside = files.texts["cubes/firms.toml"].replace('name = "Firms"', 'name = "Beside"', 1)
    for other in (beside, "[[ no toml"):
        version = office.versions.draft(number)
        texts = {**files.texts, "cubes/beside.toml": other}
        office.drafting.replace(command_line("t"), version, Files(texts, files.uploads))
        for letter in "HI":
            add_cube(ana, draft, "Firms.csv", owned(letter), "Firms")
            uploads = office.versions.files(office.versions.draft(number)).uploads
            bodies = {path: b"".join(office.versions.chunks(digest)) for path, digest in uploads.items()}
            assert bodies["data/firms.csv"] == owned("G")
            assert owned(letter) in bodies.values()
            # What can't be read may name anything.
            assert (len(bodies) == 2) is (letter == "H" or other == beside)
    sent = ana.save(f"{draft}/data", files={"facts": ("f.csv", owned("F"), "text/csv")}).headers["location"]
    refused = ana.post(sent.split("?")[0], form_of(ana.get(sent).text) | {"cube": "FIRMS"})
    assert "There is a cube FIRMS already, in cubes/firms.toml." in refused.text


def test_a_column_that_is_no_number_is_no_measure_and_the_form_stays(studio: ASGIApp) -> None:
    ana, draft = begin(studio)
    body = written().replace(b"111.35", b"unknown")
    address = ana.save(f"{draft}/data", files={"facts": ("f.csv", body, "text/csv")}).headers["location"]
    fields = form_of(ana.get(address).text) | {"cube": "Mine"}
    refused = ana.post(address.split("?")[0], fields)
    assert refused.status_code == 422
    assert "holds what is no number, first in line 5" in refused.text
    assert form_of(refused.text)["cube"] == "Mine"
    for change in (
        {"c3.other": "town"},
        {"c1.other": "town"},
        {"threshold": "0"},
        {"cube": "a/b"},
        {"threshold": "x"},
    ):
        assert ana.post(address.split("?")[0], fields | {"c5.role": "nothing"} | change).status_code == 422
    for change in ({"c0.role": "<b>"}, {"c0.other": "nowhere"}):
        assert ana.post(address.split("?")[0], fields | change).status_code == 400


def test_a_database_is_read_when_an_admin_named_it(studio: ASGIApp, office: Office, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'facts.db'}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("create table f (firm text, region text, town text, turnover real)"))
        for firm, region, _code, town, _sector, turnover in rows()[1:]:
            connection.execute(
                sa.text("insert into f values (:a, :b, :c, :d)"),
                {"a": firm, "b": region, "c": town, "d": float(turnover)},
            )
    ana, draft = begin(studio)
    ask = {"source": "0", "sql": "select * from f"}
    assert ana.save(f"{draft}/source", ask).status_code == 400, "nobody named it"
    with pytest.raises(UserError, match="password"):
        office.settings.set_sources(command_line("t"), ("postgresql://a:secret@h/d",))
    office.settings.set_sources(command_line("t"), (url,))
    looked = ana.save(f"{draft}/source", ask)
    assert looked.status_code == 200, looked.text
    made = ana.save(f"{draft}/source", form_of(looked.text) | {"cube": "Firms"})
    assert made.status_code == 303, made.text
    texts = office.versions.files(office.versions.version(int(draft.rsplit("/", 1)[1]))).texts
    assert f'url = "{url}"' in texts["cubes/firms.toml"]
    for sql in ("drop table f", "nonsense", "", "select 1; drop table f"):
        assert ana.save(f"{draft}/source", ask | {"sql": sql}).status_code in (422, 503)
    ana.save(f"{draft}/source", ask | {"sql": "delete from f returning firm"})
    with engine.connect() as connection:
        assert connection.scalar(sa.text("select count(*) from f")) == 120


def bomb(kind: str) -> tuple[str, bytes]:
    """A small file that unpacks to a hundred megabytes and more."""
    body = io.BytesIO()
    if kind == "gzip":
        return "f.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * (32 << 20), mtime=0)
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])  # type: ignore[union-attr]
    whole = io.BytesIO()
    book.save(whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith("sheet1.xml"):
                content = content.replace(b"</sheetData>", b" " * (128 << 20) + b"</sheetData>")
            new.writestr(entry.filename, content)
    return "f.xlsx", body.getvalue()


@pytest.mark.parametrize("kind", ["gzip", "workbook"])
def test_an_upload_that_swells_without_measure_is_refused(studio: ASGIApp, kind: str) -> None:
    ana, draft = begin(studio)
    ana.get(f"{draft}/data")
    name, body = bomb(kind)
    assert len(body) < 1 << 20
    page = ana.save(f"{draft}/data", files={"facts": (name, body, "application/octet-stream")})
    if page.status_code == 303:
        page = ana.get(page.headers["location"])
    assert page.status_code == 422, page.status_code
    assert "unpacks to more than is allowed" in page.text
