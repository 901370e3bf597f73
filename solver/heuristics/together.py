"""Move many cells at once: one linear program in which columns that only move together are one."""

from __future__ import annotations

import numpy as np

from solver.attack import SLACK, within_room
from solver.clock import Clock
from solver.columns import with_company
from solver.errors import InternalError
from solver.heuristics.joint import Joint
from solver.instance import FloatArray, IntArray
from solver.lp import LinearProgram
from solver.presolve import Problem

# Iterations of a program, times its columns and rows.
_MOST = 1e9
_STILL = 1e-9


class Together:
    """The movements of a problem within some room, for many cells at a time.

    Parameters
    ----------
    problem
        The component.
    lo, hi : float64[n]
        Room of each column, 0 for those that stay where they are.
    clock
        Out of seconds, :meth:`move` raises OutOfTimeError.
    """

    def __init__(self, problem: Problem, lo: FloatArray, hi: FloatArray, clock: Clock) -> None:
        self._problem, self._clock = problem, clock
        columns = np.flatnonzero(with_company(problem.matrix, (lo > 0) | (hi > 0)))
        self._joint = joint = Joint(problem, columns, (lo, hi))
        part = joint.relations
        zeros = np.zeros(part.shape[0])
        self._program = LinearProgram(
            np.zeros(len(joint)),
            -joint.down,
            joint.up,
            part.indptr,
            part.indices,
            part.data,
            zeros,
            zeros,
            primal_simplex=True,
            with_reduced_costs=False,
        )
        self._size = len(joint) + part.shape[0]

    def move(self, cells: IntArray, wanted: FloatArray) -> FloatArray | None:
        """A movement (float64[n]) of many cells, each as far as wanted (float64[k], signed) or as near to it
        as goes with the others, or as a limit of effort lets; None if the program fails.
        """
        joint = self._joint
        able = np.flatnonzero(joint.position[cells] >= 0)
        at = joint.position[cells[able]]
        # Up to rounding, a level is met: the audit allows a thousandth of that.
        goal = wanted[able] / joint.ratio[at] * (1 + SLACK)
        able = np.flatnonzero((joint.joined[at] >= 0) & (goal != 0))
        column, goal = joint.joined[at[able]], goal[able]
        # Of cells that move together, the one that goes farthest takes the others along.
        order = np.lexsort((-np.abs(goal), column))
        column, first = np.unique(column[order], return_index=True)
        goal = goal[order][first]
        if not len(column):
            return None
        size, program = np.abs(goal), self._program
        lo, hi = joint.down[column], joint.up[column]
        program.set_bounds(column, -np.minimum(lo, size), np.minimum(hi, size))
        program.set_costs(column, -np.sign(goal) / np.maximum(size, 1.0))
        self._clock.check()
        try:
            result = program.solve(seconds=self._clock.seconds_left, iterations=int(_MOST / self._size))
        except InternalError:
            program.forget_basis()
            return None
        finally:
            program.set_costs(column, np.zeros(len(column)))
            program.set_bounds(column, -lo, hi)
        self._clock.charge(self._size)
        if result.status not in ("optimal", "limit") or not len(result.primal):
            return None
        reached = result.primal
        if result.status == "limit":
            reached = within_room(reached, joint.down, joint.up)
        move = np.zeros(self._problem.n)
        move[joint.columns] = joint.apart(reached)
        # The primal simplex stops at a movement too, which the caller judges by its own relations.
        if np.abs(self._problem.matrix @ move).max(initial=0.0) > _STILL * max(
            1.0, float(np.abs(move).max())
        ):
            return None
        return move
