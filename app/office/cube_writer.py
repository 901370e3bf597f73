"""A cube's file from what was chosen for each column, and the rules that its measures begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tomlkit

from app.domain.errors import UserError

#: ``time`` is a level of periods, which don't add up to anything: its hierarchy has no total.
ROLES = ("level", "time", "label", "measure", "respondent", "holding", "weight", "nothing")
LEVELS = ("level", "time")


@dataclass(frozen=True)
class ColumnChoice:
    """What a column shall be; ``above`` names the level above, ``labels`` the level that it labels."""

    column: str
    role: str
    above: str = ""
    labels: str = ""
    negative: bool = False


@dataclass(frozen=True)
class CubeChoice:
    """A cube to be written; the facts are ``file``, or ``sql`` at ``url``."""

    name: str
    language: str
    columns: tuple[ColumnChoice, ...]
    threshold: int
    all_caption: str
    count_caption: str
    file: str = ""
    url: str = ""
    sql: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w][\w .-]{0,79}", self.name):
            raise UserError("A cube's name has letters, digits, spaces, - and _.")
        if not 1 <= self.threshold <= 1000:
            raise UserError("A threshold is a whole number from 1 to 1000.")
        known = {item.column for item in self.columns if item.role in LEVELS}
        if not known:
            raise UserError("Choose a column as a level at least, so that there is something to count by.")
        for item in self.columns:
            if item.role not in ROLES:
                raise UserError(f"{item.role} is nothing that a column can be.")
            if item.role in LEVELS and item.above and (item.above not in known or item.above == item.column):
                raise UserError(f"Column {item.column} can't lie below {item.above}, which is no level.")
            if item.role == "label" and item.labels not in known:
                raise UserError(f"Column {item.column} labels {item.labels or 'nothing'}, which is no level.")
        for role in ("respondent", "holding", "weight"):
            if sum(item.role == role for item in self.columns) > 1:
                raise UserError(f"Only one column can be the {role}.")


def chains(columns: Sequence[ColumnChoice]) -> tuple[tuple[str, ...], ...]:
    """Hierarchies: the levels from the top down to each column that nothing lies below.

    Raises
    ------
    UserError
        If levels lie below each other in a ring.
    """
    above = {item.column: item.above for item in columns if item.role in LEVELS}
    found = []
    for leaf in above:
        if leaf in above.values():
            continue
        chain = [leaf]
        while above[chain[-1]]:
            chain.append(above[chain[-1]])
            if len(chain) > len(above):
                raise UserError("Levels lie below each other in a ring.")
        found.append(tuple(reversed(chain)))
    if {column for chain in found for column in chain} != above.keys():
        raise UserError("Levels lie below each other in a ring.")
    return tuple(found)


def write_cube(choice: CubeChoice) -> str:
    """The text of the cube's file."""
    language = choice.language
    document = tomlkit.document()
    document["name"] = choice.name
    document["caption"] = _texts(language, choice.name)
    facts = tomlkit.table()
    if choice.file:
        facts["file"] = choice.file
    else:
        facts["url"] = choice.url
        facts["sql"] = choice.sql
    for role in ("respondent", "holding", "weight"):
        for item in choice.columns:
            if item.role == role:
                facts[role] = item.column
    document["facts"] = facts
    labels = {item.labels: item.column for item in choice.columns if item.role == "label"}
    periods = {item.column for item in choice.columns if item.role == "time"}
    dimensions = tomlkit.aot()
    for chain in chains(choice.columns):
        dimension = tomlkit.table()
        dimension["name"] = chain[-1]
        dimension["caption"] = _texts(language, chain[-1])
        hierarchy = tomlkit.table()
        if periods.isdisjoint(chain):
            hierarchy["all"] = _texts(language, choice.all_caption)
        else:
            hierarchy["time"] = True
        levels = tomlkit.aot()
        for column in chain:
            level = tomlkit.table()
            level["name"] = column
            level["key"] = column
            if column in labels:
                level["label"] = _texts(language, labels[column])
            levels.append(level)
        hierarchy["level"] = levels
        hierarchies = tomlkit.aot()
        hierarchies.append(hierarchy)
        dimension["hierarchy"] = hierarchies
        dimensions.append(dimension)
    document["dimension"] = dimensions
    measures = tomlkit.aot()
    count = tomlkit.table()
    count["name"] = choice.count_caption
    count["caption"] = _texts(language, choice.count_caption)
    count["aggregator"] = "count"
    measures.append(count)
    for item in choice.columns:
        if item.role == "measure":
            measure = tomlkit.table()
            measure["name"] = item.column
            measure["caption"] = _texts(language, item.column)
            measure["aggregator"] = "sum"
            measure["column"] = item.column
            if item.negative:
                measure["nonnegative"] = False
            measures.append(measure)
    document["measure"] = measures
    return tomlkit.dumps(document)


def with_rules(text: str, choice: CubeChoice) -> str:
    """The publication's file with rules for each measure of the cube that has none yet.

    The count gets the threshold; amounts are hidden wherever it is, and where one respondent could be
    estimated within ten per cent.
    """
    document = tomlkit.parse(text)
    if "confidentiality" not in document:
        document["confidentiality"] = tomlkit.table()
    rules = document["confidentiality"]
    mine = rules.get(choice.name) or tomlkit.table()
    if choice.count_caption not in mine:
        count = tomlkit.table()
        count["rules"] = [{"rule": "threshold", "n": choice.threshold}]
        mine[choice.count_caption] = count
    for item in choice.columns:
        if item.role == "measure" and item.column not in mine:
            amount = tomlkit.table()
            amount["with"] = choice.count_caption
            amount["rules"] = [{"rule": "p-percent", "p": 10}]
            mine[item.column] = amount
    if choice.name not in rules:
        rules[choice.name] = mine
    return str(tomlkit.dumps(document))


def _texts(language: str, text: str) -> object:
    table = tomlkit.inline_table()
    table[language] = text
    return table
