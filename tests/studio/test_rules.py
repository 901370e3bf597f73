"""The rules as a form: written to the file that they stand in, checked by its reader, tried on cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.bootstrap import publication_store, run_publication
from app.domain.people import Role
from app.domain.primary import DIFFERENCE
from app.domain.version import Files
from app.office.office import Office
from app.pipeline.define import draft_publication
from app.web.studio.parts import PARTS
from app.web.studio.reasons import reason_said
from app.web.studio.shell import create_studio
from solver.rules import Dominance, PPercent, Threshold
from tests.pipeline.offices import PUBLICATION, write_office
from tests.studio.visitors import BASE, Visitor, staffed

DECISION = """
[[confidentiality.cells]]
measure = "Firms"
members = ["[Place].[Town].&[a1]"]
decision = "hide"
reason = "asked"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Office, ASGIApp]]:
    folder: Path = write_office(
        tmp_path_factory.mktemp("ruled") / "office", publication=PUBLICATION + DECISION
    )
    run_publication(folder)
    with publication_store(folder) as store:
        office = staffed(folder, store)
        office.versions.import_folder(folder, "ana")
        yield office, create_studio(office, PARTS, BASE)
        office.previews.close()


class Form:
    """The rules' form of a draft, filled in like a person does."""

    def __init__(self, visitor: Visitor, address: str) -> None:
        self.visitor, self.address = visitor, address
        self.read(visitor.get(address).text)

    def read(self, text: str) -> None:
        self.page = html.fromstring(text)
        (form,) = self.page.xpath("//form[contains(@class, 'rules')]")
        self.fields: dict[str, list[str]] = {}
        for name, value in form.form_values():
            self.fields.setdefault(name, []).append(value)

    def named(self, measure: str) -> str:
        return next(
            name.removesuffix(".name")
            for name, values in self.fields.items()
            if re.fullmatch(r"m\d+\.name", name) and values == [measure]
        )

    def send(self, do: str = "save", **fields: str) -> int:
        data = {
            **self.fields,
            **{name.replace("__", "."): [value] for name, value in fields.items()},
            "do": [do],
        }
        data = {name: values for name, values in data.items() if values != [""] or name.endswith(".reason")}
        response = self.visitor.post(self.address, data)
        if response.status_code == 303:
            response = self.visitor.get(response.headers["location"])
        self.read(response.text)
        return response.status_code

    def said(self) -> str:
        return " ".join(self.page.xpath("//*[@role='alert']//text() | //*[@role='status']//text()"))


def begin(studio: ASGIApp) -> Form:
    admin = Visitor(studio).sign_in(Role.ADMIN)
    admin.get("/studio/rules")
    response = admin.post("/studio/rules")
    assert response.status_code == 303
    return Form(admin, response.headers["location"])


def text_of(office: Office, form: Form) -> str:
    draft = office.versions.version(int(form.address.split("/")[3]))
    return office.versions.files(draft).texts["publication.toml"]


def test_rules_are_read_by_all_and_set_by_admins(run: tuple[Office, ASGIApp]) -> None:
    _office, studio = run
    address = begin(studio).address
    for role in (Role.AUDITOR, Role.ANALYST):
        visitor = Visitor(studio).sign_in(role)
        for path in ("/studio/rules", address):
            page = visitor.get(path)
            assert page.status_code == 200
            assert "Minimum frequency: n = 3" in page.text
            assert "asked" in page.text
            assert '<form method="post" action="/studio/rules"' not in page.text
        assert visitor.post(address, {"do": "save"}).status_code == 403


def test_a_form_that_is_sent_as_it_is_changes_nothing(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    form = begin(studio)
    assert form.send() == 200
    assert "Saved." in form.said()
    assert text_of(office, form) == PUBLICATION + DECISION


def test_rules_are_added_changed_and_taken_away(run: tuple[Office, ASGIApp], tmp_path: Path) -> None:
    office, studio = run
    form = begin(studio)
    firms, turnover = form.named("Firms"), form.named("Turnover")
    assert form.send("add", **{f"{firms}.add": "zero"}) == 200
    assert form.send(**{f"{firms}.r0.n": "4", f"{turnover}.weight": "measure:Firms", "zeros": "hide"}) == 200
    assert form.send(**{f"{turnover}.unions": "yes"}) == 200
    assert form.send(f"drop-{turnover}.r0") == 200
    assert form.send("drop-d0") == 200
    draft = office.versions.version(int(form.address.split("/")[3]))
    folder = office.versions.materialise(draft, tmp_path / "draft")
    publication, mistakes = draft_publication(folder)
    assert mistakes == ()
    assert publication is not None
    rules = publication.confidentiality
    assert rules.hide_zeros
    assert rules.decisions == ()
    first, second = rules.measures
    assert [(rule.name, dict(rule.parameters)) for rule in first.rules] == [
        ("threshold", {"n": 4.0}),
        ("zero", {"width": 10.0}),
    ]
    assert [rule.name for rule in second.rules] == ["dominance"]
    assert (first.unions, second.unions) == (False, True)
    assert (second.weight, second.weighed_by, second.associated_with) == ("measure", "Firms", "Firms")


def test_mistakes_are_those_of_the_command_line_and_nothing_typed_is_lost(
    run: tuple[Office, ASGIApp],
) -> None:
    office, studio = run
    form = begin(studio)
    turnover = form.named("Turnover")
    assert form.send(**{f"{turnover}.r1.k": "850"}) == 200
    assert "publication.toml:" in form.said()
    assert form.fields[f"{turnover}.r1.k"] == ["850"]
    draft = office.versions.version(int(form.address.split("/")[3]))
    (told,) = office.previews.mistakes(office.versions.files(draft))
    assert told.cause in form.said()
    assert form.send(**{f"{turnover}.r1.k": "many"}) == 422
    assert "This isn't a number: many" in form.said()
    assert form.fields[f"{turnover}.r1.k"] == ["many"]
    stale = Form(form.visitor, form.address)
    assert stale.send(insiders="") == 200
    for _again in range(2):
        assert form.send(zeros="hide") == 409
        assert "saved elsewhere" in form.said()


def test_what_rules_do_is_shown_before_anything_is_published(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    form = begin(studio)
    firms = form.named("Firms")
    entries = office.store.status()
    assert form.send("effect", **{f"{firms}.r0.n": "6"}) == 200
    rows = {
        row.xpath("string(th)"): [int(cell) for cell in row.xpath("td/text()")]
        for row in form.page.xpath("//section//tbody/tr")
    }
    assert rows["Minimum frequency: n = 3"][1] == rows["Minimum frequency: n = 6"][0] == 0
    assert rows["Minimum frequency: n = 6"][1] > rows["Minimum frequency: n = 3"][0] > 0
    assert (
        rows["All sensitive cells"][1]
        > rows["All sensitive cells"][0]
        == entries["primaries"] + entries["implied_primaries"]
    )
    assert office.store.status() == entries


def test_what_the_form_can_t_show_is_edited_as_text(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    form = begin(studio)
    draft = office.versions.version(int(form.address.split("/")[3]))
    files = office.versions.files(draft)
    office.versions.edit(draft, Files({**files.texts, "publication.toml": "[confidentiality"}, files.uploads))
    response = form.visitor.get(form.address)
    assert response.headers["location"].endswith("/text/publication.toml")


def test_mistakes_are_told_in_the_reader_s_language(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    form = begin(studio)
    draft = office.versions.version(int(form.address.split("/")[3]))
    files = office.versions.files(draft)
    text = PUBLICATION.replace('with = "Firms"', 'with = "Firm"')
    office.versions.edit(draft, Files({**files.texts, "publication.toml": text}, files.uploads))
    page = form.visitor.get(f"{form.address}?lang=es")
    assert "El cubo Firms no tiene otra medida Firm. ¿Quiso decir Firms?" in page.text
    sheet = form.address.replace("/rules", "/sheet/sheets/coast.toml")
    form.visitor.get(sheet)
    sent = {"do": "save", "q0.id": "table", "q0.mdx": "SELECT {[Measures].[Firms]} ON COLUMS FROM [Firms]"}
    page = form.visitor.save(sheet, {**sent, "q0.show": "table", "title.en": "Coast"})
    assert "Se esperaba" in page.text
    assert "^" in page.text


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (Threshold(3).name, "Frecuencia mínima: n = 3"),
        (Dominance(2, 87.5).name, "Dominancia (n,k): n = 2, k = 87.5"),
        (PPercent(10).name, "Regla p%: p = 10"),
        (DIFFERENCE, "cambiaron muy pocos desde una publicación"),
        ("associated", "junto con la medida que la protege"),
    ],
)
def test_reasons_are_said_in_words(reason: str, said: str) -> None:
    assert reason_said(reason, "es") == said
