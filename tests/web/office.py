"""A small statistics office for the tests of the site: a cube, its true figures, and a release of them.

The truth is kept beside the release and never inside it, so that tests can look for what must not show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product

import numpy as np

from app.domain.catalogue import Catalogue
from app.domain.cube import Cube, Hierarchy, Level, Measure
from app.domain.history import ReleaseMark
from app.domain.masked import Axis, AxisMember, CellStatus, CellStyle, Layout
from app.domain.places import Places
from app.domain.publication import (
    Folder,
    MeasureProtection,
    Parameter,
    Position,
    QueryDefinition,
    RuleDefinition,
    Sheet,
)
from app.domain.release import Release

AT = Position("", 1)
Coordinate = tuple[str, ...]


def hierarchy(
    name: str,
    captions: Mapping[str, str],
    levels: Sequence[str],
    members: Sequence[tuple[str, str | None, int, Mapping[str, str]]],
    has_all: bool = True,
    time: bool = False,
    properties: Mapping[str, tuple[str, ...]] | None = None,
) -> Hierarchy:
    """Members are (key, parent's key, level, captions), parents before their children."""
    unique: dict[str, str] = {}
    for key, _, level, _ in members:
        unique[key] = f"[{name}].[All]" if has_all and level == 0 else f"[{name}].[{levels[level]}].&[{key}]"
    index = {key: number for number, (key, _, _, _) in enumerate(members)}
    return Hierarchy(
        dimension=name,
        name=name,
        unique_name=f"[{name}]",
        captions=captions,
        levels=tuple(Level(level, f"[{name}].[{level}]", {"en": level}) for level in levels),
        has_all=has_all,
        default_member=0,
        keys=tuple(key for key, _, _, _ in members),
        unique_names=tuple(unique[key] for key, _, _, _ in members),
        member_captions={
            code: tuple(texts.get(code, texts["en"]) for _, _, _, texts in members) for code in ("en", "es")
        },
        parent=np.array([-1 if parent is None else index[parent] for _, parent, _, _ in members], np.int32),
        depth=np.array([level for _, _, level, _ in members], np.int32),
        properties=properties or {},
        time=time,
    )


def axis_member(source: Hierarchy, index: int) -> AxisMember:
    parent = int(source.parent[index])
    return AxisMember(
        hierarchy=source.unique_name,
        unique_name=source.unique_names[index],
        captions={code: column[index] for code, column in source.member_captions.items()},
        level=source.levels[int(source.depth[index])].unique_name,
        depth=int(source.depth[index]),
        parent=source.unique_names[parent] if parent >= 0 else None,
    )


def measure_member(measure: Measure) -> AxisMember:
    return AxisMember(
        "[Measures]", measure.unique_name, measure.captions, "[Measures].[MeasuresLevel]", 0, None
    )


def build_cube() -> Cube:
    regions = {"N": "Norland", "S": "Sudland", "E": "Estmark", "W": "Westmark"}
    towns = {
        "N": ["Abeto", "Boj & Sons", "Cedro"],
        "S": ["Drago", "Encina"],
        "E": ["Fresno <b>", "Granado", "Haya"],
        "W": ["Iroko"],
    }
    members: list[tuple[str, str | None, int, Mapping[str, str]]] = [
        ("All", None, 0, {"en": "Whole country", "es": "Todo el país"})
    ]
    for key, name in regions.items():
        members.append((key, "All", 1, {"en": name}))
        for number, town in enumerate(towns[key], 1):
            members.append((f"{key}{number}", key, 2, {"en": town}))
    column = tuple(str(number % 4) for number in range(len(members)))
    row = tuple(str(number // 4) for number in range(len(members)))
    geography = hierarchy(
        "Geography",
        {"en": "Place", "es": "Lugar"},
        ["(All)", "Region", "Town"],
        members,
        properties={"map_column": column, "map_row": row},
    )
    sex = hierarchy(
        "Sex",
        {"en": "Sex", "es": "Sexo"},
        ["(All)", "Sex"],
        [
            ("All", None, 0, {"en": "Both sexes", "es": "Ambos sexos"}),
            ("W", "All", 1, {"en": "Women", "es": "Mujeres"}),
            ("M", "All", 1, {"en": "Men", "es": "Hombres"}),
        ],
    )
    year = hierarchy(
        "Year",
        {"en": "Year", "es": "Año"},
        ["Year"],
        [(str(y), None, 0, {"en": str(y)}) for y in (2021, 2022, 2023)],
        has_all=False,
        time=True,
    )
    people = Measure(
        "Taxpayers",
        "[Measures].[Taxpayers]",
        {"en": "Taxpayers", "es": "Contribuyentes"},
        "count",
        {"en": "people", "es": "personas"},
        "#,##0",
        0,
    )
    income = Measure(
        "Income",
        "[Measures].[Income]",
        {"en": "Income", "es": "Renta"},
        "sum",
        {"en": "euros", "es": "euros"},
        "#,##0.00",
        2,
    )
    return Cube("Tax", {"en": "Tax", "es": "Impuesto"}, (geography, sex, year), (people, income))


@dataclass
class Office:
    """A cube with true figures, from which releases are made."""

    cube: Cube = field(default_factory=build_cube)
    truth: dict[Coordinate, float] = field(default_factory=dict)
    hidden: set[Coordinate] = field(default_factory=set)
    empty: set[Coordinate] = field(default_factory=set)

    def __post_init__(self) -> None:
        generator = np.random.default_rng(7)
        geography, _, year = self.cube.hierarchies
        for town, s, y in product(geography.unique_names, ("W", "M"), year.unique_names):
            if "[Town]" not in town:
                continue
            at = (town, f"[Sex].[Sex].&[{s}]", y)
            count = int(generator.integers(0, 60))
            self._add(("[Measures].[Taxpayers]", *at), float(count))
            self._add(("[Measures].[Income]", *at), round(count * float(generator.lognormal(9.9, 0.4)), 2))
        counts = {cell[1:]: value for cell, value in self.truth.items() if "Taxpayers" in cell[0]}
        for cell, value in self.truth.items():
            people = counts[cell[1:]]
            if people == 0:
                self.empty.add(cell)
            elif people < 12:
                self.hidden.add(cell)
                # An unmistakable number, which no answer may hold in any form.
                self.truth[cell] = float(int(SENTINEL + 1000 * people + len(self.hidden))) + (
                    0.57 if value != round(value) else 0.0
                )

    def _add(self, cell: Coordinate, value: float) -> None:
        geography, sex, _ = self.cube.hierarchies
        for g in _ancestors(geography, cell[1]):
            for s in _ancestors(sex, cell[2]):
                key = (cell[0], g, s, cell[3])
                self.truth[key] = round(self.truth.get(key, 0.0) + value, 2)

    def release(self, release_id: str = "r1") -> tuple[Release, dict[Coordinate, int]]:
        cells = list(self.truth)
        status = np.array(
            [
                CellStatus.CONFIDENTIAL
                if cell in self.hidden
                else CellStatus.EMPTY
                if cell in self.empty
                else CellStatus.SHOWN
                for cell in cells
            ],
            np.int8,
        )
        values = np.where(status == CellStatus.SHOWN, np.array(list(self.truth.values())), np.nan)
        release = Release(
            id=release_id,
            state="live",
            created=datetime(2026, 11, 27, 9, 30, tzinfo=UTC),
            fingerprints={"Tax": "f"},
            keys=tuple(key_of(cell) for cell in cells),
            status=status,
            values=values,
        )
        return release, {cell: row for row, cell in enumerate(cells)}


SENTINEL = 7_310_000


def key_of(cell: Coordinate) -> str:
    """Key of a cell, as `app.domain.cell_key` writes it."""
    return " | ".join(["Tax", *(name for name in cell if not name.endswith(".[All]"))])


def _ancestors(source: Hierarchy, member: str) -> list[str]:
    index = source.index_of[member]
    found = []
    while index >= 0:
        found.append(source.unique_names[index])
        index = int(source.parent[index])
    return found


Tuples = Sequence[tuple[AxisMember, ...]]


def cross(*sets: Sequence[AxisMember]) -> Tuples:
    return list(product(*sets))


class MemoryStore:
    """The read protocol of the store over values in memory."""

    def __init__(self, office: Office | None = None, release_id: str = "r1") -> None:
        self.office = office or Office()
        self.live, self._rows = self.office.release(release_id)
        self.old: list[Release] = []
        self._made: dict[tuple[str, str, tuple[str, ...]], Layout] = {}
        self._catalogue = self._publish()

    def releases(self) -> tuple[ReleaseMark, ...]:
        return tuple(ReleaseMark(r.id, r.state, r.created) for r in (*self.old, self.live) if r is not None)

    def release(self, release_id: str) -> Release | None:
        return next((r for r in (*self.old, self.live) if r is not None and r.id == release_id), None)

    def catalogue(self, release_id: str) -> Catalogue | None:
        found = self.release(release_id)
        if found is None:
            return None
        return replace(self._catalogue, release_id=release_id, released=found.created)

    def certificate(self, release_id: str) -> str | None:
        return None

    def layout(self, release_id: str, sheet_id: str, query_id: str, choice: tuple[str, ...]) -> Layout | None:
        return self._made.get((sheet_id, query_id, choice))

    @property
    def layouts(self) -> Mapping[tuple[str, str, tuple[str, ...]], Layout]:
        return self._made

    # ------------------------------------------------------------------ making of

    def _layout(self, axes: Sequence[Tuples], slicer: tuple[AxisMember, ...]) -> Layout:
        cube = self.office.cube
        order = ["[Measures]", *(h.unique_name for h in cube.hierarchies)]
        defaults = {h.unique_name: h.unique_names[h.default_member] for h in cube.hierarchies}
        defaults["[Measures]"] = cube.measures[0].unique_name
        styles = tuple(CellStyle(m.format, m.decimals, m.unit) for m in cube.measures)
        rows, style = [], []
        for position in product(*reversed(axes)):
            members = dict(defaults)
            members.update({m.hierarchy: m.unique_name for m in slicer})
            members.update({m.hierarchy: m.unique_name for tuple_ in position for m in tuple_})
            rows.append(self._rows.get(tuple(members[name] for name in order), -1))
            style.append(cube.measure_index[members["[Measures]"]])
        return Layout(
            axes=tuple(Axis(tuple(positions)) for positions in axes),
            slicer=slicer,
            cell=np.array(rows, np.int64),
            style=np.array(style, np.int32),
            styles=styles,
        )

    def _publish(self) -> Catalogue:
        cube = self.office.cube
        geography, sex, year = cube.hierarchies
        places = [axis_member(geography, i) for i in range(geography.size)]
        regions = [m for m in places if m.depth == 1]
        towns = [m for m in places if m.depth == 2]
        sexes = [axis_member(sex, i) for i in range(sex.size)]
        years = [axis_member(year, i) for i in range(year.size)]
        people, income = (measure_member(m) for m in cube.measures)
        choices: dict[str, tuple[tuple[AxisMember, ...], ...]] = {}

        def query(name: str, view: str = "table", **options: object) -> QueryDefinition:
            title = {"en": f"The {name}", "es": f"La {name}"}
            return QueryDefinition(name, title, "SELECT …", view, AT, options)  # type: ignore[arg-type]

        def sheet(
            path: str,
            title: Mapping[str, str],
            queries: Sequence[tuple[QueryDefinition, Callable[..., Layout]]],
            parameters: Sequence[tuple[Parameter, Sequence[AxisMember]]] = (),
        ) -> Sheet:
            choices[path] = tuple(tuple(members) for _, members in parameters)
            for definition, make in queries:
                for chosen in product(*(members for _, members in parameters)):
                    self._made[path, definition.id, tuple(m.unique_name for m in chosen)] = make(*chosen)
            return Sheet(
                path,
                title,
                {
                    "en": "Figures **before** tax. <script>alert(1)</script>",
                    "es": "Cifras antes de impuestos.",
                },
                tuple(definition for definition, _ in queries),
                tuple(parameter for parameter, _ in parameters),
                AT,
            )

        by_year = (Parameter("year", {"en": "Year", "es": "Año"}, "Tax", "[Year].[Year].Members", AT), years)
        by_region = (Parameter("region", {"en": "Region", "es": "Región"}, "Tax", "…", AT), regions)
        territory = Folder(
            "territory",
            {"en": "Territory", "es": "Territorio"},
            {"en": "Where people live."},
            (),
            (
                sheet(
                    "territory/places",
                    {"en": "Places by sex", "es": "Lugares por sexo"},
                    [
                        (
                            query("table"),
                            lambda y: self._layout([cross([people, income], sexes), cross(places)], (y,)),
                        ),
                        (
                            query("bars", "chart", chart="bar"),
                            lambda y: self._layout([cross(sexes[1:]), cross(towns)], (y, people)),
                        ),
                    ],
                    [by_year],
                ),
                sheet(
                    "territory/towns",
                    {"en": "Towns of a region", "es": "Pueblos de una región"},
                    [
                        (
                            query("table"),
                            lambda r, y: self._layout(
                                [cross(sexes), cross([r, *[t for t in towns if t.parent == r.unique_name]])],
                                (y, income),
                            ),
                        ),
                        (
                            query("stacked", "chart", chart="stacked"),
                            lambda r, y: self._layout(
                                [cross(sexes[1:]), cross([t for t in towns if t.parent == r.unique_name])],
                                (y, people),
                            ),
                        ),
                    ],
                    [by_region, by_year],
                ),
                sheet(
                    "territory/map",
                    {"en": "Map of income", "es": "Mapa de la renta"},
                    [
                        (
                            query("map", "map", column="map_column", row="map_row"),
                            lambda y: self._layout([cross([income]), cross(towns)], (y,)),
                        )
                    ],
                    [by_year],
                ),
            ),
        )
        time = Folder(
            "time",
            {"en": "Over time", "es": "En el tiempo"},
            {},
            (),
            (
                sheet(
                    "time/years",
                    {"en": "Year by year", "es": "Año a año"},
                    [
                        (
                            query("table"),
                            lambda: self._layout([cross(years), cross(places, sexes)], (people,)),
                        ),
                        (
                            query("lines", "chart", chart="line"),
                            lambda: self._layout([cross(years), cross(towns[:4])], (people,)),
                        ),
                    ],
                ),
            ),
        )
        root = Folder("", {"en": "Tax statistics", "es": "Estadística fiscal"}, {}, (territory, time), ())
        return Catalogue(
            release_id=self.live.id,
            released=self.live.created,
            title={"en": "Tax statistics", "es": "Estadística fiscal"},
            description={"en": "Who pays what.", "es": "Quién paga qué."},
            publisher={"en": "Office of Norland", "es": "Oficina de Norland"},
            languages=("en", "es"),
            root=root,
            choices=choices,
            cube_of={(s, q): "Tax" for s, q, _ in self._made},
            cubes={"Tax": cube},
            protection=(
                MeasureProtection(
                    "Tax", "Taxpayers", (RuleDefinition("threshold", {"n": 12}),), None, "unit"
                ),
                MeasureProtection(
                    "Tax", "Income", (RuleDefinition("p-percent", {"p": 10}),), "Taxpayers", "value"
                ),
            ),
            hide_zeros=False,
            insiders=True,
            places={"Tax": self._places()},
        )

    def _places(self) -> Places:
        cube = self.office.cube
        columns = [cube.measure_index, *(tree.index_of for tree in cube.hierarchies)]
        coords = [[index[m] for index, m in zip(columns, cell, strict=True)] for cell in self._rows]
        return Places(np.array(coords, np.int32), np.array(list(self._rows.values()), np.int64))
