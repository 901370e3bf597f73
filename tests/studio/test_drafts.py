"""An analyst at work: a draft, its sheets and MDX, a preview, and the version that comes of it."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.bootstrap.engines import open_cube
from app.domain.errors import UserError
from app.domain.people import Actor, Permission, Role, command_line
from app.domain.version import Files
from app.office.drafting import require_rules_permission
from app.office.office import Office
from app.pipeline.check import check_publication
from app.pipeline.define import load_publication
from app.pipeline.run import remembered
from app.web.studio.parts import PARTS
from app.web.studio.shell import create_studio
from tests.studio.visitors import BASE, NAMES, Visitor, starter_office

SHEET = "sheets/economy/activities.toml"


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """The small publication that `celosia init` makes, run and live."""
    folder: Path = tmp_path_factory.mktemp("starter") / "firms"
    with starter_office(folder, run=True) as (office, _):
        office.versions.import_folder(folder, "ada")
        yield office


@pytest.fixture
def ana(starter: Office) -> Visitor:
    return Visitor(create_studio(starter, PARTS, BASE)).sign_in(Role.ANALYST)


def begin(visitor: Visitor) -> str:
    visitor.get("/studio/publication")
    response = visitor.post("/studio/drafts")
    assert response.status_code == 303
    address: str = response.headers["location"]
    assert visitor.get(address).status_code == 200
    return address


def revision(visitor: Visitor, address: str) -> str:
    found = re.search(r'name="revision" value="(\d+)"', visitor.get(address).text)
    assert found
    return found.group(1)


def fields(page: str) -> dict[str, str]:
    """What a browser would send of the sheet's form; it leaves a text field's first line break out."""
    (form,) = html.fromstring(page).xpath("//form[@id='sheet-form']")
    return {name: (value or "").removeprefix("\n") for name, value in form.form_values()}


def test_a_sheet_is_edited_as_a_form_and_keeps_its_comments(ana: Visitor, starter: Office) -> None:
    draft = begin(ana)
    address = f"{draft}/sheet/sheets/economy/towns.toml"
    sent = fields(ana.get(address).text)
    assert sent["title.en"] == "Towns of a region"
    assert sent["p0.set"] == "[Territory].[Region].Members"
    same = ana.post(address, sent | {"do": "save"})
    assert "Every query can be answered" in same.text
    number = int(draft.rsplit("/", 1)[1])
    files = starter.versions.files(starter.versions.version(number))
    current = starter.versions.current()
    assert current is not None
    assert files == starter.versions.files(current), "saving what was read changes nothing"
    changed = fields(same.text) | {
        "title.en": "Towns <b>&</b> firms",
        "notes.en": "One\r\n\r\nTwo",
        "do": "save",
    }
    assert "Every query can be answered" in ana.post(address, changed).text
    text = starter.versions.files(starter.versions.version(number)).texts["sheets/economy/towns.toml"]
    assert 'en = "Towns <b>&</b> firms"' in text or 'title.en = "Towns <b>&</b> firms"' in text
    assert "# A choice for the visitor" in text
    assert "<b>&amp;</b>" not in ana.get(f"{draft}/preview/sheets/economy/towns.toml").text


def test_mistakes_in_mdx_stand_under_a_caret_and_nothing_typed_is_lost(ana: Visitor) -> None:
    draft = begin(ana)
    address = f"{draft}/sheet/{SHEET}"
    sent = fields(ana.get(address).text) | {"do": "save"}
    for wrong, said in (
        ("SELECT {[Activity].[Nowhere]} ON COLUMNS FROM [Firms]", "Nowhere"),
        ("SELECT {[Activity].Members ON COLUMNS FROM [Firms]", "^"),
        ("SELECT <script>alert(1)</script>", "^"),
    ):
        page = ana.post(address, sent | {"q0.mdx": wrong, "revision": revision(ana, draft)})
        assert page.status_code == 200
        assert said in html.fromstring(page.text).xpath("string(//ul[@class='mistakes'])")
        assert fields(page.text)["q0.mdx"] == wrong
        assert "<script>alert" not in page.text


def test_queries_and_choices_are_added_and_removed(ana: Visitor) -> None:
    draft = begin(ana)
    address = f"{draft}/sheet/{SHEET}"
    sent = fields(ana.get(address).text)
    more = fields(ana.post(address, sent | {"do": "add-query"}).text)
    assert more["q2.id"] == "query3"
    fewer = fields(ana.post(address, more | {"do": "drop-q2"}).text)
    assert "q2.id" not in fewer
    asked = fields(ana.post(address, fewer | {"do": "add-parameter"}).text)
    assert asked["p0.name"] == "choice1"


def test_two_who_edit_the_same_draft_do_not_overwrite_each_other(ana: Visitor) -> None:
    draft = begin(ana)
    address = f"{draft}/text/publication.toml"
    first = revision(ana, address)
    text = "languages = ['en']\ntitle.en = 'Mine'\n"
    assert ana.post(address, {"text": text, "revision": first}).status_code in (200, 303)
    other = ana.post(address, {"text": "title.en = 'Theirs'", "revision": first})
    assert other.status_code == 409
    assert "saved elsewhere" in other.text
    assert "title.en = &#39;Theirs&#39;" in other.text


def test_the_tree_is_arranged(ana: Visitor, starter: Office) -> None:
    draft = begin(ana)
    made = ana.save(f"{draft}/new", {"kind": "folder", "folder": "sheets", "name": "new", "title": "New"})
    assert made.status_code == 303
    made = ana.save(f"{draft}/new", {"kind": "sheet", "folder": "sheets/new", "name": "one", "title": "One"})
    assert made.headers["location"].startswith(f"{draft}/sheet/sheets/new/one.toml")
    ana.save(f"{draft}/move", {"path": "sheets/new", "to": "sheets/newer"})
    ana.save(f"{draft}/delete", {"path": SHEET})
    number = int(draft.rsplit("/", 1)[1])
    texts = starter.versions.files(starter.versions.version(number)).texts
    assert {"sheets/newer/one.toml", "sheets/newer/folder.toml"} <= texts.keys()
    assert SHEET not in texts
    for path, to in (("sheets/newer", "../out"), ("sheets/newer", ""), ("nowhere", "sheets/x"),
                     ("sheets/newer/one.toml", "sheets/newer/folder.toml")):  # fmt: skip
        assert ana.save(f"{draft}/move", {"path": path, "to": to}).status_code == 422
    assert ana.save(f"{draft}/new", {"folder": "/etc", "name": "x"}).status_code == 400
    assert ana.save(f"{draft}/new", {"folder": "sheets", "name": "../x"}).status_code == 422


def test_the_preview_shows_what_is_released_and_hides_what_is_new(ana: Visitor, starter: Office) -> None:
    draft = begin(ana)
    page = ana.get(f"{draft}/preview/{SHEET}")
    assert "Every cell is in the live release already" in page.text
    live = starter.store.live_release()
    assert live is not None
    shown = html.fromstring(page.text).xpath("//td[not(contains(@class, 'hidden'))]")
    assert any(cell.text_content().strip().replace(",", "").isdigit() for cell in shown)
    address = f"{draft}/sheet/{SHEET}"
    sent = fields(ana.get(address).text) | {
        "do": "save",
        "q0.mdx": "SELECT {[Measures].[Firms]} ON COLUMNS,\n"
        "[Territory].[Town].Members * [Activity].[Activity].Members ON ROWS\nFROM [Firms]",
    }
    assert "Every query can be answered" in ana.post(address, sent).text
    new = ana.get(f"{draft}/preview/{SHEET}")
    assert "are new: they stay hidden until a recomputation" in new.text
    table = html.fromstring(new.text).xpath("//section[@id='firms']//table")[0]
    figures = [cell.text_content().strip() for cell in table.xpath(".//tbody//td")]
    assert figures
    assert set(figures) == {"[x]"}
    assert "Released on" not in new.text


def test_choices_and_languages_of_a_preview_stay_in_it(ana: Visitor) -> None:
    draft = begin(ana)
    address = f"{draft}/preview/sheets/economy/towns.toml"
    page = html.fromstring(ana.get(address).text)
    forms = page.xpath("//form[@action]")
    assert forms
    assert all(form.get("action").split("#")[0].split("?")[0] == address for form in forms)
    option = page.xpath("//select[@name='p.region']/option[last()]/@value")[0]
    chosen = ana.get(address, params={"p.region": option})
    assert chosen.status_code == 200
    assert html.fromstring(chosen.text).xpath("//select[@name='p.region']/option[@selected]/@value") == [
        option
    ]
    assert ana.get(address, params={"p.region": "<script>"}).status_code == 404


def test_completion_knows_members_levels_functions_and_choices(ana: Visitor) -> None:
    draft = begin(ana)
    api = f"/studio/api{draft.removeprefix('/studio')}/complete"

    def suggest(text: str) -> list[str]:
        response = ana.ask(
            "POST",
            api,
            json={"text": text, "caret": len(text), "parameters": ["region"]},
            headers={"x-csrf-token": ana.token},
        )
        assert response.status_code == 200, response.text
        return [item["text"] for item in response.json()["suggestions"]]

    assert "[Territory]" in suggest("SELECT [Te")
    assert {"[Region]", "[Town]", "Members"} <= set(suggest("SELECT [Territory]."))
    assert suggest("SELECT [Territory].[Reg") == ["[Region]"]
    assert "[Turnover]" in suggest("SELECT [Measures].[Tu")
    assert suggest("SELECT {@re") == ["@region"]
    assert suggest("SELECT x ON COLUMNS FROM [Fi") == ["[Firms]"]
    assert "CROSSJOIN" in suggest("SELECT Cross")
    members = suggest("SELECT [Territory].[Region].")
    assert any(text.startswith("&[") for text in members)
    first = next(text for text in members if text.startswith("&["))
    assert any(text.startswith(("&[", "[")) for text in suggest(f"SELECT [Territory].[Region].{first}."))
    for odd in ("[", "]]]", "&[", "@", "\0", "[" * 500, "é" * 1000):
        suggest(odd)


def test_publishing_makes_a_version_and_only_who_may_changes_rules(ana: Visitor, starter: Office) -> None:
    draft = begin(ana)
    nothing = ana.post(f"{draft}/publish", {"message": "m", "revision": revision(ana, draft)})
    assert nothing.status_code == 422
    assert "changes nothing" in nothing.text
    address = f"{draft}/text/publication.toml"
    text = html.fromstring(ana.get(address).text).xpath("string(//textarea[@name='text'])").lstrip("\n")
    weak = text.replace("n = 3", "n = 2")
    assert weak != text
    ana.post(address, {"text": weak, "revision": revision(ana, address)})
    refused = ana.post(f"{draft}/publish", {"message": "weaker", "revision": revision(ana, draft)})
    assert refused.status_code == 422
    assert "for an admin to do" in refused.text
    fine = text.replace("Firms of a small country", "Firms of the country")
    ana.post(address, {"text": fine, "revision": revision(ana, address)})
    assert "Firms of the country" in ana.get(f"{draft}/changes").text
    done = ana.post(f"{draft}/publish", {"message": "Title", "revision": revision(ana, draft)})
    assert done.status_code == 303
    current = starter.versions.current()
    assert current is not None
    assert done.headers["location"].startswith(f"/studio/versions/{current.id}")
    assert "Firms of the country" in ana.get(done.headers["location"]).text
    assert starter.journal.latest(1)[0].action == "version.publish"
    assert ana.get(draft).status_code == 409


def test_a_draft_with_mistakes_is_not_published(ana: Visitor) -> None:
    draft = begin(ana)
    ana.post(f"{draft}/text/{SHEET}", {"text": "title.en = 'x'\n[[query]]\nmdx = 'SELECT'", "revision": "0"})
    refused = ana.post(f"{draft}/publish", {"message": "m", "revision": revision(ana, draft)})
    assert refused.status_code == 422
    assert SHEET in refused.text


def test_export_and_import_are_each_others_inverse(ana: Visitor, starter: Office) -> None:
    current = starter.versions.current()
    assert current is not None
    admin = Visitor(create_studio(starter, PARTS, BASE)).sign_in(Role.ADMIN)
    for visitor, sees in ((admin, True), (ana, False)):
        exported = visitor.get(f"/studio/versions/{current.id}/export")
        assert exported.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(exported.content)) as archive:
            assert ("data/firms.csv" in archive.namelist()) == sees
        draft = begin(visitor)
        visitor.save(f"{draft}/delete", {"path": "sheets/economy"})
        data = {} if sees else {"keep": "yes"}
        files = {"archive": ("p.zip", exported.content, "application/zip")}
        back = visitor.save(f"{draft}/import", data, files=files)
        assert back.status_code == 303
        number = int(draft.rsplit("/", 1)[1])
        assert starter.versions.version(number).digest == current.digest


def test_facts_are_shown_to_who_gave_them_or_may_see_confidential_values(
    ana: Visitor, starter: Office
) -> None:
    """An analyst is no reader of what others uploaded, whatever its digest, which the interface tells."""
    current = starter.versions.current()
    assert current is not None
    digest = starter.versions.files(current).uploads["data/firms.csv"]
    draft = begin(ana)
    admin = Visitor(create_studio(starter, PARTS, BASE)).sign_in(Role.ADMIN)
    assert admin.get(f"{draft}/data/{digest}").status_code == 200
    for seen in (
        ana.get(f"{draft}/data/{digest}"),
        ana.post(f"{draft}/data/{digest}", {"cube": "Mine", "revision": "0"}),
    ):
        assert seen.status_code == 404
    facts = b"".join(starter.versions.chunks(digest)) + b"9999,1,North,Alder,Trade,5\n"
    given = ana.save(f"{draft}/data", files={"facts": ("more.csv", facts, "text/csv")})
    assert ana.get(given.headers["location"]).status_code == 200
    # Whoever brings the same bytes has them too, and takes them from nobody.
    again = admin.save(f"{begin(admin)}/data", files={"facts": ("mine.csv", facts, "text/csv")})
    number = given.headers["location"].partition("?")[0].rsplit("/", 1)[1]
    assert number in again.headers["location"]
    assert [starter.versions.upload(number, who).name for who in ("ana", "ada")] == ["more.csv", "mine.csv"]
    assert "What is in more.csv" in ana.get(given.headers["location"]).text


COUNTED = {
    "another respondent": ('respondent = "firm"', 'respondent = "owner"', "who counts as a contributor"),
    "no respondent": ('respondent = "firm"', "", "who counts as a contributor"),
    "no holding": ('holding = "owner"', "", "who counts as a contributor"),
    "a weight": ("[facts]", '[facts]\nweight = "turnover"', "who counts as a contributor"),
    "losses": ("nonnegative = true", "nonnegative = false", "nonnegative or of_which"),
    "a measure less": ('name = "Turnover"', 'name = "Sales"', "nonnegative or of_which"),
    "another cube": ('name = "Firms"', 'name = "Companies"', "who counts as a contributor"),
    "a broken cube": ('name = "Firms"', "name = ", "who counts as a contributor"),
    "a cube of before": ('name = "Firms"', 'name = "Firms"\nformerly = ["Shops"]', "formerly or recoded"),
    "a measure of before": (
        'name = "Turnover"',
        'name = "Turnover"\nformerly = ["Tax"]',
        "formerly or recoded",
    ),
    "other keys": ('key = "town"', 'key = "town"\nrecoded = { "A" = "B", "B" = "A" }', "formerly or recoded"),
    "a format": ('format = "#,##0"', 'format = "#,##0.0"', ""),
}
#: Where the cube as it was may stay, so that whoever looks at one of the two finds nothing changed.
BESIDE = ("", "cubes/old/firms.toml", "cubes/a.toml", "cubes/z.toml", "cubes/z.md")
FORGET = '\n[[release.forget]]\ncube = "Firms"\nreason = "r"\n'


@pytest.mark.parametrize(("kind", "beside"), [
    *((kind, "") for kind in COUNTED), *(("another respondent", beside) for beside in BESIDE), ("forget", ""),
])  # fmt: skip
def test_who_counts_as_a_contributor_is_a_rule_and_so_is_what_is_known(
    tmp_path: Path, kind: str, beside: str
) -> None:
    old, new, said = COUNTED.get(kind, ("", "", "confidentiality rules"))
    with starter_office(tmp_path / "firms") as (office, _):
        office.versions.import_folder(tmp_path / "firms", "ada")
        people = {role: Visitor(create_studio(office, PARTS, BASE)).sign_in(role) for role in NAMES}
        analyst = people[Role.ANALYST]
        draft = begin(analyst)
        number = int(draft.rsplit("/", 1)[1])
        files = office.versions.files(office.versions.version(number))
        (path,) = (name for name in files.texts if name.startswith("cubes/"))
        assert old in files.texts[path]
        texts = {path: files.texts[path].replace(old, new, 1)}
        if kind == "forget":
            texts = {"publication.toml": files.texts["publication.toml"] + FORGET}
        if beside:
            texts[beside] = files.texts[path]
        office.drafting.put_texts(command_line("t"), office.versions.version(number), texts)
        for changed in (
            Files({**files.texts, **texts}, files.uploads),
            Files({**texts, **{name: text for name, text in files.texts.items() if name not in texts}}),
        ):
            program = {
                "parent": office.versions.history()[0].id,
                "message": "m",
                "files": dict(changed.texts),
            }
            headers = {"x-csrf-token": analyst.token}
            if said:
                with pytest.raises(UserError, match=said):
                    require_rules_permission(Actor("ana", Role.ANALYST), files, changed)
                asked = analyst.ask("POST", "/studio/api/versions", json=program, headers=headers)
                assert (asked.status_code, said in asked.text) == (422, True)
        assert analyst.save(f"{draft}/publish", {"message": "m"}).status_code == (422 if said else 303)


def archive(*entries: tuple[str, bytes], mode: int = 0o100644, packed: int = zipfile.ZIP_DEFLATED) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = packed
            entry.external_attr = mode << 16
            made.writestr(entry, content)
    return body.getvalue()


def test_an_archive_brings_facts_from_who_may_upload_them(tmp_path: Path) -> None:
    edits = frozenset({Permission.EDIT_PUBLICATION})
    with starter_office(tmp_path / "firms") as (office, _):
        draft = office.versions.begin("ada")
        ada = office.people.account(next(item.id for item in office.people.accounts() if item.name == "ada"))
        admin = Actor(ada.name, ada.role, ada.id)
        for scopes, facts, status in (
            (edits, True, 403), (edits, False, 303), (edits | {Permission.UPLOAD_FACTS}, True, 303),
        ):  # fmt: skip
            _token, text = office.people.add_token(admin, "t", scopes, 1)
            robot = Visitor(create_studio(office, PARTS, BASE), {"authorization": f"Bearer {text}"})
            more = (("data/a.csv", b"a,b\n1,2\n"),) if facts else ()
            body = archive(("publication.toml", b'title.en = "x"'), *more)
            revision = str(office.versions.version(draft.id).revision)
            sent = {"archive": ("a.zip", body, "application/zip")}
            where = f"/studio/drafts/{draft.id}/import"
            assert robot.post(where, {"revision": revision}, files=sent).status_code == status


def spoilt(body: bytes) -> bytes:
    """An archive whose bytes aren't what they were, in the midst of its first file."""
    start = body.index(b"a.toml") + len(b"a.toml") + 4
    return body[:start] + bytes(byte ^ 0xFF for byte in body[start : start + 20]) + body[start + 20 :]


LONG = b"".join(b"%d\n" % n for n in range(1000))
HOSTILE = {
    "climbs": archive(("../../evil.toml", b"x")),
    "absolute": archive(("/etc/evil.toml", b"x")),
    "backslash": archive(("..\\evil.toml", b"x")),
    "drive": archive(("C:/evil.toml", b"x")),
    "link": archive(("evil.toml", b"/etc/passwd"), mode=0o120777),
    "bomb": archive(("a.csv", b"0" * (64 << 20))),
    "long text": archive(("a.toml", b"#" * (8 << 20))),
    "many": archive(*((f"{n}.toml", b"") for n in range(5001))),
    "program": archive(("run.py", b"x")),
    "latin": archive(("a.toml", "ñ".encode("latin-1"))),
    "no archive": b"<html>",
    **{
        f"spoilt {packed}": spoilt(archive(("a.toml", LONG), packed=packed))
        for packed in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    },
    "file in a file": archive(("a.toml", b"x=1"), ("a.toml/b.toml", b"x=1")),
    "long name": archive((f"{'a' * 300}.toml", b"x=1")),
    "cut off": archive(("a.toml", b"x"))[:-10],
    "empty": b"",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archives_are_refused_and_leave_nothing(ana: Visitor, starter: Office, kind: str) -> None:
    draft = begin(ana)
    response = ana.save(f"{draft}/import", files={"archive": ("p.zip", HOSTILE[kind], "application/zip")})
    assert response.status_code == 422
    number = int(draft.rsplit("/", 1)[1])
    assert starter.versions.version(number).revision == 0


def test_programs_read_and_save_versions(ana: Visitor, starter: Office) -> None:
    document = ana.get("/studio/api/versions/current").json()
    files = document["files"] | {"sheets/economy/folder.toml": 'title.en = "Money"\norder = 1\n'}
    headers = {"x-csrf-token": ana.token}
    body = {"parent": document["version"], "message": "by program", "files": files}
    saved = ana.ask("POST", "/studio/api/versions", json=body, headers=headers)
    assert saved.status_code == 201
    late = ana.ask("POST", "/studio/api/versions", json=body, headers=headers)
    assert late.status_code == 409
    assert "became current meanwhile" in late.text
    first = {"parent": None}
    for odd in (first, {"files": []} | first, {"files": {"a": 1}} | first, body | {"parent": "x"}, [], 7):
        assert ana.ask("POST", "/studio/api/versions", json=odd, headers=headers).status_code == 400


def test_an_auditor_reads_drafts_and_changes_nothing(ana: Visitor, starter: Office) -> None:
    draft = begin(ana)
    auditor = Visitor(create_studio(starter, PARTS, BASE)).sign_in(Role.AUDITOR)
    for path in (draft, f"{draft}/changes", f"{draft}/sheet/{SHEET}", f"{draft}/preview/{SHEET}"):
        page = auditor.get(path)
        assert page.status_code == 200
        assert "Save and check" not in page.text
    assert auditor.post(f"{draft}/delete", {"path": SHEET}).status_code == 403


def test_a_cube_of_a_database_that_no_admin_named_is_refused(
    ana: Visitor, starter: Office, studio: ASGIApp
) -> None:
    draft = begin(ana)
    address = f"{draft}/text/cubes/firms.toml"
    text = html.fromstring(ana.get(address).text).xpath("string(//textarea[@name='text'])")
    for source in (
        'url = "sqlite:////etc/x.db"\ntable = "t"',
        'file = "/etc/passwd.csv"',
        'file = "../../x.csv"',
    ):
        changed = re.sub(r'file = "../data/firms.csv".*', lambda _m, s=source: s, text)
        response = ana.post(address, {"text": changed, "revision": revision(ana, address)})
        said = html.fromstring(response.text).xpath("string(//ul[@class='mistakes'])")
        assert "no admin has named" in said or "isn't part of the publication" in said
        assert ana.get(f"{draft}/preview/{SHEET}").status_code == 422


def test_a_mistake_in_mdx_stands_under_its_query(ana: Visitor) -> None:
    draft = begin(ana)
    address = f"{draft}/sheet/{SHEET}"
    form = fields(ana.get(address).text)
    page = ana.post(
        address, form | {"do": "save", "q0.mdx": "SELECT {[Measures].[Firm]} ON COLUMNS FROM [Firms]"}
    )
    (under,) = html.fromstring(page.text).xpath("//div[@id='q0-wrong']")
    excerpt = under.xpath("string(pre)")
    line, caret = excerpt.splitlines()
    assert line.strip() == "SELECT {[Measures].[Firm]} ON COLUMNS FROM [Firms]"
    assert line[caret.index("^") :].startswith("[Measures].[Firm]")
    assert "Firm" in under.xpath("string(p)")
    (field,) = html.fromstring(page.text).xpath("//textarea[@name='q0.mdx']")
    assert (field.get("aria-invalid"), field.get("aria-describedby")) == ("true", "q0-wrong")


def test_a_draft_that_loses_what_readers_know_is_not_published(ana: Visitor, starter: Office) -> None:
    """A run would stop at it; `celosia check` tells the same of the same files."""
    draft = begin(ana)

    def text_of(path: str) -> str:
        page = html.fromstring(ana.get(f"{draft}/text/{path}").text)
        return str(page.xpath("string(//textarea[@name='text'])")).lstrip("\n")

    def put(path: str, text: str) -> None:
        assert ana.save(f"{draft}/text/{path}", {"text": text}).status_code in (200, 303)

    cube, rules = text_of("cubes/firms.toml"), text_of("publication.toml")
    ana.save(f"{draft}/delete", {"path": "sheets/economy/towns.toml"})
    put("cubes/firms.toml", cube[: cube.rindex("[[measure]]")])
    put("publication.toml", rules[: rules.index("# Turnover is hidden")])
    mdx = "SELECT {[Measures].[Firms]} ON 0 FROM [Firms]"
    put(SHEET, f"title.en = 'One'\n[[query]]\nmdx = '{mdx}'\n")
    refused = ana.post(f"{draft}/publish", {"message": "less", "revision": revision(ana, draft)})
    assert refused.status_code == 422
    said = " ".join(html.fromstring(refused.text).text_content().split())
    version = starter.versions.version(int(draft.rsplit("/", 1)[1]))
    with pytest.raises(UserError) as caught:
        check_publication(
            load_publication(starter.versions.materialise(version, starter.folder.parent / "less")),
            open_cube,
            remembered(starter.store),
        )
    assert caught.value.mistakes
    for mistake in caught.value.mistakes:
        assert "formerly" in mistake.remedy
        assert mistake.cause in said
