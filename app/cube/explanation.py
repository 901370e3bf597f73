"""What explain tells of a calculated member."""

from __future__ import annotations

from dataclasses import dataclass

from app.domain.errors import Mistake


@dataclass(frozen=True)
class Case:
    """What a formula is for the cells that it treats alike.

    Attributes
    ----------
    when : tuple of str
        Unique names of the members that it holds at; empty: everywhere.
    cells : int
        Cells of the answer, or operands of them, that it is for.
    kind : str
        ``linear``, or the kind of what isn't linear.
    formula : str
        Members stand for the cell that differs in them.
    resolved : str
        The equation in members that aren't calculated, at one of the cells; empty where it says nothing more.
    operands : tuple of str
        Cells that one of the cells hangs on, where it isn't linear.
    inequality : str
        What the printed value says of the operands; empty where it says nothing linear.
    neither : Mistake, optional
        Where the formula stands and why it is no relation, if it is neither a sum nor a quotient of cells.
    """

    when: tuple[str, ...]
    cells: int
    kind: str
    formula: str
    resolved: str = ""
    operands: tuple[str, ...] = ()
    inequality: str = ""
    neither: Mistake | None = None


@dataclass(frozen=True)
class Explanation:
    """A calculated member by its unique name: its cases, or why it is refused."""

    member: str
    cases: tuple[Case, ...]
    refusal: tuple[Mistake, ...] = ()
