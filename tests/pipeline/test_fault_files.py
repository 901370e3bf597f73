"""Files that are wrong in every way that people and programs manage: each is told where it stands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.bootstrap import check_publication, run_publication
from app.domain.errors import Mistake, UserError
from tests.pipeline.offices import firms, write_csv, write_office


def mistakes_of(folder: Path) -> tuple[Mistake, ...]:
    with pytest.raises(UserError) as caught:
        check_publication(folder)
    return caught.value.mistakes


# ---------------------------------------------------------------------- facts

HEAD = b"firm,holding,town,activity,size,turnover\r\n"
#: What a file of facts may be, and the line that is told.
FACTS = {
    "short line": (HEAD + b"1,,a1,farm,small,12\r\n2,,a2\r\n", 3, "3 values"),
    "long line": (HEAD + b"1,,a1,farm,small,12\r\n2,,a2,farm,small,1,2\r\n", 3, "7 values"),
    "open quote": (HEAD + b'1,,a1,farm,small,12\r\n2,"x,a2,farm,small,1\r\n', 3, "quote"),
    "not UTF-8": (HEAD + b"1,,a1,farm,small,12\r\n2,,a2,gr\xe1nja,small,1\r\n", 3, "UTF-8"),
    "mixed line ends": (HEAD + b"1,,a1,farm,small,12\n2,,a2,farm,small,1\r\n", 2, "ends in another way"),
    "UTF-16": ((HEAD + b"1,,a1,farm,small,12\r\n").decode().encode("utf-16"), 0, "UTF-8"),
    "name twice": (HEAD.replace(b"size", b"town") + b"1,,a1,farm,small,12\r\n", 0, "twice"),
    "no name": (HEAD.replace(b"size", b"") + b"1,,a1,farm,small,12\r\n", 0, "every column"),
    "control character": (HEAD + b"1,,a1,fa\x00rm,small,12\r\n", 0, "control character"),
    **{
        f"member with {character!a}": (
            HEAD + f"1,,a1,fa{character}rm,small,12\r\n".encode(),
            0,
            f"control character U+{ord(character):04X}",
        )
        for character in "\x01\x08\x0b\x1b\x1f\ufffe\uffff"
    },
    "endless line": (HEAD + b"1,,a1,farm,small," + b"7" * 3_000_000 + b"\r\n", 2, "can't be read"),
}


@pytest.mark.parametrize("fault", FACTS)
def test_a_faulty_line_of_the_facts_is_named(office: Path, fault: str) -> None:
    body, line, said = FACTS[fault]
    (office / "data/firms.csv").write_bytes(body)
    found = mistakes_of(office)
    assert any(said in str(mistake) and "firms.csv" in str(mistake) for mistake in found)
    if line:
        assert ("firms.csv", line) in [(mistake.file, mistake.line) for mistake in found]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> object:
    """What is released of forty firms whose file is as files are."""
    return released_after(write_office(tmp_path_factory.mktemp("plain"), firms(n=40)))


@pytest.mark.parametrize("mark", ["#", "//", "--", "%", ";", "'", "\\", " ", "NA", "null", "\ufeff"])
def test_no_row_is_taken_for_anything_but_a_row(tmp_path: Path, plain: object, mark: str) -> None:
    rows = [{**row, "firm": f"{mark}{row['firm']}"} for row in firms(n=40)]
    assert released_after(write_office(tmp_path / "office", rows)) == plain


def released(folder: Path) -> object:
    from app.bootstrap import publication_store

    with publication_store(folder) as store:
        release = store.live_release()
        assert release is not None
        return release.keys, release.status.tolist(), release.values.tobytes()


@pytest.mark.parametrize("name", ["f*.csv", "f[i]rms.csv", "f?rms.csv", "it's.csv", "{a,b}.csv", "firms.tsv"])
def test_a_file_is_read_by_its_very_name(tmp_path: Path, plain: object, name: str) -> None:
    office = write_office(tmp_path / "office", firms(n=40))
    data = office / "data"
    (data / "firms.csv").rename(data / name)
    write_csv(data / "firms.csv", firms(seed=9, n=90))
    cube = office / "cubes/firms.toml"
    cube.write_text(cube.read_text().replace("../data/firms.csv", f"../data/{name}"))
    assert released_after(office) == plain


def released_after(folder: Path) -> object:
    run_publication(folder)
    return released(folder)


@pytest.mark.parametrize(
    "name", ["no\\u0000where.csv", "x" * 5000 + ".csv", "loop.csv", ".", "../../../../../../etc/shadow"]
)
def test_a_file_that_cannot_be_one_is_told(office: Path, name: str) -> None:
    (office / "data/loop.csv").symlink_to("loop.csv")
    cube = office / "cubes/firms.toml"
    cube.write_text(cube.read_text().replace("../data/firms.csv", f"../data/{name}"))
    assert ("cubes/firms.toml", 4) in [(mistake.file, mistake.line) for mistake in mistakes_of(office)]


@pytest.mark.parametrize("url", ["nonsense", "postgresql://h:port/x", "oracle://u:secret@h/x", "://"])
def test_a_database_url_that_is_none_is_told_in_its_file(office: Path, url: str) -> None:
    cube = office / "cubes/firms.toml"
    cube.write_text(cube.read_text().replace('file = "../data/firms.csv"', f'url = "{url}"\ntable = "t"'))
    (mistake,) = [item for item in mistakes_of(office) if "URL" in item.cause]
    assert mistake.file == "cubes/firms.toml"
    assert "secret" not in str(mistake)


@pytest.mark.parametrize("amount", ["1e300", "99999999999999999999999999", "-1e300"])
def test_numbers_beyond_a_double_are_refused_before_anything_is_computed(office: Path, amount: str) -> None:
    rows = [*firms(), {**firms()[0], "firm": 999, "turnover": amount}]
    write_csv(office / "data/firms.csv", rows)
    with pytest.raises(UserError, match="too large to be published exactly"):
        run_publication(office)


# ---------------------------------------------------------------------- text

TOML = {
    "deep lists": "x = " + "[" * 5000 + "]" * 5000,
    "deep tables": "x = " + "{a = " * 3000 + "1" + "}" * 3000,
    "deep keys": ".".join("a" * 5000) + " = 1",
    "endless number": "n = " + "9" * 5000,
    "control character": 'title.en = "a\\u0000b"',
    "binary": "\x00\x01\x02",
}


@pytest.mark.parametrize("fault", TOML)
@pytest.mark.parametrize("file", ["publication.toml", "cubes/firms.toml", "sheets/coast.toml"])
def test_odd_toml_is_told_with_its_file(office: Path, file: str, fault: str) -> None:
    (office / file).write_text(TOML[fault])
    assert file in {mistake.file for mistake in mistakes_of(office)}


def _link_back(sheets: Path) -> None:
    (sheets / "loop").symlink_to(".")


def _deep(sheets: Path) -> None:
    (sheets / "/".join("d" * 200)).mkdir(parents=True)


def _odd_name(sheets: Path) -> None:
    with open(os.fsencode(sheets) + b"/\xff.toml", "w") as file:
        file.write("x = 1")


@pytest.mark.parametrize("spoil", [_link_back, _deep, _odd_name])
def test_odd_folders_of_sheets_are_told(office: Path, spoil: Callable[[Path], None]) -> None:
    spoil(office / "sheets")
    found = mistakes_of(office)
    assert all(mistake.file.startswith("sheets/") for mistake in found)
    "\n".join(map(str, found)).encode()


def test_a_change_behind_a_link_is_noticed(office: Path, tmp_path: Path) -> None:
    (office / "sheets/activity").rename(tmp_path / "elsewhere")
    (office / "sheets/activity").symlink_to(tmp_path / "elsewhere")
    assert run_publication(office).ran
    assert not run_publication(office).ran
    sheet = tmp_path / "elsewhere/sizes.toml"
    sheet.write_text(sheet.read_text().replace("Sizes of an activity", "Sizes"))
    assert run_publication(office).ran


def test_damaged_data_do_not_hide_mistakes_in_the_text(office: Path) -> None:
    (office / "data/places.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    cube = office / "cubes/firms.toml"
    cube.write_text(cube.read_text().replace("../data/places.csv", "../data/places.parquet"))
    sheet = office / "sheets/coast.toml"
    sheet.write_text(sheet.read_text().replace("[[query]]", "[[qery]]", 1))
    files = {mistake.file for mistake in mistakes_of(office)}
    assert {"cubes/firms.toml", "sheets/coast.toml"} <= files


def test_state_with_true_values_stays_out_of_git(office: Path) -> None:
    run_publication(office)
    assert (office / ".celosia/.gitignore").read_text() == "*\n"
