"""What a set or value hangs on: the cube's structure, figures that are shown, or some that are hidden."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Flag, auto


class Basis(Flag):
    """Figures, some that aren't released, some that are confidential.

    A set on one of the latter is made of the figures that are shown, and would perhaps be another one if all
    were known: it can be looked at on an axis, but no figure can be worked out from it.
    """

    STRUCTURE = 0
    FIGURES = auto()
    UNRELEASED = auto()
    CONFIDENTIAL = auto()

    @property
    def is_partial(self) -> bool:
        """Whether figures are hidden that it hangs on."""
        return bool(self & (Basis.UNRELEASED | Basis.CONFIDENTIAL))


class Bases:
    """Notes what is met while something is made, whatever becomes of it on the way."""

    basis = Basis.STRUCTURE

    def meet(self, basis: Basis) -> None:
        """What is being made hangs on this too."""
        self.basis |= basis

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Make something of its own: ``basis`` is its basis alone until the end, then again what it was."""
        before, self.basis = self.basis, Basis.STRUCTURE
        try:
            yield
        finally:
            self.basis = before
