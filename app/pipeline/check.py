"""check: a publication against its cubes, every mistake in one go, nothing run but one answer a query."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import ExitStack

from app.cube.port import CubeServer
from app.domain.cellset import CellSet
from app.domain.cube import Cube
from app.domain.errors import Mistake, UserError
from app.domain.masked import AxisMember
from app.domain.publication import CubeDefinition, Publication, QueryDefinition
from app.domain.shapes import Shapes
from app.mdx import parse, quote, substitute
from app.pipeline.earlier import NO_PAST, Past
from app.pipeline.members import choices_of, find_member
from app.pipeline.recognise import recognised
from app.pipeline.same_facts import same_facts


def check_publication(
    publication: Publication,
    open_cube: Callable[[CubeDefinition], CubeServer],
    past: Past = NO_PAST,
    wrong: Container[str] = (),
) -> None:
    """Open every cube and try every parameter, query and manual decision.

    Parameters
    ----------
    past
        What earlier releases showed: a run stops where that isn't found in the cubes of today.
    wrong : container of str
        Files with mistakes: a cube that is half read isn't opened, nor anything tried on it.

    Raises
    ------
    UserError
        With every mistake of all files.
    OperatorError
        If data can't be read.
    """
    mistakes: list[Mistake] = []
    with ExitStack() as stack:
        servers: dict[str, CubeServer] = {}
        for definition in publication.cubes:
            if definition.at.file in wrong:
                continue
            try:
                server = open_cube(definition)
            except UserError as error:
                mistakes.extend(error.mistakes)
                continue
            stack.callback(server.close)
            servers[definition.name] = server
            mistakes.extend(_of_formulas(definition, server))
        mistakes.extend(same_facts(publication, servers))
        if len(servers) == len(publication.cubes):
            try:
                recognised(publication, servers, past)
            except UserError as error:
                mistakes.extend(error.mistakes)
        _check_sheets(publication, servers, mistakes)
        for decision in publication.confidentiality.decisions:
            for text in decision.members:
                if decision.cube in servers:
                    find_member(servers[decision.cube], text, decision.at, mistakes)
    if mistakes:
        raise UserError(list(dict.fromkeys(mistakes)))


def _of_formulas(definition: CubeDefinition, server: CubeServer) -> Iterator[Mistake]:
    """What is wrong with the cube's calculated members, also those that no query uses."""
    for member in definition.calculated:
        text = f"SELECT {{{member.hierarchy}.{quote(member.name)}}} ON 0 FROM {quote(definition.name)}"
        try:
            server.explore(parse(text))
        except UserError as error:
            yield from error.mistakes


def _check_sheets(publication: Publication, servers: dict[str, CubeServer], mistakes: list[Mistake]) -> None:
    for sheet in publication.sheets():
        choices = choices_of(sheet, servers, mistakes)
        if choices is None:
            continue
        names = (parameter.name for parameter in sheet.parameters)
        chosen = {name: members[0].unique_name for name, members in zip(names, choices, strict=True)}
        for query in sheet.queries:
            tree = parse(query.mdx, query.at.file, query.at.line)
            server = servers.get(tree.cube_name)
            if server is None:
                continue
            try:
                cellset = server.execute(substitute(tree, chosen))
            except UserError as error:
                mistakes.extend(error.mistakes)
                continue
            shapes = publication.shapes.get(str(query.options.get("shapes")))
            if shapes is not None:
                _check_shapes(query, cellset, shapes, mistakes)


def _check_shapes(query: QueryDefinition, cellset: CellSet, shapes: Shapes, mistakes: list[Mistake]) -> None:
    """Every area of a map needs its outline."""
    areas = [position[0] for position in cellset.axes[1].positions] if len(cellset.axes) > 1 else []
    without = [
        area.unique_name
        for area in areas
        if area.unique_name not in shapes.paths and _key_of(area, cellset.cube) not in shapes.paths
    ]
    if without:
        some = ", ".join(without[:5]) + (" …" if len(without) > 5 else "")
        cause = f"{query.options['shapes']}: {len(without)} members have no area: {some}."
        at = query.at
        mistakes.append(Mistake(at.file, at.line, at.column, cause, "Add them, or name shape-key."))


def _key_of(area: AxisMember, cube: Cube) -> str:
    index = cube.hierarchy_index.get(area.hierarchy)
    if index is None:
        return ""
    hierarchy = cube.hierarchies[index]
    at = hierarchy.index_of.get(area.unique_name)
    return "" if at is None else hierarchy.keys[at]
