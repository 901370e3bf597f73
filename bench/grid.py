"""The dimensions of a table, found again in its relations; τ-Argus's modular method asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from solver import Instance
from solver.instance import Status

# Instances don't say what their dimensions are: cells come in the order of a grid of at most so many.
_DIMENSIONS = 5


class Grid:
    """A table whose cells are all combinations of the codes of its dimensions, the last one fastest.

    Attributes
    ----------
    sizes
        How many codes each dimension has.
    parts
        For each dimension, the parts of each code that has parts.
    """

    def __init__(self, sizes: tuple[int, ...], parts: list[dict[int, list[int]]]) -> None:
        self.sizes, self.parts = sizes, parts

    def cell(self, codes: list[str]) -> int:
        """The cell of some codes as :meth:`write` names them."""
        place = [self._total(axis) if code == "Total" else int(code[1:]) for axis, code in enumerate(codes)]
        return int(np.ravel_multi_index(place, self.sizes))

    def write(self, instance: Instance, folder: Path) -> None:
        """``table.txt``, ``table.rda`` and hierarchies, for τ-Argus."""
        rda = ['<SEPARATOR> ";"', '<SAFE> "S"', '<UNSAFE> "U"', '<PROTECT> "P"']
        for axis, size in enumerate(self.sizes):
            rda += [f"d{axis}", "  <RECODEABLE>", '  <TOTCODE> "Total"']
            tops = self.parts[axis][self._total(axis)]
            if len(self.parts[axis]) > 1:
                lines = [line for code in tops for line in self._tree(axis, code, 0)]
                (folder / f"d{axis}.hrc").write_text("\n".join(lines) + "\n")
                rda += ["  <HIERARCHICAL>", f'  <HIERCODELIST> "d{axis}.hrc"', '  <HIERLEADSTRING> "@"']
            assert size > len(tops)
        rda += ["value", "  <NUMERIC>", "  <DECIMALS> 4", "cost", "  <NUMERIC> <COST>", "  <DECIMALS> 4"]
        rda += ["status", "  <STATUS>"]
        rda += ["lower", "  <NUMERIC> <LOWERPL>", "  <DECIMALS> 4"]
        rda += ["upper", "  <NUMERIC> <UPPERPL>", "  <DECIMALS> 4"]
        (folder / "table.rda").write_text("\n".join(rda) + "\n")
        letter = {Status.SENSITIVE: "U", Status.SHOWN: "P"}
        rows = []
        for k in range(instance.n):
            place = np.unravel_index(k, self.sizes)
            codes = [self._name(axis, int(code)) for axis, code in enumerate(place)]
            numbers = [instance.value[k], instance.weight[k]]
            levels = [instance.lpl[k], instance.upl[k]]
            status = letter.get(Status(int(instance.status[k])), "S")
            texts = [f"{number:.10g}" for number in numbers] + [status]
            rows.append(";".join(codes + texts + [f"{level:.10g}" for level in levels]))
        (folder / "table.txt").write_text("\n".join(rows) + "\n")

    def _total(self, axis: int) -> int:
        below = {code for codes in self.parts[axis].values() for code in codes}
        return next(code for code in self.parts[axis] if code not in below)

    def _name(self, axis: int, code: int) -> str:
        return "Total" if code == self._total(axis) else f"c{code:05d}"

    def _tree(self, axis: int, code: int, depth: int) -> Iterator[str]:
        yield "@" * depth + self._name(axis, code)
        for part in self.parts[axis].get(code, []):
            yield from self._tree(axis, part, depth + 1)


def find_grid(instance: Instance) -> Grid | None:
    """The grid of a table, or None: linked tables are none, nor is one from which cells were left out."""
    rows = instance.matrix
    for sizes in _factorisations(instance.n, _DIMENSIONS):
        place = np.stack(np.unravel_index(rows.indices, sizes))
        starts = rows.indptr[:-1]
        least = np.minimum.reduceat(place, starts, axis=1)
        varies = least != np.maximum.reduceat(place, starts, axis=1)
        if (varies.sum(axis=0) != 1).any():
            continue
        grid = _with_parts(rows, sizes, place, varies)
        if grid is not None:
            return grid
    return None


def _with_parts(rows: Any, sizes: tuple[int, ...], place: Any, varies: Any) -> Grid | None:
    parts: list[dict[int, list[int]]] = []
    for axis, size in enumerate(sizes):
        mine = np.flatnonzero(varies[axis])
        found: dict[int, list[int]] = {}
        for row in mine.tolist():
            entries = slice(rows.indptr[row], rows.indptr[row + 1])
            codes, signs = place[axis, entries], rows.data[entries]
            turn = -1 if (signs > 0).sum() == 1 and len(signs) > 2 else 1
            top = codes[signs * turn < 0]
            below = sorted(codes[signs * turn > 0].tolist())
            if len(top) != 1 or found.setdefault(int(top[0]), below) != below:
                return None
        children = [code for codes in found.values() for code in codes]
        whole = len(found) * (len(place[0]) and int(np.prod(sizes)) // size)
        if len(mine) != whole or len(set(children)) != len(children) or len(children) != size - 1:
            return None
        parts.append(found)
    return Grid(sizes, parts)


def _factorisations(number: int, most: int) -> Iterator[tuple[int, ...]]:
    if number > 2:
        yield (number,)
    if most > 1:
        for first in range(3, number // 3 + 1):
            if number % first == 0:
                for rest in _factorisations(number // first, most - 1):
                    yield (first, *rest)
