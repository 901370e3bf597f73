"""check: a publication against its cubes, every mistake in one go, nothing run but one answer a query."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from app.cube.port import CubeServer
from app.domain.errors import Mistake, UserError
from app.domain.publication import CubeDefinition, Publication
from app.mdx import parse, substitute
from app.pipeline.members import choices_of, find_member


def check_publication(publication: Publication, open_cube: Callable[[CubeDefinition], CubeServer]) -> None:
    """Open every cube and try every parameter, query and manual decision.

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
            try:
                server = open_cube(definition)
            except UserError as error:
                mistakes.extend(error.mistakes)
                continue
            stack.callback(server.close)
            servers[definition.name] = server
        _check_sheets(publication, servers, mistakes)
        for decision in publication.confidentiality.decisions:
            for text in decision.members:
                if decision.cube in servers:
                    find_member(servers[decision.cube], text, decision.at, mistakes)
    if mistakes:
        raise UserError(mistakes)


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
                server.execute(substitute(tree, chosen))
            except UserError as error:
                mistakes.extend(error.mistakes)
