"""What SDMX calls the parts of a table: identifiers of the structure, its dimensions and its codes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from app.domain.cube import Hierarchy
from app.domain.masked import AxisMember
from app.web.formats.download import Download

TIME = "TIME_PERIOD"
#: Components of every structure beside its dimensions.
VALUE = "OBS_VALUE"
STATUS, CONFIDENTIALITY, UNIT, DECIMALS = "OBS_STATUS", "CONF_STATUS", "UNIT_MEASURE", "DECIMALS"
_TAKEN = ("STRUCTURE", "STRUCTURE_ID", "ACTION", TIME, VALUE, STATUS, CONFIDENTIALITY, UNIT, DECIMALS)
#: Code of a total in the cross-domain code lists of SDMX.
_TOTAL = "_T"
#: Years, and parts of years as SDMX writes them.
_PERIOD = re.compile(r"\d{4}(-(\d\d(-\d\d)?|A1|S[12]|T[1-3]|Q[1-4]|M\d\d|W\d\d|D\d{3}))?")


@dataclass(frozen=True, eq=False)
class Dimension:
    """A dimension; ``codes`` by a member's unique name, ``members`` those of the table in order."""

    id: str
    hierarchy: str
    codes: Mapping[str, str]
    members: Mapping[str, AxisMember]


def agency(download: Download) -> str:
    """The office as the agency that maintains the structures."""
    return identifier(download.office)


def structure(download: Download) -> str:
    """The dataflow of a query, whatever its choices, as ``agency:id(version)``."""
    return f"{agency(download)}:{identifier(download.identity)}(1.0.0)"


def code(text: str) -> str:
    """A text with nothing in it that SDMX takes in no identifier (IDType)."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return re.sub(r"[^A-Za-z0-9_@$-]+", "_", plain).strip("_")


def dimensions(download: Download) -> tuple[Dimension, ...]:
    """The dimensions of some cells, in the order of their columns."""
    cube = download.cube
    taken = set(_TAKEN)
    made: list[Dimension] = []
    for column in download.cells.columns:
        name = column.hierarchy
        of = {member.unique_name: member for member in column.members}
        index = cube.hierarchy_index.get(name)
        known = cube.hierarchies[index] if index is not None else None
        time = known is not None and _is_period(known) and all(d.id != TIME for d in made)
        identity = TIME if time else free(identifier(name), taken)
        taken.add(identity)
        made.append(Dimension(identity, name, _codes(known, of), of))
    return tuple(made)


def _codes(hierarchy: Hierarchy | None, members: Iterable[str]) -> Mapping[str, str]:
    """Codes of a hierarchy's members and of the table's further (calculated) ones."""
    known = _known_codes(hierarchy) if hierarchy is not None else {}
    codes = dict(known)
    taken = set(codes.values())
    for name in members:
        if name not in codes:
            codes[name] = free(code(_last(name)) or "X", taken)
            taken.add(codes[name])
    return codes


@lru_cache(maxsize=128)
def _known_codes(hierarchy: Hierarchy) -> Mapping[str, str]:
    """A member's key where that tells it apart in its whole hierarchy, else with its levels."""
    short = [code(key) for key in hierarchy.keys]
    counts: dict[str, int] = {}
    for text in short:
        counts[text] = counts.get(text, 0) + 1
    prefix = len(hierarchy.unique_name)
    codes: dict[str, str] = {}
    taken: set[str] = set()
    for index, (name, text) in enumerate(zip(hierarchy.unique_names, short, strict=True)):
        if index == 0 and hierarchy.has_all:
            wanted = _TOTAL
        else:
            wanted = text if text and counts[text] == 1 else code(name[prefix:]) or "X"
        codes[name] = free(wanted, taken)
        taken.add(codes[name])
    return codes


def _is_period(hierarchy: Hierarchy) -> bool:
    return hierarchy.time and all(map(_PERIOD.fullmatch, hierarchy.keys))


def _last(name: str) -> str:
    return name.rpartition("[")[2].rstrip("]")


def identifier(text: str) -> str:
    """An identifier that starts with a letter."""
    plain = code(text).replace("@", "_").replace("$", "_")
    return plain if plain[:1].isalpha() else f"X{plain}"


def free(wanted: str, taken: Container[str]) -> str:
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
