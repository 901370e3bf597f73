"""What if: another rule, another sheet, a level less, members merged; what it would hide and cost.

It is told before anything is published.
The search begins from the pattern that there is, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from app.cube.port import CubeServer
from app.domain.crawled import Crawl, CubeCells
from app.domain.errors import UserError
from app.domain.primary import PrimaryResult
from app.domain.progress import ProgressCallback
from app.domain.publication import (
    Confidentiality,
    CubeDefinition,
    DimensionDefinition,
    Folder,
    HierarchyDefinition,
    MeasureProtection,
    Publication,
    RuleDefinition,
    Sheet,
)
from app.pipeline.assess import assess_cells
from app.pipeline.build import build_problems
from app.pipeline.crawl import crawl
from app.pipeline.earlier import Begin, Past
from app.pipeline.recognise import recognised
from app.pipeline.suppress import Suppression, suppress
from app.pipeline.union_rules import UnionRules

OpenCube = Callable[[CubeDefinition], CubeServer]

#: About seconds of one core that the search for a pattern may take.
EFFORT = 4.0
MERGED_AT_LEAST = 2
LARGEST_FACTOR = 1e6


@dataclass(frozen=True)
class Figures:
    """A pattern in numbers: published cells, sensitive and hidden ones, the share of each measure's
    absolute value that is hidden, and the cost of what is hidden for others' sake."""

    cells: int
    sensitive: int
    hidden: int
    lost: float
    cost: float


@dataclass(frozen=True)
class WhatIf:
    """Now and then; keys of cells that would be hidden or shown otherwise."""

    now: Figures
    then: Figures
    newly_hidden: tuple[str, ...]
    newly_shown: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Computed:
    """The results of a run, as far as a question needs them."""

    crawl: Crawl
    primaries: PrimaryResult
    suppression: Suppression


def what_if(
    asked: Publication,
    given: Publication,
    now: Computed,
    past: Past,
    open_cube: OpenCube,
    progress: ProgressCallback | None = None,
    effort: float = EFFORT,
) -> WhatIf:
    """Compare the pattern that there is with that of a changed publication.

    Raises
    ------
    UserError
        If the changed publication can't be computed.
    """
    with ExitStack() as stack:
        servers: dict[str, CubeServer] = {}
        for definition in asked.cubes:
            servers[definition.name] = open_cube(definition)
            stack.callback(servers[definition.name].close)
        past = recognised(asked, servers, past, strict=False)
        same = (asked.root, asked.cubes) == (given.root, given.cubes)
        found = now.crawl if same else crawl(asked, servers, progress, past, exact=False)
        _require_moderate(found)
        verdicts = assess_cells(asked, found, servers, progress, past)
        problems = build_problems(asked, found, verdicts)
        begun = Begin(hidden_keys(now))
        judge = UnionRules(asked.confidentiality, found, servers)
        pattern = suppress(effort, found, verdicts, problems, judge, progress, begun)
    then = Computed(found, verdicts, pattern)
    before, after = states(now), states(then)
    return WhatIf(
        figures(now),
        figures(then),
        tuple(sorted(key for key, hidden in after.items() if hidden and before.get(key) is False)),
        tuple(sorted(key for key, hidden in after.items() if not hidden and before.get(key))),
    )


def _require_moderate(crawl: Crawl) -> None:
    """Factors so large that the search may fail are refused as they are written, whatever the cells hold: who
    asks must not learn from a failure how large these are.

    Raises
    ------
    UserError
    """
    for cells in crawl.cubes:
        size = np.abs(cells.equations.coefs)
        if np.any((size > LARGEST_FACTOR) | (size < 1 / LARGEST_FACTOR)):
            raise UserError("A formula multiplies cells by too large or too small a number to ask about.")


def assess_again(publication: Publication, crawl: Crawl, past: Past, open_cube: OpenCube) -> PrimaryResult:
    """The rules of a publication on cells that were crawled before.

    Raises
    ------
    UserError
        If a cube isn't the one that was crawled any more.
    """
    definitions = {cube.name: cube for cube in publication.cubes}
    with ExitStack() as stack:
        servers: dict[str, CubeServer] = {}
        for cells in crawl.cubes:
            definition = definitions.get(cells.cube.name)
            if definition is not None:
                servers[cells.cube.name] = open_cube(definition)
                stack.callback(servers[cells.cube.name].close)
            if definition is None or not _is_same(servers[cells.cube.name], cells):
                raise UserError(
                    f"Cube {cells.cube.name} isn't the one of the last run: ask what if, or recompute."
                )
        past = recognised(publication, servers, past, strict=False)
        return assess_cells(publication, crawl, servers, None, past)


def _is_same(server: CubeServer, cells: CubeCells) -> bool:
    """Whether an open cube has the data and members of a table."""
    cube = server.discover()
    if server.fingerprint() != cells.fingerprint:
        return False
    mine = [(tree.unique_name, tree.unique_names) for tree in cube.hierarchies]
    return mine == [(tree.unique_name, tree.unique_names) for tree in cells.cube.hierarchies] and [
        measure.name for measure in cube.measures
    ] == [measure.name for measure in cells.cube.measures]


def hidden_keys(computed: Computed) -> frozenset[str]:
    """Keys of all hidden cells, implied ones too."""
    return frozenset(
        key
        for cells, mark in zip(computed.crawl.cubes, computed.suppression.hidden, strict=True)
        for key in cells.keys(np.flatnonzero(mark))
    )


def states(computed: Computed) -> Mapping[str, bool]:
    """For each published cell whether it is hidden."""
    return {
        key: hidden
        for cells, mark in zip(computed.crawl.cubes, computed.suppression.hidden, strict=True)
        for key, hidden in zip(
            cells.keys(np.arange(cells.n_published)), mark[: cells.n_published].tolist(), strict=True
        )
    }


def figures(computed: Computed) -> Figures:
    """A pattern in numbers."""
    total = lost = 0.0
    cells = sensitive = hidden = 0
    for table, verdicts, mark in zip(
        computed.crawl.cubes, computed.primaries.cubes, computed.suppression.hidden, strict=True
    ):
        n = table.n_published
        cells += n
        sensitive += int(verdicts.sensitive[:n].sum())
        hidden += int(mark[:n].sum())
        for measure in np.unique(table.coords[:n, 0]).tolist():
            mine = np.flatnonzero(table.coords[:n, 0] == measure)
            size = np.abs(np.nan_to_num(table.values[mine]))
            if size.sum() > 0:
                total += 1.0
                lost += float(size[mark[mine]].sum() / size.sum())
    cost = sum(solution.cost for solution in computed.suppression.solutions)
    return Figures(cells, sensitive, hidden, lost / total if total else 0.0, cost)


# ---------------------------------------------------------------------- changed publications


def with_threshold(publication: Publication, cube: str, measure: str, n: int) -> Publication:
    """Another threshold for a measure, or for all that have one when ``measure`` is empty.

    Raises
    ------
    UserError
        If no such measure has a threshold.
    """
    if n < 2:
        raise UserError("A threshold is a whole number of contributors, 2 or more.")
    hit = False

    def changed(item: MeasureProtection) -> MeasureProtection:
        nonlocal hit
        if measure and (item.measure != measure or (cube and item.cube != cube)):
            return item
        hit = hit or any(rule.name == "threshold" for rule in item.rules)
        return replace(item, rules=tuple(_of_threshold(rule, n) for rule in item.rules))

    rules: Confidentiality = publication.confidentiality
    measures = tuple(changed(item) for item in rules.measures)
    if not hit:
        raise UserError(f"No measure {measure or 'of any name'} has a threshold.")
    return replace(publication, confidentiality=replace(rules, measures=measures))


def _of_threshold(rule: RuleDefinition, n: int) -> RuleDefinition:
    return replace(rule, parameters={**rule.parameters, "n": float(n)}) if rule.name == "threshold" else rule


def without_sheets(publication: Publication, sheets: Iterable[str]) -> Publication:
    """Some sheets less.

    Raises
    ------
    UserError
        If there is no such sheet.
    """
    dropped = set(sheets)
    known = {sheet.id for sheet in publication.sheets()}
    if dropped - known:
        raise UserError(f"There is no sheet {sorted(dropped - known)[0]}.")
    return replace(publication, root=_pruned(publication.root, dropped))


def with_sheets(publication: Publication, sheets: Iterable[Sheet]) -> Publication:
    """Some sheets more; one of a known id takes its place."""
    added = tuple(sheets)
    root = _pruned(publication.root, {sheet.id for sheet in added})
    return replace(publication, root=replace(root, sheets=(*root.sheets, *added)))


def without_level(publication: Publication, cube: str, level: str) -> Publication:
    """A cube without a level of its hierarchies; sheets that name it are refused when they are crawled.

    Raises
    ------
    UserError
        If no hierarchy has that level beside another.
    """

    def dropped(hierarchy: HierarchyDefinition) -> HierarchyDefinition:
        levels = tuple(item for item in hierarchy.levels if item.name != level)
        return replace(hierarchy, levels=levels) if levels else hierarchy

    changed = _with_hierarchies(publication, cube, dropped)
    if changed == publication:
        raise UserError(f"Cube {cube} has no level {level} beside another.")
    return changed


def with_merged(publication: Publication, cube: str, level: str, keys: Sequence[str]) -> Publication:
    """A cube in which some members of a level are one, whose key is theirs joined by ``+``.

    That there are such members, under one parent, is known when the cube is opened. Sheets that name one of
    them are refused when they are crawled.

    Raises
    ------
    UserError
        If there are fewer than two keys, or the cube has no such level made of a column.
    """
    chosen = tuple(dict.fromkeys(keys))
    if len(chosen) < MERGED_AT_LEAST:
        raise UserError("Name two members at least that are to be one.")
    whole = dict.fromkeys(chosen, "+".join(chosen))

    def merged(hierarchy: HierarchyDefinition) -> HierarchyDefinition:
        levels = tuple(
            replace(item, merged=whole) if item.name == level and item.parent is None else item
            for item in hierarchy.levels
        )
        return replace(hierarchy, levels=levels)

    changed = _with_hierarchies(publication, cube, merged)
    if changed == publication:
        raise UserError(f"Cube {cube} has no level {level} whose members can be merged.")
    return changed


def _with_hierarchies(
    publication: Publication, cube: str, change: Callable[[HierarchyDefinition], HierarchyDefinition]
) -> Publication:
    """The publication with the hierarchies of a cube changed."""

    def dimension(item: DimensionDefinition) -> DimensionDefinition:
        return replace(item, hierarchies=tuple(change(hierarchy) for hierarchy in item.hierarchies))

    cubes = tuple(
        replace(item, dimensions=tuple(dimension(inner) for inner in item.dimensions))
        if item.name == cube
        else item
        for item in publication.cubes
    )
    return replace(publication, cubes=cubes)


def _pruned(folder: Folder, dropped: set[str]) -> Folder:
    return replace(
        folder,
        folders=tuple(_pruned(inner, dropped) for inner in folder.folders),
        sheets=tuple(sheet for sheet in folder.sheets if sheet.id not in dropped),
    )
