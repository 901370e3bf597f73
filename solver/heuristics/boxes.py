"""Boxes around many cells at once: small movements found by array work alone, without linear programs.

In a table of d dimensions a box has 2^d corners, and raising one corner while its neighbours fall leaves
every total as it is (Giessing, Repsilber 2002). Boxes are found in the relations alone, whatever these are:
what a movement leaves out of balance in a relation, another column of it takes up: one that balances a second
relation too, where there is one; else the cheapest with room. All movements take a step together, so that
thousands of them need as many array operations as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solver.columns import keep_entries
from solver.entries import ranges, row_of
from solver.instance import BoolArray, FloatArray, IntArray
from solver.presolve import Problem

# Steps, of one column each, after which a movement is given up: more than a box has corners, at least and at
# most so many.
_CORNERS, _LEAST, _MOST = 1.5, 60, 400
# Part of the movements asked for that is not waited for, once the others took a half of the steps made.
_LATE = 0.1
# Columns looked at in a large relation, evenly spread.
_SAMPLE = 256
# Rounding, and the least that a column takes up, as parts of the amount.
_ZERO, _FINE = 1e-9, 1e-3
# A column that takes up a part costs more by this power of the number of such parts.
_POWER = 1.5
# Every relation that a column lies in is one more to balance: worth so many times the usual price.
_RELATION = 0.3


@dataclass(frozen=True, eq=False)
class Movements:
    """Movements of columns, one after the other.

    Attributes
    ----------
    of : int64[k]
        The number of the cell asked for that each of them moves, sorted.
    indptr : int64[k + 1]
    columns : int64[entries]
    amounts : float64[entries]
    """

    of: IntArray
    indptr: IntArray
    columns: IntArray
    amounts: FloatArray

    def take(self, chosen: IntArray) -> Movements:
        """Some of them (int64[j])."""
        counts = np.diff(self.indptr)[chosen]
        at = ranges(self.indptr[chosen], counts)
        ends = np.concatenate([[0], np.cumsum(counts)])
        return Movements(self.of[chosen], ends, self.columns[at], self.amounts[at])


class Boxes:
    """Finds boxes of one problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        # Small relations first: where there is least choice, one has to choose first.
        rows = problem.matrix[np.argsort(np.diff(problem.matrix.indptr), kind="stable")]
        rows.sort_indices()
        self.rows, self.columns = rows, sparse.csr_array(rows.T)
        self.columns.sort_indices()
        paid = problem.weight[problem.weight > 0]
        usual = float(np.median(paid)) if len(paid) else 1.0
        self.extra = _RELATION * usual * np.diff(self.columns.indptr)
        corners = _CORNERS * 2.0 ** float(np.median(np.diff(self.columns.indptr)))
        self.most = int(np.clip(corners, _LEAST, _MOST))
        self._pair_up()

    def _pair_up(self) -> None:
        """Pairs of relations that share a column: sorted keys, and the entries of both by column.

        In seven dimensions there are millions, and first use of the memory takes most of the time: nothing
        is kept of a pair that its entries tell.
        """
        indptr, relations = self.columns.indptr, self.columns.indices
        self.column_of = row_of(indptr)
        count = len(relations)
        # Nearly in order already if the first ones are.
        entries = np.argsort(relations, kind="stable").astype(np.int32)
        later = (indptr[1:][self.column_of] - np.arange(1, count + 1))[entries]
        one, other = np.repeat(entries, later), ranges(entries + 1, later).astype(np.int32)
        keys = relations[one] * np.int64(self.problem.m) + relations[other]
        order = np.argsort(keys, kind="stable")
        self.keys, self.pairs = keys[order], (one[order], other[order])

    def find(
        self,
        cells: IntArray,
        amounts: FloatArray,
        prices: FloatArray,
        generator: np.random.Generator,
        *,
        attackers: IntArray,
        noise: float = 0.0,
        roomy: float = 0.0,
        both: bool = True,
        most: int | None = None,
    ) -> Movements:
        """A movement of each of some cells, where one is found.

        Parameters
        ----------
        cells : int64[k]
            Columns to be moved.
        amounts : float64[k]
            By how much.
        prices : float64[n]
            What each column costs; 0 for hidden ones, inf for those that may not move.
        attackers : int64[k]
            Whose columns stay where they are.
        noise
            How much prices vary by chance.
        roomy
            How far to go by room instead of prices, 0 to 1: among totals there is room for anything.
        both
            Keep within the room when turned round, too.
        most
            Give up after so many steps; default, by the corners of a box.
        """
        growth = _Growth(self, cells, amounts, generator, noise, attackers, np.isfinite(prices), both)
        prices = prices + self.extra
        if roomy:
            room = np.maximum(np.minimum(self.problem.hi, self.problem.lo), _FINE)
            prices = prices ** (1 - roomy) / room**roomy
        return growth.run(prices, self.most if most is None else most)


class _Growth:
    """Movements on their way; keys are the movement's number times n or m, plus the column or relation."""

    def __init__(
        self,
        boxes: Boxes,
        cells: IntArray,
        amounts: FloatArray,
        generator: np.random.Generator,
        noise: float,
        attackers: IntArray,
        able: BoolArray,
        both: bool,
    ) -> None:
        self._boxes, self._generator, self._noise = boxes, generator, noise
        problem = boxes.problem
        self._n, self._m = problem.n, problem.m
        self._up, self._down = problem.hi, problem.lo
        if both:
            self._up = self._down = np.minimum(problem.hi, problem.lo)
        self._up, self._down = self._up * able, self._down * able
        self._rows = keep_entries(boxes.rows, able[boxes.rows.indices])
        count = len(cells)
        self._level, self._alive = np.abs(amounts), np.ones(count, dtype=np.bool_)
        self._new = (np.arange(count), cells.astype(np.int64), amounts.astype(np.float64))
        known = [problem.known[k] for k in attackers.tolist()] if len(problem.known) > 1 else []
        others = np.repeat(np.arange(len(known)), [len(part) for part in known]) * self._n
        fixed = [np.arange(count) * self._n + cells]
        if known:
            fixed.append(others + np.concatenate(known))
        self._fixed = np.sort(np.concatenate(fixed))
        none = (np.empty(0, dtype=np.int64), np.empty(0))
        self._moved, self._missing = none, none
        self._done: list[tuple[IntArray, FloatArray]] = []

    def run(self, prices: FloatArray, most: int) -> Movements:
        """Steps until all are balanced or given up."""
        count, half = len(self._alive), 0
        for step in range(most):
            self._fold_in()
            keys, missing = self._missing
            if not len(keys):
                break
            tries = keys // self._m
            first = _firsts(tries)
            if len(first) > count / 2:
                half = step
            elif len(first) <= _LATE * count and step > 2 * half:
                break
            chosen, change = self._by_pairs(first, prices)
            rest = np.flatnonzero(chosen < 0)
            if len(rest):
                at = first[rest]
                chosen[rest], change[rest] = self._alone(tries[at], keys[at] % self._m, missing[at], prices)
            active, good = tries[first], chosen >= 0
            self._alive[active[~good]] = False
            self._new = (active[good], chosen[good], change[good])
        self._alive[self._missing[0] // self._m] = False
        return self._result()

    def _fold_in(self) -> None:
        """Let the new columns move, and put aside what is balanced then."""
        n, m, columns = self._n, self._m, self._boxes.columns
        who, column, amount = self._new
        self._moved = _summed(self._moved, who * n + column, amount)
        start = columns.indptr[column].astype(np.int64)
        counts = columns.indptr[column + 1] - start
        at = ranges(start, counts)
        added = np.repeat(who, counts) * m + columns.indices[at]
        keys, missing = _summed(self._missing, added, columns.data[at] * np.repeat(amount, counts))
        count = len(self._alive)
        tries = keys // m
        left = (np.abs(missing) > _ZERO * self._level[tries]) & self._alive[tries]
        self._missing = (keys[left], missing[left])
        going = np.zeros(count, dtype=np.bool_)
        going[tries[left]] = True
        mine = going[self._moved[0] // n]
        if not mine.all():
            self._done.append((self._moved[0][~mine], self._moved[1][~mine]))
            self._moved = (self._moved[0][mine], self._moved[1][mine])

    def _by_pairs(self, first: IntArray, prices: FloatArray) -> tuple[IntArray, FloatArray]:
        """Per movement the column that balances its first relation and others at once, or -1."""
        keys, missing = self._missing
        boxes, m = self._boxes, self._m
        chosen, change = np.full(len(first), -1, dtype=np.int64), np.zeros(len(first))
        group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(keys))))
        other = np.delete(np.arange(len(keys)), first)
        g = group[other]
        # The first relation has the lowest number.
        pair = keys[first[g]] % m * m + keys[other] % m
        if not len(boxes.keys):
            return chosen, change
        place = np.minimum(np.searchsorted(boxes.keys, pair), len(boxes.keys) - 1)
        hit = np.flatnonzero(boxes.keys[place] == pair)
        if not len(hit):
            return chosen, change
        place, g, other = place[hit], g[hit], other[hit]
        here, there = boxes.pairs[0][place], boxes.pairs[1][place]
        column = boxes.column_of[here]
        amount = -missing[first[g]] / boxes.columns.data[here]
        second = -missing[other] / boxes.columns.data[there]
        who = keys[other] // m
        key, small = who * self._n + column, _ZERO * self._level[who]
        size = np.minimum(np.abs(amount), np.abs(second))
        size = np.minimum(size, self._room(key, column, amount, scattered=True))
        done = np.abs(amount) - size <= small
        too = np.abs(second) - size <= small
        fits = (amount * second > 0) & (size > _FINE * self._level[who]) & (done | too)
        key, column, g, amount, size = key[fits], column[fits], g[fits], amount[fits], size[fits]
        if not len(key):
            return chosen, change
        _, at, entry = np.unique(key, return_index=True, return_inverse=True)
        balanced = np.bincount(entry, too[fits]) + done[fits][at]
        least = np.full(len(at), np.inf)
        np.minimum.at(least, entry, size)
        column, g = column[at], g[at]
        order = np.lexsort((self._varied(prices[column]), -balanced, g))
        best = order[_firsts(g[order])]
        chosen[g[best]] = column[best]
        change[g[best]] = (np.sign(amount[at]) * least)[best]
        return chosen, change

    def _alone(
        self, who: IntArray, relation: IntArray, lacking: FloatArray, prices: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Per movement the cheapest column that balances a relation, or a part of what it lacks; or -1."""
        rows = self._rows
        chosen, change = np.full(len(who), -1, dtype=np.int64), np.zeros(len(who))
        some = np.flatnonzero(rows.indptr[relation + 1] > rows.indptr[relation])
        if not len(some):
            return chosen, change
        who, lacking = who[some], lacking[some]
        start = rows.indptr[relation[some]].astype(np.int64)
        counts = rows.indptr[relation[some] + 1] - start
        stride = -(-counts // _SAMPLE)
        offset = self._generator.integers(0, stride)
        counts = (counts - offset + stride - 1) // stride
        begin = np.cumsum(counts) - counts
        g = np.repeat(np.arange(len(who)), counts)
        at = (start + offset - begin * stride)[g] + np.arange(len(g)) * stride[g]
        column = rows.indices[at].astype(np.int64)
        amount = -lacking[g] / rows.data[at]
        room = self._room(who[g] * self._n + column, column, amount)
        part = np.clip(room / np.abs(amount), 0.0, 1.0)
        part[part > 1 - _ZERO] = 1.0
        price = self._varied(prices[column]) / np.maximum(part, _FINE) ** _POWER
        price[part <= _FINE] = np.inf
        best = np.flatnonzero((price == np.minimum.reduceat(price, begin)[g]) & np.isfinite(price))
        best = best[_firsts(g[best])]
        chosen[some[g[best]]], change[some[g[best]]] = column[best], (amount * part)[best]
        return chosen, change

    def _room(
        self, key: IntArray, column: IntArray, amount: FloatArray, *, scattered: bool = False
    ) -> FloatArray:
        """How far columns can go on in the direction of an amount: never back, or it would go on for ever.

        `scattered` keys are few and in no order.
        """
        room = np.where(amount > 0, self._up[column], self._down[column])
        keys, moved = self._moved
        if scattered:
            at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            here = np.flatnonzero(keys[at] == key)
            already = moved[at[here]]
            fixed = np.searchsorted(self._fixed, key)
            room[np.append(self._fixed, -1)[fixed] == key] = 0.0
        else:
            at = np.searchsorted(key, keys)
            found = np.flatnonzero(np.append(key, -1)[at] == keys)
            here, already = at[found], moved[found]
            at = np.searchsorted(key, self._fixed)
            room[at[np.append(key, -1)[at] == self._fixed]] = 0.0
        back = already * amount[here] < 0
        room[here] = np.where(back, 0.0, room[here] - np.abs(already))
        return room

    def _varied(self, price: FloatArray) -> FloatArray:
        if not self._noise:
            return price
        return price * np.exp(self._noise * self._generator.standard_normal(len(price)))

    def _result(self) -> Movements:
        keys = np.concatenate([part[0] for part in self._done] or [np.empty(0, dtype=np.int64)])
        amounts = np.concatenate([part[1] for part in self._done] or [np.empty(0)])
        kept = self._alive[keys // self._n]
        keys, amounts = keys[kept], amounts[kept]
        order = np.argsort(keys, kind="stable")
        who, columns = keys[order] // self._n, keys[order] % self._n
        of = np.flatnonzero(self._alive)
        sizes = np.bincount(who, minlength=len(self._alive))[of]
        return Movements(of, np.concatenate([[0], np.cumsum(sizes)]), columns, amounts[order])


def _firsts(sorted_: IntArray) -> IntArray:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.concatenate([[True], sorted_[1:] != sorted_[:-1]])[: len(sorted_)])


def _summed(
    old: tuple[IntArray, FloatArray], keys: IntArray, amounts: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Sorted keys and the sum of the amounts of each."""
    keys, amounts = np.concatenate([old[0], keys]), np.concatenate([old[1], amounts])
    order = np.argsort(keys, kind="stable")
    keys, amounts = keys[order], amounts[order]
    starts = _firsts(keys)
    return keys[starts], np.add.reduceat(amounts, starts) if len(starts) else amounts
