"""From the first start to a citizen at a table, by the doors that people use, and what each may not do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from app.domain.people import Role
from tests.browser.conftest import follow

FACTS = Path(__file__).parents[3] / "shared" / "data" / "turnover" / "firms.csv.gz"
MAIN = "from app.cli import main; main()"
PASSWORD = "a lattice of olive wood"
UNUSED = ("TYPE", "CJ", "WEIGHT", "PRODUCTION")
SHEETS = {
    "activity": "SELECT {[Measures].[Firms], [Measures].[TURNOVER]} ON COLUMNS,"
    " NON EMPTY [A88].[A21].Members * [NUTS3].[NUTS1].Members ON ROWS FROM [Firms]",
    "regions": "SELECT [SIZE].Members ON COLUMNS, [NUTS3].[NUTS2].Members ON ROWS"
    " FROM [Firms] WHERE [Measures].[TURNOVER]",
    "divisions": "SELECT [SIZE].Members ON COLUMNS, [A88].[A21].Members ON ROWS"
    " FROM [Firms] WHERE [Measures].[TURNOVER]",
}
DOMINANCE = '\n[[confidentiality.Firms.TURNOVER.rules]]\nrule = "dominance"\nn = 1\nk = 85\n'


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address of a publication's site and studio, in a process of their own."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", str(folder), "--studio", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://localhost:\d+", process.stdout.readline())
        assert found is not None
        yield found.group()
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A site on which nothing is but its first admin, made by the command."""
    folder = tmp_path / "office"
    command = [
        sys.executable,
        "-c",
        MAIN,
        "account",
        "add",
        str(folder),
        "ada",
        "--role",
        "admin",
        "--password-stdin",
    ]
    done = subprocess.run(command, input=f"{PASSWORD}\n", text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    with serving(folder) as found:
        yield found


def enter(browser: Browser, address: str, name: str) -> Page:
    page = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en").new_page()
    page.goto(f"{address}/studio")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    follow(page.get_by_role("button", name="Sign in"))
    assert page.url == f"{address}/studio"
    return page


def answer(page: Page, path: str, method: str = "GET", **form: str) -> int:
    """Status of a request with the page's cookies, and with its form token, as a script of its own sends."""
    token = page.locator("meta[name=form-token]").get_attribute("content") or ""
    sent: dict[str, str | float | bool] = {"csrf": token, **form}
    headers = {"origin": re.match(r"https?://[^/]+", page.url).group()}  # type: ignore[union-attr]
    url = headers["origin"] + path
    if method == "GET":
        return page.request.get(url, max_redirects=0).status
    return page.request.post(url, form=sent, headers=headers, max_redirects=0).status


def add_people(admin: Page) -> None:
    follow(admin.get_by_role("link", name="People").first)
    form = admin.locator("form", has=admin.get_by_role("button", name="Add the account"))
    for name, role in (("bea", Role.ADMIN), ("ana", Role.ANALYST), ("aud", Role.AUDITOR)):
        form.get_by_label("Name").fill(name)
        form.get_by_label("Role").select_option(role.value)
        form.get_by_label("Password").fill(PASSWORD)
        follow(form.get_by_role("button"))
        expect(admin.get_by_role("rowheader", name=name)).to_be_visible()
    admin.get_by_label("Four eyes").check()
    follow(admin.get_by_role("button", name="Save"))
    expect(admin.get_by_label("Four eyes")).to_be_checked()


def define(analyst: Page) -> None:
    """A cube by the wizard, three sheets, rules, and the version that they make."""
    follow(analyst.get_by_role("link", name="Publication").first)
    follow(analyst.get_by_role("button", name="Begin a draft"))
    draft = analyst.url.partition("?")[0]
    analyst.get_by_label("Title").fill("Turnover of firms")
    analyst.get_by_label("Publisher").fill("Office")
    follow(analyst.get_by_role("button", name="Start", exact=True))
    follow(analyst.get_by_role("link", name="Add data"))
    analyst.get_by_label("CSV, Parquet or XLSX").set_input_files(FACTS)
    follow(analyst.get_by_role("button", name="Upload and look at it"))
    for column in UNUSED:
        analyst.get_by_label(f"Role of {column}").select_option("not used")
    analyst.get_by_label("What is counted").fill("Firms")
    follow(analyst.get_by_role("button", name="Make the cube"))
    for name, mdx in SHEETS.items():
        analyst.goto(draft)
        analyst.get_by_label("Name in addresses").fill(name)
        analyst.get_by_label("Title").fill(f"Turnover: {name}")
        follow(analyst.get_by_role("button", name="Add", exact=True))
        save_query(analyst, mdx)
        expect(analyst.get_by_text("Every query can be answered")).to_be_visible()
    save_query(analyst, SHEETS["divisions"].replace("[A21]", "[A22]"))
    expect(analyst.get_by_role("alert")).to_contain_text("There is no [A88].[A22]")
    publish(analyst, draft)
    expect(analyst.get_by_role("alert")).to_contain_text("There is no [A88].[A22]")
    analyst.goto(f"{draft}/sheet/sheets/divisions.toml")
    save_query(analyst, SHEETS["divisions"])
    analyst.goto(f"{draft}/text/publication.toml")
    rules = analyst.get_by_label("Text")
    rules.fill(rules.input_value() + DOMINANCE)
    follow(analyst.get_by_role("button", name="Save"))
    publish(analyst, draft)
    expect(analyst.get_by_role("status")).to_contain_text("current version now")


def save_query(analyst: Page, mdx: str) -> None:
    analyst.get_by_label("MDX", exact=True).fill(mdx)
    analyst.keyboard.press("Escape")
    follow(analyst.get_by_role("button", name="Save and check"))


def publish(analyst: Page, draft: str) -> None:
    analyst.goto(f"{draft}/changes")
    analyst.get_by_label("What this version changes").fill("The first tables")
    follow(analyst.get_by_role("button", name="Publish as the current version"))


def recompute(admin: Page) -> None:
    """A job whose page leads to its results, however fast it is."""
    follow(admin.get_by_role("link", name="Jobs").first)
    follow(admin.get_by_role("button", name="Recompute"))
    place = admin.locator("#job")
    expect(admin.get_by_role("heading", name="Results by problem")).to_be_visible()
    expect(place.locator(".state")).to_contain_text("done")
    expect(place.locator(".bounds svg")).to_be_visible()
    # The last page of the job, which follows nothing more.
    expect(admin.locator("#job:not([data-events])")).to_be_visible()
    assert admin.get_by_text("The job is in the queue").count() == 0
    cost = admin.locator("tbody tr").first.locator("td").nth(6).inner_text()
    figures = re.findall(r"[\d,]+", place.locator("figcaption").inner_text())
    assert figures[0] == cost


def moment_in(text: str) -> datetime:
    said = re.search(r"\d+ \w+ \d{4}, \d\d:\d\d:\d\d", text)
    assert said is not None
    return datetime.strptime(said.group(), "%d %b %Y, %H:%M:%S")


def test_from_the_first_start_to_a_citizen_at_a_table(browser: Browser, address: str) -> None:
    citizen = browser.new_context(locale="en").new_page()
    said: list[str] = []
    ada = enter(browser, address, "ada")
    ada.on("pageerror", lambda error: said.append(str(error)))
    add_people(ada)
    ana, aud, bea = (enter(browser, address, name) for name in ("ana", "aud", "bea"))
    assert answer(aud, "/studio/drafts", "POST") == 403
    define(ana)
    assert answer(ana, "/studio/jobs", "POST", version="") == 403
    assert answer(aud, "/studio/jobs", "POST", version="") == 403
    assert [answer(ana, path) for path in ("/studio/people", "/studio/journal", "/studio/cells")] == [403] * 3
    recompute(ada)
    assert answer(ana, "/studio/jobs/1") == 403
    assert answer(aud, "/studio/jobs/1") == 200

    follow(ada.get_by_role("link", name="Releases").first)
    follow(ada.locator("tbody a").first)
    release = ada.url.removeprefix(address)
    assert ada.get_by_role("button", name="Show it now").count() == 0
    follow(ada.get_by_role("button", name="Approve"))
    expect(ada.get_by_role("alert")).to_contain_text("somebody else has to approve it")
    for page in (ana, aud):
        page.goto(address + release)
        assert page.locator("main form").count() == 0
        for action in ("approve", "publish", "schedule", "withdraw"):
            assert answer(page, f"{release}/{action}", "POST", version="1") == 403
    assert citizen.goto(f"{address}/en/").status == 503  # type: ignore[union-attr]
    bea.goto(address + release)
    follow(bea.get_by_role("button", name="Approve"))
    expect(bea.get_by_role("status")).to_be_visible()
    # People schedule by the minute, for which a test has no time.
    bea.locator("#moment").evaluate("field => { field.step = 1; }")
    bea.get_by_label("Time zone").select_option("UTC")
    moment = moment_in(bea.locator("#clock").inner_text()) + timedelta(seconds=8)
    bea.get_by_label("Date and time").fill(moment.strftime("%Y-%m-%dT%H:%M:%S"))
    follow(bea.get_by_role("button", name="Schedule"))
    expect(bea.locator(".figures")).to_contain_text("scheduled")
    seen = citizen.goto(f"{address}/en/")
    while seen is not None and seen.status == 503:
        citizen.wait_for_timeout(300)
        seen = citizen.goto(f"{address}/en/")
    assert seen is not None
    assert seen.status == 200
    bea.reload()
    shown = bea.locator(".figures div", has_text="First shown").inner_text()
    assert moment_in(shown) >= moment

    follow(citizen.get_by_role("link", name="Turnover: activity"))
    cells = citizen.locator("tbody td").all_inner_texts()
    assert "[c]" in cells
    assert any(re.fullmatch(r"[\d,.]+", cell) for cell in cells)
    citizen.goto(f"{address}/en/confidentiality")
    with httpx.Client(base_url=address) as client:
        link = citizen.get_by_role("link", name="Certificate of this release").get_attribute("href") or ""
        certificate = client.get(link)
        assert certificate.status_code == 200
        assert certificate.json()["release"] in release
        for path in (release, "/studio/cells", "/studio/jobs/1"):
            assert client.get(path).headers["location"].startswith("/studio/sign-in")
        assert client.get("/studio/api/releases").status_code == 401
        assert client.post(f"{release}/withdraw").status_code in (401, 403)
    bea.goto(address + release)
    expect(bea.locator(".figures")).to_contain_text("live")
    aud.goto(f"{address}/studio/journal")
    for action in ("version.publish", "job.submit", "release.approve", "release.schedule"):
        assert aud.get_by_role("row", name=action).count()
    assert said == []
    for page in (ada, ana, aud, bea, citizen):
        page.context.close()
