"""Every handed suppression case: optimum, patterns, intervals, infeasibility, wrong patterns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from shared import cases, load

from solver import InfeasibleError, Instance, Status, audit, insider_intervals, solve
from solver.__main__ import main

CASES = cases("csp")


def _hidden(instance: Instance, secondaries: list[str]) -> np.ndarray:
    hidden = instance.always_hidden.copy()
    hidden[[instance.index(name) for name in secondaries]] = True
    return hidden


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    expected, instance = load(path)["expected"], Instance.from_case(path)
    if expected["infeasible"]:
        with pytest.raises(InfeasibleError) as caught:
            solve(instance, "exact")
        witness = expected["witness"]
        obstacle = next(o for o in caught.value.obstacles if o.cell == witness["cell"])
        assert obstacle.interval == pytest.approx(witness["interval_when_everything_allowed_is_suppressed"])
        assert obstacle.required == pytest.approx(witness["required"])
        assert obstacle.relations
        return
    solution = solve(instance, "exact")
    secondaries = sorted(
        instance.name(int(i)) for i in np.flatnonzero(solution.hidden & (instance.status == 1))
    )
    assert solution.status == "optimal"
    assert solution.cost == pytest.approx(float(expected["optimum_cost"]), rel=1e-12)
    assert solution.lower_bound == solution.cost
    with_primaries = instance.weight[solution.hidden & (instance.status != Status.VIRTUAL)].sum()
    assert with_primaries == pytest.approx(float(expected["optimum_cost_with_primaries"]), rel=1e-12)
    if expected.get("patterns_complete", True):
        assert secondaries in [sorted(pattern) for pattern in expected["optimal_patterns"]]
    assert all(solution.hidden[instance.index(name)] for name in expected["must_suppress"])
    assert audit(instance, solution.hidden).ok


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_intervals_and_wrong_patterns(path: Path) -> None:
    expected, instance = load(path)["expected"], Instance.from_case(path)
    for wanted in expected.get("attacker_intervals", ()):
        if wanted["attacker"] == "outsider":
            report = audit(instance, _hidden(instance, wanted["pattern"]))
            at = list(report.cells).index(instance.index(wanted["cell"]))
            low, high = (np.nan if v is None else float(v) for v in wanted["interval"])
            assert report.lower[at] == pytest.approx(low if low == low else -np.inf)
            assert report.upper[at] == pytest.approx(high if high == high else np.inf)
        else:
            inside = insider_intervals(instance, _hidden(instance, wanted["pattern"]))
            found = [
                k
                for k in inside
                if (k.attacker, k.cell) == (wanted["attacker"], instance.index(wanted["cell"]))
            ]
            assert found[0].interval == pytest.approx([float(v) for v in wanted["interval"]])
            assert found[0].required[:2] == pytest.approx([float(v) for v in wanted["required"]])
    for bad in expected["bad_patterns"]:
        leak = bad["leaks"]
        report = audit(instance, _hidden(instance, bad["pattern"]))
        found = [e for e in report.exposures if (e.name, e.attacker) == (leak["cell"], leak["attacker"])]
        assert not report.ok
        assert found[0].interval == pytest.approx([float(v) for v in leak["interval"]])


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_command_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = load(path)["expected"]
    code = main(["solve", str(path), "--json"])
    answer = json.loads(capsys.readouterr().out)
    assert code == (3 if expected["infeasible"] else 0)
    assert answer["status"] == ("infeasible" if expected["infeasible"] else "optimal")
    if not expected["infeasible"]:
        assert answer["cost"] == pytest.approx(float(expected["optimum_cost"]), rel=1e-12)
        assert answer["exposures"] == []
