"""PX, the format of PC-Axis and PxWeb (https://www.scb.se/px-file-format), version 2013.

A PX file is a full cross of its variables. An axis that isn't one becomes a single variable whose values
are its positions, so that a file has the table's cells, all of them and no others, in its order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from app.domain.cube import text_in
from app.domain.masked import AxisMember, CellStatus
from app.domain.numbers import plain_number
from app.web.formats import sdmx
from app.web.formats.csv import BLOCK
from app.web.formats.download import Download, TableDownload
from app.web.tables import MEASURES, caption

MEDIA_TYPE = "text/x-pcaxis; charset=utf-8"

#: What stands in the place of a figure.
_SIGNS = {
    int(CellStatus.CONFIDENTIAL): '".."',
    int(CellStatus.EMPTY): '"-"',
    int(CellStatus.UNRELEASED): '"..."',
}
_ABSENT = '"."'
_IN_A_LINE = 16
_LONGEST = 200
_LONGEST_MATRIX = 20


@dataclass(frozen=True)
class _Variable:
    """``names`` are the values as read, no two alike; ``members`` those of the measures, if it is theirs."""

    name: str
    names: tuple[str, ...]
    codes: tuple[str, ...]
    measures: tuple[str, ...] = ()


def parts(download: TableDownload) -> Iterator[bytes]:
    """The file, UTF-8; a hidden figure is ``".."``, one not released ``"..."``, and a note says so."""
    stub, heading = _variables(download)
    words = download.words
    created = download.released.strftime("%Y%m%d %H:%M")
    seen = [(".. ", CellStatus.CONFIDENTIAL, "hidden"), ("... ", CellStatus.UNRELEASED, "unreleased")]
    signs = [sign + words[word] for sign, status, word in seen if np.any(download.masked.status == status)]
    # What isn't there has this sign as well.
    signs.insert(1, f"- {words['empty']}")
    lines = [
        _say("CHARSET", "ANSI"),
        _say("AXIS-VERSION", "2013"),
        _say("CODEPAGE", "utf-8"),
        _say("LANGUAGE", download.language),
        _say("CREATION-DATE", created),
        *_decimals(download, (*stub, *heading)),
        _say("MATRIX", sdmx.code("/".join(download.identity.split("/")[-2:]))[:_LONGEST_MATRIX]),
        _say("SUBJECT-CODE", sdmx.code(download.number) or "1"),
        _say("SUBJECT-AREA", text_in(download.cube.captions, download.language) or download.cube.name),
        _say("TITLE", download.title),
        _say("CONTENTS", download.title),
        *_units(download, (*stub, *heading)),
        *(_say(key, *(v.name for v in variables)) for key, variables in _named(stub, heading)),
        *(_say("VALUES", *variable.names, of=variable.name) for variable in (*stub, *heading)),
        *(_say("CODES", *variable.codes, of=variable.name) for variable in (*stub, *heading)),
        _say("LAST-UPDATED", created),
        *_asking(download),
        _say("SOURCE", download.publisher),
        _say("DATASYMBOL2", words["confidential"]),
        _say("DATASYMBOL3", words["not released"]),
        _say("DATASYMBOLNIL", words["empty"]),
        _say("NOTE", "#".join(filter(None, [*signs, download.notes]))),
        "DATA=",
        *_figures(download, stub, heading),
    ]
    yield ("\r\n".join(lines) + ";\r\n").encode()


def _asking(download: TableDownload) -> Iterator[str]:
    """Whom to ask, and the day of the next figures; PX has no word for a month."""
    if len(download.next_release) == len("2027-03-15"):
        yield _say("NEXT-UPDATE", f"{download.next_release.replace('-', '')} 00:00")
    if download.contact:
        yield _say("CONTACT", "#".join(download.contact_parts))


def _named(
    stub: Sequence[_Variable], heading: Sequence[_Variable]
) -> Iterable[tuple[str, Sequence[_Variable]]]:
    return [(key, some) for key, some in (("STUB", stub), ("HEADING", heading)) if some]


def _variables(download: TableDownload) -> tuple[list[_Variable], list[_Variable]]:
    """Those of the stub (slicer, then the axes from the outermost) and those of the heading (axis 0)."""
    masked = download.masked
    codes = {dimension.hierarchy: dimension.codes for dimension in sdmx.dimensions(download)}
    taken: set[str] = set()

    def variables(positions: Sequence[tuple[AxisMember, ...]]) -> list[_Variable]:
        if not positions:
            return []
        columns = _columns(positions)
        crossed = [tuple(m.unique_name for m in position) for position in product(*columns)]
        if crossed == [tuple(member.unique_name for member in position) for position in positions]:
            groups: list[Sequence[tuple[AxisMember, ...]]] = [[(m,) for m in column] for column in columns]
        else:
            groups = [positions]
        return [_variable(download, group, codes, taken) for group in groups]

    stub = variables([masked.slicer]) if masked.slicer else []
    for axis in reversed(masked.axes[1:]):
        stub += variables(axis.positions)
    return stub, variables(masked.axes[0].positions) if masked.axes else []


def _columns(positions: Sequence[tuple[AxisMember, ...]]) -> list[list[AxisMember]]:
    """The members of each hierarchy, one of each unique name."""
    found: list[dict[str, AxisMember]] = [{} for _ in positions[0]]
    for position in positions:
        for column, member in zip(found, position, strict=True):
            column.setdefault(member.unique_name, member)
    return [list(column.values()) for column in found]


def _variable(
    download: Download,
    positions: Sequence[tuple[AxisMember, ...]],
    codes: Mapping[str, Mapping[str, str]],
    taken: set[str],
) -> _Variable:
    hierarchies = [member.hierarchy for member in positions[0]]
    wanted = _plain(" · ".join(download.hierarchy_caption(h).strip("[]") for h in hierarchies))
    name = wanted if wanted not in taken else f"{wanted} {' '.join(hierarchies)}"
    taken.add(name)
    coded = tuple(":".join(codes[m.hierarchy][m.unique_name] for m in position) for position in positions)
    read = [_plain(" · ".join(caption(m, download.language) for m in position)) for position in positions]
    measures = tuple(position[0].unique_name for position in positions) if hierarchies == [MEASURES] else ()
    return _Variable(name, _unique(read, coded), coded, measures)


def _unique(texts: Sequence[str], codes: Sequence[str]) -> tuple[str, ...]:
    """Texts told apart by their codes where they are the same, and by numbers where those are too."""
    counts = Counter(texts)
    seen: Counter[str] = Counter()
    told = []
    for text, code in zip(texts, codes, strict=True):
        name = text if counts[text] == 1 else f"{text} ({code})"
        seen[name] += 1
        told.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return tuple(told)


def _measures(variables: Iterable[_Variable]) -> _Variable | None:
    return next((variable for variable in variables if variable.measures), None)


def _decimals(download: TableDownload, variables: Sequence[_Variable]) -> Iterator[str]:
    """How many there are, and which measures are shown with more than the others."""
    styles = download.cells.first_styles(MEASURES, BLOCK)
    digits = [style.decimals for style in styles.values()] or [s.decimals for s in download.masked.styles]
    least = min(digits, default=0)
    yield f"DECIMALS={max(digits, default=0)};"
    yield f"SHOWDECIMALS={least};"
    measures = _measures(variables)
    if measures is not None:
        for name, unique in zip(measures.names, measures.measures, strict=True):
            if unique in styles and styles[unique].decimals > least:
                yield f'PRECISION("{measures.name}","{name}")={styles[unique].decimals};'


def _units(download: Download, variables: Sequence[_Variable]) -> Iterator[str]:
    """The unit of all figures, or that of each measure."""
    styles = download.cells.first_styles(MEASURES, BLOCK)
    said = {unique: text_in(style.unit, download.language) for unique, style in styles.items()}
    everyone = list(dict.fromkeys(filter(None, said.values())))
    yield _say("UNITS", " / ".join(everyone) or "-")
    measures = _measures(variables)
    if measures is not None and len(everyone) > 1:
        yield _say("CONTVARIABLE", measures.name)
        for name, unique in zip(measures.names, measures.measures, strict=True):
            yield _say("UNITS", said.get(unique) or "-", of=name)


def _figures(
    download: TableDownload, stub: Sequence[_Variable], heading: Sequence[_Variable]
) -> Iterator[str]:
    """A row of the table on each line, or on several when it is long.

    A table without a cell has the sign of what isn't there in every place, for a PX file has them all.
    """
    masked = download.masked
    figures = [
        plain_number(value) if status == CellStatus.SHOWN else _SIGNS[status]
        for value, status in zip(masked.values.tolist(), masked.status.tolist(), strict=True)
    ]
    width = prod(len(variable.names) for variable in heading)
    figures = figures or [_ABSENT] * (width * prod(len(variable.names) for variable in stub))
    for row in range(0, len(figures), max(width, 1)):
        download.patience.check()
        for start in range(row, row + width, _IN_A_LINE):
            yield " ".join(figures[start : min(start + _IN_A_LINE, row + width)])


def _say(key: str, *texts: str, of: str = "") -> str:
    """A keyword with its texts, on as many lines as they need."""
    lines = [f'{key}("{of}")=' if of else f"{key}="]
    for place, text in enumerate(texts):
        part = f'"{_plain(text)}"' + ("," if place < len(texts) - 1 else ";")
        if len(lines[-1]) + len(part) > _LONGEST and place:
            lines.append("")
        lines[-1] += part
    return "\r\n".join(lines)


def _plain(text: str) -> str:
    """A text that fits between quotation marks; line ends are written as ``#``."""
    printable = "".join(c for c in text.strip() if c == "\n" or ord(c) >= 32)
    return printable.replace('"', "'").replace("\n", "#") or "-"
