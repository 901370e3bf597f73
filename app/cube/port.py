"""What Celosia asks of an OLAP engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.cube.explanation import Explanation
from app.domain.cellset import AxisMember, CellSet, FloatArray
from app.domain.cube import Cube, IntArray
from app.domain.known import FactRows
from app.mdx.tree import Query


@dataclass(frozen=True, eq=False)
class Group:
    """Members of a hierarchy taken together, none above another, or tuples of members of several.

    Attributes
    ----------
    column : int
        Column of the coordinates: ``1 + h`` for hierarchy ``h``.
    members : int32[k]
    beside : tuple of (int, int32[k])
        Further columns, with the member that goes with each of ``members``. No member is beneath another one
        whose fellows are above its own.

    In coordinates its number is the size of the column plus its rank among the column's groups; what stands
    in further columns is of no account.
    """

    column: int
    members: IntArray
    beside: tuple[tuple[int, IntArray], ...] = ()

    @staticmethod
    def of(columns: tuple[int, ...], rows: tuple[tuple[int, ...], ...]) -> Group:
        """A group of tuples of members of some columns."""
        members = np.array(rows, dtype=np.int32)
        return Group(columns[0], members[:, 0], tuple(zip(columns[1:], members[:, 1:].T, strict=True)))

    def __post_init__(self) -> None:
        if self.column < 1 or not len(self.members):
            raise ValueError("a group is a non-empty set of members of a hierarchy")
        if any(len(members) != len(self.members) for _, members in self.beside):
            raise ValueError("the tuples of a group have a member of each of its hierarchies")


@dataclass(frozen=True, eq=False)
class Profiles:
    """Who is behind each of ``n`` cells.

    A contributor is a holding where a fact row names one, else its respondent, else the row itself.
    What a contributor brings to a cell is the sum over its rows; with sampling weights it stands for
    ``weight`` contributions of that size, the last of them the fraction that is left.

    Attributes
    ----------
    value : float64[n]
        Value of the cell, 0 where it has no facts.
    count : int64[n]
        Contributors with at least one fact row in the cell.
    weighted_count : float64[n]
        Sum of their weights; equals ``count`` without weights.
    top : float64[n, k]
        The largest contributions (in absolute value), descending, 0 where there are fewer.
    holder : int64[n]
        Number of the contributor of a cell that has one only, else -1. The same contributor has the
        same number in every cell.
    requested : float64[n]
        Largest contribution of a contributor that asked for confidentiality, 0 if none did.
    mass : float64[n]
        Weighted sum of the absolute contributions: ``value`` unless some are negative.
    """

    value: FloatArray
    count: NDArray[np.int64]
    weighted_count: FloatArray
    top: FloatArray
    holder: NDArray[np.int64]
    requested: FloatArray
    mass: FloatArray


@dataclass(frozen=True, eq=False)
class Shown:
    """What readers see of cells.

    ``coords`` (int32[n, 1+H]) as in the cellset that `CubeServer.execute` gave; ``values`` (float64[n]) are
    nan where the cell is empty or ``hidden`` (bool[n]).
    """

    coords: IntArray
    values: FloatArray
    hidden: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if not len(self.coords) == len(self.values) == len(self.hidden):
            raise ValueError("cells that are shown differ in length")
        if np.isfinite(self.values[self.hidden]).any():
            raise ValueError("a hidden cell carries a number")


class CubeServer(Protocol):
    """An OLAP engine with one cube open."""

    def discover(self) -> Cube:
        """The cube's structure."""
        ...

    def execute(self, query: Query) -> CellSet:
        """The raw answer to a query, with the operands of its formulas as further rows.

        Raises
        ------
        UserError
            When the query names what isn't there, can't be answered, or has a cell that hangs on which
            members are chosen by the values of others; with its position.
        """
        ...

    def explore(self, query: Query) -> CellSet:
        """As `execute`, for the analyst's eyes: sets may be chosen and ordered by raw values.

        Nothing of it may be published: the order of confidential cells gives them away.
        """
        ...

    def arrange(self, query: Query, shown: Shown) -> CellSet:
        """The answer with its open sets made by what readers see of the cells that they hang on.

        `execute` leaves every position in that may come to be chosen, and adds the cells that the choice
        hangs on after those of the axes (`CellSet.n_read`). Of this answer only the axes, and the cells whose
        kind is ``rank``, may be used: those that aren't withheld are worked out from ``shown`` alone.
        """
        ...

    def explain(self, query: Query) -> tuple[Explanation, ...]:
        """What each calculated member of a query, and each of the cube's that it uses, becomes.

        Raises
        ------
        UserError
            When the query is about another cube, or defines what can't be defined.
        """
        ...

    def members(self, set_text: str) -> tuple[AxisMember, ...]:
        """Members of a set expression over one hierarchy, in order."""
        ...

    def values(self, coords: IntArray) -> FloatArray:
        """Values of cells (int32[n, 1+H]) of own measures and members: float64[n], nan without facts."""
        ...

    def measure(self, coords: IntArray, groups: Sequence[Group] = (), top: int = 3) -> Profiles:
        """Contributor profiles of cells.

        Parameters
        ----------
        coords : int32[n, 1+H]
            Own measures in column 0; own members or groups in the others.
        groups
            The ad-hoc groups that ``coords`` number.
        top
            How many of the largest contributions are wanted (at least 2).
        """
        ...

    def fingerprint(self) -> str:
        """Hash of the data: changes exactly when they do."""
        ...

    def facts(self) -> FactRows | None:
        """The facts as rows, to tell later who changed; None where the engine doesn't give them."""
        ...

    def close(self) -> None:
        """Free what the engine holds; nothing may be asked afterwards."""
        ...
