"""Nothing that the solver gives back prints a true value by the way, nor what follows from one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pprint import pformat
from typing import Any

import numpy as np
import pytest

import solver
from solver.discreet import Discreet
from solver.formats.frame import read_frame
from solver.rules import PPercent, Threshold

RNG = np.random.default_rng(7)
UNITS = {
    "region": [f"R{n % 5}" for n in range(60)],
    "size": ["abc"[n % 3] for n in range(60)],
    "turnover": RNG.integers(100_000, 9_000_000, 60).tolist(),
}
#: As many digits together are a figure of the table.
FIGURE = re.compile(r"\d{5}|\d[.,]\d{3}|e\+")


def results() -> dict[str, Any]:
    done = solver.protect(UNITS, ["region", "size"], value="turnover", rules=[Threshold(5), PPercent(40)])
    instance, hidden = done.problem.instance, done.solution.hidden
    insider = solver.Insider("inside", [int(np.flatnonzero(hidden)[0])], [], [], [], [])
    bare = instance.always_hidden
    return {
        "protect": done,
        "frame": read_frame(UNITS),
        "instance": instance.replace(insiders=(insider,)),
        "solve": solver.solve(instance),
        "audit": solver.audit(instance, bare),
        "insider_intervals": solver.insider_intervals(instance, bare),
        "explain": solver.explain(instance, bare, int(np.flatnonzero(bare)[0])),
        "publish_intervals": solver.publish_intervals(instance, hidden),
        "adjust": solver.adjust(instance),
        "round_table": solver.round_table(instance, 1000),
    }


def parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Everything of the solver's own that can be reached from a result."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith("solver"):
        yield value
        for item in dataclasses.fields(value):
            yield from parts(getattr(value, item.name), seen)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from parts(item, seen)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from parts(item, seen)


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return results()


def test_results_do_not_print_the_figures_of_the_table(found: dict[str, Any]) -> None:
    met: set[type] = set()
    for result in found.values():
        for part in parts(result, set()):
            met.add(type(part))
            for text in (repr(part), str(part), f"{part}", pformat(part)):
                assert not FIGURE.search(text), text
    # Figures were there to be printed.
    assert {solver.Protection, solver.Instance, solver.Exposure, solver.AuditReport} <= met
    assert any(FIGURE.search(str(value)) for value in found["instance"].value)


def test_what_the_solver_gives_back_is_discreet() -> None:
    """Every public value but those that hold no cell: trees of codes, and where a run stands."""
    own = [getattr(solver, name) for name in solver.__all__]
    values = {kind for kind in own if isinstance(kind, type) and dataclasses.is_dataclass(kind)}
    assert {kind for kind in values if not issubclass(kind, Discreet)} == {solver.Hierarchy, solver.Progress}


def test_it_says_how_many_cells_are_hidden_and_why(found: dict[str, Any]) -> None:
    done = found["protect"]
    n, status = len(done.solution.hidden), done.problem.instance.status
    said = repr(done)
    assert said.startswith(
        f"Protection({n} cells: {int((status == solver.Status.SENSITIVE).sum())} primary, "
    )
    assert repr(done.solution.status) in said
    assert f"hidden={int(done.solution.hidden.sum())} of {n}" in repr(done.solution)
    assert f"Instance({n} cells: " in repr(done.problem.instance)
