"""The cell suppression problem as arrays that check themselves at birth."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from solver.arguments import as_number, listed, numbers, text, told, wholes
from solver.discreet import Discreet
from solver.entries import row_of
from solver.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Greatest value and weight.
_MOST = 1e100
# Greatest coefficient: beyond it, a relation has no terms of one size that a program takes.
_MOST_COEF = 1e15


class Status(IntEnum):
    """What may happen to a cell."""

    SENSITIVE = 0  # hidden, must be protected
    FREE = 1  # may be hidden at the cost of its weight
    SHOWN = 2  # must be shown
    HIDDEN = 3  # hidden beforehand, costs nothing
    VIRTUAL = 4  # never shown, costs nothing: a union, difference or remainder

    @property
    def code(self) -> str:
        """The letter of JJ files and case files."""
        return "uszxv"[self.value]

    @classmethod
    def from_code(cls, code: str) -> Status:
        """The status written as one letter; ValueError if there is none."""
        if len(code) != 1 or code not in "uszxv":
            raise ValueError(code)
        return cls("uszxv".index(code))


@dataclass(frozen=True, eq=False, repr=False)
class Insider(Discreet):
    """An attacker who knows the values of some cells.

    Attributes
    ----------
    name
        Who it is.
    known : int64[k]
        Cells whose values it knows.
    targets : int64[t]
        Cells that must stay protected against it.
    lpl, upl, spl : float64[t]
        Protection levels of the targets against this attacker.
    """

    name: str
    known: IntArray
    targets: IntArray
    lpl: FloatArray
    upl: FloatArray
    spl: FloatArray

    def __post_init__(self) -> None:
        text(self.name, "the name of an insider")
        for key in ("known", "targets"):
            cells = _frozen(wholes(getattr(self, key), f"insider {self.name}: {key}"))
            if cells.ndim != 1:
                raise InputError(f"insider {self.name}: {key} has {cells.ndim} dimensions.", "List cells.")
            object.__setattr__(self, key, cells)
        for key in ("lpl", "upl", "spl"):
            levels = _frozen(numbers(getattr(self, key), f"insider {self.name}: {key}"))
            object.__setattr__(self, key, levels)
            if levels.shape != self.targets.shape or not (np.isfinite(levels) & (levels >= 0)).all():
                raise InputError(f"insider {self.name}: {key} must be one finite number ≥ 0 per target.")
        both = np.intersect1d(self.known, self.targets)
        if len(both):
            raise InputError(
                f"insider {self.name} knows cell {both[0]}, which is to be protected against it.",
                "Drop it from the targets.",
            )


@dataclass(frozen=True, eq=False, repr=False)
class Instance(Discreet):
    """A cell suppression problem: cells, relations M y = rhs, and what an attacker knows.

    Attributes
    ----------
    value, weight : float64[n]
        True values, and what it costs to hide each cell (≥ 0).
    lower_bound, upper_bound : float64[n]
        External bounds as values, ±inf allowed.
    lpl, upl, spl : float64[n]
        Lower, upper and sliding protection levels.
    status : int8[n]
        See :class:`Status`.
    indptr, indices, coefs, rhs
        The relations in compressed rows: int64[m+1], int64[nnz], float64[nnz], float64[m].
    names
        One per cell; None: the cell numbers.
    insiders
        Attackers who know more than the outsider.
    decimals
        Exact decimal text of each value where the source has one; None: the shortest
        decimal that rounds to the double.
    tolerance
        How far a relation may miss its right-hand side (absolute). Zero accepts only what is
        exact in decimals or within the rounding of a double-precision sum.

    Raises
    ------
    InputError
        Shapes differ, a number is not finite, a value or weight is beyond 1e100, a coefficient beyond 1e15, a
        value lies outside its bounds, a level or weight is negative, or a relation does not add up (the text
        lists the exact differences).
    """

    value: FloatArray
    weight: FloatArray
    lower_bound: FloatArray
    upper_bound: FloatArray
    lpl: FloatArray
    upl: FloatArray
    spl: FloatArray
    status: NDArray[np.int8]
    indptr: IntArray
    indices: IntArray
    coefs: FloatArray
    rhs: FloatArray
    names: tuple[str, ...] | None = None
    insiders: tuple[Insider, ...] = ()
    decimals: tuple[str, ...] | None = field(default=None, repr=False)
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        for key in ("value", "weight", "lower_bound", "upper_bound", "lpl", "upl", "spl", "coefs", "rhs"):
            object.__setattr__(self, key, _frozen(numbers(getattr(self, key), key)))
        for key in ("indptr", "indices"):
            object.__setattr__(self, key, _frozen(wholes(getattr(self, key), key)))
        codes = np.clip(wholes(self.status, "status"), -1, len(Status))
        object.__setattr__(self, "status", _frozen(codes.astype(np.int8)))
        object.__setattr__(self, "insiders", listed(self.insiders, "insiders", "Insiders", Insider))
        for key in ("names", "decimals"):
            if getattr(self, key) is not None:
                object.__setattr__(self, key, listed(getattr(self, key), key, "texts"))
        as_number(self.tolerance, "tolerance", 0.0, "Give a finite number, 0 or more.", finite=True)
        self._check_shapes()
        self._check_numbers()
        self._check_insiders()
        self._check_additivity()

    # ------------------------------------------------------------------ doors

    @classmethod
    def from_arrays(
        cls,
        value: ArrayLike,
        relations: sparse.spmatrix | sparse.sparray | ArrayLike,
        *,
        status: ArrayLike,
        weight: ArrayLike | None = None,
        lower_bound: ArrayLike | None = None,
        upper_bound: ArrayLike | None = None,
        lpl: ArrayLike | None = None,
        upl: ArrayLike | None = None,
        spl: ArrayLike | None = None,
        rhs: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        insiders: Sequence[Insider] = (),
        tolerance: float = 0.0,
    ) -> Instance:
        """Build from arrays and a matrix (dense or scipy sparse, m × n).

        Defaults: weight |value| at least 1, bounds [0, inf) (or (-inf, inf) for negative values),
        levels 0, right-hand side 0. `status` takes numbers or letters.
        """
        a = numbers(value, "value")
        if a.ndim != 1:
            raise InputError(f"value has {a.ndim} dimensions.", "Give one value for each cell.")
        n = len(a)
        matrix = _matrix(relations, n)

        def given(column: ArrayLike | None, otherwise: ArrayLike, name: str) -> FloatArray:
            return _floats(otherwise if column is None else column, n, name)

        return cls(
            value=a,
            weight=given(weight, np.maximum(np.abs(a), 1.0), "weight"),
            lower_bound=given(lower_bound, np.where(a < 0, -np.inf, 0.0), "lower_bound"),
            upper_bound=given(upper_bound, np.inf, "upper_bound"),
            lpl=given(lpl, 0.0, "lpl"),
            upl=given(upl, 0.0, "upl"),
            spl=given(spl, 0.0, "spl"),
            status=_codes(status),
            indptr=matrix.indptr,
            indices=matrix.indices,
            coefs=matrix.data,
            rhs=np.zeros(matrix.shape[0]) if rhs is None else numbers(rhs, "rhs"),
            names=None if names is None else listed(names, "names", "texts"),
            insiders=listed(insiders, "insiders", "Insiders", Insider),
            tolerance=tolerance,
        )

    @classmethod
    def from_jj(cls, path: str | Path) -> Instance:
        """Read a JJ/CSPLib file, gzipped or not (:mod:`solver.formats.jj`)."""
        from solver.formats.jj import read_jj

        return read_jj(path)

    @classmethod
    def from_case(cls, source: str | Path | Mapping[str, Any]) -> Instance:
        """Read a case of JSON cells and equations (:mod:`solver.formats.case`)."""
        from solver.formats.case import read_case

        return read_case(source)

    # ------------------------------------------------------------- properties

    def __repr__(self) -> str:
        counts = ((status, int((self.status == status).sum())) for status in Status)
        told = ", ".join(f"{count} {status.name.lower()}" for status, count in counts if count)
        return (
            f"Instance({self.n} cells: {told or 'none'}; {self.m} relations, {len(self.insiders)} insiders)"
        )

    @property
    def n(self) -> int:
        """Number of cells."""
        return len(self.value)

    @property
    def m(self) -> int:
        """Number of relations."""
        return len(self.rhs)

    @property
    def relation(self) -> IntArray:
        """The relation of each entry."""
        return row_of(self.indptr)

    @property
    def matrix(self) -> sparse.csr_array:
        """The relations as a scipy matrix (m × n)."""
        parts = (self.coefs.copy(), self.indices.copy(), self.indptr.copy())
        return sparse.csr_array(parts, shape=(self.m, self.n))

    @property
    def always_hidden(self) -> BoolArray:
        """Cells hidden in every pattern: sensitive, hidden beforehand, virtual."""
        return np.asarray((self.status != Status.FREE) & (self.status != Status.SHOWN))

    @property
    def may_hide(self) -> BoolArray:
        """Cells that some pattern hides."""
        return np.asarray(self.status != Status.SHOWN)

    @property
    def protected(self) -> IntArray:
        """Cells with a level to keep against the outsider (int64[p])."""
        levels = np.maximum(np.maximum(self.lpl, self.upl), self.spl)
        return np.flatnonzero(self.always_hidden & (levels > 0))

    def name(self, cell: int) -> str:
        """The cell's name, or its number."""
        return str(int(cell)) if self.names is None else self.names[cell]

    def index(self, name: str) -> int:
        """The number of the cell of that name; InputError if there is none."""
        text(name, "the name of a cell")
        try:
            return range(self.n).index(int(name)) if self.names is None else self.names.index(name)
        except ValueError:
            near = difflib.get_close_matches(name, self.names or (), 1) if len(name) < 200 else []
            remedy = f"Did you mean {near[0]}?" if near else "Use a name of the input."
            raise InputError(f"there is no cell named {name[:200]}.", remedy) from None

    def exact(self, cell: int) -> Fraction:
        """The value as the source's decimals give it."""
        if self.decimals is not None:
            return Fraction(self.decimals[cell])
        return Fraction(repr(float(self.value[cell])))

    def cost(self, hidden: BoolArray) -> float:
        """Total weight of the secondaries (FREE cells hidden)."""
        secondary = hidden & (self.status == Status.FREE)
        return float(np.sort(self.weight[secondary]).sum())

    @property
    def out_of_reach(self) -> IntArray:
        """Cells whose own bounds leave no room for a level of theirs (int64[k])."""
        down, up = self.value - self.lower_bound, self.upper_bound - self.value
        near = 1 - 1e-9
        beyond = (self.lpl * near > down) | (self.upl * near > up) | (self.spl * near > down + up)
        found = [np.flatnonzero(beyond & self.always_hidden)]
        for insider in self.insiders:
            cells = insider.targets
            beyond = (insider.lpl * near > down[cells]) | (insider.upl * near > up[cells])
            found.append(cells[beyond | (insider.spl * near > (down + up)[cells])])
        return np.unique(np.concatenate(found))

    def clipped(self) -> Instance:
        """A copy whose levels ask no more than each cell's own bounds allow."""
        down, up = self.value - self.lower_bound, self.upper_bound - self.value
        insiders = tuple(
            replace(
                insider,
                lpl=np.minimum(insider.lpl, down[insider.targets]),
                upl=np.minimum(insider.upl, up[insider.targets]),
                spl=np.minimum(insider.spl, (down + up)[insider.targets]),
            )
            for insider in self.insiders
        )
        return self.replace(
            lpl=np.minimum(self.lpl, down),
            upl=np.minimum(self.upl, up),
            spl=np.minimum(self.spl, down + up),
            insiders=insiders,
        )

    def replace(self, **changes: Any) -> Instance:
        """A checked copy with some fields changed."""
        return replace(self, **changes)

    # ----------------------------------------------------------------- checks

    def _check_shapes(self) -> None:
        if self.rhs.ndim != 1:
            raise InputError(f"rhs has shape {self.rhs.shape}, expected (m,).", "Give one for each relation.")
        n, m = self.value.size, self.rhs.size
        for key in ("value", "weight", "lower_bound", "upper_bound", "lpl", "upl", "spl", "status"):
            if getattr(self, key).shape != (n,):
                raise InputError(f"{key} has shape {getattr(self, key).shape}, expected ({n},).")
        pointers = self.indptr
        if pointers.shape != (m + 1,) or pointers[0] != 0 or (np.diff(pointers) < 0).any():
            raise InputError(f"indptr must hold {m + 1} rising offsets from 0.")
        if self.indices.shape != self.coefs.shape or pointers[-1] != self.indices.size:
            raise InputError("indices and coefs must both have indptr[-1] entries.")
        if self.indices.size and not (self.indices.min() >= 0 and self.indices.max() < n):
            raise InputError(f"a relation names a cell outside 0…{n - 1}.")
        rows = self.relation
        if np.unique(rows * max(n, 1) + self.indices).size != self.indices.size:
            raise InputError("a relation names the same cell twice.", "Add up its coefficients.")
        for key in ("names", "decimals"):
            listed = getattr(self, key)
            if listed is not None and len(listed) != n:
                raise InputError(f"{key} has {len(listed)} entries for {n} cells.")
        if self.names is not None and len(set(self.names)) != n:
            raise InputError("cell names must differ.")

    def _check_numbers(self) -> None:
        if not np.isin(self.status, [int(s) for s in Status]).all():
            raise InputError("status must be one of 0…4 (u, s, z, x, v).", "Give one for each cell.")
        number, unit, bounds = (
            "Give a number.",
            "Give it in another unit.",
            "Give bounds that the value lies between.",
        )
        tests = {
            "value is not finite": (~np.isfinite(self.value), number),
            "weight is not a finite number ≥ 0": (~(np.isfinite(self.weight) & (self.weight >= 0)), number),
            "value is beyond 1e100, where sums lose all meaning": (np.abs(self.value) > _MOST, unit),
            "weight is beyond 1e100, where sums lose all meaning": (self.weight > _MOST, unit),
            "lower_bound is above the value": (~(self.lower_bound <= self.value), bounds),
            "upper_bound is below the value": (~(self.value <= self.upper_bound), bounds),
        }
        for key in ("lpl", "upl", "spl"):
            levels = getattr(self, key)
            tests[f"{key} is not a finite number ≥ 0"] = (~(np.isfinite(levels) & (levels >= 0)), number)
        for cause, (wrong, remedy) in tests.items():
            if wrong.any():
                cells = np.flatnonzero(wrong)
                more = f" (and {len(cells) - 1} more cells)" if len(cells) > 1 else ""
                raise InputError(f"{cause}{more}.", remedy, cell=self.name(int(cells[0])))
        endless = np.flatnonzero(~np.isfinite(self.rhs))
        if endless.size:
            raise InputError(f"relation {endless[0]}: the right-hand side is not finite.", "Write a number.")
        beyond = np.flatnonzero(~(np.abs(self.coefs) <= _MOST_COEF))
        if beyond.size:
            entry = int(beyond[0])
            relation = int(np.searchsorted(self.indptr, entry, side="right")) - 1
            more = f" (and {beyond.size - 1} more)" if beyond.size > 1 else ""
            raise InputError(
                f"relation {relation}: the coefficient {self.coefs[entry]:g} is beyond 1e15{more}, "
                "more than linear programs take.",
                "Divide the relation by a number, its right-hand side too, or give the cell in another unit.",
                cell=self.name(int(self.indices[entry])),
            )

    def _check_insiders(self) -> None:
        for insider in self.insiders:
            for cells in (insider.known, insider.targets):
                if cells.size and not (cells.min() >= 0 and cells.max() < self.n):
                    raise InputError(f"insider {insider.name} names a cell outside 0…{self.n - 1}.")
            wrong = insider.targets[~self.always_hidden[insider.targets]]
            if wrong.size:
                raise InputError(
                    f"insider {insider.name} has a target that is not hidden in every pattern.",
                    "Give it status u, x or v.",
                    cell=self.name(int(wrong[0])),
                )

    def _check_additivity(self) -> None:
        rows = self.relation
        products = self.coefs * self.value[self.indices]
        miss = np.abs(np.bincount(rows, products, self.m) - self.rhs)
        scale = np.bincount(rows, np.abs(products), self.m) + np.abs(self.rhs)
        terms = np.diff(self.indptr) + 4.0
        suspects = np.flatnonzero(miss > terms * np.finfo(np.float64).eps * scale + self.tolerance)
        found = [(int(r), self._exact_miss(int(r))) for r in suspects]
        wrong = [(r, gap) for r, gap in found if abs(gap) > Fraction(repr(self.tolerance))]
        if wrong:
            listed = "; ".join(f"relation {r}: {_decimal(gap)} ({self._members(r)})" for r, gap in wrong[:50])
            more = f"; and {len(wrong) - 50} more" if len(wrong) > 50 else ""
            raise InputError(
                f"{len(wrong)} of {self.m} relations do not add up. Differences: {listed}{more}.",
                "Correct the values or allow a tolerance.",
            )

    def _members(self, relation: int) -> str:
        part = self.indices[self.indptr[relation] : self.indptr[relation + 1]]
        return ", ".join(self.name(int(i)) for i in part[:8]) + (", …" if len(part) > 8 else "")

    def _exact_miss(self, relation: int) -> Fraction:
        part = slice(self.indptr[relation], self.indptr[relation + 1])
        terms = zip(self.indices[part], self.coefs[part], strict=True)
        total = sum((Fraction(repr(float(c))) * self.exact(int(i)) for i, c in terms), Fraction(0))
        return total - Fraction(repr(float(self.rhs[relation])))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of one's own that nobody can write to."""
    array.setflags(write=False)
    return array


def _floats(given: ArrayLike, n: int, name: str) -> FloatArray:
    array = numbers(given, name)
    if array.shape not in ((), (1,), (n,)):
        raise InputError(f"{name} has shape {array.shape}, expected ({n},).")
    return np.broadcast_to(array, (n,))


def _codes(status: ArrayLike) -> NDArray[np.int8]:
    """Statuses as numbers, however they are written; a number that is none stays none."""
    if isinstance(status, str | bytes) or np.ndim(status) != 1:
        raise InputError("status is no list.", "Give one of u, s, z, x, v for each cell.")
    codes = np.asarray(status)
    if codes.dtype.kind != "U":
        return np.clip(wholes(codes, "status"), -1, len(Status)).astype(np.int8)
    wrong = [code for code in codes.tolist() if len(code) != 1 or code not in "uszxv"]
    if wrong:
        raise InputError(f"there is no status {told(wrong[0])}.", "Use one of u, s, z, x, v.")
    return np.array([int(Status.from_code(code)) for code in codes.tolist()], dtype=np.int8)


def _matrix(relations: Any, n: int) -> sparse.csr_array:
    """Relations as a matrix (m × n) that names no cell of a relation twice."""
    given = relations if sparse.issparse(relations) else numbers(relations, "relations")
    none = given.shape == (0,)
    if not none and (given.ndim != 2 or given.shape[1] != n):
        raise InputError(
            f"relations have shape {given.shape}, expected (m, {n}).", "Give one row for each relation."
        )
    matrix = sparse.csr_array((0, n) if none else given)
    matrix.sum_duplicates()
    return matrix


def _decimal(number: Fraction) -> str:
    return format((Decimal(number.numerator) / Decimal(number.denominator)).normalize(), "f")
