"""Lists of thousands of members: searched and paged by the site itself, and no choice is ever lost."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html
from starlette.types import ASGIApp

from app.bootstrap import query_asker
from app.web.app import create_app
from app.web.picks import members_of
from tests.web.large import long_store
from tests.web.office import MemoryStore, Office, axis_member, build_cube, hierarchy
from tests.web.visitor import ask

YEARS = "/en/s/time/years"


@pytest.fixture(scope="module")
def districts() -> ASGIApp:
    """A table with 5,000 districts down, and three figures of each."""
    return create_app(long_store(15_000 - 1, rows=1))


@pytest.fixture(scope="module")
def ages() -> ASGIApp:
    """An office with 400 years: a long parameter, a long axis of periods."""
    cube = build_cube()
    years = hierarchy(
        "Year",
        {"en": "Year", "es": "Año"},
        ["Year"],
        [(str(year), None, 0, {"en": f"Year {year}"}) for year in range(1624, 2024)],
        has_all=False,
        time=True,
    )
    store = MemoryStore(Office(replace(cube, hierarchies=(*cube.hierarchies[:2], years))))
    return create_app(store, asker=query_asker())


def without_data(page: str) -> str:
    return re.sub(r'(?s)<div class="scroll[^"]*".*?</div>', "", page)


class Form:
    """The form of a page as a browser without scripts sends it."""

    def __init__(self, site: ASGIApp, address: str, css: str = "arrange") -> None:
        response = ask(site, address)
        assert response.status_code == 200
        self._site = site
        self.text = response.text
        self.page = html.fromstring(response.content)
        (self._form, *_) = self.page.find_class(css)
        self.fields = [(name, value) for name, value in self._form.form_values()]

    def boxes(self, name: str) -> list[str]:
        return [box.get("value") for box in self._form.iter("input") if box.get("name") == name]

    def offered(self, name: str) -> list[str]:
        return [option.get("value") for option in self._form.xpath(f".//select[@name='{name}']/option")]

    def ticked(self, name: str) -> set[str]:
        return {value for field, value in self.fields if field == name}

    def say(self, name: str, *values: str) -> Form:
        self.fields = [pair for pair in self.fields if pair[0] != name] + [(name, value) for value in values]
        return self

    def send(self, button: str = "", value: str = "1") -> str:
        """The address that the form leads to."""
        said = [*self.fields, *([(button, value)] if button else [])]
        response = ask(self._site, f"{self._form.get('action').partition('#')[0]}?{urlencode(said)}")
        return response.headers["location"] if response.status_code == 307 else str(response.url)


def picked(address: str) -> set[str]:
    """The districts that an address picks; runs are said by their ends."""
    said = dict(parse_qsl(urlsplit(address).query)).get("pick.table.0", "")
    ends = [[int(end) for end in term.split(":")] for term in said.split(",") if term]
    return {str(number) for first, *last in ends for number in range(first, (last or [first])[0] + 1)}


def test_thousands_of_ticked_members_fit_in_an_address(districts: ASGIApp) -> None:
    """All but a few: what a reader takes away from a level, and adds from elsewhere."""
    form = Form(districts, f"{YEARS}?edit=table&pick.table.0=0:2999,3500")
    assert form.ticked("tick.table.0") == set(form.boxes("tick.table.0")[:100])
    address = form.say("tick.table.0", *(box for box in form.ticked("tick.table.0") if box != "50")).send()
    assert picked(address) == {str(n) for n in range(3000) if n != 50} | {"3500"}
    assert len(address) < 200
    assert "3000 of 5000" in ask(districts, address).text


@pytest.mark.parametrize(
    ("pick", "status"),
    [("5:7", 200), ("7:5", 400), ("5:5", 200), ("5:", 404), (":5", 404), ("5:6:7", 404), ("5:nobody", 404)],
)
def test_a_run_has_two_ends(districts: ASGIApp, pick: str, status: int) -> None:
    assert ask(districts, f"{YEARS}?pick.table.0={pick}").status_code == status


@given(st.sets(st.integers(0, 29)))
def test_what_is_said_of_members_means_them(chosen: set[int]) -> None:
    keys = ["level", *map(str, range(1, 14)), "from", *map(str, range(15, 29)), "last"]
    source = hierarchy("Place", {"en": "Place"}, ["Place"], [(key, None, 0, {"en": key}) for key in keys])
    cube = build_cube()
    members = members_of(
        replace(cube, hierarchies=(source,)), [axis_member(source, number) for number in range(len(keys))]
    )
    said = members.said([members.terms[number] for number in sorted(chosen, reverse=True)])
    meant = {source.unique_names[number] for number in chosen}
    assert members.pick(said) == (meant or set(source.unique_names))


def test_the_form_for_five_thousand_members_is_light(districts: ASGIApp) -> None:
    hundred = "&pick.table.0=" + ",".join(map(str, range(0, 4000, 40)))
    for state in ("", "&find.table.0=north", hundred):
        response = ask(districts, f"{YEARS}?edit=table{state}")
        assert response.status_code == 200
        assert len(without_data(response.text).encode()) < 70_000
    assert "1–100 of 5000" in ask(districts, f"{YEARS}?edit=table").text


def test_a_search_finds_members_without_case_and_accents_and_leads_on(districts: ASGIApp) -> None:
    form = Form(districts, f"{YEARS}?edit=table")
    back = form.say("find.table.0", "  DÍSTRICT 49 ").send("look.table.0")
    found = Form(districts, back)
    assert found.boxes("tick.table.0") == ["49", *map(str, range(490, 500)), *map(str, range(4900, 4989))]
    onward = Form(districts, found.send("part.table.0", "2"))
    assert onward.boxes("tick.table.0") == [str(n) for n in range(4989, 5000)]
    assert Form(districts, onward.send("part.table.0", "1")).boxes("tick.table.0")[0] == "49"


@settings(deadline=None, max_examples=3)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["11", "district 4", "nothing like it", ""]),
            st.sets(st.integers(0, 99), max_size=4),
            st.sets(st.integers(0, 99), max_size=4),
            st.sampled_from(["look.table.0", "part.table.0"]),
        ),
        min_size=1,
        max_size=2,
    )
)
def test_what_was_ticked_stays_whatever_is_searched_next(
    districts: ASGIApp,
    steps: list[tuple[str, set[int], set[int], str]],
) -> None:
    chosen = set(map(str, range(17, 4000, 13)))
    address = f"{YEARS}?edit=table&pick.table.0={','.join(chosen)}"
    for words, on, off, button in steps:
        form = Form(districts, address)
        boxes = form.boxes("tick.table.0")
        assert len(boxes) <= 200
        assert form.ticked("tick.table.0") == chosen & set(boxes)
        more = {boxes[n] for n in on if n < len(boxes)}
        less = {boxes[n] for n in off if n < len(boxes)} - more
        chosen = (chosen | more) - less
        form.say("tick.table.0", *(box for box in boxes if box in chosen)).say("find.table.0", words)
        address = form.send(button, "2")
        assert picked(address) == chosen
    final = Form(districts, address).send()
    assert picked(final) == chosen
    assert "edit=" not in final
    assert "find." not in final


def test_ticking_some_of_all_chooses_those_and_leaving_the_form_alone_nothing(districts: ASGIApp) -> None:
    form = Form(districts, f"{YEARS}?edit=table")
    assert form.ticked("tick.table.0") == set()
    assert picked(form.send()) == set()
    assert picked(form.say("tick.table.0", "7", "9").send()) == {"7", "9"}
    assert picked(form.say("which.table.0", "ticked").send()) == {"7", "9"}


def test_one_for_the_whole_table_is_found_too(districts: ASGIApp) -> None:
    address = f"{YEARS}?pivot.table=1-2~3~0&pick.table.0=2345"
    form = Form(districts, address, "choosers")
    assert sum(1 for _ in form.page.iter("option")) < 400
    assert "2345" in form.ticked("one.table.0")
    again = Form(districts, form.say("find.table.0", "district 77,").send("look.table.0"))
    assert picked(again.send()) == {"2345"}
    assert picked(again.say("one.table.0", "77").send()) == {"77"}


def test_a_long_parameter_offers_what_is_near_and_what_is_searched(ages: ASGIApp) -> None:
    page = "/en/s/territory/places?p.year=1700"
    form = Form(ages, page, "choosers")
    assert form.ticked("p.year") == {"1700"}
    assert sum(1 for _ in form.page.iter("option")) < 200
    assert len(without_data(ask(ages, page).text)) < 70_000
    found = Form(ages, form.say("find.p.year", "year 201").send(), "choosers")
    assert found.ticked("p.year") == {"1700"}
    options = [o.get("value") for o in found.page.xpath("//select[@name='p.year']/option")]
    assert options == ["1700", *map(str, range(2010, 2020)), "last:1"]


def test_members_of_a_long_hierarchy_are_searched_for_an_own_query(ages: ASGIApp) -> None:
    """The third hierarchy's 400 years: found, turned, and those chosen before stay chosen."""
    form = Form(ages, "/en/query")
    assert len(without_data(form.text)) < 40_000
    assert form.boxes("member.2") == [f"[Year].[Year].&[{year}]" for year in range(1624, 1724)]
    assert "1–100 of 400" in form.text
    first = ["[Year].[Year].&[1700]"]
    found = Form(ages, form.say("member.2", *first).say("find.2", " year 20 ").send("look.2"))
    assert found.boxes("member.2") == first + [f"[Year].[Year].&[{year}]" for year in range(2000, 2024)]
    both = [*first, "[Year].[Year].&[2023]"]
    onward = Form(ages, found.say("member.2", *both).say("find.2", "").send("look.2"))
    onward = Form(ages, onward.send("part.2", "2"))
    assert onward.ticked("member.2") == set(both)
    assert "101–200 of 400" in onward.text
    answer = ask(ages, onward.say("place.2", "rows").send("build"))
    assert f"{{{', '.join(both)}}} ON ROWS" in html.fromstring(answer.content).xpath("string(//textarea)")
    (canonical,) = html.fromstring(answer.content).xpath("//link[@rel='canonical']/@href")
    assert "member.2" in canonical
    assert "find" not in canonical
    assert "part" not in canonical


def test_periods_from_one_on_are_kept_in_a_long_list(ages: ASGIApp) -> None:
    form = Form(ages, f"{YEARS}?edit=table&pick.table.2=from:1900")
    assert form.ticked("since.table.2") == {"1900"}
    again = Form(ages, form.say("find.table.2", "201").send("look.table.2"))
    assert "pick.table.2=from%3A1900" in again.send()
    assert "pick.table.2=from%3A2015" in again.say("since.table.2", "2015").send()


@pytest.mark.parametrize(
    "odd", ["part.table.0=0", "part.table.0=99999", "part.table.0=", "find.table.0=%F0%9F%AB%92"]
)
def test_odd_searches_show_a_page(districts: ASGIApp, odd: str) -> None:
    assert ask(districts, f"{YEARS}?edit=table&{odd}").status_code == 200
