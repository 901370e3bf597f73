"""Everything that the site hands out: the catalogue, every page and every download of every choice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit

import httpx

from app.domain.errors import OperatorError, UserError
from app.redteam.structure import Member, PublicHierarchy, PublicMeasure, Structure

_CATALOGUE = "/api/v1/catalogue.json"
_TEXTS = (
    "text/html",
    "text/csv",
    "application/json",
    "application/atom+xml",
    "application/ld+json",
    "application/xml",
    "image/svg+xml",
    "text/turtle",
)
#: Documents without cells by their nature.
_DRESS = ("text/css", "text/javascript", "font/", "image/", "text/plain", "application/manifest+json")
#: As many arrangements of one sheet (besides sorted ones) are read.
ARRANGED = 8
_MEMBER = re.compile(r"\bMEMBER\s+((?:\[(?:[^\]]|\]\])*\]\s*\.?\s*)+)\s*AS\s+", re.IGNORECASE)
_END = re.compile(r",\s*[A-Za-z_]+\s*=|\bMEMBER\s+\[|\bSET\s+\[|\bSELECT\b", re.IGNORECASE)


@dataclass(frozen=True)
class Query:
    """A query of a sheet for one choice: where its documents are, in one language."""

    identity: str
    position: int
    cube: str
    formulas: Mapping[str, str]
    downloads: Mapping[str, str]


@dataclass(frozen=True)
class Page:
    """A sheet's page for one choice in one language; ``first``: in the site's first language."""

    address: str
    queries: tuple[Query, ...]
    first: bool


@dataclass
class Site:
    """A running site, read over HTTP."""

    client: httpx.Client
    documents: int = 0
    notes: list[str] = field(default_factory=list)
    _links: set[str] = field(default_factory=set)
    _read: set[str] = field(default_factory=set)

    def _get(self, address: str) -> httpx.Response | None:
        try:
            response = self.client.get(address, follow_redirects=True)
        except httpx.HTTPError as error:
            raise OperatorError(f"The site doesn't answer: {error}.") from error
        self.documents += 1
        if response.status_code != 200:
            self.notes.append(f"{address}: status {response.status_code}")
            return None
        return response

    def content(self, address: str) -> bytes | None:
        """A document's bytes; None when it can't be had, which is noted."""
        self._read.add(address)
        response = self._get(address)
        return None if response is None else response.content

    def text(self, address: str, linked: bool = True) -> str | None:
        """A document's text; None when it can't be had, which is noted.

        Of one that isn't ``linked``, but asked for by a form, the links lead to more of its kind: they aren't
        followed, nor is it one of a sheet's arrangements.
        """
        if linked:
            self._read.add(address)
        response = self._get(address)
        if response is None:
            return None
        kind = response.headers.get("content-type", "").partition(";")[0]
        if not kind.startswith(_TEXTS):
            if not kind.startswith(_DRESS):
                self.notes.append(f"{address}: a document of a kind that isn't read ({kind or 'unnamed'})")
            return None
        if kind == "text/html" and linked:
            self._follow(str(response.url), response.text)
        return response.text

    def _follow(self, base: str, text: str) -> None:
        host = urlsplit(base).netloc
        for found in re.findall(r"""(?:href|src)=["']([^"']+)["']""", text):
            link = urldefrag(urljoin(base, found.replace("&amp;", "&"))).url
            parts = urlsplit(link)
            if parts.netloc == host and parts.scheme in ("http", "https"):
                self._links.add(parts.path + (f"?{parts.query}" if parts.query else ""))

    def leftovers(self) -> Iterator[tuple[str, str]]:
        """Pages that are linked but in no catalogue, with their texts; of the many ways to arrange the same
        cells, the first few of each sheet."""
        while waiting := self._waiting():
            for address in waiting:
                text = self.text(address)
                if text is not None:
                    yield address, text

    def _waiting(self) -> list[str]:
        arranged = Counter(urlsplit(address).path for address in self._read if _is_arranged(address))
        waiting = []
        for address in sorted(self._links - self._read):
            if _is_arranged(address):
                path = urlsplit(address).path
                if "." in path.rpartition("/")[2]:
                    # The file of an arrangement has the cells of its page.
                    continue
                arranged[path] += 1
                if arranged[path] > ARRANGED:
                    continue
            waiting.append(address)
        return waiting

    def json(self, address: str) -> Any:
        """A JSON document that the attack can't do without."""
        try:
            response = self.client.get(address, follow_redirects=True)
            response.raise_for_status()
            self.documents += 1
            self._read.add(address)
            return response.json()
        except httpx.HTTPError as error:
            raise UserError(
                f"{self.client.base_url} is no site of Celosia that shows something: {error}."
            ) from None
        except ValueError:
            raise UserError(f"{self.client.base_url} is no site of Celosia: {address} is no JSON.") from None


def _is_arranged(address: str) -> bool:
    """Whether an address asks for cells in another arrangement than the published one."""
    return any(not name.startswith(("p.", "q", "v")) for name, _ in parse_qsl(urlsplit(address).query))


def read_catalogue(site: Site) -> tuple[dict[str, Structure], list[Page]]:
    """The cubes as published, and every page that a visitor can make appear."""
    catalogue = site.json(_CATALOGUE)
    structures = {
        name: _structure(site.json(address), catalogue)
        for name, address in sorted(catalogue.get("structures", {}).items())
    }
    site.text("/")
    pages = [page for sheet in _sheets(catalogue) for page in _pages(sheet, catalogue["languages"])]
    return structures, pages


def _sheets(folder: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from folder.get("sheets", ())
    for child in folder.get("folders", ()):
        yield from _sheets(child)


def _pages(sheet: Mapping[str, Any], languages: Sequence[str]) -> Iterator[Page]:
    fields = [
        [(parameter["field"], member["key"]) for member in parameter["members"]]
        for parameter in sheet["parameters"]
    ]
    for choice in product(*fields):
        asked = f"?{urlencode(choice)}" if choice else ""
        for language in languages:
            queries = tuple(
                Query(
                    query["id"],
                    position,
                    query["cube"],
                    with_members(query.get("mdx", "")),
                    {kind: urls[language] + asked for kind, urls in query["downloads"].items()},
                )
                for position, query in enumerate(sheet["queries"])
            )
            yield Page(sheet["url"][language] + asked, queries, language == languages[0])


def with_members(mdx: str) -> dict[str, str]:
    """Formulas of a query's WITH clause, by unique name."""
    formulas: dict[str, str] = {}
    for found in _MEMBER.finditer(mdx):
        rest = mdx[found.end() :]
        end = _END.search(rest)
        formula = rest[: end.start()] if end else rest
        name = re.sub(r"\s*\.\s*", ".", found.group(1).strip())
        formulas[name] = formula.strip().strip("'").strip()
    return formulas


def _structure(document: Mapping[str, Any], catalogue: Mapping[str, Any]) -> Structure:
    measures = {
        measure["unique_name"]: PublicMeasure(
            measure["unique_name"],
            bool(measure.get("additive", True)),
            measure.get("aggregator") in ("count", "distinct-count"),
            bool(measure.get("nonnegative", True)),
            int(measure.get("decimals", 0)),
            tuple(measure.get("of_which", ())),
            str(measure.get("aggregator", "sum")),
        )
        for measure in document["measures"]
    }
    return Structure(
        document["name"],
        tuple(_hierarchy(hierarchy) for hierarchy in document["hierarchies"]),
        measures,
        {member["unique_name"]: member["formula"] for member in document.get("calculated", ())},
        {
            measure["unique_name"]: int(measure["threshold"])
            for measure in document["measures"]
            if measure.get("threshold")
        },
    )


def _hierarchy(document: Mapping[str, Any]) -> PublicHierarchy:
    members = {
        member["unique_name"]: Member(
            member["unique_name"],
            member["parent"],
            member["level"],
            frozenset(member.get("caption", {}).values()),
        )
        for member in document["members"]
    }
    return PublicHierarchy(
        document["unique_name"], members, document.get("default_member"), bool(document.get("time"))
    )
