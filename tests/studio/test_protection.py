"""Cells by state, why one is hidden, decisions and what if, at the studio over a real run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from starlette.types import ASGIApp

from app.bootstrap import publication_store, run_publication
from app.domain.people import Role
from app.domain.version import Files
from app.office.office import Office
from app.office.problems import problem_results
from app.web.studio.parts import PARTS
from app.web.studio.shell import create_studio
from tests.pipeline.offices import firms, write_office
from tests.studio.visitors import BASE, Visitor, staffed


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Office, ASGIApp]]:
    folder: Path = write_office(tmp_path_factory.mktemp("protected") / "office")
    run_publication(folder)
    with publication_store(folder) as store:
        office = staffed(folder, store)
        office.versions.import_folder(folder, "ana")
        yield office, create_studio(office, PARTS, BASE)


def test_every_state_is_listed_and_each_cell_leads_to_its_reason(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    auditor = Visitor(studio).sign_in(Role.AUDITOR)
    for state, _count in office.protection.cells().counts:
        page = auditor.get(f"/studio/cells?state={state}")
        assert page.status_code == 200
        found = office.protection.cells(state)
        assert page.text.count("/studio/cells/why?cell=") == min(found.found, 100)
    sums = dict(office.protection.cells().counts)
    assert sum(sums.values()) == office.store.status()["cells"]
    assert sums["sensitive"] == office.store.status()["primaries"]
    for state in ("sensitive", "secondary", "shown"):
        line = office.protection.cells(state).lines[0]
        page = auditor.get("/studio/cells/why", params={"cell": line.key})
        assert page.status_code == 200
        assert "cells/decide" not in page.text
    narrowed = auditor.get("/studio/cells?words=turnover+town+a1")
    assert narrowed.text.count("/studio/cells/why?cell=")
    assert "Turnover · Town a1" in narrowed.text
    assert auditor.get("/studio/cells?state=raw").status_code == 400
    assert auditor.get("/studio/cells/why", params={"cell": "<script>"}).status_code == 422


def test_no_page_promises_that_showing_a_cell_makes_the_best_pattern_cheaper(
    run: tuple[Office, ASGIApp],
) -> None:
    office, studio = run
    assert all(item.is_optimal for item in problem_results(office.store))
    auditor = Visitor(studio).sign_in(Role.AUDITOR)
    costs = []
    for line in office.protection.cells("secondary").lines:
        page = auditor.get("/studio/cells/why", params={"cell": line.key, "lang": "en"}).text
        costs += re.findall(r"cost would change by (\S+)\.<", page)
    assert len(costs) > 1
    assert all(float(cost) >= 0 for cost in costs), costs


def test_a_table_shows_each_cell_s_state(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    auditor = Visitor(studio).sign_in(Role.AUDITOR)
    assert auditor.get("/studio/cells/table").status_code == 200
    page = auditor.get("/studio/cells/table?sheet=activity/by-place&query=turnover&lang=en")
    tree = html.fromstring(page.text)
    head = [cell.text_content() for cell in tree.xpath("//thead//th")]
    assert head == ["All activities", "bank", "farm", "mill", "shop"]
    (row,) = tree.xpath("//tbody/tr[th='Town a1']")
    cells = row.xpath("td")
    for cell, activity in zip(cells[1:], head[1:], strict=True):
        key = f"Firms | [Measures].[Turnover] | [Place].[Town].&[a1] | [Activity].[Activity].&[{activity}]"
        (line,) = [
            line
            for line in office.protection.cells("", f"[turnover] [a1] [{activity}]").lines
            if line.key == key
        ]
        assert cell.get("class") == f"is-{line.state}"
    by_choice = auditor.get(
        "/studio/cells/table",
        params={"sheet": "activity/sizes", "choice": "[Activity].[Activity].&[shop]"},
    )
    assert html.fromstring(by_choice.text).xpath("//select[@name='choice']/option[@selected]/text()") == [
        "shop"
    ]
    assert auditor.get("/studio/cells/table?sheet=<b>").status_code == 422
    analyst = Visitor(studio).sign_in(Role.ANALYST)
    assert analyst.get("/studio/cells/table").status_code == 403


def test_a_decision_becomes_a_version_that_holds(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    admin = Visitor(studio).sign_in(Role.ADMIN)
    key = next(line.key for line in office.protection.cells("sensitive", "[firms]").lines)
    admin.get("/studio/cells/why", params={"cell": key})
    before = office.versions.current()
    assert before is not None
    page = admin.get("/studio/cells/why", params={"cell": key}).text
    assert f'name="version" value="{before.id}"' in page
    data = {"cell": key, "decision": "waive", "reason": "", "version": str(before.id)}
    assert admin.post("/studio/cells/decide", data).status_code == 422
    data["reason"] = 'it is "public"\nanyway'
    for version, status in (("", 428), (str(before.id + 7), 409)):
        assert admin.post("/studio/cells/decide", data | {"version": version}).status_code == status
    assert office.versions.current() == before
    assert admin.post("/studio/cells/decide", data).status_code == 303
    current = office.versions.current()
    assert current is not None
    assert current != before
    text = office.versions.files(current).texts["publication.toml"]
    assert re.search(r'reason = "it is \\"public\\" anyway \(ada\)"', text)
    assert office.journal.latest(1)[0].action == "cell.decide"
    answer = office.protection.what_if(lambda given: given)
    assert answer.then.sensitive == answer.now.sensitive - 1


def test_what_if_is_answered_and_mistakes_are_told(run: tuple[Office, ASGIApp]) -> None:
    _office, studio = run
    analyst = Visitor(studio).sign_in(Role.ANALYST)
    assert analyst.get("/studio/what-if").status_code == 200
    page = Visitor(studio).sign_in(Role.ADMIN).post("/studio/what-if", {"threshold": "5"})
    assert page.status_code == 200
    assert page.text.count("<tr>") == 6
    for wrong in (
        {},
        {"threshold": "few"},
        {"threshold": "1"},
        {"sheet": "<b>"},
        {"level": "Firms.Nothing"},
        {"merge": "Firms.Size", "member": "small"},
        {"draft": "9999"},
    ):
        page = analyst.post("/studio/what-if", wrong)
        assert page.status_code == 422
        assert "<b>" not in page.text
    assert analyst.get("/studio/cells").status_code == 403


def test_what_if_tells_an_analyst_nothing_that_is_confidential(run: tuple[Office, ASGIApp]) -> None:
    """A lower threshold would free the cells of just so many; costs and shares are sums of hidden values."""
    office, studio = run
    analyst = Visitor(studio).sign_in(Role.ANALYST)
    hidden = [line.key for line in office.protection.cells("sensitive").lines]
    draft = office.versions.begin("ana")
    files = office.versions.files(draft)
    rules = files.texts["publication.toml"].replace("n = 3", "n = 2")
    office.versions.edit(draft, Files({**files.texts, "publication.toml": rules}, files.uploads))
    assert 'name="threshold"' not in analyst.get("/studio/what-if").text
    for asked in (
        {"threshold": "2"},
        {"threshold": "2", "measure": "Firms.Firms"},
        {"threshold": "2", "sheet": "coast"},
        {"draft": str(draft.id)},
        {"draft": str(draft.id), "sheet": "coast"},
    ):
        page = analyst.post("/studio/what-if", asked)
        assert page.status_code == 422
        assert not any(key in page.text for key in hidden)
    assert set(figures_of(analyst, {"sheet": "coast"})) == {"Published cells", "Hidden cells"}


def test_bands_are_merged_by_their_names(run: tuple[Office, ASGIApp]) -> None:
    _office, studio = run
    analyst = Visitor(studio).sign_in(Role.ANALYST)
    page = analyst.get("/studio/what-if")
    assert "Firms.Size" in page.text
    page = analyst.post("/studio/what-if", {"do": "members", "merge": "Firms.Size"})
    assert page.text.count('name="member"') == 3
    found = figures_of(analyst, {"merge": "Firms.Size", "member": ["middle", "large"]})
    # One size less, of four activities and three measures.
    assert found["Published cells"][0] - found["Published cells"][1] == 4 * 3


def test_a_draft_is_asked_about_before_it_is_published(run: tuple[Office, ASGIApp]) -> None:
    office, studio = run
    analyst = Visitor(studio).sign_in(Role.ANALYST)
    admin = Visitor(studio).sign_in(Role.ADMIN)
    draft = office.versions.begin("ana")
    files = office.versions.files(draft)
    rules = files.texts["publication.toml"].replace("n = 3", "n = 6")
    sheets = {path: text for path, text in files.texts.items() if path != "sheets/coast.toml"}
    analyst.get(f"/studio/what-if?draft={draft.id}")
    stricter = office.versions.edit(draft, Files({**files.texts, "publication.toml": rules}, files.uploads))
    said = [figures_of(admin, {"draft": str(draft.id)})]
    draft = office.versions.edit(stricter, Files(sheets, files.uploads))
    said.append(figures_of(analyst, {"draft": str(draft.id)}))
    asked = figures_of(analyst, {"sheet": "coast"})
    assert said[0]["Published cells"][0] == said[0]["Published cells"][1]
    assert said[0]["Sensitive cells"][1] > said[0]["Sensitive cells"][0]
    assert said[1]["Published cells"] == asked["Published cells"]


def figures_of(visitor: Visitor, data: dict[str, Any]) -> dict[str, tuple[int, int]]:
    page = visitor.post("/studio/what-if", data)
    assert page.status_code == 200
    found = re.findall(r'<th scope="row">([^<]+)</th><td>([\d,]+)</td><td>([\d,]+)</td>', page.text)
    return {words: (int(now.replace(",", "")), int(then.replace(",", ""))) for words, now, then in found}


def test_what_changed_since_the_release_before_is_told_with_its_reason(
    tmp_path: Path,
) -> None:
    folder = write_office(tmp_path / "office")
    run_publication(folder)
    rows = [
        row
        for row in firms()
        if not (row["town"] == "a1" and row["activity"] == "shop" and row["size"] != "large")
    ]
    write_office(folder, rows=rows)
    run_publication(folder)
    with publication_store(folder) as store:
        office = staffed(folder, store)
        studio = create_studio(office, PARTS, BASE)
        newest = office.releases.all()[0]
        page = Visitor(studio).sign_in(Role.AUDITOR).get(f"/studio/releases/{newest.id}").text
        comparison = office.releases.compare(newest.id, office.releases.all()[1].id)
        assert comparison is not None
        changed = (*comparison.newly_hidden, *comparison.newly_shown)
        assert comparison.newly_hidden
        assert page.count("/studio/cells/why?cell=") == len(changed)
        assert "hidden by a rule: " in page or "hidden for others&#39; sake: " in page
        plain = Visitor(studio).sign_in(Role.ANALYST).get(f"/studio/releases/{newest.id}").text
        assert "/studio/cells/why?cell=" not in plain
        # The auditor's journal and people are two places more.
        assert plain.count("<li>") == page.count("<li>") - 2
