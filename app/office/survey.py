"""What is in uploaded facts: kinds of columns, slips by line, and what each column could be in a cube."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.cube.sources import read_database
from app.domain.errors import UserError
from app.office.folders import scratch
from app.office.intake import Problem, Rows, Writing, read_rows

#: Values that a column may have to be offered as a level.
MOST_MEMBERS = 20_000

#: Texts tell respondents apart where they have more values than `MANY`, each in fewer rows than `FEW`; others
#: holdings, where each has fewer respondents than that.
MANY = 50
FEW = 3

#: What statistical files call sampling weights, in the office's languages.
_WEIGHT = re.compile(
    r"(?:(?:sampl(?:e|ing)|design|final|survey)[ _.-]?)?(?:weights?|wgt|wt)"
    r"|(?:factor|fact|coeficient|coeficiente)(?:[ _.-]?(?:de|d))?[ _.-]?(?:elev\w*|expan\w*|pond\w*)"
    r"|pesos?|pes|pondera\w*|elevador|facele\w*"
)
#: What the columns that tell respondents apart are called.
_IDENTITY = re.compile(
    r"(?:(?:id|num|no|cod|code|codi|codigo)[ _.-]?)?"
    r"(?:id|nif|cif|nie|dni|vat|firm|company|enterprise|business|establishment|respondent|unit|person|household"
    r"|empresa|firma|establecimiento|establiment|hogar|llar|persona|informante?)"
    r"(?:[ _.-]?(?:id|no|nr|num|number|code))?"
    r"|.*[ _.-]id|id[ _.-].*|ident(?:if\w*)?"
)
#: Years, halves, quarters, months, weeks and days as statistical files write them; T: quarters in Spanish.
_PERIOD = re.compile(
    r"(?:199\d|20\d\d|2100)|(?:1[89]|20|21)\d\d[ -]?(?:[SH][12]|[QT][1-4]|M(?:0[1-9]|1[0-2])|W[0-5]\d)"
    r"|(?:1[89]|20|21)\d\d[-/](?:0[1-9]|1[0-2])(?:[-/](?:0[1-9]|[12]\d|3[01]))?"
    r"|(?:199\d|20\d\d)(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])?",
    re.IGNORECASE,
)
#: Years that sort respondents, and don't say when they were asked.
_OF_BIRTH = re.compile(r"birth|born|nacim|nac(?:id[oa])?$|naix|found|constru|built", re.IGNORECASE)
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class ColumnFacts:
    """What a column holds.

    ``distinct`` is -1 above `MOST_MEMBERS`; ``wrong`` is the first line whose value is no number although
    nearly all are; ``period`` says that all values are years, quarters or the like.
    """

    name: str
    numeric: bool
    integer: bool
    negative: bool
    distinct: int
    missing: int
    examples: tuple[str, ...]
    wrong: int = 0
    period: bool = False


@dataclass(frozen=True)
class Proposal:
    """What a column could be.

    ``role`` is level, time (a level of periods), label, measure, respondent, holding, weight or nothing;
    ``above`` the column of the level above; ``labels`` the level that it gives captions to.
    """

    column: str
    role: str
    above: str = ""
    labels: str = ""


@dataclass(frozen=True, eq=False)
class Survey:
    """What was found in a file."""

    writing: Writing
    rows: int
    columns: tuple[ColumnFacts, ...]
    sample: tuple[tuple[str, ...], ...]
    problems: tuple[Problem, ...]
    more_problems: int
    proposals: tuple[Proposal, ...]


class _Column:
    """One column while it is read: codes of its values, and what kind they are."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.codes: dict[str, int] = {}
        self.rows: list[int] = []
        self.full = False
        self.missing = self.numbers = self.integers = self.negatives = self.others = 0
        self.first_missing = 0
        self.other_lines: list[tuple[int, str]] = []

    def add(self, line: int, text: str) -> None:
        if not text:
            self.missing += 1
            self.first_missing = self.first_missing or line
        elif _NUMBER.fullmatch(text):
            self.numbers += 1
            self.integers += text.lstrip("+-").isdigit()
            self.negatives += text.startswith("-")
        else:
            self.others += 1
            if len(self.other_lines) < 20:
                self.other_lines.append((line, text))
        if not self.full:
            code = self.codes.setdefault(text, len(self.codes))
            self.rows.append(code)
            if len(self.codes) > MOST_MEMBERS:
                self.full, self.rows = True, []

    @property
    def mostly_numbers(self) -> bool:
        return self.numbers > 0 and self.others <= 0.05 * self.numbers

    def facts(self) -> ColumnFacts:
        filled = self.numbers > 0 and not self.others
        return ColumnFacts(
            self.name,
            self.mostly_numbers,
            filled and self.integers == self.numbers,
            self.negatives > 0,
            -1 if self.full else len(self.codes) - ("" in self.codes),
            self.missing,
            tuple(text for text in list(self.codes)[:4] if text),
            self.other_lines[0][0] if self.mostly_numbers and self.other_lines else 0,
            self.periods,
        )

    @property
    def periods(self) -> bool:
        named = _OF_BIRTH.search(self.name.strip()) is None
        return named and not self.full and not self.missing and all(map(_PERIOD.fullmatch, self.codes))


def survey(path: Path, writing: Writing) -> Survey:
    """Read a file once from end to end.

    Raises
    ------
    UserError
        If not even its columns can be read.
    """
    found = read_rows(path, writing)
    columns = [_Column(name) for name in found.names]
    sample: list[tuple[str, ...]] = []
    n = 0
    lines: list[int] = []
    for line, row in found.rows:
        n += 1
        lines.append(line)
        if len(sample) < 8:
            sample.append(tuple(item[:60] for item in row))
        for column, text in zip(columns, row, strict=True):
            column.add(line, text)
    if not n:
        found.tell(2, "", "There is no line of data.", True)
    for column in columns:
        if column.mostly_numbers:
            for line, text in column.other_lines:
                found.tell(line, column.name, f"Not a number, as nearly all of this column are: {text[:40]}")
        if column.missing:
            found.tell(
                column.first_missing, column.name, f"{column.missing} lines have no value; the first is here."
            )
    facts = tuple(column.facts() for column in columns)
    _tell_near_dependencies(columns, facts, found, lines)
    problems = tuple(sorted(found.problems, key=lambda item: (not item.fatal, item.line)))
    return Survey(writing, n, facts, tuple(sample), problems, found.left_out, propose(columns, facts, n))


def survey_database(url: str, sql: str) -> Survey:
    """What a query of a database gives. Whatever it changes is taken back.

    Raises
    ------
    UserError
        If the database refuses the query, or its columns have no names of their own.
    OperatorError
        If it can't be reached.
    """
    table, _digest = read_database(url, sql)
    with scratch() as folder:
        place = folder / "rows.parquet"
        try:
            pq.write_table(table, place)
        except (pa.ArrowException, ValueError):
            raise UserError("A column of the query is of a kind that can't be read; cast it there.") from None
        return survey(place, Writing("parquet"))


def _as_array(column: _Column) -> NDArray[np.int64]:
    return np.array(column.rows, dtype=np.int64)


def propose(columns: Sequence[_Column], facts: Sequence[ColumnFacts], n: int) -> tuple[Proposal, ...]:
    """What each column could be, from its values and from which column determines which.

    A column that is called what tells respondents apart does, where its values come in few rows, or once a
    period; else one with a value of its own in every row, and where there is none, the texts with most values
    if each comes in few rows; texts like them that these decide are holdings. Periods are levels of time.
    Numbers that are called a weight are sampling weights, others with many values measures; of the rest, A
    lies below B where each A has one B, and labels it where each B has one A too.
    """
    unit = _called_respondent(columns, facts, n)
    roles: dict[str, Proposal] = {}
    if unit is not None:
        roles[facts[unit].name] = Proposal(facts[unit].name, "respondent")
    levels: list[int] = []
    for number, fact in enumerate(facts):
        if number == unit:
            continue
        # A file of one year says so, too: the next one's will be added.
        if fact.period and fact.distinct <= max(MANY, n // 2):
            levels.append(number)
            continue
        every = (fact.distinct == -1 or fact.distinct >= 0.9 * n) and not fact.missing and n > 20
        if (
            every
            and (fact.integer or not fact.numeric)
            and "respondent" not in {p.role for p in roles.values()}
        ):
            roles[fact.name] = Proposal(fact.name, "respondent")
        elif _is_weight(fact) and "weight" not in {p.role for p in roles.values()}:
            roles[fact.name] = Proposal(fact.name, "weight")
        elif fact.numeric and (not fact.integer or fact.distinct == -1 or fact.distinct > max(50, n // 10)):
            roles[fact.name] = Proposal(fact.name, "measure")
        elif fact.distinct != -1 and 1 < fact.distinct <= max(50, n // 2) and not fact.missing:
            levels.append(number)
        else:
            roles[fact.name] = Proposal(fact.name, "nothing")
    arrays = {number: _as_array(columns[number]) for number in levels}
    # A level whose members have a handful of rows each would publish respondents one by one.
    texts = sorted(
        (a for a in levels if not facts[a].numeric and not facts[a].period and facts[a].distinct > MANY),
        key=lambda a: -facts[a].distinct,
    )
    told_apart = "respondent" in {p.role for p in roles.values()}
    if not told_apart and texts and facts[texts[0]].distinct > n // FEW:
        unit = texts.pop(0)
        roles[facts[unit].name] = Proposal(facts[unit].name, "respondent")
        levels.remove(unit)
    if unit is not None and not columns[unit].full:
        few, units = facts[unit].distinct // FEW, _as_array(columns[unit])
        owners = [a for a in texts if facts[a].distinct > few and _determines(units, arrays[a])]
        for number in owners[:1]:
            roles[facts[number].name] = Proposal(facts[number].name, "holding")
            levels.remove(number)
    below: dict[int, list[int]] = {number: [] for number in levels}
    for a in levels:
        for b in levels:
            if a != b and facts[a].distinct >= facts[b].distinct and _determines(arrays[a], arrays[b]):
                below[a].append(b)
    labelled: dict[int, int] = {}
    for a in levels:
        for b in below[a]:
            if (
                facts[a].distinct == facts[b].distinct > 1
                and (not facts[a].period, a) < (not facts[b].period, b)
                and a not in labelled
                and b not in labelled.values()
            ):
                labelled.setdefault(b, a)
    for number in levels:
        fact = facts[number]
        if number in labelled:
            roles[fact.name] = Proposal(fact.name, "label", labels=facts[labelled[number]].name)
            continue
        above = [
            b
            for b in below[number]
            if b not in labelled and facts[b].distinct < fact.distinct and facts[b].period == fact.period
        ]
        nearest = max(above, key=lambda b: facts[b].distinct, default=None)
        roles[fact.name] = Proposal(
            fact.name,
            "time" if fact.period else "level",
            above="" if nearest is None else facts[nearest].name,
        )
    return tuple(roles[fact.name] for fact in facts)


def _called_respondent(columns: Sequence[_Column], facts: Sequence[ColumnFacts], n: int) -> int | None:
    """The column that is called what tells respondents apart, and could."""
    periods = [column for column, fact in zip(columns, facts, strict=True) if fact.period]
    found: dict[int, int] = {}
    for number, fact in enumerate(facts):
        whole = (fact.integer and not fact.negative) or not fact.numeric
        if not whole or fact.missing or fact.period or not _IDENTITY.fullmatch(fact.name.strip().casefold()):
            continue
        if fact.distinct == -1:
            found[number] = MOST_MEMBERS + 1
        elif fact.distinct > MANY and (
            fact.distinct > n // FEW or any(_pairs(columns[number], period) >= 0.9 * n for period in periods)
        ):
            found[number] = fact.distinct
    return max(found, key=lambda number: found[number], default=None)


def _pairs(a: _Column, b: _Column) -> int:
    """How many pairs of values of two columns there are."""
    left, right = _as_array(a), _as_array(b)
    return len(np.unique(left * len(b.codes) + right))


def _is_weight(fact: ColumnFacts) -> bool:
    """Whether a column is called what sampling weights are called, and could be one."""
    numbers = fact.numeric and not fact.wrong and not fact.negative and not fact.missing
    return numbers and _WEIGHT.fullmatch(fact.name.strip().casefold()) is not None


def _determines(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    """Whether each value of ``a`` goes with one of ``b`` only."""
    width = int(b.max(initial=0)) + 1
    return len(np.unique(a * width + b)) == len(np.unique(a))


def _tell_near_dependencies(
    columns: Sequence[_Column], facts: Sequence[ColumnFacts], found: Rows, lines: Sequence[int]
) -> None:
    """Values that lie below two others although nearly all lie below one: mostly slips of the pen."""
    usable = [number for number, fact in enumerate(facts) if fact.distinct > 1 and not columns[number].full]
    for a in usable:
        for b in usable:
            many = facts[a].distinct > len(lines) // 2
            if a == b or many or facts[a].distinct < 2 * facts[b].distinct or facts[a].numeric:
                continue
            left, right = _as_array(columns[a]), _as_array(columns[b])
            width = int(right.max(initial=0)) + 1
            pairs, counts = np.unique(left * width + right, return_counts=True)
            owners, times = np.unique(pairs // width, return_counts=True)
            torn = owners[times > 1]
            if not len(torn) or len(torn) > max(1, len(owners) // 20):
                continue
            for code in torn[:5].tolist():
                mine = pairs // width == code
                rare = int(pairs[mine][np.argmin(counts[mine])] % width)
                row = int(np.flatnonzero((left == code) & (right == rare))[0])
                value = next(text for text, number in columns[a].codes.items() if number == code)
                cause = f"{value[:40]} lies under several of {columns[b].name}; here under the rarest."
                found.tell(lines[row], columns[a].name, cause)
