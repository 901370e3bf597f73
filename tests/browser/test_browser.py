"""What a person meets in a real browser: small screens, dark rooms, keyboards, no scripts, paper."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect

from tests.browser.conftest import barriers, follow, follow_by_key

QUESTION = """SELECT CrossJoin([Measures].Members, [Sex].Members) ON COLUMNS,
  CrossJoin([Geography].Members, [Year].Members) ON ROWS FROM [Tax]"""
PAGES = {
    "home": "/en/",
    "folder": "/es/f/territory",
    "table": "/en/s/territory/places",
    "stacked": "/es/s/territory/towns?p.region=E",
    "map": "/en/s/territory/map",
    "lines": "/en/s/time/years",
    "confidentiality": "/es/confidentiality",
    "programs": "/es/api",
    "embedded": "/en/embed/territory/places/bars",
    "arranged": "/en/s/territory/places?sort.table=-1&pivot.table=0-2~1",
    "opened": "/en/s/territory/towns?fold.table.0=E&p.region=E",
    "choosing": "/es/s/territory/places?edit=table&pivot.table=0~1~2",
    "fixed": "/en/s/territory/places?pivot.table=0~1~2&fold.table.0=N&pick.table.2=W",
    "long list": "/en/s/territory/places?edit=table&pick.table.0=N,E1",
    "as a chart": "/en/s/territory/towns?p.region=E&chart.stacked=pyramid",
    "one figure": "/en/s/territory/places?cell.table=N1,Income,W",
    "query": "/en/query",
    "query answered": f"/es/query?{urlencode({'mdx': QUESTION})}",
    "query refused": "/en/query?mdx=SELECT+nothing",
    "old release": "/r/r1/en/s/territory/places",
    "old contents": "/r/r1/es/",
    "nothing found": "/en/search?q=zzz",
    "search": "/en/search?q=granado",
    "error": "/en/nowhere",
    "refused": "/es/s/territory/places?pivot.table=x",
}
SIZES = {"desktop": (1280, 900), "phone": (360, 740)}


def open_page(browser: Browser, address: str, size: str = "desktop", **options: object) -> Page:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, **options)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(address)
    return page


@pytest.mark.parametrize("size", SIZES)
def test_pages_fit_the_screen_have_no_barriers_and_ask_nobody_else(
    browser: Browser, address: str, size: str
) -> None:
    page = open_page(browser, "about:blank", size, color_scheme="light")
    said: list[str] = []
    asked: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        said.append(message.text)

    def note(request: Request) -> None:
        asked.append(request.url)

    page.on("console", hear)
    page.on("request", note)
    wide: dict[str, int] = {}
    faults: dict[str, object] = {}
    for name, path in PAGES.items():
        page.goto(address + path)
        if (width := page.evaluate("document.documentElement.scrollWidth")) > SIZES[size][0]:
            wide[name] = width
        assert page.evaluate(
            "document.fonts.ready.then(() => document.fonts.check('16px \"Source Sans 3\"'))"
        )
        if found := barriers(page):
            faults[name] = found
    page.context.close()
    assert (wide, faults) == ({}, {})
    assert all(url.startswith(address) for url in asked)
    assert [text for text in said if "status of 40" not in text] == []


@pytest.mark.parametrize("width", [360, 700, 1280])
def test_what_a_tile_says_stays_within_it(browser: Browser, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 740})
    page.goto(f"{address}/en/s/territory/map")
    said = page.evaluate(
        """() => [...document.querySelectorAll(".tiles > svg")].map(tile => {
            const place = tile.querySelector("rect").getBoundingClientRect()
            const boxes = [...tile.querySelectorAll("text")].map(text => text.getBoundingClientRect())
            const seen = boxes.filter(box => box.width)
            const within = box => box.left > place.left - 1 && box.right < place.right + 1
                && box.top > place.top - 1 && box.bottom < place.bottom + 1
            return [seen.length, seen.every(within)]
        })"""
    )
    page.close()
    assert len(said) > 5
    assert all(seen > 1 and within for seen, within in said)


def test_choosing_reading_and_downloading_work_without_scripts(
    browser: Browser, address: str, tmp_path: Path
) -> None:
    page = open_page(browser, address + "/en/", java_script_enabled=False)
    follow(page.get_by_role("link", name="Towns of a region"))
    page.get_by_label("Region").select_option("Estmark")
    page.get_by_label("Year").select_option("2021")
    follow(page.get_by_role("button", name="Show"))
    assert "p.region=E&p.year=2021" in page.url
    assert page.get_by_role("rowheader", name="Granado").first.is_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").first.click()
    saved = tmp_path / download.value.suggested_filename
    download.value.save_as(saved)
    page.context.close()
    assert saved.name == "towns-table-E-2021.csv"
    assert "Granado" in saved.read_text()


def test_sorting_and_turning_a_table_work_without_scripts(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places", java_script_enabled=False)
    section = page.locator("#table")
    follow(section.get_by_role("link", name="Choose and arrange"))
    section.get_by_label("Order of the rows").select_option("Taxpayers, Women, largest first")
    follow(section.get_by_role("button", name="Show"))
    first = section.locator("tbody th.d1").first.inner_text()
    follow(section.get_by_role("link", name="Choose and arrange"))
    sex = section.get_by_role("group", name="Sex").first
    sex.get_by_label("Place in the table").select_option("Rows")
    follow(section.get_by_role("button", name="Show"))
    groups = section.locator("tr.group").count()
    page.context.close()
    assert first == "Norland"
    assert groups == 14


def test_a_reader_finds_a_member_and_lands_on_its_table(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/es/", java_script_enabled=False)
    page.get_by_role("searchbox").fill("GRANADO")
    follow_by_key(page)
    follow(page.locator(".results li", has_text="Pueblos de una región").get_by_role("link", name="Granado"))
    assert page.get_by_label("Región").input_value() == "E"
    assert page.get_by_role("rowheader", name="Granado").first.is_visible()
    page.context.close()


def test_the_keyboard_alone_leads_from_the_top_to_a_table(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Year")).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    follow_by_key(page)
    assert page.url.endswith("p.year=2022")
    regions = []
    for _ in range(25):
        page.keyboard.press("Tab")
        regions.append(page.evaluate("document.activeElement.getAttribute('role')"))
    page.context.close()
    assert "region" in regions


def test_the_keyboard_alone_finds_turns_and_downloads(browser: Browser, address: str, tmp_path: Path) -> None:
    page = open_page(browser, address + "/en/")

    def reach(test: str) -> None:
        for _ in range(90):
            page.keyboard.press("Tab")
            if page.evaluate(f"(() => {{ const here = document.activeElement; return {test}; }})()"):
                return
        raise AssertionError(f"the keyboard never gets to {test}")

    reach("here.type === 'search'")
    page.keyboard.type("places by sex")
    follow_by_key(page)
    assert page.url.endswith("/search?q=places+by+sex")
    reach("here.matches('.results h2 a') && here.textContent.includes('Places by sex')")
    follow_by_key(page)
    assert page.url.endswith("/s/territory/places")
    reach("here.textContent.trim() === 'Choose and arrange'")
    follow_by_key(page)
    assert "edit=table" in page.url
    reach("here.name === 'place.table.2'")
    page.keyboard.press("Home")
    reach("here.matches('#table .arrange button:not([type])')")
    follow_by_key(page)
    assert "pivot.table=0-2~1" in page.url
    assert page.locator("#table tr.group").count() == 14
    reach("here.matches('#table .downloads a') && here.textContent === 'CSV'")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    saved = tmp_path / "table.csv"
    download.value.save_as(saved)
    page.context.close()
    assert "Granado" in saved.read_text()


def test_ticking_members_takes_effect_and_the_list_can_be_searched(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places?edit=table")
    part = page.locator("#table fieldset").first
    part.get_by_role("button", name="Tick none").click()
    part.get_by_role("searchbox").fill("grana")
    expect(part.locator(".ticks label:visible")).to_have_count(1)
    part.get_by_role("button", name="Tick all").click()
    follow(page.locator("#table .arrange button:not([type])"))
    assert "pick.table.0=E2" in page.url
    assert page.locator("#table tbody th[scope=row]").count() == 1
    page.context.close()


def test_ticking_members_of_what_is_not_used_puts_it_in_the_rows(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/query")
    sex = page.get_by_role("group", name="Sex", exact=True)
    place = sex.get_by_label("Where")
    expect(place).to_have_value("")
    sex.get_by_text("Choose members").click()
    page.get_by_label("Women").check()
    expect(place).to_have_value("rows")
    follow(page.get_by_role("button", name="Show the table"))
    expect(page.locator("#answer tbody th")).to_have_text(["Women"])
    page.context.close()


@pytest.mark.parametrize("size", SIZES)
def test_a_branch_is_opened_beside_its_name_and_choices_can_be_read(
    browser: Browser, address: str, size: str
) -> None:
    page = open_page(browser, f"{address}/en/s/territory/places?edit=table", size)
    apart = page.evaluate(
        """() => [...document.querySelectorAll("#table thead .toggle")].map(toggle => {
            const name = document.createRange();
            name.selectNodeContents(toggle.nextSibling);
            const [line] = name.getClientRects(), sign = toggle.getBoundingClientRect();
            return sign.right <= line.left + 1 && sign.top < line.bottom && line.top < sign.bottom;
        })"""
    )
    narrow = page.evaluate(
        """() => [...document.querySelectorAll("#table .arrange select")]
            .filter(select => select.getBoundingClientRect().width < 140).map(select => select.name)"""
    )
    page.context.close()
    assert apart
    assert all(apart)
    assert narrow == []


def test_a_click_on_a_figure_offers_the_address_that_leads_to_it(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places?sort.table=-2")
    cell = page.locator("#table tbody tr").nth(2).locator("td").nth(3)
    text = cell.inner_text()
    cell.click()
    follow(page.get_by_role("link", name="Link to this figure"))
    assert "cell.table=" in page.url
    marked = page.locator("#table td.here")
    assert marked.inner_text() == text
    assert marked.evaluate("cell => getComputedStyle(cell).outlineStyle") == "solid"
    page.context.close()


def test_a_link_to_one_figure_is_had_without_scripts(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places", "phone", java_script_enabled=False)
    section = page.locator("#table")
    section.get_by_text("Use this table elsewhere").click()
    section.get_by_label("Row", exact=True).fill("14")
    section.get_by_label("Column", exact=True).fill("6")
    text = section.locator("tbody tr").nth(13).locator("td").nth(5).inner_text()
    follow(section.get_by_role("button", name="Show it"))
    marked = page.locator("td.here")
    assert marked.inner_text() == text
    box = marked.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= 360
    assert 0 <= box["y"] <= 740
    page.context.close()


def test_branches_close_by_their_links(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places", java_script_enabled=False)
    table = page.locator("#table")
    before = table.locator("tbody tr").count()
    follow(table.get_by_role("link", name="Close Norland"))
    assert table.locator("tbody tr").count() == before - 3
    assert table.get_by_role("link", name="Open Norland").get_attribute("aria-expanded") == "false"
    page.context.close()


def test_hidden_cells_are_read_out_as_confidential(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places")
    hidden = page.locator("#table td.hidden").first
    assert hidden.locator("abbr").get_attribute("title") == "confidential"
    read = hidden.aria_snapshot()
    assert "[c]" in read
    assert "confidential" in read
    # The word is for the ear: whoever copies a table gets the sign alone.
    hidden.evaluate("cell => getSelection().selectAllChildren(cell)")
    assert page.evaluate("getSelection().toString().trim()") == "[c]"
    bars = page.locator("#bars .chart")
    assert "The table below holds the same figures" in (bars.get_attribute("aria-label") or "")
    page.context.close()


@pytest.mark.parametrize("name", ["table", "map", "choosing"])
def test_a_sheet_weighs_little_and_runs_nothing_inline(browser: Browser, address: str, name: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    weights: list[int] = []
    page.on("response", lambda response: weights.append(response.request.sizes()["responseBodySize"]))
    policy = page.goto(address + PAGES[name])
    assert policy is not None
    rules = policy.headers["content-security-policy"]
    page.wait_for_load_state("networkidle")
    inline = page.locator("[style], style, script:not([src]):not([type='application/ld+json'])").count()
    context.close()
    assert "default-src 'none'" in rules
    assert "unsafe" not in rules
    assert inline == 0
    assert sum(weights) < 100_000


@pytest.mark.parametrize("path", ["/en/confidentiality", "/es/api"])
def test_tables_of_words_fit_a_phone(browser: Browser, address: str, path: str) -> None:
    page = open_page(browser, address + path, "phone")
    region = page.locator(".scroll")
    assert region.count() == 1
    assert region.evaluate("box => box.scrollWidth - box.clientWidth") == 0


def test_headers_stay_in_sight_while_a_long_table_scrolls(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/time/years", "phone")
    region = page.get_by_role("region").first
    before = region.locator("thead").bounding_box()
    stub = region.locator("tbody th[scope=row]").nth(12)
    region.evaluate("box => { box.scrollTop = 300; box.scrollLeft = 60; }")
    after = region.locator("thead").bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 1
    left = stub.bounding_box()
    frame = region.bounding_box()
    assert left is not None
    assert frame is not None
    assert abs(left["x"] - frame["x"]) < 1
    page.context.close()


@pytest.mark.parametrize("chart", ["bar", "stacked", "pyramid"])
@pytest.mark.parametrize("size", SIZES)
def test_a_hidden_bar_is_hatched_and_looks_like_no_value(
    browser: Browser, address: str, size: str, chart: str
) -> None:
    """As small as any other hidden bar, whatever room the axis has."""
    page = open_page(browser, f"{address}/en/s/territory/towns?p.region=E&chart.stacked={chart}", size)
    veils = page.locator("#stacked .plot rect.veil")
    widths = set()
    for index in range(veils.count()):
        assert veils.nth(index).evaluate("r => getComputedStyle(r).fill").startswith('url("#hatch-stacked")')
        box = veils.nth(index).bounding_box()
        assert box is not None
        widths.add(round(box["width"]))
    legend = page.locator("#stacked .legend").text_content() or ""
    page.context.close()
    assert len(widths) == 1
    assert widths <= {14, 15}
    assert "[c] confidential: a mark of one size" in legend


def test_numbers_stand_under_one_another(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/territory/places")
    edges = page.evaluate(
        """() => [...document.querySelectorAll('#table tbody tr')].map(row => {
            const range = document.createRange();
            range.selectNodeContents(row.children[1]);
            return Math.round(range.getBoundingClientRect().right);
        })"""
    )
    page.context.close()
    assert len(set(edges)) == 1


@pytest.mark.parametrize("block", ["table", "bars"])
def test_a_table_is_copied_whole_by_its_button(browser: Browser, address: str, block: str) -> None:
    """Signs for what is hidden, a tab between cells; also of a chart, whose table is folded away."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/en/s/territory/places")
    copy = page.locator(f"#{block}").get_by_role("button", name="Copy the table")
    copy.click()
    expect(page.locator(f"#{block} .copy")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    rows = page.locator(f"#{block} tbody tr")
    lines = [line for line in copied.splitlines() if line.startswith("Granado\t")]
    cells = rows.filter(has_text="Granado").locator("td").all_text_contents()
    assert lines == ["\t".join(["Granado", *cells])]
    assert "[c]" in copied
    assert "confidential" not in copied
    assert page.evaluate("getSelection().isCollapsed")
    context.close()


def test_paper_shows_the_whole_table_and_no_controls(browser: Browser, address: str) -> None:
    page = open_page(browser, address + "/en/s/time/years")
    page.emulate_media(media="print")
    region = page.get_by_role("region").first
    assert region.evaluate("box => box.scrollHeight <= box.clientHeight + 1")
    for name in ("downloads", "neighbours", "languages"):
        assert not page.locator(f".{name}").first.is_visible()
    page.context.close()
