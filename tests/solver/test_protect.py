"""`protect` and its commands: frames of every library, totals, statuses, a-priori decisions, mistakes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.__main__ import main
from solver.errors import InfeasibleError, InputError, MultipleInputError
from solver.formats.apriori import Apriori
from solver.formats.hrc import read_hierarchy
from solver.formats.jj import read_jj, write_jj
from solver.protect import Protection, protect
from solver.rules import Dominance, PPercent, Threshold, Zero
from solver.rules.text import parse_rule

UNITS: dict[str, list[Any]] = {
    "region": ["N1", "N1", "N2", "N2", "N2", "S", "S", "S", "S", "N1", "N1", "S"],
    "size": ["a", "b", "a", "b", "a", "a", "b", "a", "b", "a", "b", "a"],
    "income": [5, 7, 9, 40, 11, 8, 6, 7, 5, 6, 9, 10],
}
TREE = {"Total": {"N": {"N1": {}, "N2": {}}, "S": {}}}


def rows(done: Protection, *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(done.frame[name] for name in names), strict=True))


def test_every_library_gets_the_same_table_back() -> None:
    frames = {
        "mapping": UNITS,
        "pandas": pd.DataFrame(UNITS).astype({"region": "category"}),
        "polars": pl.DataFrame(UNITS),
        "arrow": pa.table(UNITS),
    }
    results = {}
    for library, frame in frames.items():
        done = protect(frame, ["region", "size"], {"region": TREE}, "income", [Threshold(2), PPercent(20)])
        assert done.audit.ok
        results[library] = done.frame
    assert isinstance(results["pandas"], pd.DataFrame)
    assert isinstance(results["polars"], pl.DataFrame)
    assert isinstance(results["arrow"], pa.Table)
    expected = results["mapping"]
    assert results["arrow"].to_pydict() == expected
    assert results["polars"].to_dict(as_series=False) == expected
    again = results["pandas"].astype(object).where(results["pandas"].notna(), None)
    assert again.to_dict(orient="list") == expected


def test_only_the_library_of_the_frame_is_imported() -> None:
    program = (
        "import sys; from solver.protect import protect; from solver.rules import Threshold;"
        "protect({'a': ['x', 'y', 'y', 'y']}, ['a'], rules=[Threshold(2)], insiders='none');"
        "sys.exit(bool({'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 0


def test_hidden_values_are_not_published_and_lie_between_their_bounds() -> None:
    done = protect(UNITS, ["region", "size"], {"region": TREE}, "income", [Threshold(2)])
    found = {status for (status,) in rows(done, "status")}
    assert found >= {"safe", "primary", "secondary"}
    for value, status, shown, low, high in rows(done, "value", "status", "published", "lower", "upper"):
        if status in ("primary", "secondary"):
            assert shown is None
            assert low <= value <= high
        else:
            assert (shown, low, high) == (value, None, None)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["x1", "x2", "y"]), st.integers(0, 30)),
        min_size=1,
        max_size=25,
    )
)
def test_every_total_is_the_sum_of_its_units(units: list[tuple[str, str, int]]) -> None:
    tree = {"Total": {"x": {"x1": {}, "x2": {}}, "y": {}}}
    frame = {"a": [u[0] for u in units], "b": [u[1] for u in units], "v": [u[2] for u in units]}
    done = protect(frame, ["a", "b"], {"b": tree}, "v")
    inside = {"Total": {"x1", "x2", "y"}, "x": {"x1", "x2"}, "x1": {"x1"}, "x2": {"x2"}, "y": {"y"}}
    for a, b, value, count in rows(done, "a", "b", "value", "count"):
        mine = [u[2] for u in units if a in ("Total", u[0]) and u[1] in inside[b]]
        assert (value, count) == (sum(mine), len(mine))
    assert done.solution.cost == 0


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.integers(1, 30)),
        min_size=4,
        max_size=30,
    ),
    st.randoms(),
)
def test_cells_and_units_lead_to_one_table(units: list[tuple[str, str, int]], random: Any) -> None:
    rules = [Threshold(2), Dominance(1, 90)]
    shuffled = list(units)
    random.shuffle(shuffled)
    results = []
    for listed in (units, shuffled):
        frame = {"a": [u[0] for u in listed], "b": [u[1] for u in listed], "v": [u[2] for u in listed]}
        try:
            results.append(protect(frame, ["a", "b"], value="v", rules=rules, insiders="none"))
        except InfeasibleError:
            results.append(None)
    first, second = results
    assert (first is None) == (second is None)
    if first is None or second is None:
        return
    assert first.solution.cost == pytest.approx(second.solution.cost)
    leaves = [i for i, row in enumerate(rows(first, "a", "b")) if "Total" not in row]
    tops = {
        (a, b): max(u[2] for u in units if (u[0], u[1]) == (a, b))
        for a, b in (rows(first, "a", "b")[i] for i in leaves)
    }
    cells = {name: [first.frame[name][i] for i in leaves] for name in ("a", "b", "value", "count")}
    cells["top"] = [tops[key] for key in zip(cells["a"], cells["b"], strict=True)]
    third = protect(
        cells,
        ["a", "b"],
        value="value",
        rules=rules,
        rows="cells",
        count="count",
        top=["top"],
        insiders="none",
    )
    keys = ("a", "b", "value", "count", "reasons")
    assert sorted(rows(third, *keys)) == sorted(rows(first, *keys))
    assert third.solution.cost == pytest.approx(first.solution.cost)


def test_levels_in_columns_of_the_frame() -> None:
    frame = {**UNITS, "big": [code[0] for code in UNITS["region"]]}
    done = protect(frame, ["region"], {"region": ["big", "region"]}, "income")
    assert set(done.frame["region"]) == {"Total", "N", "N1", "N2", "S"}


def test_frequency_table_without_a_value() -> None:
    done = protect(UNITS, ["region", "size"], {"region": TREE}, rules=[Threshold(3)])
    primary = [(v, r) for v, s, r in rows(done, "value", "status", "reasons") if s == "primary"]
    assert primary
    assert all(v < 3 and r == "freq<3" for v, r in primary)


def test_decimals_and_large_values_add_up() -> None:
    frame = {"a": list("xyz"), "v": ["1234567890123.1", "0.2", "0.3"]}
    done = protect(frame, ["a"], value="v", rows="cells")
    assert max(done.frame["value"]) == 1234567890123.6
    fine = {"a": ["Total", *"xyz"], "v": ["1234567890123.60000001", "1234567890123.1", "0.2", "0.3"]}
    with pytest.raises(InputError, match=r"difference 0\.00000001"):
        protect(fine, ["a"], value="v", rows="cells")


def test_float_totals_that_went_through_binary_sums_are_accepted() -> None:
    frame = {"a": ["Total", "x", "y"], "v": [0.1 + 0.2, 0.1, 0.2]}
    assert len(protect(frame, ["a"], value="v", rows="cells").frame["a"]) == 3
    with pytest.raises(InputError, match=r"difference 0\.1"):
        protect({**frame, "v": [0.4, 0.1, 0.2]}, ["a"], value="v", rows="cells")


CELLS: dict[str, list[Any]] = {
    "r": list(itertools.chain.from_iterable([r] * 4 for r in "ABC")),
    "c": list("wxyz") * 3,
    "v": [20, 50, 10, 30, 8, 19, 22, 25, 17, 32, 12, 40],
    "s": ["S"] * 5 + ["U"] + ["S"] * 6,
}


def shield(**more: Any) -> Protection:
    return protect(CELLS, ["r", "c"], value="v", rows="cells", status="s", **more)


def test_apriori_decisions(tmp_path: Path) -> None:
    plain = shield()
    chosen = [(r, c) for r, c, s in rows(plain, "r", "c", "status") if s == "secondary"]
    assert chosen
    shown = shield(apriori=[Apriori(chosen[0], "p")])
    assert chosen[0] not in [(r, c) for r, c, s in rows(shown, "r", "c", "status") if s == "secondary"]
    assert shown.solution.cost >= plain.solution.cost
    free = shield(apriori=[Apriori(key, "m") for key in chosen])
    assert free.solution.cost == 0
    (tmp_path / "a.hst").write_text("B;x;s\n", encoding="utf-8")
    safe = shield(apriori=tmp_path / "a.hst")
    assert safe.solution.cost == 0
    assert any("safe a priori" in notice for notice in safe.notices)
    dear = shield(apriori=[Apriori(chosen[0], "c", (1000.0,))])
    assert dear.problem.instance.weight.max() == 1000
    wide = shield(apriori=[Apriori(("B", "x"), "pl", (5.0, 7.0))])
    cell = wide.problem.instance.names.index("B × x")  # type: ignore[union-attr]
    assert (wide.problem.instance.lpl[cell], wide.problem.instance.upl[cell]) == (5, 7)
    bound = shield(apriori=[Apriori(("B", "x"), "ab", (10.0, 40.0))])
    assert bound.problem.instance.upper_bound[cell] == 40
    with pytest.raises(InputError, match="no cell B × q"):
        shield(apriori=[Apriori(("B", "q"), "u")])


def test_a_sensitive_cell_is_not_shown_by_an_apriori_mark() -> None:
    with pytest.raises(InputError, match="B × x is sensitive"):
        shield(apriori=[Apriori(("B", "x"), "p")])
    waived = shield(apriori=[Apriori(("B", "x"), "s"), Apriori(("B", "x"), "p")])
    assert waived.solution.cost == 0


def test_costs() -> None:
    by_unit = shield(cost="unit")
    assert by_unit.solution.cost == 3
    assert shield(cost="v").solution.cost == shield().solution.cost


def test_a_single_contributor_does_not_find_out_about_its_neighbour() -> None:
    # Two single contributors in one row: each would know the other from the row's total.
    frame = {
        "r": ["A", "A", *["A"] * 3, *["B"] * 9],
        "c": ["x", "y", *["z"] * 3, *["x"] * 3, *["y"] * 3, *["z"] * 3],
        "v": [10, 12, 20, 20, 20, *[9] * 9],
    }
    rules = [Threshold(3)]
    inside = protect(frame, ["r", "c"], value="v", rules=rules)
    outside = protect(frame, ["r", "c"], value="v", rules=rules, insiders="none")
    assert len(inside.problem.instance.insiders) == 2
    assert inside.solution.cost > outside.solution.cost
    assert inside.audit.ok


def test_a_holding_is_one_contributor() -> None:
    frame = {"a": ["x"] * 3 + ["y"] * 4, "v": [1] * 7, "h": ["o", "o", "o", "", "", "", ""]}
    counts = dict(rows(protect(frame, ["a"], value="v", holding="h"), "a", "count"))
    assert counts == {"Total": 5, "x": 1, "y": 4}


def test_zeros() -> None:
    frame = {"a": ["x", "x", "y", "y", "z", "z"], "v": [0, 0, 5, 6, 7, 8]}
    assert protect(frame, ["a"], value="v").frame["published"][1] == 0
    done = protect(frame, ["a"], value="v", rules=[Zero(3)])
    assert dict(rows(done, "a", "status"))["x"] == "primary"
    assert done.audit.ok


def test_weighted_business_data() -> None:
    path = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "turnover" / "firms.csv.gz"
    assert path.is_file(), f"the turnover data are missing: {path}"
    firms = pd.read_csv(path, dtype={"A88": str})
    done = protect(
        firms,
        ["A88", "SIZE"],
        {"A88": ["A10", "A21", "A88"]},
        "TURNOVER",
        [Threshold(3), Dominance(1, 85)],
        weight="WEIGHT",
        time_limit=20,
    )
    assert done.audit.ok
    total = (firms["WEIGHT"] * firms["TURNOVER"]).sum()
    assert done.frame["value"].max() == pytest.approx(total)
    assert set(done.frame["status"]) == {"safe", "primary", "secondary"}


def test_infeasible_is_told() -> None:
    frame = {"a": ["Total", "x", "y"], "v": [10, 4, 6], "s": ["P", "U", "P"]}
    with pytest.raises(InfeasibleError, match="x"):
        protect(frame, ["a"], value="v", rows="cells", status="s")


def test_mistakes_are_told_at_once() -> None:
    frame = {"a": ["x", "q", "q"], "v": ["1", "b", "3"], "n": [1, 2, 3]}
    with pytest.raises(MultipleInputError) as caught:
        protect(frame, ["a", "b"], {"a": {"Total": {"x": {}}}, "z": {}}, "v", rows="cells", count="m")
    text = str(caught.value)
    for part in (
        "b not found; columns are a, v, n",
        "'q'",
        "z, which is no dimension",
        "record 2",
        "m not found",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("frame", "more", "told"),
    [
        ({"a": ["x", "x"], "v": [1, 2]}, {"rows": "cells"}, "there already"),
        ({"a": ["x", "y"], "v": [1, -2]}, {"rows": "cells"}, "negative"),
        ({"a": ["x", "y"], "v": [1, -2]}, {}, "negative"),
        ({"a": ["x"], "v": [1], "n": [1.5]}, {"rows": "cells", "count": "n"}, "whole number"),
        ({"a": ["x"], "v": [4], "n": [1], "t": [3]}, {"rows": "cells", "count": "n", "top": ["t"]}, "top1=3"),
        ({"a": ["x"], "v": [4]}, {"rows": "piles"}, "rows is 'piles'"),
        ({"a": ["x"], "v": [4], "w": [1]}, {"rows": "cells", "weight": "w"}, "belongs to units"),
        ({"a": ["x"], "v": [4], "w": [1]}, {"count": "w"}, "belongs to tables of cells"),
        ({"a": ["x"], "v": [4], "w": [0]}, {"weight": "w"}, "weight is not above 0"),
        ({"a": ["x", "y"], "v": [4]}, {}, "differ in length"),
        ([1, 2], {}, "no data frame"),
    ],
)
def test_wrong_frames_are_refused(frame: object, more: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        protect(frame, ["a"], value="v", **more)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "text", ["freq<3", "(2,87.5)", "p%10", "request:1=70,2=60", "zero:5", "weighted freq<3"]
)
def test_rules_as_text(text: str) -> None:
    name = parse_rule(text).name
    assert text.removeprefix("weighted ").startswith(name)


def test_text_that_is_no_rule() -> None:
    with pytest.raises(InputError, match="is no rule"):
        parse_rule("nk 1 85")


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = main(["protect", *arguments, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {"code": code, **answer}


def test_protect_command_on_tabular_text_with_metadata(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.rda").write_text(
        '<SEPARATOR> ";"\nr\n <RECODABLE>\n <HIERCODELIST> "R.HRC"\nc\n <RECODABLE>\n'
        "v\n <NUMERIC>\ns\n <STATUS>\n",
        encoding="utf-8",
    )
    (tmp_path / "r.hrc").write_text("A\nB\nC\n", encoding="utf-8")
    lines = [f"{r};{c};{v},0;{s}" for r, c, v, s in zip(*CELLS.values(), strict=True)]
    (tmp_path / "t.tab").write_text("\n".join(lines), encoding="utf-8")
    out, problem = tmp_path / "out.csv", tmp_path / "p.jj"
    told = command(
        capsys,
        *(str(tmp_path / "t.tab"), "--metadata", str(tmp_path / "t.rda")),
        *("--out", str(out), "--problem", str(problem)),
    )
    assert (told["code"], told["status"], told["cost"]) == (0, "optimal", shield().solution.cost)
    assert (told["primaries"], told["exposures"], told["cells"]) == (1, 0, 20)
    assert out.read_text("utf-8").startswith("r;c;value;count;status;")
    assert read_jj(problem).n == 20


def test_protect_command_on_microdata_without_metadata(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["region;size;income"] + [f"{a};{b};{c}" for a, b, c in zip(*UNITS.values(), strict=True)]
    (tmp_path / "m.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "region.json").write_text('{"Total": {"N": {"N1": {}, "N2": {}}, "S": {}}}', encoding="utf-8")
    arguments = (
        *(str(tmp_path / "m.csv"), "--dims", "region,size", "--value", "income"),
        *("--rule", "freq<2", "--rule", "p%20", "--hierarchy", f"region={tmp_path / 'region.json'}"),
    )
    told = command(capsys, *arguments)
    same = protect(UNITS, ["region", "size"], {"region": TREE}, "income", [Threshold(2), PPercent(20)])
    assert told["cost"] == same.solution.cost
    assert told["table"].count("\n") == 1 + len(same.frame["region"])
    assert main(["protect", *arguments]) == 0
    assert capsys.readouterr().out == told["table"]
    refused = command(capsys, str(tmp_path / "m.csv"))
    assert refused["code"] == 2
    assert "--dims" in refused["error"]


def test_convert_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(source: str, target: str) -> int:
        return main(["convert", str(tmp_path / source), str(tmp_path / target)])

    (tmp_path / "h.hrc").write_text("N\n@N1\n@N2\nS\n", encoding="utf-8")
    write_jj(shield().problem.instance, tmp_path / "p.jj")
    steps = ("h.hrc", "h.json", "pairs.csv", "back.hrc"), ("p.jj", "p.json", "q.jj")
    for names in steps:
        assert [run(a, b) for a, b in itertools.pairwise(names)] == [0] * (len(names) - 1)
    assert (tmp_path / "back.hrc").read_text("utf-8") == (tmp_path / "h.hrc").read_text("utf-8")
    assert read_hierarchy(tmp_path / "h.json").tree() == TREE
    assert np.array_equal(read_jj(tmp_path / "q.jj").value, read_jj(tmp_path / "p.jj").value)
    assert run("p.jj", "p.hrc") == 2
    assert "can't convert" in capsys.readouterr().err


def test_protect_command_on_cells_with_largest_contributions_and_levels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text(
        "r;v;n;x1;x2;s;l;u\nT;100;20;9;8;S;;\na;10;2;9;1;S;;\nb;20;5;8;7;U;4;6\nc;70;13;9;8;S;;\n", "utf-8"
    )
    named = (str(tmp_path / "t.csv"), "--dims", "r", "--value", "v", "--count", "n", "--total", "T")
    dominated = command(capsys, *named, "--top", "x1,x2", "--rule", "(1,80)")
    assert (dominated["code"], dominated["primaries"]) == (0, 1)
    problem = tmp_path / "p.jj"
    stated = command(
        capsys,
        *named,
        "--status",
        "s",
        "--lpl",
        "l",
        "--upl",
        "u",
        "--insiders",
        "none",
        "--problem",
        str(problem),
    )
    assert stated["code"] == 0
    instance = read_jj(problem)
    assert (instance.lpl.max(), instance.upl.max()) == (4, 6)


def _odd_frames() -> dict[str, Any]:
    r, v = ["a", "b", "a", "b"], [1.0, 2.0, 3.0, 4.0]
    plain = pd.DataFrame({"r": r, "v": v})
    return {
        "a generator": {"r": (x for x in r), "v": v},
        "a set": {"r": set("abcd"), "v": v},
        "a text": {"r": "abab", "v": v},
        "a number": {"r": 3, "v": v},
        "two dimensions": {"r": r, "v": np.ones((4, 2))},
        "one name twice": {"r": r, "v": v, 1: r, "1": v},
        "one name twice, pandas": pd.concat([plain, plain[["r"]]], axis=1),
        "one name twice, Arrow": pa.table([pa.array(r), pa.array(r), pa.array(v)], names=["r", "r", "v"]),
        "not collected": pl.DataFrame({"r": r, "v": v}).lazy(),
        "kinds mixed, pandas": pd.DataFrame({"r": [1, "1", b"\xff", 2.5], "v": v}),
        "a masked amount": {"r": r, "v": np.ma.array(v, mask=[True, False, False, False])},
        "a masked count": {"r": r, "v": np.ma.array([1, 2, 3, 4], mask=[True, False, False, False])},
        "pandas' missing": {"r": r, "v": [pd.NA, *v[1:]]},
        "a signalling NaN": {"r": r, "v": [Decimal("sNaN"), *v[1:]]},
    }


@pytest.mark.parametrize("odd", _odd_frames().keys())
def test_odd_frames_are_refused_in_words(odd: str) -> None:
    """A masked amount was counted as what lay beneath the mask; others ended in errors of other libraries."""
    with pytest.raises(InputError):
        protect(_odd_frames()[odd], ["r"], value="v", rules=[Threshold(3)])


def test_columns_are_named_by_texts_and_categories_of_polars_are_read() -> None:
    frame = pl.DataFrame({"r": list("abab"), "v": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(InputError, match="names of columns"):
        protect(frame, [1], value="v", rules=[Threshold(3)])  # type: ignore[list-item]
    as_category = frame.with_columns(pl.col("r").cast(pl.Categorical))
    plain, same = (protect(f, ["r"], value="v", rules=[Threshold(3)]).frame for f in (frame, as_category))
    assert plain.equals(same)
