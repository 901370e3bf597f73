"""Linear and mixed-integer programs: the only module that imports HiGHS.

A :class:`LinearProgram` keeps its basis between solves, so that a change of objective, bounds or
rows costs a few simplex pivots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import highspy
import numpy as np
from numpy.typing import NDArray

from solver.errors import NumericalError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LpStatus = Literal["optimal", "infeasible", "unbounded", "limit"]

_STATUS: dict[Any, LpStatus] = {
    highspy.HighsModelStatus.kOptimal: "optimal",
    highspy.HighsModelStatus.kInfeasible: "infeasible",
    highspy.HighsModelStatus.kUnbounded: "unbounded",
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "unbounded",
    highspy.HighsModelStatus.kModelEmpty: "optimal",
    highspy.HighsModelStatus.kTimeLimit: "limit",
    highspy.HighsModelStatus.kIterationLimit: "limit",
    highspy.HighsModelStatus.kSolutionLimit: "limit",
    highspy.HighsModelStatus.kInterrupt: "limit",
    highspy.HighsModelStatus.kObjectiveBound: "limit",
    highspy.HighsModelStatus.kObjectiveTarget: "limit",
}

#: Options for a program that the simplex as it was asked for doesn't finish.
_OTHER_WAY: Mapping[str, object] = {"presolve": "on", "simplex_strategy": 1, "simplex_scale_strategy": 0}
#: Columns from which on moved bounds are done without.
_SMALL = 500
_MOVED_BOUNDS = "primal_simplex_bound_perturbation_multiplier"
#: More steps than any program takes.
_ANY = 2**31 - 1
_ERROR = highspy.HighsStatus.kError
_INFINITY = highspy.kHighsInf


class _PlainHighs(highspy.Highs):
    """HiGHS without the callbacks that its constructor prepares, which take as long as all the rest of it
    and print a banner into everybody's standard output.
    """

    def __init__(self) -> None:
        super(highspy.Highs, self).__init__()


@dataclass(frozen=True, eq=False)
class LpResult:
    """Outcome of one solve.

    Attributes
    ----------
    status
        "optimal", "infeasible", "unbounded" or "limit".
    objective
        Of the primal point; nan if there is none.
    bound
        Proven bound on the objective (equals it for an optimal LP).
    primal, reduced_costs : float64[columns]
    row_duals : float64[rows]
        Empty if there is no such solution (duals of a mixed-integer program), or it isn't wanted.
    """

    status: LpStatus
    objective: float
    bound: float
    primal: FloatArray
    row_duals: FloatArray
    reduced_costs: FloatArray


_NONE = np.empty(0)


@dataclass(frozen=True, eq=False)
class CutPool:
    """Cuts that HiGHS found at the root of a mixed-integer program, without presolve.

    Attributes
    ----------
    indptr, indices, coefs, lower, upper
        lower ≤ A x ≤ upper in compressed rows.
    incumbent
        Objective of HiGHS's incumbent then: the cuts may exclude points that are no better.
    """

    indptr: IntArray
    indices: IntArray
    coefs: FloatArray
    lower: FloatArray
    upper: FloatArray
    incumbent: float


class LinearProgram:
    """Minimise cost·x subject to lower ≤ x ≤ upper and row_lower ≤ A x ≤ row_upper.

    Parameters
    ----------
    cost, lower, upper : float64[columns]
    indptr, indices, coefs
        A in compressed rows.
    row_lower, row_upper : float64[rows]
    integral : bool[columns], optional
        Columns that must be integer.
    primal_simplex
        Use the primal simplex: right after a change of objective, as the old basis stays
        feasible. The default, dual, is right after a change of bounds or rows.
    presolve
        Let HiGHS presolve; pays for a problem solved once.
    with_duals
        Fetch the duals of solutions too.
    with_reduced_costs
        Fetch the reduced costs with them.

    Attributes
    ----------
    work
        Deterministic effort of all solves so far, in about milliseconds.
    """

    def __init__(
        self,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        indptr: IntArray,
        indices: IntArray,
        coefs: FloatArray,
        row_lower: FloatArray,
        row_upper: FloatArray,
        *,
        integral: NDArray[np.bool_] | None = None,
        primal_simplex: bool = False,
        presolve: bool = False,
        with_duals: bool = True,
        with_reduced_costs: bool = True,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        # Typed loosely: the stubs of highspy lack some of the methods used here.
        highs: Any = _PlainHighs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", threads)
        highs.setOptionValue("random_seed", seed)
        highs.setOptionValue("presolve", "on" if presolve else "off")
        if integral is None:
            highs.setOptionValue("solver", "simplex")
            highs.setOptionValue("simplex_strategy", 4 if primal_simplex else 1)
        else:
            # Both take longer on cuts of tables than they save.
            highs.setOptionValue("mip_detect_symmetry", False)
            highs.setOptionValue("mip_heuristic_run_feasibility_jump", False)
        self._integral = integral is not None
        self._limited, self._most = False, _ANY
        # Moved bounds keep the primal simplex from going round in circles, and cost it as many steps again;
        # in small programs that's little.
        self._plain = integral is None and primal_simplex and len(cost) > _SMALL
        if self._plain:
            highs.setOptionValue(_MOVED_BOUNDS, 0.0)
        self._with_duals, self._with_reduced_costs = with_duals, with_duals and with_reduced_costs
        self._pools: list[CutPool] = []
        self.work = 0.0
        self._highs = highs
        kinds = np.zeros(len(cost)) if integral is None else integral
        # Given as arrays, the model takes a fraction of the time that filling a HighsLp would.
        code = highs.passModel(
            len(cost),
            len(row_lower),
            len(indices),
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            0.0,
            np.asarray(cost, dtype=np.float64),
            np.asarray(lower, dtype=np.float64),
            np.asarray(upper, dtype=np.float64),
            np.asarray(row_lower, dtype=np.float64),
            np.asarray(row_upper, dtype=np.float64),
            np.asarray(indptr, dtype=np.int32),
            np.asarray(indices, dtype=np.int32),
            np.asarray(coefs, dtype=np.float64),
            np.asarray(kinds, dtype=np.int32),
        )
        self._check(code, "model")

    @property
    def columns(self) -> int:
        """Number of columns."""
        return int(self._highs.getNumCol())

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self._highs.getNumRow())

    @property
    def steps(self) -> int:
        """Simplex iterations of the last solve."""
        return max(int(self._value("simplex_iteration_count")), 0)

    def set_primal_simplex(self, primal: bool) -> None:
        """Choose the simplex for the next solves."""
        self._highs.setOptionValue("simplex_strategy", 4 if primal else 1)

    def set_costs(self, columns: IntArray, costs: FloatArray) -> None:
        """Change some objective coefficients."""
        self._highs.changeColsCost(
            len(columns), np.asarray(columns, dtype=np.int32), np.asarray(costs, dtype=np.float64)
        )

    def set_cost(self, column: int, cost: float) -> None:
        """Change one objective coefficient."""
        self._highs.changeColCost(column, cost)

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the bounds of some columns."""
        self._highs.changeColsBounds(
            len(columns),
            np.asarray(columns, dtype=np.int32),
            np.asarray(lower, dtype=np.float64),
            np.asarray(upper, dtype=np.float64),
        )

    def set_row_bounds(self, rows: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """Change the sides of some rows."""
        self._highs.changeRowsBounds(
            len(rows),
            np.asarray(rows, dtype=np.int32),
            np.asarray(lower, dtype=np.float64),
            np.asarray(upper, dtype=np.float64),
        )

    def add_rows(
        self, indptr: IntArray, indices: IntArray, coefs: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> None:
        """Append rows given in compressed form (indptr has one entry more than rows)."""
        count = len(indptr) - 1
        self._check(
            self._highs.addRows(
                count,
                np.asarray(lower, dtype=np.float64),
                np.asarray(upper, dtype=np.float64),
                len(indices),
                np.asarray(indptr[:-1], dtype=np.int32),
                np.asarray(indices, dtype=np.int32),
                np.asarray(coefs, dtype=np.float64),
            ),
            "rows",
        )

    def delete_rows(self, rows: IntArray) -> None:
        """Remove the rows of these numbers; the others keep their order."""
        self._check(self._highs.deleteRows(len(rows), np.asarray(rows, dtype=np.int32)), "rows")

    def propose(self, columns: IntArray, values: FloatArray) -> None:
        """Values of integral columns that the next solve of a mixed-integer program tries first."""
        self._check(
            self._highs.setSolution(
                len(columns), np.asarray(columns, dtype=np.int32), np.asarray(values, dtype=np.float64)
            ),
            "values",
        )

    def skip_heuristics(self) -> None:
        """Have HiGHS spend nothing on incumbents of a mixed-integer program."""
        self._highs.setOptionValue("mip_heuristic_effort", 0.0)
        for name in ("rins", "rens", "root_reduced_cost"):
            self._highs.setOptionValue(f"mip_heuristic_run_{name}", False)

    def keep_cuts(self) -> None:
        """Have HiGHS hand over its root cuts (:attr:`pool`)."""
        highs = self._highs
        highs.setOptionValue("mip_allow_restart", False)
        highs.setCallback(self._take_cuts, None)
        highs.startCallback(highspy.cb.HighsCallbackType.kCallbackMipGetCutPool)

    def _take_cuts(self, kind: int, message: str, data: Any, reply: Any, mine: object) -> None:
        count, length = int(data.cutpool_num_cut), len(data.cutpool_index)
        starts = np.array(data.cutpool_start, dtype=np.int64)[:count]
        pool = CutPool(
            np.concatenate([starts, [length]]),
            np.array(data.cutpool_index, dtype=np.int64),
            np.array(data.cutpool_value, dtype=np.float64),
            np.array(data.cutpool_lower, dtype=np.float64),
            np.array(data.cutpool_upper, dtype=np.float64),
            float(data.mip_primal_bound),
        )
        self._pools.append(pool)

    @property
    def pool(self) -> CutPool | None:
        """The last cuts handed over."""
        return self._pools[-1] if self._pools else None

    def basis(self) -> Any:
        """The current basis, opaque; give it to :meth:`set_basis`."""
        return self._highs.getBasis()

    def recedes(self, lower: FloatArray, upper: FloatArray) -> bool:
        """Is the ray behind the last answer "unbounded" one that keeps within these bounds
        (float64[columns])? From a vertex very far away HiGHS may miss the bound that stops it.
        """
        _, found, values = self._highs.getPrimalRay()
        if not found:
            return False
        ray = np.array(values)
        little = 1e-9 * float(np.abs(ray).max(initial=0.0))
        return bool((ray[np.isfinite(lower)] >= -little).all() and (ray[np.isfinite(upper)] <= little).all())

    def forget_basis(self) -> None:
        """Start the next solve from scratch: after changes of bounds and costs at once, what is left
        of the old basis is neither primal nor dual feasible and costs many times more.
        """
        self._highs.clearSolver()

    def set_basis(self, basis: Any) -> None:
        """Start the next solve from a basis of :meth:`basis` (same columns and rows)."""
        self._highs.setBasis(basis)

    def solve(
        self,
        *,
        seconds: float | None = None,
        iterations: int | None = None,
        nodes: int | None = None,
        gap: float | None = None,
        cutoff: float | None = None,
        afresh: bool = False,
    ) -> LpResult:
        """Solve from the current basis.

        Parameters
        ----------
        seconds, iterations, nodes
            Limits of this solve: wall clock, simplex iterations, branch-and-bound nodes.
        gap
            Relative gap at which a mixed-integer program stops.
        cutoff
            Stop once the objective is proven to exceed this (dual simplex, status "limit").
        afresh
            Forget the last basis.
        """
        highs = self._highs
        if afresh:
            highs.clearSolver()
        if seconds is not None or self._limited:
            # HiGHS counts the seconds of all its runs, and keeps the limit of the last.
            self._limited = seconds is not None
            end = _INFINITY if seconds is None else highs.getRunTime() + max(seconds, 0.0)
            highs.setOptionValue("time_limit", end)
        most = _ANY if iterations is None else iterations
        turns = self._turns if self._plain else _ANY
        self._limit_steps(min(most, turns))
        if nodes is not None:
            highs.setOptionValue("mip_max_nodes", nodes)
        if gap is not None:
            highs.setOptionValue("mip_rel_gap", gap)
        if cutoff is not None:
            highs.setOptionValue("objective_bound", cutoff)
        status = self._run()
        if status == "limit" and turns < most and self._value("simplex_iteration_count") >= turns:
            self._plain = False
            highs.setOptionValue(_MOVED_BOUNDS, 1.0)
            self._limit_steps(most)
            status = self._run()
        if status is None:
            # Another user of HiGHS in this process may have fixed the number of threads of all; on one
            # thread of those, the result is the same.
            status = self._run({"threads": 0, "parallel": "off"})
        if status is None and not self._integral:
            # Numbers of very different size, or a relation without a column: presolve often gets by.
            before = {name: highs.getOptionValue(name)[1] for name in _OTHER_WAY}
            status = self._run(_OTHER_WAY)
            for name, value in before.items():
                highs.setOptionValue(name, value)
        if status is None:
            raise NumericalError(f"HiGHS stopped with {highs.modelStatusToString(highs.getModelStatus())}")
        self._count()
        return self._result(status)

    @property
    def _turns(self) -> int:
        """So many steps without moved bounds are a circle, or might as well be one."""
        return 1_000 + 10 * (self.columns + self.rows)

    def _limit_steps(self, most: int) -> None:
        if most != self._most:
            self._most = most
            self._highs.setOptionValue("simplex_iteration_limit", most)

    def _run(self, options: Mapping[str, object] | None = None) -> LpStatus | None:
        """Run HiGHS, from scratch if with other options, which then stay; None if it comes to nothing."""
        highs = self._highs
        if options is not None:
            for name, value in options.items():
                highs.setOptionValue(name, value)
            highs.clearSolver()
        code = highs.run()
        return None if code == _ERROR else _STATUS.get(highs.getModelStatus())

    def _count(self) -> None:
        """Add the effort of the last solve to :attr:`work`: about its milliseconds, but the same on
        every machine."""
        steps = self.steps
        size = self.columns + self.rows
        if self._integral:
            self.work += 10.0 + 3e-4 * steps * size
        else:
            self.work += 0.2 + 4e-4 * size + 6e-5 * steps * size**0.8

    def _value(self, name: str) -> float:
        """A figure of the last solve."""
        return float(self._highs.getInfoValue(name)[1])

    def _result(self, status: LpStatus) -> LpResult:
        solution = self._highs.getSolution()
        primal = np.array(solution.col_value) if solution.value_valid else _NONE
        objective = self._value("objective_function_value") if solution.value_valid else float("nan")
        if self._integral:
            return LpResult(status, objective, self._value("mip_dual_bound"), primal, _NONE, _NONE)
        duals = solution.dual_valid and self._with_duals
        return LpResult(
            status,
            objective,
            objective,
            primal,
            np.array(solution.row_dual) if duals else _NONE,
            np.array(solution.col_dual) if duals and self._with_reduced_costs else _NONE,
        )

    @staticmethod
    def _check(code: Any, what: str) -> None:
        if code == _ERROR:
            # It takes no coefficients from 1e15 on.
            raise NumericalError(f"HiGHS refused the {what} of a linear program")
