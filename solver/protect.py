"""From a data frame to a protected table in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import solver
from solver.arguments import choice, listed, require
from solver.discreet import Discreet
from solver.formats.apriori import Apriori, read_apriori
from solver.formats.frame import write_frame
from solver.hierarchy import TOTAL
from solver.insiders import Scope
from solver.instance import Status
from solver.intake import HierarchyLike, InnerPolicy, MissingPolicy
from solver.problem import TableProblem, build_problem
from solver.rows import Choices, Columns, NonAdditive, Rows
from solver.rules import Rule
from solver.solution import ProgressCallback
from solver.solve import METHODS


@dataclass(frozen=True, eq=False, repr=False)
class Protection(Discreet):
    """A protected table.

    Attributes
    ----------
    frame
        One row for each cell, of the same library as the input: the dimensions, ``value``, ``count``,
        ``status`` (safe, primary, secondary, hidden, empty), ``flag`` (Eurostat's letter), ``reasons``,
        ``published`` (the value, missing where it is hidden), ``lower`` and ``upper`` (between which a
        reader can place a hidden value).
    problem
        The table, its assessment by the rules, its instance, and notices about the input.
    solution
        The pattern, its cost and the proven lower bound.
    audit
        Feasibility intervals of all hidden cells; always without an exposure.
    """

    frame: Any
    problem: TableProblem
    solution: solver.Solution
    audit: solver.AuditReport

    def __repr__(self) -> str:
        status, hidden = self.problem.instance.status, self.solution.hidden
        primary = int((status == Status.SENSITIVE).sum())
        secondary = int((hidden & (status == Status.FREE)).sum())
        told = f"{len(status)} cells: {primary} primary, {secondary} secondary, {int(hidden.sum())} hidden"
        return f"Protection({told}; {self.solution.status!r}, {len(self.notices)} notices)"

    @property
    def notices(self) -> tuple[str, ...]:
        """What the author of the input should know."""
        return self.problem.notices


def protect(
    frame: object,
    dims: Sequence[str],
    hierarchies: Mapping[str, HierarchyLike] | None = None,
    value: str | None = None,
    rules: Sequence[Rule] = (),
    *,
    rows: Rows = "units",
    count: str | None = None,
    top: Sequence[str] = (),
    weight: str | None = None,
    holding: str | None = None,
    request: str | None = None,
    status: str | None = None,
    lpl: str | None = None,
    upl: str | None = None,
    cost: str = "value",
    percent: float = 10.0,
    apriori: Sequence[Apriori] | str | Path = (),
    total: str = TOTAL,
    missing: MissingPolicy = "category",
    missing_codes: Sequence[str] = ("", "NA"),
    inner: InnerPolicy = "unspecified",
    non_additive: NonAdditive = "refuse",
    negative_values: bool = False,
    hide_zeros: bool = False,
    insiders: Scope = "relations",
    method: str = "auto",
    time_limit: float | None = None,
    threads: int = 1,
    seed: int = 0,
    progress: ProgressCallback | None = None,
) -> Protection:
    """Build a table from a data frame, apply the rules, suppress, and audit.

    Parameters
    ----------
    frame
        pandas, polars, Arrow (PyCapsule), or a mapping of column names to columns.
    dims
        The columns that span the table.
    hierarchies
        For a dimension: a ``Hierarchy``, a nested mapping, the name of a file, or the names of the frame's
        columns that are its levels, coarsest first. Without one its codes lie flat below ``total``.
    value
        The column to add up; without it units are counted.
    rules
        See :mod:`solver.rules`.
    rows
        ``"units"``: a row is a respondent. ``"cells"``: a row is a cell; totals that are missing are built.
    count, top, status, lpl, upl
        Of cells: columns of the number of contributors, the largest contributions, the status (S, U, P, X
        or TRUE, FALSE), stated protection levels.
    weight, holding, request
        Of units: columns of the sampling weight, the owner, the request code.
    cost
        What hiding a cell costs: ``"value"``, ``"count"``, ``"unit"``, or a column of cells.
    percent
        Protection level of cells that are sensitive by status, in per cent of the value.
    apriori
        Decisions about single cells, or the name of an a-priori file.
    missing
        Rows without a code: ``"category"`` ``(missing)``, which the report shows and totals count;
        ``"drop"`` them from the totals too; or ``"stop"``. ``missing_codes`` are missing unless the
        hierarchy has them.
    inner
        Units whose code has parts: ``"unspecified"``, a part of its own, or ``"stop"``.
    non_additive
        Totals that are not the sum of their parts: ``"refuse"`` with the list of differences,
        ``"recompute"`` totals, or keep the differences as a ``"constant"``.
    negative_values
        Whether values may be negative; otherwise every reader knows that they aren't.
    hide_zeros
        Whether zeros may be hidden; a cell without contributors never is.
    insiders
        Against whom a single contributor of a hidden cell must not win: primaries that share a relation
        with it, all, or none.
    method, time_limit, threads, seed, progress
        See :func:`solver.solve`.

    Returns
    -------
    Protection

    Raises
    ------
    MultipleInputError
        All mistakes of the input at once, by column and record.
    InfeasibleError
        If no pattern is safe; says what stands in the way.
    """
    dims = listed(dims, "dims", "names of columns")
    decisions = (
        read_apriori(apriori, dims=len(dims))
        if isinstance(apriori, (str, Path))
        else listed(apriori, "apriori", "decisions, or the name of a file", Apriori)
    )
    if hierarchies is not None:
        require(hierarchies, Mapping, "hierarchies", "Give a mapping of dimensions to hierarchies.")
    choice(method, "method", METHODS)
    top = listed(top, "top", "names of columns")
    problem = build_problem(
        frame,
        dims,
        hierarchies or {},
        Columns(
            value,
            count,
            top,
            weight,
            holding,
            request,
            status,
            cost,
            lpl,
            upl,
        ),
        Choices(
            rows,
            total,
            missing,
            listed(missing_codes, "missing_codes", "codes"),
            inner,
            non_additive,
            negative_values,
            hide_zeros,
            percent,
            insiders,
        ),
        rules,
        decisions,
    )
    solution = solver.solve(
        problem.instance, method, time_limit=time_limit, threads=threads, seed=seed, progress=progress
    )
    report = solver.audit(problem.instance, solution.hidden)
    return Protection(_result(problem, solution, report), problem, solution, report)


def _result(problem: TableProblem, solution: solver.Solution, report: solver.AuditReport) -> Any:
    """The frame that goes back."""
    instance, profiles = problem.instance, problem.cells.profiles
    hidden = solution.hidden
    secondary = hidden & (instance.status == Status.FREE)
    words = np.where(profiles.occupied | (profiles.value != 0), "safe", "empty").astype("<U9")
    words[secondary] = "secondary"
    words[instance.status == Status.HIDDEN] = "hidden"
    words[instance.status == Status.SENSITIVE] = "primary"
    overruled = problem.assessment.sensitive & ~hidden
    flags = problem.assessment.flags(hidden & ~problem.assessment.sensitive)
    flags[overruled] = "V"
    low, high = np.full(instance.n, np.nan), np.full(instance.n, np.nan)
    low[report.cells], high[report.cells] = report.lower, report.upper

    def masked(column: np.ndarray[Any, Any], where: np.ndarray[Any, Any]) -> list[Any]:
        return [x if ok else None for x, ok in zip(column.tolist(), where.tolist(), strict=True)]

    columns: dict[str, Any] = {dim: problem.codes(dim) for dim in problem.dims}
    columns["value"] = profiles.value
    columns["count"] = profiles.count if problem.counted else [None] * instance.n
    columns["status"] = words.tolist()
    columns["flag"] = flags.tolist()
    columns["reasons"] = [" ".join(problem.assessment.reasons_of(i)) for i in range(instance.n)]
    columns["published"] = masked(profiles.value, ~hidden)
    columns["lower"] = masked(low, hidden)
    columns["upper"] = masked(high, hidden)
    return write_frame(columns, problem.kind)
