"""What the evaluation of one query may take: anybody may ask, and no query may take the server for long.

Steps are counted, and are the same on every machine; the clock is looked at where they are.
"""

from __future__ import annotations

from app.cube.context import Context, Limits
from app.cube.values import SetValue
from app.domain.errors import UserError
from app.domain.patience import Patience
from app.mdx.tree import Expression

#: Positions of a set, and letters of a text, that take about as long as the evaluation of an expression.
_POSITIONS, _LETTERS = 16, 256
#: Steps between two looks at the clock.
_UNLOOKED = 64


class Budget:
    """Counts the work of one query, and refuses it with its place in the text when it is too much."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        #: Whether somebody waits for the answer still.
        self.patience = Patience()
        self._parts = self._steps = self._looked = 0

    def error(self, ctx: Context, at: int, cause: str, remedy: str = "") -> UserError:
        return UserError(ctx.source.mistake(at, cause, remedy))

    def step(self, node: Expression, ctx: Context) -> None:
        """Count an expression that is evaluated: those within one another are for each position of each set.

        Raises
        ------
        UserError
        """
        self._steps += 1
        self._look()
        if self._steps > self.limits.steps:
            cause = "The query goes through sets within sets too often to be answered."
            raise self.error(ctx, node.at, cause, "Name sets that are the same everywhere with WITH SET.")

    def made(self, members: SetValue) -> None:
        """Count a set that was made."""
        self._steps += len(members) // _POSITIONS
        self._look()

    def _look(self) -> None:
        """At the clock, every so many steps."""
        if self._steps >= self._looked:
            self._looked = self._steps + _UNLOOKED
            self.patience.check()

    def spend(self, parts: int, node: Expression | None, ctx: Context) -> None:
        """Count what formulas over sets are made of, which takes longer than working them out.

        Raises
        ------
        UserError
        """
        self._parts += parts
        self.patience.check()
        most = self.limits.operands // 4
        if self._parts > most:
            cause = f"Formulas over sets take in more than {most:,} cells, each cell with a set of its own."
            raise self.error(ctx, 0 if node is None else node.at, cause, "Split the query.")

    def write(self, letters: int, node: Expression, ctx: Context) -> None:
        """Count a text that is about to be made or read.

        Raises
        ------
        UserError
        """
        self._steps += letters // _LETTERS
        if letters > self.limits.letters:
            raise self.error(ctx, node.at, f"A text is longer than {self.limits.letters:,} letters.")
