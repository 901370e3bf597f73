"""Movements of many cells at once, each by itself, among few columns: reflections instead of linear programs.

A movement must keep the relations and keep within the room of each column. Both are easy alone: the nearest
point that keeps the relations is a product with one matrix, the nearest within the room is a cut. Reflected
at the one and the other in turn (Douglas and Rachford 1956; Lions and Mercier 1979), most points come to keep
both within some twenty steps where there is any room to spare, and the points of all cells are rows of one
array. A cell that comes to nothing may be able to move all the same: then a linear program must tell.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from solver.clock import Clock
from solver.heuristics.joint import Joint
from solver.heuristics.needs import Cover, Needs
from solver.instance import BoolArray, FloatArray, IntArray

# Of more columns than that, products with the matrix take longer than programs; and so few needs, in all or
# for each of so many columns, have programs sooner.
_MOST, _FEWEST, _COLUMNS = 400, 6, 16
# The same for hidden columns, before anything is known of what moves as one.
_HIDDEN = 6
# So many steps; most points that come to anything do so within half of them.
_STEPS = 24
# Room beyond so many times the highest level makes no difference, nor does less than so much of that.
_FAR, _LEAST = 10.0, 1e-9
# A relation of which the others leave less than this share says nothing new.
_DEPENDENT = 1e-10
# A column that the relations leave less than this share of a step can't move.
_FIXED = 1e-9
# What a point may go beyond its room, and leave of a relation, for each unit of the level: rounding.
_ROUNDING = 1e-9
# Effort: of each call, of each need for each column and each pair of them, and of the matrix.
_EACH, _COLUMN, _PAIR, _MAKING = 400.0, 0.3, 1.6e-3, 0.08


class Reflections:
    """Movements among the columns of a joint that meet needs of the attacker who knows nothing more.

    Parameters
    ----------
    joint
        The columns that may move.
    needs
        All that may be asked.
    """

    def __init__(self, joint: Joint, needs: Needs) -> None:
        self._joint, count = joint, len(joint)
        at = joint.position[needs.cell]
        cells = np.where(at >= 0, joint.joined[at], -1)
        goals = needs.side * needs.level / joint.ratio[at]
        self._free = (cells >= 0) & (needs.attacker == 0)
        self._cells = np.where(self._free, cells, 0)
        # Distances are measured in the room that there is: what has little is moved little.
        farthest = _FAR * np.abs(goals[self._free]).max(initial=0.0) or 1.0
        self._unit = np.clip(np.maximum(joint.up, joint.down), _LEAST * farthest, farthest)
        self._up, self._down = joint.up / self._unit, -joint.down / self._unit
        self._goals = np.where(self._free, goals / self._unit[self._cells], 0.0)
        self._far = np.abs(goals)
        self._onto = _projection((joint.relations * self._unit).toarray())
        self._dropped = np.zeros(count, dtype=np.bool_)
        # Where the last movement of each need went, to begin with the next time.
        self._last = np.zeros((len(needs), count))
        self._unpaid = _MAKING * count**2

    @staticmethod
    def pay(columns: int, needs: int) -> bool:
        """Are so many needs met sooner so than by a program for each, among so many columns?"""
        return 0 < columns <= _MOST and needs >= max(_FEWEST, columns / _COLUMNS)

    def drop(self, shown: BoolArray) -> None:
        """Let columns (bool[n]) move no longer, for good."""
        joint = self._joint
        shut = joint.joined[joint.able[shown[joint.columns[joint.able]]]]
        for column in np.unique(shut[~self._dropped[shut]]).tolist():
            self._last -= np.multiply.outer(self._last[:, column], self._share(column))
            self._onto = self._without(column)
            self._dropped[column] = True

    def move(self, needs: IntArray, clock: Clock, without: int = -1) -> tuple[FloatArray, FloatArray]:
        """Movements that meet some needs (int64[r]), each by itself.

        Parameters
        ----------
        without
            A column of the problem that must not move.

        Returns
        -------
        moves : float64[r, k]
            Only those that go beyond nothing are movements.
        beyond : float64[r]
            How far each goes beyond its room, or what it leaves of a relation, as a part of the level; 0 if
            it is a movement, inf where the column can't move.
        """
        joint = self._joint
        still = -1 if without < 0 else int(joint.joined[joint.position[without]])
        clock.charge(_EACH + (_COLUMN + _PAIR * len(joint)) * len(joint) * len(needs) + self._unpaid)
        self._unpaid = 0.0
        moves, beyond = self._reflect(needs, still)
        found = np.flatnonzero(beyond == 0)
        self._last[needs[found]] = moves[found]
        moves = np.clip(moves * self._unit, -joint.down, joint.up)
        residue = np.abs(joint.relations @ moves[found].T).max(axis=0, initial=0.0) / self._far[needs[found]]
        beyond[found] = np.where(residue > _ROUNDING, residue, 0.0)
        return joint.apart(moves), beyond

    def _reflect(self, needs: IntArray, still: int) -> tuple[FloatArray, FloatArray]:
        onto = self._onto if still < 0 else self._without(still)
        up, down, cell, goal = self._up, self._down, self._cells[needs], self._goals[needs]
        share = onto[cell, cell]
        able = self._free[needs] & (share > _FIXED)
        able &= (goal <= up[cell] * (1 + _ROUNDING)) & (goal >= down[cell] * (1 + _ROUNDING))
        beyond = np.full(len(needs), np.inf)
        moves = np.zeros((len(needs), len(up)))
        waiting = np.flatnonzero(able)
        cell, goal, far = cell[waiting], goal[waiting], self._far[needs[waiting]]
        entry = np.arange(len(waiting))
        steps = onto[cell] / share[waiting, None]
        point = self._last[needs[waiting]]
        if still >= 0:
            point -= np.multiply.outer(point[:, still], self._share(still))
        point += (goal - point[entry, cell])[:, None] * steps
        nearest = point
        for step in range(_STEPS):
            if step:
                within = np.minimum(np.maximum(point, down), up)
                nearest = (2 * within - point) @ onto
                nearest += (goal - nearest[entry, cell])[:, None] * steps
                point += nearest
                point -= within
            most = (np.maximum(nearest - up, down - nearest) * self._unit).max(axis=1, initial=0.0) / far
            done = most <= _ROUNDING
            beyond[waiting] = np.where(done, 0.0, most)
            if done.any():
                moves[waiting[done]] = nearest[done]
                left = ~done
                waiting, cell, goal, far = waiting[left], cell[left], goal[left], far[left]
                point, steps, entry = point[left], steps[left], entry[: len(waiting)]
            if not len(waiting):
                break
        return moves, beyond

    def _share(self, column: int) -> FloatArray:
        """What takes a column's movement back, for each unit of it (float64[c])."""
        share = float(self._onto[column, column])
        if share > _FIXED:
            return np.asarray(self._onto[column] / share)
        alone = np.zeros(len(self._onto))
        alone[column] = 1.0
        return alone

    def _without(self, column: int) -> FloatArray:
        """The projection onto what keeps the relations and leaves one column more where it is."""
        onto = self._onto - np.multiply.outer(self._onto[column], self._share(column))
        onto[column], onto[:, column] = 0.0, 0.0
        return np.asarray(onto)


def _projection(relations: FloatArray) -> FloatArray:
    """Onto what keeps relations (float64[r, c]): float64[c, c]."""
    size = np.sqrt((relations**2).sum(axis=1))
    onto: FloatArray = np.eye(relations.shape[1])
    if size.any():
        scaled = relations[size > 0] / size[size > 0, None]
        base, triangle, _ = linalg.qr(scaled.T, mode="economic", pivoting=True, check_finite=False)
        diagonal = np.abs(np.diag(triangle))
        base = base[:, diagonal > _DEPENDENT * diagonal.max()]
        onto -= base @ base.T
    return onto


def meet_at_once(cover: Cover, clock: Clock) -> None:
    """Meet what needs the pattern meets as it is, as far as reflections tell."""
    unmet, hidden = np.flatnonzero(cover.unmet), np.flatnonzero(cover.hidden)
    if len(unmet) * _HIDDEN < len(hidden):
        return
    joint = Joint(cover.problem, hidden)
    if Reflections.pay(len(joint), len(unmet)):
        moves, beyond = Reflections(joint, cover.needs).move(unmet, clock)
        add_moves(cover, joint, moves[beyond == 0])


def add_moves(cover: Cover, joint: Joint, moves: FloatArray) -> None:
    """Add movements (float64[r, k]) of the columns of a joint to a cover."""
    count, size = moves.shape
    cover.add_all(np.arange(count + 1) * size, np.tile(joint.columns, count), moves.ravel())
