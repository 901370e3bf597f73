"""Members that the text files name: those of a parameter, that of a manual decision."""

from __future__ import annotations

from collections.abc import Mapping

from app.cube.port import CubeServer
from app.domain.errors import Mistake, UserError
from app.domain.masked import AxisMember
from app.domain.publication import Parameter, Position, Sheet


def find_member(server: CubeServer, text: str, at: Position, mistakes: list[Mistake]) -> AxisMember | None:
    """The one member that a text names; None, with the mistake noted, when it names none or several."""
    try:
        members = server.members(f"{{{text}}}")
    except UserError as error:
        mistakes.extend(
            Mistake(at.file, at.line, at.column, item.cause, item.remedy) for item in error.mistakes
        )
        return None
    if len(members) != 1:
        mistakes.append(
            Mistake(at.file, at.line, at.column, f"{text} names {len(members)} members.", "Name one member.")
        )
        return None
    return members[0]


def choices_of(
    sheet: Sheet, servers: Mapping[str, CubeServer], mistakes: list[Mistake]
) -> tuple[tuple[AxisMember, ...], ...] | None:
    """Members of each parameter of a sheet; None, with the mistakes noted, when one has none."""
    choices: list[tuple[AxisMember, ...]] = []
    for parameter in sheet.parameters:
        if parameter.cube in servers:
            members = _members_of(parameter, servers[parameter.cube], mistakes)
            if members:
                choices.append(members)
    return tuple(choices) if len(choices) == len(sheet.parameters) else None


def _members_of(parameter: Parameter, server: CubeServer, mistakes: list[Mistake]) -> tuple[AxisMember, ...]:
    at = parameter.at
    try:
        members = server.members(parameter.set)
    except UserError as error:
        for item in error.mistakes:
            cause = f"Set of parameter {parameter.name}: {item.cause}"
            mistakes.append(Mistake(at.file, at.line, 0, cause, item.remedy, item.excerpt))
        return ()
    if not members:
        mistakes.append(Mistake(at.file, at.line, 0, f"Parameter {parameter.name} has no member to choose."))
    return members
