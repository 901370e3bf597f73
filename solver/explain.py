"""Why is a cell hidden, and what stands in the way when nothing is safe?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solver.arguments import pattern, require, whole
from solver.audit import Exposure, audit, exposures_among
from solver.discreet import Discreet
from solver.errors import InputError, Obstacle
from solver.instance import BoolArray, Instance, IntArray, Status

_MOST_TERMS = 12


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Discreet):
    """Why a pattern hides a cell.

    Attributes
    ----------
    cell, name
        The cell.
    status
        Its letter (u, s, z, x, v).
    hidden
        Whether the pattern hides it.
    necessary
        Showing it would expose something (always so for u, x and v).
    exposes
        What showing it would expose, to whom, with proofs.
    relations
        The relations that those proofs add up.
    """

    cell: int
    name: str
    status: str
    hidden: bool
    necessary: bool
    exposes: tuple[Exposure, ...]
    relations: tuple[int, ...]


def explain(instance: Instance, hidden: BoolArray, cell: int | str) -> Explanation:
    """The relations that force a cell of a pattern (bool[n]), and what showing it would expose.

    Raises
    ------
    InputError
        There is no such cell.
    """
    require(instance, Instance, "instance", "Give an Instance.")
    index = instance.index(cell) if isinstance(cell, str) else whole(cell, "cell", 0)
    if index >= instance.n:
        raise InputError(f"there is no cell {cell}.", f"Use 0…{instance.n - 1} or a name.")
    hidden = pattern(hidden, "a pattern", instance.n)
    without = hidden.copy()
    without[index] = False
    exposes = audit(instance, without).exposures if hidden[index] else ()
    relations = sorted({r for exposure in exposes for proof in exposure.certificate for r in proof})
    status = Status(int(instance.status[index]))
    return Explanation(
        cell=index,
        name=instance.name(index),
        status=status.code,
        hidden=bool(hidden[index]),
        necessary=bool(exposes) or bool(instance.always_hidden[index]),
        exposes=exposes,
        relations=tuple(relations),
    )


def spelled(instance: Instance, relation: int) -> str:
    """A relation by the names of its cells, what is subtracted on the left: ``total = a + b``."""
    part = slice(int(instance.indptr[relation]), int(instance.indptr[relation + 1]))
    coefs, cells = instance.coefs[part], instance.indices[part]
    left, right = (
        [
            instance.name(cell) if size == 1 else f"{size:.15g} · {instance.name(cell)}"
            for cell, size in zip(cells[mine].tolist(), np.abs(coefs[mine]).tolist(), strict=True)
        ]
        for mine in (coefs < 0, coefs > 0)
    )
    rhs = float(instance.rhs[relation])
    (left if rhs > 0 else right).extend([f"{abs(rhs):.15g}"] if rhs else [])
    return " = ".join(_listed(side) for side in (left, right))


def _listed(terms: list[str]) -> str:
    more = f" + … ({len(terms)} in all)" if len(terms) > _MOST_TERMS else ""
    return (" + ".join(terms[:_MOST_TERMS]) or "0") + more


def obstacles(
    instance: Instance, cells: IntArray, most: int = 20, *, hidden: BoolArray | None = None
) -> tuple[Obstacle, ...]:
    """What keeps cells (int64[k]) exposed even when everything allowed, or all of `hidden`, is hidden."""
    everything = np.array(instance.may_hide) if hidden is None else hidden
    exposures = exposures_among(instance, everything, np.unique(cells)[:most])
    return tuple(_obstacle(instance, exposure, ~everything) for exposure in exposures)


def reasons(instance: Instance, suspects: IntArray) -> tuple[Obstacle, ...]:
    """What keeps cells (int64[k]) exposed even when everything allowed is hidden, or, where floating point
    suspected the wrong ones, those that the audit finds.
    """
    found = obstacles(instance, suspects)
    if found:
        return found
    exposures = audit(instance, np.array(instance.may_hide)).exposures
    return obstacles(instance, np.array([exposure.cell for exposure in exposures], dtype=np.int64))


def _obstacle(instance: Instance, exposure: Exposure, kept: BoolArray) -> Obstacle:
    relations = sorted({relation for proof in exposure.certificate for relation in proof})
    parts = [instance.indices[instance.indptr[r] : instance.indptr[r + 1]] for r in relations]
    cells = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *parts]))
    fixed = instance.lower_bound[cells] == instance.upper_bound[cells]
    empty = (instance.value[cells] == instance.lower_bound[cells]) & (instance.value[cells] == 0)
    shown = kept[cells]
    return Obstacle(
        cell=exposure.name,
        attacker=exposure.attacker,
        interval=exposure.interval,
        required=exposure.required[:2],
        required_width=exposure.required[2],
        relations=tuple(relations),
        spelled=tuple(spelled(instance, relation) for relation in relations),
        shown=tuple(instance.name(int(i)) for i in cells[shown]),
        frozen=tuple(instance.name(int(i)) for i in cells[(fixed | empty) & ~shown]),
    )
