"""A publication as its authors write it: folders, sheets, queries, cubes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.domain.cube import Cuts, Measure, Texts
from app.domain.shapes import Shapes

View = Literal["table", "chart", "map"]


@dataclass(frozen=True)
class Position:
    """Where something is written, for error messages."""

    file: str
    line: int
    column: int = 0


@dataclass(frozen=True)
class QueryDefinition:
    """An MDX query of a sheet and how it is shown.

    ``id`` is unique in its sheet; ``mdx`` may name the sheet's parameters as ``@name``.
    ``at`` is where the MDX text starts in its file.
    """

    id: str
    title: Texts
    mdx: str
    view: View
    at: Position
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """A choice that a visitor makes: ``@name`` in the sheet's queries stands for one member of ``set``."""

    name: str
    title: Texts
    cube: str
    set: str
    at: Position


@dataclass(frozen=True)
class Contact:
    """Who answers questions about the figures, and where: an address of e-mail, a number, a web page.

    What is empty isn't said.
    """

    name: Texts = field(default_factory=dict)
    email: str = ""
    phone: str = ""
    page: str = ""

    def __bool__(self) -> bool:
        """Whether it says how to ask."""
        return bool(self.email or self.phone or self.page)


#: Queries, or parameters, of one sheet: more are no page that anybody reads.
MOST_ON_SHEET = 100


@dataclass(frozen=True)
class Sheet:
    """A page of the publication; ``id`` is its path, as in ``income/region-sex-age``.

    ``contact`` and ``next_release`` are those of the publication where it has none of its own.
    """

    id: str
    title: Texts
    notes: Texts
    queries: tuple[QueryDefinition, ...]
    parameters: tuple[Parameter, ...]
    at: Position
    contact: Contact = field(default_factory=Contact)
    next_release: str = ""


@dataclass(frozen=True)
class Folder:
    """A folder of the publication's tree; ``id`` is its path, ``""`` for the root."""

    id: str
    title: Texts
    notes: Texts
    folders: tuple[Folder, ...]
    sheets: tuple[Sheet, ...]

    def walk(self) -> Iterator[Sheet]:
        """Every sheet below, in order."""
        yield from self.sheets
        for folder in self.folders:
            yield from folder.walk()


@dataclass(frozen=True)
class LevelDefinition:
    """Level: key column, caption column by language, column to order by, property columns.

    ``unique``: a key stands for one member in the whole level; else only beneath one parent.
    ``parent``: column with the key of the member above, so that the level holds a whole tree (a parent-child
    hierarchy); tops have none, or ``null_parent``, or themselves.
    ``merged``: members taken as one, each key with the key of the whole; questions alone ask for that.
    ``member_name``: column with what queries call a member by, where that isn't its caption.
    ``period``: what its members are in time (``year``, ``quarter``, ``month``, ``week``).
    ``hidden``: which members are none of the hierarchy, so that those beneath stand under the member above:
    those whose name is ``blank``, or is that of the ``parent`` too.
    ``bands``: which measure its members divide by size, and where.
    ``formerly``: names that it had when it was published; ``recoded``: today's keys by those of then.
    """

    name: str
    captions: Texts
    key: str
    caption_columns: Mapping[str, str]
    order: str | None
    properties: Mapping[str, str] = field(default_factory=dict)
    unique: bool = True
    parent: str | None = None
    null_parent: str | None = None
    merged: Mapping[str, str] = field(default_factory=dict)
    member_name: str | None = None
    period: str = ""
    hidden: str = ""
    bands: Cuts | None = None
    formerly: tuple[str, ...] = ()
    recoded: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class HierarchyDefinition:
    """``all_captions`` None means that the hierarchy has no All member.

    ``all_name`` is what queries call it, where that isn't its caption. ``default_member`` is a key, a unique
    name, or the names or keys from the top on in brackets, as in ``[2023].[Q2]``.
    """

    name: str
    captions: Texts
    all_captions: Texts | None
    levels: tuple[LevelDefinition, ...]
    default_member: str | None = None
    time: bool = False
    all_name: str | None = None
    formerly: tuple[str, ...] = ()


@dataclass(frozen=True)
class DimensionDefinition:
    """A dimension on columns of the facts, or of a table joined by ``table_key`` = facts' ``fact_key``.

    The table is the file ``table``, or what ``sql`` gives from the database of the facts. Without
    ``lists_unknown`` facts that are of no member of it count in totals alone.
    """

    name: str
    captions: Texts
    hierarchies: tuple[HierarchyDefinition, ...]
    table: str | None = None
    table_key: str | None = None
    fact_key: str | None = None
    sql: str | None = None
    lists_unknown: bool = True
    formerly: tuple[str, ...] = ()

    @property
    def has_table(self) -> bool:
        return self.table is not None or self.sql is not None


@dataclass(frozen=True)
class MeasureDefinition:
    name: str
    captions: Texts
    aggregator: str
    column: str | None
    unit: Texts
    format: str
    decimals: int
    nonnegative: bool
    of_which: tuple[str, ...] = ()
    formerly: tuple[str, ...] = ()

    def measure(self, unique_name: str, caption: Texts) -> Measure:
        """The measure that it is in a cube, by that name, with a caption where it has none of its own."""
        return Measure(
            self.name,
            unique_name,
            self.captions or caption,
            self.aggregator,
            self.unit,
            self.format,
            self.decimals,
            self.nonnegative,
            self.column or "",
            self.of_which,
        )


@dataclass(frozen=True)
class CalculatedDefinition:
    """A calculated member that the cube offers to every query; ``hierarchy`` e.g. ``[Measures]``.

    Where several meet in a cell, the one of the highest ``solve_order`` is worked out over the others.
    """

    hierarchy: str
    name: str
    captions: Texts
    formula: str
    format: str | None
    decimals: int | None
    unit: Texts
    at: Position
    solve_order: int | None = None


@dataclass(frozen=True)
class NamedSetDefinition:
    """A set that the cube offers to every query by its name; ``at`` is where its formula starts."""

    name: str
    formula: str
    at: Position


@dataclass(frozen=True)
class FactsDefinition:
    """Facts from a Parquet or CSV file (absolute path), or from ``sql`` at a SQLAlchemy ``url``.

    ``respondent`` is the column that tells contributors apart (None: each row is one), ``holding`` the
    owner that units are counted under, ``weight`` the sampling weight, ``request`` a truthy mark of a
    contributor that asked for confidentiality. ``engine`` is who aggregates: ``duckdb``, which takes the
    facts in, or ``postgresql`` or ``spark``, where they stay at ``url``.
    """

    file: str | None
    url: str | None
    sql: str | None
    respondent: str | None
    holding: str | None
    weight: str | None
    request: str | None
    engine: str = "duckdb"


@dataclass(frozen=True)
class RemoteDefinition:
    """A cube on another OLAP server.

    Attributes
    ----------
    engine : str
        ``xmla`` or ``atoti``.
    url : str
        Without user and password.
    catalog, cube : str
        Names on the server; ``catalog`` may be empty.
    user_variable, password_variable : str
        Environment variables that hold them; empty: the server asks for none.
    timeout : float
        Seconds that one answer may take.
    hierarchies : tuple of str
        Unique names of those that are used; empty: all.
    count : str
        Measure that says how many contributors a cell has; empty: the server can't say.
    top : mapping of measure to tuple of str
        Measures that say its largest contributions, the largest first.
    """

    engine: str
    url: str
    catalog: str
    cube: str
    user_variable: str = ""
    password_variable: str = ""
    timeout: float = 300.0
    hierarchies: tuple[str, ...] = ()
    count: str = ""
    top: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def profile_measures(self) -> tuple[str, ...]:
        """Measures that tell of contributors."""
        names = [self.count, *(name for names in self.top.values() for name in names)]
        return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class CubeDefinition:
    """A cube: of ``facts``, or ``remote`` on another server, which then has its dimensions too."""

    name: str
    captions: Texts
    facts: FactsDefinition
    dimensions: tuple[DimensionDefinition, ...]
    measures: tuple[MeasureDefinition, ...]
    calculated: tuple[CalculatedDefinition, ...]
    at: Position
    named_sets: tuple[NamedSetDefinition, ...] = ()
    remote: RemoteDefinition | None = None
    formerly: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleDefinition:
    """A rule by the field's name (``threshold``, ``dominance``, ``p-percent``, ``request``, ``zero``)."""

    name: str
    parameters: Mapping[str, float]


@dataclass(frozen=True)
class MeasureProtection:
    """How one measure of one cube is protected.

    ``associated_with`` names the protecting measure whose hidden cells are hidden here too.
    ``weight`` is the information loss of hiding a cell: its ``value``, a ``unit``, the ``log`` of the value,
    its ``distance`` from what is sensitive, or the value of another ``measure``, ``weighed_by``.
    ``unions``: the sum of a relation's hidden cells is protected like a cell.
    """

    cube: str
    measure: str
    rules: tuple[RuleDefinition, ...]
    associated_with: str | None
    weight: str
    weighed_by: str = ""
    unions: bool = False


@dataclass(frozen=True)
class CellDecision:
    """A manual decision on one cell: ``hide`` (with a protection level in %), ``show`` or ``waive``."""

    cube: str
    measure: str
    members: tuple[str, ...]
    decision: Literal["hide", "show", "waive"]
    percent: float
    reason: str
    at: Position


@dataclass(frozen=True)
class Confidentiality:
    """``effort`` is how long the solver may search for a cheaper pattern, in about seconds of one core."""

    measures: tuple[MeasureProtection, ...]
    decisions: tuple[CellDecision, ...]
    hide_zeros: bool
    insiders: bool
    effort: float = 40.0


@dataclass(frozen=True)
class Forgetting:
    """A decision that what earlier releases showed of something that is gone needn't be known any more.

    ``what`` is its unique name, or that of a level whose members are gone; empty: the whole cube.
    """

    cube: str
    what: str
    reason: str


@dataclass(frozen=True)
class ReleasePolicy:
    """``keep``: releases taken down whose cells are kept, so that they can be shown again."""

    keep: int = 10
    forget: tuple[Forgetting, ...] = ()


@dataclass(frozen=True)
class Theme:
    """How the office's site looks: its accent colour on a light and on a dark screen (``#rrggbb``), its logo
    as SVG. What is empty looks as shipped."""

    accent: str = ""
    accent_dark: str = ""
    logo: str = ""


@dataclass(frozen=True)
class Publication:
    """Everything that the authors wrote, checked; ``digest`` is a hash over all of it.

    ``shapes`` are outlines for maps by the file that queries name. ``next_release`` is when new figures are
    expected, an ISO day or month (``2027-03-15``, ``2027-03``).
    """

    folder: str
    title: Texts
    description: Texts
    publisher: Texts
    languages: tuple[str, ...]
    cubes: tuple[CubeDefinition, ...]
    root: Folder
    confidentiality: Confidentiality
    digest: str
    release: ReleasePolicy = ReleasePolicy()
    shapes: Mapping[str, Shapes] = field(default_factory=dict)
    theme: Theme = field(default_factory=Theme)
    contact: Contact = field(default_factory=Contact)
    next_release: str = ""

    def sheets(self) -> Iterator[Sheet]:
        return self.root.walk()
