"""What each page's template receives: one frozen class for each template, named after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from app.web.charts import Chart
from app.web.contents import FolderEntry, SheetEntry
from app.web.maps import AreaMap
from app.web.tables import Table


@dataclass(frozen=True)
class Link:
    text: str
    address: str


@dataclass(frozen=True)
class LanguageLink:
    code: str
    name: str
    address: str
    current: bool


@dataclass(frozen=True)
class Frame:
    """What surrounds every page; ``latest`` is its address in the live release, on pages of a fixed one."""

    language: str
    title: str
    site: str
    publisher: str
    home: str
    crumbs: tuple[Link, ...]
    languages: tuple[LanguageLink, ...]
    released: str
    release_id: str
    theme: str = ""
    logo: str = ""
    canonical: str = ""
    description: str = ""
    latest: str = ""


@dataclass(frozen=True, eq=False)
class HomePage:
    template: ClassVar[str] = "home.html"
    frame: Frame
    description: str
    root: FolderEntry
    tables: int


@dataclass(frozen=True, eq=False)
class FolderPage:
    template: ClassVar[str] = "folder.html"
    frame: Frame
    entry: FolderEntry
    notes: Markup


@dataclass(frozen=True)
class Option:
    key: str
    text: str
    depth: int
    chosen: bool


@dataclass(frozen=True)
class Finder:
    """The search of a list that is too long for a page.

    ``suffix`` ends its fields' names, ``button`` names the button that searches (empty: it has no name),
    ``said`` is which of the members are offered, ``before`` and ``after`` number the neighbouring parts, 0
    for none.
    """

    suffix: str
    button: str
    words: str
    said: str
    part: int
    before: int
    after: int


@dataclass(frozen=True)
class Chooser:
    """A parameter as a select box; with a finder, its options are some of the members."""

    field: str
    title: str
    options: tuple[Option, ...]
    finder: Finder | None = None


@dataclass(frozen=True)
class Way:
    """A way to show a table, as a link; ``current`` is the one that is shown."""

    text: str
    address: str
    current: bool


@dataclass(frozen=True)
class Spot:
    """The cell that an address points at, in words; ``text`` is empty where the table leaves it out.

    ``state`` is as in a table's cell, ``leave`` the address without it.
    """

    said: str
    state: str
    text: str
    leave: str


@dataclass(frozen=True)
class HierarchyForm:
    """The part of the form that is about one hierarchy of a table.

    ``suffix`` ends its fields' names. ``place`` is None where hierarchies can't move, ``since`` where the
    members are no periods; ``one`` chooses the member when it is the same for the whole table. With a
    ``finder``, ``ticks`` are the chosen members and those found.
    """

    suffix: str
    name: str
    place: Chooser | None
    which: Chooser
    ticks: tuple[Option, ...]
    since: Chooser | None
    count: int
    one: Chooser | None
    finder: Finder | None = None


@dataclass(frozen=True)
class Arranger:
    """How a reader chooses, turns and sorts a table.

    ``kept`` are the address's other fields, ``links`` lead to a changed table at once, ``summary`` says what
    is left out; ``sorts``, ``figures`` and ``empties`` have one option where there is nothing to choose;
    ``hierarchies`` are filled while ``editing``, ``fixed`` choose a member of each hierarchy that is neither
    down nor across.
    """

    query: str
    edit: str
    close: str
    editing: bool
    links: tuple[Link, ...]
    summary: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]
    sorts: Chooser
    figures: Chooser
    empties: Chooser
    hierarchies: tuple[HierarchyForm, ...]
    fixed: tuple[Chooser, ...]
    ways: tuple[Way, ...] = ()


@dataclass(frozen=True)
class Pager:
    """Where a page's window of a large table lies: rows and columns by number from 1, links to others."""

    said: tuple[str, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Elsewhere:
    """How to use a query outside: code that embeds it, and that reads it in Python and R.

    ``state`` are the fields of the form that leads to one cell, by its row and column; ``first`` are those
    of the page's first cell, ``size`` the table's rows and columns.
    """

    embed: str
    python: str
    r: str
    state: tuple[tuple[str, str], ...]
    first: tuple[int, int]
    size: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Block:
    """A query on a sheet's page: its table, and its chart or maps where it is shown as such.

    ``signs`` are the states of cells without a figure that are seen there (see `app.web.tables.STATES`).
    """

    id: str
    title: str
    context: tuple[tuple[str, str], ...]
    note: str
    table: Table
    chart: Chart | None
    maps: tuple[AreaMap, ...]
    downloads: tuple[Link, ...]
    arranger: Arranger
    pager: Pager | None
    elsewhere: Elsewhere
    spot: Spot | None
    signs: frozenset[str]


@dataclass(frozen=True)
class ContactLinks:
    """Whom to ask about the figures: a name, which may be empty, and links to write, call or look."""

    name: str
    ways: tuple[Link, ...]


@dataclass(frozen=True, eq=False)
class SheetPage:
    """``hidden`` counts the confidential figures on the page, each once; ``signs`` are all blocks'."""

    template: ClassVar[str] = "sheet.html"
    frame: Frame
    entry: SheetEntry
    choosers: tuple[Chooser, ...]
    kept: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]
    notes: Markup
    before: SheetEntry | None
    after: SheetEntry | None
    hidden: int
    signs: frozenset[str]
    address: str
    citation: str
    dataset: Markup
    editing: bool
    next_release: str
    contact: ContactLinks | None


@dataclass(frozen=True, eq=False)
class EmbedPage:
    """A query alone, for frames on other sites; ``source`` leads to the sheet."""

    template: ClassVar[str] = "embed.html"
    frame: Frame
    block: Block
    source: Link


@dataclass(frozen=True, eq=False)
class Drawing:
    """A query's chart or maps as a file of their own; lines of text are as long as fit."""

    template: ClassVar[str] = "drawing.svg"
    id: str
    heading: tuple[str, ...]
    context: tuple[str, ...]
    chart: Chart | None
    maps: tuple[AreaMap, ...]
    source: str
    style: Markup


@dataclass(frozen=True, eq=False)
class Fragment:
    """A table alone, as a piece of HTML; ``signs`` says what the signs of hidden cells mean."""

    template: ClassVar[str] = "fragment.html"
    language: str
    title: str
    context: tuple[tuple[str, str], ...]
    table: Table
    signs: tuple[tuple[str, str], ...]
    note: str
    source: str


@dataclass(frozen=True)
class ProtectedMeasure:
    """A measure and what its rules mean, in words."""

    name: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class ConfidentialityPage:
    template: ClassVar[str] = "confidentiality.html"
    frame: Frame
    cubes: tuple[tuple[str, tuple[ProtectedMeasure, ...]], ...]
    hide_zeros: bool
    certificate: str


@dataclass(frozen=True)
class SearchResult:
    """A sheet that was found: ``members`` lead to it with the choice that shows them."""

    number: str
    title: str
    address: str
    path: str
    members: tuple[Link, ...]


@dataclass(frozen=True)
class SearchPage:
    template: ClassVar[str] = "search.html"
    frame: Frame
    words: str
    results: tuple[SearchResult, ...]


@dataclass(frozen=True)
class AddressGroup:
    """Addresses of one kind, with examples from the release."""

    title: str
    text: str
    examples: tuple[Link, ...]


@dataclass(frozen=True)
class ApiPage:
    template: ClassVar[str] = "api.html"
    frame: Frame
    groups: tuple[AddressGroup, ...]
    xmla: str


@dataclass(frozen=True)
class BuilderPart:
    """A hierarchy in the form that writes a query; ``members.finder`` where only some are offered.

    ``chosen`` counts the members that are ticked; ``is_open``: what is chosen of it is worth seeing.
    """

    name: str
    place: Chooser
    level: Chooser
    members: Chooser
    chosen: int
    is_open: bool


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """The answer to a reader's query; ``whole`` False when the page shows its beginning only.

    ``signs`` are those that are seen with what they mean, ``note`` is what readers must know of how it came
    to be.
    """

    id: str
    title: str
    table: Table
    context: tuple[tuple[str, str], ...]
    signs: tuple[tuple[str, str], ...]
    note: str
    whole: bool
    link: str
    downloads: tuple[Link, ...]


@dataclass(frozen=True, eq=False)
class BuilderPage:
    """The form that writes a query, the query, and its answer or what is wrong with it."""

    template: ClassVar[str] = "query.html"
    frame: Frame
    address: str
    cubes: Chooser
    measures: tuple[Option, ...]
    parts: tuple[BuilderPart, ...]
    mdx: str
    mistakes: tuple[str, ...]
    answer: QueryAnswer | None


@dataclass(frozen=True)
class ErrorPage:
    """``ways`` lead on from here."""

    template: ClassVar[str] = "error.html"
    frame: Frame
    status: int
    sentence: str
    ways: tuple[Link, ...] = ()


Page = (
    HomePage
    | FolderPage
    | SheetPage
    | EmbedPage
    | ConfidentialityPage
    | SearchPage
    | ApiPage
    | BuilderPage
    | ErrorPage
)
