"""Versions of the publication: drafts, publishing, differences, folders in and out."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from app.domain.errors import ConflictError, OperatorError, UserError
from app.domain.version import Files
from app.office.office import Office
from app.office.versions import diff_files
from app.pipeline.define import load_publication
from demo import create_starter

TEXTS = {"publication.toml": 'title.en = "Ñ"\n', "sheets/a.toml": "order = 1\n"}


def test_the_first_version_has_no_parent_and_later_ones_follow(office: Office) -> None:
    assert office.versions.current() is None
    first = office.versions.save(TEXTS, None, "ana", "first")
    second = office.versions.save(TEXTS | {"sheets/b.toml": "order = 2\n"}, first, "ben", "second")
    assert office.versions.current() == second
    assert [version.message for version in office.versions.history()] == ["second", "first"]
    assert office.versions.version(first.id).state == "past"
    assert office.versions.files(first).texts == TEXTS
    (change,) = office.versions.diff(first, second)
    assert (change.path, change.kind, change.lines) == (
        "sheets/b.toml",
        "added",
        ("@@ -0,0 +1 @@", "+order = 2"),
    )


def test_of_two_who_save_over_the_same_version_one_is_told(office: Office) -> None:
    first = office.versions.save(TEXTS, None, "ana", "first")

    def save(number: int) -> str:
        try:
            office.versions.save(TEXTS | {f"sheets/s{number}.toml": ""}, first, "ben", "mine")
        except UserError as error:
            return str(error)
        return "saved"

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(save, range(4)))
    assert told.count("saved") == 1
    assert all("became current meanwhile" in text for text in told if text != "saved")


def test_a_draft_is_edited_brought_up_to_date_and_published(office: Office) -> None:
    first = office.versions.save(TEXTS, None, "ana", "first")
    draft = office.versions.begin("ben")
    draft = office.versions.edit(draft, Files(TEXTS | {"sheets/a.toml": "order = 3\n"}))
    office.versions.save(TEXTS | {"sheets/c.toml": "x = 1\n"}, first, "ana", "meanwhile")
    with pytest.raises(UserError, match="Bring the draft up to date"):
        office.versions.publish(draft, "mine")
    assert office.versions.conflicts(draft) == ()
    draft = office.versions.update(draft)
    published = office.versions.publish(draft, "mine")
    assert office.versions.current() == published
    assert office.versions.files(published).texts == TEXTS | {
        "sheets/a.toml": "order = 3\n",
        "sheets/c.toml": "x = 1\n",
    }
    assert office.versions.drafts() == ()


def test_a_file_that_both_changed_is_a_conflict_and_the_draft_wins_when_told(office: Office) -> None:
    first = office.versions.save(TEXTS, None, "ana", "first")
    draft = office.versions.edit(
        office.versions.begin("ben"), Files(TEXTS | {"sheets/a.toml": "order = 3\n"})
    )
    office.versions.save(TEXTS | {"sheets/a.toml": "order = 4\n"}, first, "ana", "meanwhile")
    assert office.versions.conflicts(draft) == ("sheets/a.toml",)
    assert office.versions.files(office.versions.update(draft)).texts["sheets/a.toml"] == "order = 3\n"


def test_a_draft_saved_twice_from_the_same_reading_is_refused(office: Office) -> None:
    draft = office.versions.begin("ben")
    office.versions.edit(draft, Files(TEXTS))
    with pytest.raises(ConflictError, match="saved elsewhere"):
        office.versions.edit(draft, Files({}))
    with pytest.raises(ConflictError, match="saved elsewhere"):
        office.versions.discard(draft)
    office.versions.discard(office.versions.version(draft.id))
    with pytest.raises(ConflictError, match="thrown away"):
        office.versions.edit(draft, Files({}))


@pytest.mark.parametrize(
    "path",
    ["../x.toml", "/etc/x.toml", "a//b.toml", "sheets/../../x.toml", ".hidden.toml", "a\\b.toml", "x.py",
     "a/./b.toml", "a\n.toml", "x.toml/", "", "ñ.toml", "a/" * 21 + "b.toml", "x" * 401 + ".toml"],
)  # fmt: skip
def test_paths_that_lead_elsewhere_are_refused(office: Office, path: str) -> None:
    with pytest.raises(UserError):
        office.versions.save({path: "x"}, None, "ana", "m")
    assert office.versions.current() is None


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * (1 + (1 << 20))])
def test_texts_that_no_database_keeps_are_refused(office: Office, text: str) -> None:
    with pytest.raises(UserError):
        office.versions.save({"a.toml": text}, None, "ana", "m")


def test_borders_may_be_longer_than_what_people_write(office: Office) -> None:
    long = "x" * (1 + (1 << 20))
    version = office.versions.save({"maps/a.geojson": long}, None, "ana", "m")
    again = office.versions.save({"maps/a.geojson": long + "y"}, version, "ana", "m")
    (change,) = office.versions.diff(version, again)
    assert sum(map(len, change.lines)) < 200
    with pytest.raises(UserError, match="too long"):
        Files({"maps/a.geojson": "x" * (1 + (32 << 20))})


def test_uploads_that_nobody_uses_are_forgotten_after_a_while(office: Office, tmp_path: Path) -> None:
    digests = {}
    for name in ("used", "drafted", "left"):
        (tmp_path / name).write_text(name)
        digests[name] = office.versions.put_upload(tmp_path / name, f"{name}.csv", "ana").digest
    office.versions.save(TEXTS, None, "ana", "m", {"data/used.csv": digests["used"]})
    draft = office.versions.begin("ana")
    office.versions.edit(draft, Files(TEXTS, {"data/drafted.csv": digests["drafted"]}))
    assert office.versions.forget_unused() == ()
    (forgotten,) = office.versions.forget_unused(timedelta(0))
    assert (forgotten.name, forgotten.digest) == ("left.csv", digests["left"])
    with pytest.raises(UserError, match="no such upload"):
        office.versions.upload(digests["left"])
    assert b"".join(office.versions.chunks(digests["used"])) == b"used"
    # Put in again, it is there again, and what is used later is kept.
    again = office.versions.put_upload(tmp_path / "left", "again.csv", "ben")
    assert (again.digest, again.author) == (digests["left"], "ben")
    office.versions.discard(office.versions.version(draft.id))
    assert {upload.name for upload in office.versions.forget_unused(timedelta(0))} == {
        "drafted.csv",
        "again.csv",
    }
    assert not office.versions.holds("ben", digests["left"])


def test_a_folder_travels_with_its_facts_and_means_the_same(office: Office, tmp_path: Path) -> None:
    folder = tmp_path / "starter"
    create_starter(folder)
    version = office.versions.import_folder(folder, "ana")
    written = office.versions.materialise(version, tmp_path / "elsewhere" / "v1")
    there, here = load_publication(written), load_publication(folder)
    assert there.digest == here.digest
    assert (written / "data" / "firms.csv").read_bytes() == (folder / "data" / "firms.csv").read_bytes()
    stamp = (written / "publication.toml").stat().st_mtime_ns
    office.versions.materialise(version, written)
    assert (written / "publication.toml").stat().st_mtime_ns == stamp
    exported = office.versions.export(version, tmp_path / "out")
    again = office.versions.import_folder(exported, "ben")
    assert again.digest == version.digest
    with pytest.raises(UserError, match="isn't an empty folder"):
        office.versions.export(version, tmp_path / "out")


@pytest.mark.parametrize("name", ["logo.svg", "maps/a.geojson", "maps/a.json", "maps/A.TOPOJSON"])
def test_what_maps_and_themes_name_travels_too(office: Office, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "starter"
    create_starter(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("<svg/>", encoding="utf-8")
    written = office.versions.materialise(office.versions.import_folder(folder, "ana"), tmp_path / "v1")
    assert (written / name).read_text(encoding="utf-8") == "<svg/>"


def test_facts_outside_the_folder_are_refused(office: Office, tmp_path: Path) -> None:
    folder = tmp_path / "starter"
    create_starter(folder)
    cube = folder / "cubes" / "firms.toml"
    cube.write_text(cube.read_text().replace("../data/firms.csv", "../../firms.csv"))
    with pytest.raises(UserError, match=r"../../firms.csv isn't part of the publication"):
        office.versions.import_folder(folder)
    link = folder / "data" / "link.csv"
    (tmp_path / "secret.csv").write_text("a\n1\n")
    link.symlink_to(tmp_path / "secret.csv")
    (folder / "linked").symlink_to(tmp_path)
    with pytest.raises(UserError, match=r"leads out of the folder[\s\S]*link to a folder"):
        office.versions.import_folder(folder)


def test_a_large_upload_is_whole_and_damage_is_noticed(office: Office, tmp_path: Path) -> None:
    import sqlalchemy as sa

    file = tmp_path / "f.csv"
    file.write_bytes(b"a,b\n" + b"1,2\n" * 700_000)
    upload = office.versions.put_upload(file, "f.csv", "ana")
    again = office.versions.put_upload(file, "g.csv", "ben")
    # Who has the bytes may read them: they are of everybody who brought them, by the name they had there.
    assert (again.digest, again.name, again.author) == (upload.digest, "g.csv", "ben")
    for person, name in (("ana", "f.csv"), ("ben", "g.csv")):
        assert office.versions.upload(upload.digest, person).name == name
    office.versions.put_upload(file, "h.csv", "ben")
    assert office.versions.upload(upload.digest, "ben").name == "h.csv"
    with pytest.raises(UserError, match="no such upload"):
        office.versions.upload(upload.digest, "eve")
    assert b"".join(office.versions.chunks(upload.digest)) == file.read_bytes()
    with office.store.database.engine.begin() as raw:
        raw.execute(sa.text("delete from upload_chunk where number = 1"))
    with pytest.raises(OperatorError, match="damaged"):
        list(office.versions.chunks(upload.digest))


def test_the_difference_of_long_texts_is_found_at_once() -> None:
    """Lines that come again and again took minutes to compare, on every save."""
    lines = [str(n % 2000) for n in range(200_000)]
    before, after = (
        Files({"a.toml": "\n".join(random.Random(seed).sample(lines, len(lines)))}) for seed in (1, 2)
    )
    started = time.process_time()
    (change,) = diff_files(before, after)
    assert time.process_time() - started < 10
    assert [line[:14] for line in change.lines if line[0] in "+-"] == ["-200000 lines ", "+200000 lines "]


def test_files_that_were_never_uploaded_are_refused(office: Office) -> None:
    with pytest.raises(UserError, match="never uploaded"):
        office.versions.save(TEXTS, None, "ana", "m", {"data/x.csv": "0" * 64})
