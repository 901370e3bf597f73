"""Every handed case of type `rule`, through the public doors."""

from __future__ import annotations

import itertools
import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from solver.rules import (
    Dominance,
    PPercent,
    Profiles,
    Request,
    Threshold,
    Zero,
    assess,
    check_contributions,
    hide_derived,
    profiles_of,
)

CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"


def load(case_type: str) -> dict[str, dict[str, Any]]:
    files = sorted(CASES.glob("*.json"))
    assert files, f"the handed cases are missing: {CASES}"
    cases = {path.stem[:3]: json.loads(path.read_text("utf-8")) for path in files}
    return {number: case for number, case in cases.items() if case["case_type"] == case_type}


RULE_CASES = load("rule")


def statuses(number: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = RULE_CASES[number]["expected"]["statuses"]
    return listed


def of_micro(micro: list[dict[str, Any]], depth: int = 2) -> tuple[list[str], Profiles]:
    names = list(dict.fromkeys(row["cell"] for row in micro))
    profiles = profiles_of(
        [names.index(row["cell"]) for row in micro],
        [row["value"] for row in micro],
        cells=len(names),
        depth=depth,
        weight=[float(row.get("weight", 1)) for row in micro],
        request=[row.get("request", "") for row in micro],
    )
    return names, profiles


@pytest.mark.parametrize("file", ["unweighted", "weighted"])
def test_050_integer_weights_repeat_contributions(file: str) -> None:
    names, profiles = of_micro(RULE_CASES["050"]["micro"][file])
    verdict = assess(profiles, [Dominance(1, 85), Dominance(2, 90), PPercent(10)])
    for expected in statuses("050"):
        i = names.index(expected["cell"])
        assert profiles.value[i] == expected["total"]
        found = {rule: "u" if hit[i] else "s" for rule, hit in verdict.reasons.items()}
        assert found == {
            "(1,85)": expected["nk_1_85"],
            "(2,90)": expected["nk_2_90"],
            "p%10": expected["p10"],
        }


def test_051_threshold_counts_units_unless_told() -> None:
    names, profiles = of_micro(RULE_CASES["051"]["micro"])
    plain, weighted = (assess(profiles, [Threshold(10, weighted=w)]).sensitive for w in (False, True))
    for expected in statuses("051"):
        i = names.index(expected["cell"])
        assert profiles.count[i] == expected["n_unweighted"]
        assert profiles.weighted_count[i] == pytest.approx(expected["n_weighted"])
        assert "su"[int(plain[i])] == expected["minfreq10_unweighted"]
        assert "su"[int(weighted[i])] == expected["minfreq10_weighted"]


def test_054_request() -> None:
    case = RULE_CASES["054"]
    names, profiles = of_micro(case["micro"], depth=1)
    verdict = assess(profiles, [Request(case["rule"]["request"])])
    for expected in statuses("054"):
        i = names.index(expected["cell"])
        assert profiles.request[i] == expected["request_of_top"]
        assert 100 * profiles.top[i, 0] / profiles.value[i] == expected["top_share"]
        assert "su"[int(verdict.sensitive[i])] == expected["status"]


def test_056_every_reason_and_one_flag() -> None:
    cells = RULE_CASES["056"]["micro"]
    micro = [{"cell": cell, "value": v} for cell, values in cells.items() for v in values]
    names, profiles = of_micro(micro)
    verdict = assess(profiles, [Threshold(3), Dominance(1, 80), Dominance(2, 90)])
    for expected in statuses("056"):
        i = names.index(expected["cell"])
        assert verdict.flags()[i] == expected["flag"]
        assert list(verdict.reasons_of(i)) == expected["reasons"]


def test_058_zeros_with_contributors() -> None:
    micro = RULE_CASES["058"]["micro"]
    value, count = dict(micro["fine"]), dict(micro["nonempty"])
    for code, parts in micro["recode"].items():
        value[code] = sum(micro["fine"][part] for part in parts)
        count[code] = sum(micro["nonempty"][part] for part in parts)
    cells = [(row["cell"].split()[0], row) for row in statuses("058")]
    profiles = Profiles(
        value=[value.get(code, 0) for code, _ in cells], count=[count.get(code, 0) for code, _ in cells]
    )
    verdict = assess(profiles, [Zero(10)])
    for i, (_, expected) in enumerate(cells):
        assert (profiles.value[i], profiles.count[i]) == (expected["value"], expected["n"])
        found = "u" if verdict.sensitive[i] else "s" if profiles.occupied[i] else "empty"
        assert found == expected["status"]
        assert verdict.upl[i] == (10 if found == "u" else 0)
        assert verdict.lpl[i] == 0


def test_059_consistency_names_line_and_reason() -> None:
    rows = RULE_CASES["059"]["micro"]["table"]
    arrays = (
        [row["value"] for row in rows],
        [row["freq"] for row in rows],
        [[row["top1"], row["top2"]] for row in rows],
    )
    strict = {finding.row: finding for finding in check_contributions(*arrays)}
    declared = {f.row: f for f in check_contributions(*arrays, negative_values=True)}
    for i, expected in enumerate(statuses("059")):
        verdict = expected["verdict"]
        if verdict == "ok":
            assert i not in strict
            assert i not in declared
        elif verdict.startswith("ok if negatives"):
            assert "value negative" in strict[i].cause
            assert strict[i].severity == "error"
            assert i not in declared
        elif verdict.startswith("warn"):
            assert strict[i].severity == "warning"
            assert strict[i].cause == verdict.removeprefix("warn: ")
        else:
            for finding in (strict[i], declared[i]):
                assert finding.severity == "error"
        if verdict.startswith("error"):
            for word in verdict.removeprefix("error: ").split(" but "):
                assert word.split(" != ")[0].split(">")[0].strip() in strict[i].cause


def test_061_a_mean_gives_the_count_away() -> None:
    published = RULE_CASES["061"]["micro"]["published"]
    users, records = (int(published[key].removeprefix("<")) for key in ("users", "records"))
    fitting = [
        list(data)
        for n in range(1, users)
        for data in itertools.combinations_with_replacement(range(1, records), n)
        if sum(data) < records
        and statistics.median(data) == published["median"]
        and sum(data) / n == published["mean"]
    ]
    assert fitting == statuses("061")[0]["solutions"]
    # Cells: users, records; derived: median of the users' records, mean = records / users.
    count_rule = assess(Profiles(value=[4, 7], count=[4, 4], kind="frequency"), [Threshold(6)])
    assert hide_derived(count_rule.sensitive, [0, 1, 3], [0, 1, 0]).all()


def test_every_rule_case_is_exercised() -> None:
    tested = {name.split("_")[1] for name in globals() if name.startswith("test_0")}
    assert set(RULE_CASES) == tested
