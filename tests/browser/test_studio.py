"""The studio in a real browser, as each role: what they do there, and that every page is fit to be used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from app.bootstrap.office import take_in_folder
from app.cli.serving import running
from app.db.jobs import JobTable
from app.domain.job import JobState
from app.domain.people import Permission, Role, command_line
from app.domain.progress import StepProgress
from app.office.office import Office
from app.web.app import create_app
from app.web.studio.parts import PARTS
from app.web.studio.shell import beside, create_studio
from tests.browser.conftest import PATIENCE, barriers, follow
from tests.studio.visitors import NAMES, PASSWORD, starter_office

SIZES = {"desktop": (1280, 900), "phone": (360, 740)}
FACTS = "firm;region;town;turnover\n" + "".join(
    f"F{n};{'N' if n % 4 < 2 else 'S'};T{n % 4};{n * 37},5\n" for n in range(200)
)

JOB_STEPS = {
    "crawl": "collect cells",
    "assess": "find sensitive cells",
    "build": "build problems",
    "suppress": "choose what to hide",
    "audit": "audit",
    "release": "release",
}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("studio") / "firms"
    with starter_office(folder, run=True) as (made, _):
        assert take_in_folder(made, "test") == ""
        yield made


@pytest.fixture(scope="module")
def studio(office: Office) -> Iterator[str]:
    with running(beside(create_app(office.store), create_studio(office, PARTS))) as address:
        yield address


def enter(browser: Browser, address: str, role: Role, size: str = "desktop", **options: object) -> Page:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, locale="en", **options)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{address}/studio")
    page.get_by_label("Name").fill(NAMES[role])
    page.get_by_label("Password").fill(PASSWORD)
    follow(page.get_by_role("button", name="Sign in"))
    assert page.url == f"{address}/studio"
    return page


def pages_of(office: Office) -> dict[str, str]:
    """A page of every kind, with something on it."""
    boss = next(account for account in office.people.accounts() if account.name == "ada")
    actor = command_line("test")
    draft = next(iter(office.versions.drafts("pages")), None)
    if draft is None:
        draft = office.versions.begin("pages")
        path = office.folder / "facts.csv"
        path.write_text(FACTS + "F9;N;T0;nothing\nF10;N\n")
        upload = office.versions.put_upload(path, "facts.csv", "ana")
        text = "title.en = 'Wrong'\n[[query]]\nmdx = 'SELECT {[Nowhere]} ON'\n"
        draft = office.drafting.put_upload(actor, draft, "data/more.csv", upload, {"sheets/wrong.toml": text})
        own = type(actor)(boss.name, boss.role, boss.id)
        office.people.add_token(own, "nightly", frozenset({Permission.RUN_JOBS, Permission.READ_OFFICE}), 30)
    digest = office.versions.files(draft).uploads["data/more.csv"]
    base = f"/studio/drafts/{draft.id}"
    release = office.releases.all()[0].id
    hidden = {
        state: urlencode({"cell": office.protection.cells(state).lines[0].key})
        for state in ("sensitive", "secondary")
    }
    return {
        "rules": "/studio/rules",
        "rules form": f"{base}/rules",
        "what if": "/studio/what-if?merge=Firms.Town",
        "cells": "/studio/cells?state=secondary",
        "states": "/studio/cells/table?sheet=economy/towns",
        "sensitive cell": f"/studio/cells/why?{hidden['sensitive']}",
        "secondary cell": f"/studio/cells/why?{hidden['secondary']}",
        "jobs": "/studio/jobs",
        "job": "/studio/jobs/1",
        "releases": "/studio/releases",
        "release": f"/studio/releases/{release}",
        "home": "/studio",
        "account": "/studio/account",
        "people": "/studio/people",
        "journal": "/studio/journal",
        "publication": "/studio/publication",
        "version": "/studio/versions/1",
        "draft": base,
        "changes": f"{base}/changes",
        "sheet": f"{base}/sheet/sheets/economy/towns.toml",
        "wrong": f"{base}/sheet/sheets/wrong.toml",
        "text": f"{base}/text/publication.toml",
        "preview": f"{base}/preview/sheets/economy/towns.toml",
        "no preview": f"{base}/preview/sheets/wrong.toml",
        "data": f"{base}/data",
        "wizard": f"{base}/data/{digest}",
        "refusal": "/studio/nowhere",
    }


@pytest.mark.parametrize("size", SIZES)
def test_every_page_fits_is_free_of_barriers_and_breaks_no_policy(
    browser: Browser, studio: str, office: Office, size: str
) -> None:
    page = enter(browser, studio, Role.ADMIN, size, color_scheme="light")
    said: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        said.append(message.text)

    page.on("console", hear)
    faults: dict[str, object] = {}
    for name, path in {**pages_of(office), "sign in": "/studio/sign-in"}.items():
        page.goto(studio + path)
        wide = page.evaluate("document.documentElement.scrollWidth")
        found = barriers(page)
        if found or wide > SIZES[size][0]:
            faults[name] = (wide, found)
    page.context.close()
    assert faults == {}
    assert [text for text in said if "status of 4" not in text and not text.startswith("[DOM]")] == []


def test_an_analyst_goes_from_facts_to_a_version(browser: Browser, studio: str, tmp_path: Path) -> None:
    facts = tmp_path / "shops.csv"
    facts.write_bytes(FACTS.encode())
    page = enter(browser, studio, Role.ANALYST)
    follow(page.get_by_role("link", name="Publication").first)
    follow(page.get_by_role("button", name="Begin a draft"))
    follow(page.get_by_role("link", name="Add data"))
    page.get_by_label("CSV, Parquet or XLSX").set_input_files(facts)
    follow(page.get_by_role("button", name="Upload and look at it"))
    assert page.get_by_label("Separator").input_value() == "semicolon"
    assert page.get_by_label("Decimal sign").input_value() == ","
    assert page.get_by_label("Role of town").input_value() == "level"
    assert page.get_by_label("town lies below, or labels").input_value() == "region"
    page.get_by_label("Name of the cube").fill("Shops")
    page.get_by_label("What is counted").fill("Shops")
    follow(page.get_by_role("button", name="Make the cube"))
    page.get_by_label("Name in addresses").fill("shops")
    page.get_by_label("Title").fill("Shops by town")
    follow(page.get_by_role("button", name="Add", exact=True))
    mdx = page.get_by_label("MDX", exact=True)
    mdx.fill("")
    mdx.press_sequentially("SELECT [Measures].[Sh", delay=5)
    listed = page.get_by_role("listbox")
    expect(listed.get_by_role("option", name="[Shops]")).to_be_visible()
    page.keyboard.press("Enter")
    mdx.press_sequentially(" ON COLUMNS, [tow", delay=5)
    expect(listed.get_by_role("option", name="[town]")).to_be_visible()
    page.keyboard.press("Enter")
    mdx.press_sequentially(".Members ON ROWS FROM [Shops]", delay=1)
    page.keyboard.press("Escape")
    follow(page.get_by_role("button", name="Save and check"))
    expect(page.get_by_text("Every query can be answered")).to_be_visible()
    follow(page.get_by_role("link", name="Preview"))
    assert page.get_by_role("complementary").inner_text().count("are new")
    assert set(page.locator("tbody td").all_inner_texts()) == {"[x]"}
    follow(page.get_by_role("link", name="Back to the editor"))
    follow(page.locator(".crumbs").get_by_role("link", name="Draft"))
    follow(page.get_by_role("link", name="changes and publish"))
    page.get_by_label("What this version changes").fill("Shops")
    follow(page.get_by_role("button", name="Publish as the current version"))
    refused = page.get_by_role("alert")
    expect(refused).to_contain_text("for an admin to do")
    address = page.url.rpartition("/")[0]
    page.context.close()
    admin = enter(browser, studio, Role.ADMIN)
    admin.goto(f"{address}/changes")
    admin.get_by_label("What this version changes").fill("Shops")
    follow(admin.get_by_role("button", name="Publish as the current version"))
    expect(admin.get_by_role("status")).to_contain_text("current version now")
    admin.context.close()


def test_an_admin_makes_an_account_and_reads_of_it_in_the_journal(browser: Browser, studio: str) -> None:
    page = enter(browser, studio, Role.ADMIN)
    follow(page.get_by_role("link", name="People").first)
    form = page.locator("form", has=page.get_by_role("button", name="Add the account"))
    form.get_by_label("Name").fill("eva")
    form.get_by_label("Role").select_option("auditor")
    form.get_by_label("Password").fill("five olive trees in a row")
    follow(form.get_by_role("button"))
    expect(page.get_by_role("rowheader", name="eva")).to_be_visible()
    follow(page.get_by_role("link", name="Journal").first)
    expect(page.get_by_role("row", name="account.add").first).to_contain_text("eva")
    follow(page.get_by_role("link", name="Check the chain"))
    expect(page.get_by_role("status")).to_contain_text("unbroken")
    page.context.close()


def test_an_auditor_finds_no_way_to_change_anything(browser: Browser, studio: str, office: Office) -> None:
    page = enter(browser, studio, Role.AUDITOR)
    draft = pages_of(office)["draft"]
    for path in ("/studio", "/studio/publication", draft, f"{draft}/changes", "/studio/journal"):
        page.goto(studio + path)
        forms = page.locator("main form[method=post]").count()
        assert forms == 0, path
    page.context.close()


def test_the_studio_works_without_scripts_and_in_three_languages(
    browser: Browser, studio: str, office: Office
) -> None:
    page = enter(browser, studio, Role.ANALYST, java_script_enabled=False)
    page.goto(studio + pages_of(office)["sheet"])
    page.get_by_label("Title", exact=True).first.fill("Pueblos")
    follow(page.get_by_role("button", name="Save and check"))
    assert page.get_by_text("Every query can be answered").is_visible()
    follow(page.get_by_role("link", name="ES", exact=True))
    assert page.locator("html").get_attribute("lang") == "es"
    page.goto(f"{studio}/studio/publication")
    assert page.get_by_role("button", name="Empezar un borrador").is_visible()
    follow(page.get_by_role("link", name="CA", exact=True))
    assert page.get_by_role("button", name="Comença un esborrany").is_visible()
    page.context.close()


def test_the_page_of_a_job_goes_along_with_it(browser: Browser, studio: str, office: Office) -> None:
    """Step by step as the test, in the worker's place, tells of them: no reload, then the results."""
    table = JobTable(office.store.database)
    page = enter(browser, studio, Role.ADMIN)
    follow(page.get_by_role("link", name="Jobs").first)
    follow(page.get_by_role("button", name="Recompute"))
    place = page.locator("#job")
    expect(place).to_contain_text("waiting")
    page.evaluate("window.sameDocument = true")
    lease = table.claim("the test")
    assert lease is not None
    for number, (step, words) in enumerate(JOB_STEPS.items()):
        table.report(lease, StepProgress(step, 0, 4, "begins"))
        now = place.locator("li[aria-current=step]")
        expect(now).to_have_text(words)
        assert place.locator("li.done").count() == number
        if step == "suppress":
            assert place.locator(".bounds svg").count() == 0
            table.report(lease, StepProgress(step, 1, 4, "cutting", 10.0, 40.0))
            expect(place.locator(".bounds figcaption")).to_contain_text("40")
            expect(now.get_by_role("progressbar")).to_have_attribute("value", "1")
            before = place.locator(".bounds svg .upper").get_attribute("d")
            table.report(lease, StepProgress(step, 1, 4, "cutting", 20.0, 25.0))
            expect(place.locator(".bounds figcaption")).to_contain_text("25")
            assert place.locator(".bounds svg .upper").get_attribute("d") != before
        table.report(lease, StepProgress(step, 4, 4, "done"))
    assert page.evaluate("window.sameDocument") is True
    with page.expect_navigation(timeout=PATIENCE):
        table.finish(lease, JobState.FAILED, "the test ends it")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    expect(place).to_contain_text("the test ends it")
    assert page.evaluate("window.sameDocument") is None
    page.context.close()
