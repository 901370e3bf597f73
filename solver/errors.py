"""The errors of the package, split by who can mend them.

SolverError
├── InputError               whoever wrote the input
│   └── MultipleInputError   all of its mistakes in one go
├── InfeasibleError          whoever set the rules: no pattern can protect these cells
│   └── UnreachableLevelError    the levels ask for more than the external bounds allow
├── UndecidedError           whoever set the limit: it was reached before there was an answer
└── InternalError            us
    └── NumericalError       us, where floating point gives up
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# So many relations of an obstacle are told.
_TOLD = 5


class SolverError(Exception):
    """Anything the package refuses or fails to do."""


class InputError(SolverError):
    """The input is wrong; says where, why and what to do.

    Parameters
    ----------
    cause
        What is wrong.
    remedy
        What the author of the input can do.
    file, line, cell
        Where, as far as known; lines count from 1.
    """

    def __init__(
        self,
        cause: str,
        remedy: str = "",
        *,
        file: str | None = None,
        line: int | None = None,
        cell: str | None = None,
    ) -> None:
        self.cause, self.remedy, self.file, self.line, self.cell = cause, remedy, file, line, cell
        place = ":".join(str(part) for part in (file, line) if part is not None)
        where = ", ".join(part for part in (place, f"cell {cell}" if cell is not None else "") if part)
        text = f"{where}: {cause}" if where else cause
        # What was handed in may hold half a character, which no terminal or file takes.
        super().__init__(f"{text} {remedy}".strip().encode("utf-8", "backslashreplace").decode())


class MultipleInputError(InputError):
    """Several mistakes of one input, told in one go.

    Parameters
    ----------
    problems
        The single mistakes, at least one, in the order of the input.
    """

    def __init__(self, problems: Sequence[InputError]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


@dataclass(frozen=True)
class Obstacle:
    """One requirement that no allowed pattern can meet.

    Attributes
    ----------
    cell
        Name of the cell that cannot be protected.
    attacker
        "outsider" or the name of the insider.
    interval
        What the attacker learns when everything that may be hidden is hidden.
    required
        Lowest and highest value that must stay possible.
    required_width
        Width that the interval must have.
    relations
        Indices of the relations whose sum proves the interval.
    spelled
        The same relations by the names of their cells.
    shown
        Names of the cells that must be shown and stand in the way.
    frozen
        Names of the cells whose bounds leave no room and stand in the way.
    """

    cell: str
    attacker: str
    interval: tuple[float, float]
    required: tuple[float, float]
    required_width: float
    relations: tuple[int, ...] = ()
    spelled: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [
            f"cell {self.cell} ({self.attacker}) stays within"
            f" [{self.interval[0]:.15g}, {self.interval[1]:.15g}]"
            f" and must reach [{self.required[0]:.15g}, {self.required[1]:.15g}]"
        ]
        if self.required_width:
            parts.append(f"with width {self.required_width:.15g}")
        if self.spelled:
            more = f" and {len(self.spelled) - _TOLD} more" if len(self.spelled) > _TOLD else ""
            parts.append("by " + ", ".join(self.spelled[:_TOLD]) + more)
        else:
            parts.append("by its own external bounds")
        if self.shown:
            parts.append("must-show cells in the way: " + ", ".join(self.shown))
        if self.frozen:
            parts.append("cells without room in the way: " + ", ".join(self.frozen))
        return "; ".join(parts)


@dataclass(frozen=True)
class Conflict:
    """Cells of a table whose values can't all be changed as they must be.

    Attributes
    ----------
    cells
        Names of cells that can't all leave their protection intervals, or take a multiple nearby.
    relations
        Indices of the relations that tie them.
    spelled
        The same relations by the names of their cells.
    kept
        Names of the cells in these that keep their value.
    """

    cells: tuple[str, ...]
    relations: tuple[int, ...]
    spelled: tuple[str, ...]
    kept: tuple[str, ...] = ()

    def __str__(self) -> str:
        others = f" and {len(self.cells) - 20} more" if len(self.cells) > 20 else ""
        cells = ", ".join(self.cells[:20]) + others
        more = f" and {len(self.spelled) - _TOLD} more" if len(self.spelled) > _TOLD else ""
        kept = f"; cells that keep their value: {', '.join(self.kept[:20])}" if self.kept else ""
        by = f" by {', '.join(self.spelled[:_TOLD])}{more}" if self.spelled else ""
        return f"cells {cells} can't change together{by}{kept}"


class InfeasibleError(SolverError):
    """What was asked for doesn't exist; proven, with what stands in the way."""

    def __init__(
        self,
        obstacles: tuple[Obstacle, ...],
        remedy: str = "",
        *,
        what: str = "no suppression pattern is safe",
        conflict: Conflict | None = None,
    ) -> None:
        self.obstacles, self.conflict = obstacles, conflict
        lines = [*obstacles, *([] if conflict is None else [conflict])]
        shown = "\n".join(f"- {line}" for line in lines[:20])
        more = f"\n… and {len(lines) - 20} more" if len(lines) > 20 else ""
        super().__init__(f"{what}:\n{shown}{more}\n{remedy}".strip())


class UnreachableLevelError(InfeasibleError):
    """Protection levels that the external bounds of the cell itself rule out."""


class UndecidedError(SolverError):
    """Time, work or floating point ended before an answer was found, and none is ruled out."""


class InternalError(SolverError):
    """A guarantee of the package does not hold: a fault of ours, never of the input."""


class NumericalError(InternalError):
    """Numbers of too different size for floating point: a search ends with what it has, an audit goes on in
    exact arithmetic. Nobody outside sees it but where there is no pattern at all.
    """
