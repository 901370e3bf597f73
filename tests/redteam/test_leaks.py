"""The red team against a real site: a sound one gives nothing, and each planted leak is found."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.bootstrap import promises, publication_store, run_publication
from app.cli.serving import running
from app.db.store import Store
from app.domain.masked import CellStatus
from app.domain.release import Release
from app.redteam import Report, attack
from app.web.app import create_app
from demo import create_starter

FIRMS, TURNOVER, MEAN = "[Measures].[Firms]", "[Measures].[Turnover]", "[Measures].[Turnover per firm]"
Truth = Callable[[str], float]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("redteam") / "firms"
    create_starter(folder)
    run_publication(folder)
    return folder


@pytest.fixture(scope="module")
def truth(office: Path) -> Truth:
    return truth_of(office)


def truth_of(office: Path) -> Truth:
    """The true value of a cell, by its key in the release."""
    with (office / "data" / "firms.csv").open(encoding="utf-8") as file:
        facts = list(csv.DictReader(file))

    def value(key: str) -> float:
        members = re.findall(r"\[(\w+)\]\.&\[([^\]]+)\]", key)
        rows = [f for f in facts if all(f[level.lower()] == name for level, name in members)]
        total = sum(float(fact["turnover"]) for fact in rows)
        return {FIRMS: float(len(rows)), TURNOVER: total, MEAN: round(total / len(rows), 1)}[measure_of(key)]

    return value


class Tampered:
    """A store whose live release shows more than was released."""

    def __init__(self, store: Store, shown: dict[int, float]) -> None:
        self._store = store
        release = store.live_release()
        assert release is not None
        status, values = release.status.copy(), release.values.copy()
        for row, value in shown.items():
            status[row], values[row] = CellStatus.SHOWN, value
        self._release = replace(release, status=status, values=values)

    def release(self, release_id: str) -> Release:
        return self._release

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@contextmanager
def site(
    office: Path,
    shown: Callable[[Release], dict[int, float]] = lambda release: {},
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> Iterator[httpx.Client]:
    with publication_store(office) as store:
        release = store.live_release()
        assert release is not None
        with (
            running(around(create_app(Tampered(store, shown(release))))) as address,
            httpx.Client(base_url=address, timeout=60.0) as client,
        ):
            yield client


def measure_of(key: str) -> str:
    """The measure of a cell key; the one that is calculated stands there as its formula."""
    name = key.split(" | ")[1]
    return name if name in (FIRMS, TURNOVER) else MEAN


def hidden_rows(release: Release, measure: str) -> list[int]:
    hidden = np.flatnonzero(release.status == CellStatus.CONFIDENTIAL).tolist()
    return [row for row in hidden if measure_of(release.keys[row]) == measure]


def kinds(report: Report) -> set[str]:
    assert not report.notes
    return {finding.kind for finding in report.findings}


def test_a_sound_site_gives_nothing(office: Path) -> None:
    with site(office) as client:
        outsider = attack(client)
        insider = attack(client, promises(office))
    assert kinds(outsider) == kinds(insider) == set()
    assert outsider.hidden > 10
    assert insider.checked_promises > 3


def test_total_less_its_parts_is_found(office: Path, truth: Truth) -> None:
    """Everything is shown but the smallest cell: its row and its column give it."""
    smallest: list[str] = []

    def shown(release: Release) -> dict[int, float]:
        rows = hidden_rows(release, FIRMS)
        kept = min(rows, key=lambda row: truth(release.keys[row]))
        smallest.append(release.keys[kept])
        return {row: truth(release.keys[row]) for row in rows if row != kept}

    with site(office, shown) as client:
        for report in (attack(client), attack(client, promises(office))):
            assert "computed" in kinds(report)
            (finding,) = [f for f in report.findings if f.kind == "computed" and FIRMS in f.cell]
            assert finding.lower == finding.upper == truth(smallest[0])


def test_a_ratio_of_hidden_cells_is_found(office: Path, truth: Truth) -> None:
    given: list[int] = []

    def shown(release: Release) -> dict[int, float]:
        # With the number of firms shown, the mean gives the turnover.
        rows = [*hidden_rows(release, MEAN), *hidden_rows(release, FIRMS)]
        given.extend(rows)
        return {row: truth(release.keys[row]) for row in rows}

    with site(office, shown) as client:
        found = [f for f in attack(client).findings if f.kind == "by a ratio"]
    assert given
    assert found
    assert all(TURNOVER in finding.cell for finding in found)
    assert all(finding.upper - finding.lower < 0.02 * finding.upper for finding in found)


def test_a_bar_of_a_hidden_cell_is_found(office: Path, truth: Truth) -> None:
    drawn: list[str] = []

    def redraw(page: str) -> str:
        """Give each hidden bar the length that its number deserves."""
        bars = re.findall(r'width="([\d.]+)%"[^>]*><title>[^<]*: ([\d,.]+)</title>', page)
        known = [(float(width), float(text.replace(",", ""))) for width, text in bars]
        if len(known) < 3:
            return page
        scale = max(known, key=lambda pair: pair[1])

        def lengthen(match: re.Match[str]) -> str:
            town = match.group(2)
            drawn.append(town)
            number = truth(f"Firms | {MEAN} | [Territory].[Town].&[{town}]")
            width = scale[0] * number / scale[1]
            return f'width="{width:.2f}%"{match.group(1)}<title>{town}: confidential</title>'

        return re.sub(r'width="14"([^>]*>)<title>(\w+): confidential</title>', lengthen, page)

    with site(office, around=lambda app: Rewriting(app, redraw)) as client:
        report = attack(client)
    assert drawn
    found = {f.cell: f for f in report.findings if f.kind == "drawn"}
    for town in set(drawn):
        (finding,) = [f for cell, f in found.items() if f"[Town].&[{town}]" in cell]
        number = truth(f"Firms | {MEAN} | [Territory].[Town].&[{town}]")
        assert finding.lower <= number * 1.01
        assert finding.upper >= number * 0.99


def test_a_bar_that_only_a_reader_asks_for_is_found(office: Path, truth: Truth) -> None:
    drawn: set[tuple[str, str]] = set()

    def redraw(page: str) -> str:
        (length, most), *_ = re.findall(r'width="([\d.]+)%"[^>]*><title>[^<]*: ([\d,]+)</title>', page)

        def lengthen(match: re.Match[str]) -> str:
            area, activity = match.group(2), match.group(3)
            drawn.add((area, activity))
            number = truth(
                f"Firms | {TURNOVER} | [Activity].[Activity].&[{activity}] | [Territory].[Region].&[{area}]"
            )
            width = float(length) * number / float(most.replace(",", ""))
            return f'width="{width:.2f}%"{match.group(1)}<title>{area}, {activity}: confidential</title>'

        return re.sub(r'width="14"([^>]*>)<title>(\w+), (\w+): confidential</title>', lengthen, page)

    with site(office, around=lambda app: Rewriting(app, redraw, b"chart.turnover=bar")) as client:
        report = attack(client)
    assert len(drawn) > 2
    assert {f.kind for f in report.findings} == {"drawn"}
    assert len({f.cell for f in report.findings}) == len(drawn)
    # In frames of other pages and further arrangements too.
    assert any("/embed/" in finding.where for finding in report.findings)
    assert any("fold." in finding.where for finding in report.findings)


@pytest.mark.parametrize(
    ("kind", "found"), [(b"text/csv", "worked out"), (b"text/html", "in the page")], ids=["file", "page"]
)
def test_a_share_of_a_hidden_figure_is_found(office: Path, kind: bytes, found: str) -> None:
    def tell(document: str) -> str:
        return re.sub(r">\[c\]</abbr>", ">12.3</abbr>", document.replace(",,Q,C,", ",12.3,A,F,"))

    with site(office, around=lambda app: Rewriting(app, tell, b"show.table=share-0", kind)) as client:
        report = attack(client)
    assert {finding.kind for finding in report.findings} == {found}
    assert all("show.table=share-0" in finding.where for finding in report.findings)


@pytest.fixture(scope="module")
def namesakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A town, too small to be shown, called as its region, and both drawn in one chart."""
    folder = tmp_path_factory.mktemp("namesakes") / "firms"
    create_starter(folder)
    facts = folder / "data" / "firms.csv"
    facts.write_text(facts.read_text("utf-8").replace(",Nutmeg,", ",Centre,"), "utf-8")
    for sheet in (folder / "sheets" / "economy").glob("[!_]*.toml"):
        sheet.unlink()
    (folder / "sheets" / "economy" / "places.toml").write_text(_PLACES, "utf-8")
    run_publication(folder)
    return folder


_PLACES = '''
title.en = "Towns and regions"
[[query]]
id = "places"
title.en = "Firms"
show = "chart"
mdx = """
SELECT {[Measures].[Firms]} ON COLUMNS,
  {[Territory].[Town].Members, [Territory].[Region].Members} ON ROWS
FROM [Firms]
"""
[query.options]
chart = "bar"
'''


def test_a_shown_namesake_is_no_leak(namesakes: Path) -> None:
    with site(namesakes) as client:
        assert client.get("/en/s/economy/places").text.count("<title>Centre: ") == 2
        assert kinds(attack(client)) == set()


def test_a_hidden_namesake_is_found(namesakes: Path) -> None:
    def tell(page: str) -> str:
        return page.replace("<title>Centre: confidential</title>", "<title>Centre: 1</title>")

    with site(namesakes, around=lambda app: Rewriting(app, tell)) as client:
        (finding,) = {(f.kind, f.cell, f.lower) for f in attack(client).findings}
    assert finding == ("in the page", f"{FIRMS}, [Territory].[Town].&[Centre]", 1)


class Rewriting:
    """An application whose pages pass through other hands, those that are asked with a field alone."""

    def __init__(
        self, app: ASGIApp, rewrite: Callable[[str], str], field: bytes = b"", kind: bytes = b"text/html"
    ) -> None:
        self._app = app
        self._rewrite = rewrite
        self._field = field
        self._kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {}
        parts: list[bytes] = []

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = b"".join(parts)
            headers = [(n, v) for n, v in start["headers"] if n.lower() != b"content-length"]
            asked_so = self._field in scope["query_string"]
            if asked_so and any(self._kind in value for _, value in headers):
                body = self._rewrite(body.decode()).encode()
            await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
            await send({"type": "http.response.body", "body": body})

        if scope["type"] == "http":
            asked = [(n, v) for n, v in scope["headers"] if n != b"accept-encoding"]
            await self._app({**scope, "headers": asked}, receive, collect)
        else:
            await self._app(scope, receive, send)
