"""Every handed case of type `parse` (and the long hierarchy), through the public doors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from solver.errors import InputError, MultipleInputError
from solver.formats.hrc import parse_hrc, parse_parent_child, parse_tree, read_hierarchy
from solver.formats.rda import read_rda
from solver.formats.tabular import format_delimited, parse_delimited, read_delimited, read_table, scan_table
from solver.hierarchy import Hierarchy
from solver.protect import protect
from solver.rules import Threshold
from solver.table import CellTable, check_additivity

CASES = Path(__file__).resolve().parents[2] / ".." / "shared" / "cases"
FILES = sorted(CASES.glob("*.json"))
assert FILES, f"the handed cases are missing: {CASES}"
ALL = {path.stem[:3]: json.loads(path.read_text("utf-8")) for path in FILES}
PARSE_CASES = {number: case for number, case in ALL.items() if case["case_type"] == "parse"}


def unpack(number: str, directory: Path) -> dict[str, Any]:
    for name, text in PARSE_CASES[number]["raw"].items():
        (directory / name).write_text(text, encoding="utf-8")
    expected: dict[str, Any] = PARSE_CASES[number]["expected"]
    return expected


def as_cells(table: CellTable, *keys: str) -> list[dict[str, Any]]:
    listed = []
    for i in range(len(table)):
        cell: dict[str, Any] = {"codes": [column[i] for column in table.codes], "value": table.value[i]}
        if "freq" in keys:
            assert table.count is not None
            cell["freq"] = table.count[i]
        if "status" in keys:
            cell["status"] = table.status[i]
        listed.append(cell)
    return listed


def told(error: InputError) -> Sequence[InputError]:
    return error.problems if isinstance(error, MultipleInputError) else (error,)


def test_070_decimal_commas_padded_codes_and_the_case_of_file_names(tmp_path: Path) -> None:
    expected = unpack("070", tmp_path)
    metadata = read_rda(tmp_path / "t.meta")
    table = read_table(
        tmp_path / "t.tab",
        separator=metadata.separator,
        header=("V1", "V2", "value", "freq", "status"),
        dims=("V1", "V2"),
        value="value",
        count="freq",
        status="status",
    )
    assert as_cells(table, "freq", "status") == expected["cells"]
    hierarchies = metadata.hierarchies(tmp_path, {"V1": table.codes[0]})
    assert hierarchies["V1"].tree() == {"Total": {"2": {}, "11": {}}}
    hierarchies["V2"] = Hierarchy.flat(table.codes[1])
    violations = check_additivity(table, hierarchies)
    assert (not violations) == expected["additive"]
    done = protect(
        {"V1": table.codes[0], "V2": table.codes[1], "v": table.value, "s": table.status},
        ["V1", "V2"],
        hierarchies,
        "v",
        rows="cells",
        status="s",
    )
    assert done.solution.cost == pytest.approx(expected["optimum_cost"])
    rows = zip(done.frame["V1"], done.frame["V2"], done.frame["status"], strict=True)
    found = [[a, b] for a, b, status in rows if status == "secondary"]
    assert sorted(found) == sorted(expected["optimal_pattern"])


def test_070_the_name_that_was_tried_is_told(tmp_path: Path) -> None:
    unpack("070", tmp_path)
    (tmp_path / "SIZE.HRC").unlink()
    with pytest.raises(InputError, match=r"Size\.hrc"):
        read_rda(tmp_path / "t.meta").hierarchies(tmp_path, {})


def test_071_byte_order_mark(tmp_path: Path) -> None:
    expected = unpack("071", tmp_path)
    assert (tmp_path / "t.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert list(read_delimited(tmp_path / "t.csv").header) == expected["header"]
    assert as_cells(read_table(tmp_path / "t.csv", dims=["region"], value="value")) == expected["cells"]
    mark = "\ufeff"
    for name, text in {"h.hrc": "a\n@b\n", "m.rda": "a\n  <RECODABLE>\n"}.items():
        (tmp_path / name).write_text(mark + text, encoding="utf-8")
    assert read_hierarchy(tmp_path / "h.hrc").tree() == {"Total": {"a": {"b": {}}}}
    assert read_rda(tmp_path / "m.rda").variables[0].name == "a"


def test_073_level_mark_is_checked(tmp_path: Path) -> None:
    expected = unpack("073", tmp_path)
    assert read_hierarchy(tmp_path / "geo.json").tree() == expected["geo_json_tree"]
    assert "ambiguous" in expected["geo_hrc"]
    with pytest.raises(InputError) as ambiguous:
        read_hierarchy(tmp_path / "geo.hrc")
    first = told(ambiguous.value)[0]
    assert (first.line, "ambiguous" in first.cause) == (1, True)
    nace = tmp_path / "nace.hrc"
    for mark in (".", None):
        assert read_hierarchy(nace, mark=mark).tree() == expected["nace_hrc_with_mark_dot"]
    with pytest.raises(InputError) as wrong:
        read_hierarchy(nace, mark="@")
    assert expected["nace_hrc_with_mark_at"].removeprefix("error: ") in str(wrong.value)


def test_074_separator_inside_a_label(tmp_path: Path) -> None:
    expected = unpack("074", tmp_path)
    quoted = read_table(tmp_path / "quoted.csv", dims=["gem"], value="value")
    assert as_cells(quoted) == expected["quoted"]
    with pytest.raises(InputError) as shifted:
        read_delimited(tmp_path / "unquoted.csv")
    assert expected["unquoted"].removeprefix("error: ") in str(shifted.value)
    for separator in ",;":
        text = format_delimited(["gem"], [quoted.codes[0]], separator=separator)
        assert parse_delimited(text, separator=separator).columns[0] == quoted.codes[0]


def test_076_codes_of_uneven_length_and_depth(tmp_path: Path) -> None:
    expected = unpack("076", tmp_path)
    hierarchy = read_hierarchy(tmp_path / "h.hrc")
    assert hierarchy.tree() == expected["tree"]
    text = read_delimited(tmp_path / "micro.csv")
    frame = {"h": text.column("h"), "x": [int(x) for x in text.column("x")]}
    done = protect(frame, ["h"], {"h": hierarchy}, "x")
    table = dict(zip(done.frame["h"], done.frame["value"], strict=True))
    assert {code: table[code] for code in expected["table"]} == expected["table"]
    assert any(expected["notice"] in notice for notice in done.notices)
    assert table["grp (unspecified)"] == 1
    with pytest.raises(InputError, match="inner code grp"):
        protect(frame, ["h"], {"h": hierarchy}, "x", inner="stop")


def test_078_missing_marks_in_numbers(tmp_path: Path) -> None:
    expected = unpack("078", tmp_path)
    roles = {"dims": ["c"], "value": "value", "count": "freq", "status": "status"}
    table, mistakes = scan_table(read_delimited(tmp_path / "t.csv"), **roles)
    assert as_cells(table, "freq", "status") == expected["cells"]
    assert [f"line {m.line}: {m.cause.rstrip('.')}" for m in mistakes] == expected["errors"]
    with pytest.raises(MultipleInputError):
        read_table(tmp_path / "t.csv", **roles)
    tree = {"H": {"H1": {}, "H2": {}, "H3": {}, "H4": {}, "H5": {}}}
    assert not check_additivity(table, {"c": Hierarchy.from_tree(tree)})


def test_080_rows_without_a_code_are_never_silent(tmp_path: Path) -> None:
    expected = unpack("080", tmp_path)
    text = read_delimited(tmp_path / "m.csv")
    frame = {"reg": text.column("reg"), "sex": text.column("sex"), "n": [int(x) for x in text.column("n")]}
    done = protect(frame, ["reg", "sex"], value="n", insiders="none")
    codes = zip(done.frame["reg"], done.frame["sex"], strict=True)
    table = dict(zip(codes, done.frame["value"], strict=True))
    assert table["Total", "Total"] == expected["total"]
    assert {reg: table[reg, "Total"] for reg in expected["reg"]} == expected["reg"]
    assert len([n for n in done.notices if "(missing)" in n]) == 2
    dropped = protect(frame, ["reg", "sex"], value="n", missing="drop")
    assert f"total {max(dropped.frame['value'])}".startswith(expected["alternative_drop"].split(": ")[1])
    assert any("dropped" in notice for notice in dropped.notices)
    with pytest.raises(InputError, match="have no code"):
        protect(frame, ["reg", "sex"], value="n", missing="stop")
    namibia = protect(frame, ["reg"], {"reg": {"Total": {"N": {}, "S": {}, "NA": {}}}}, "n")
    assert "NA" in namibia.frame["reg"]
    assert not any("missing" in notice for notice in namibia.notices)


def test_082_two_parents_and_own_child_are_told_at_once(tmp_path: Path) -> None:
    expected = unpack("082", tmp_path)
    with pytest.raises(MultipleInputError) as caught:
        read_hierarchy(tmp_path / "h.csv")
    assert [problem.cause.rstrip(".") for problem in caught.value.problems] == expected["errors"]
    assert [problem.line for problem in caught.value.problems] == [7, 8]
    with pytest.raises(InputError, match="SE is under"):
        parse_tree('{"World": {"E5": {"SE": {}}, "F5": {"SE": {}}}}')
    with pytest.raises(InputError, match="SE"):
        parse_hrc("E5\n@SE\nF5\n@SE\n")
    with pytest.raises(InputError, match="circle"):
        parse_parent_child("parent;child\na;b\nb;c\nc;b\nb;a\n")


def test_084_every_difference_exactly(tmp_path: Path) -> None:
    expected = unpack("084", tmp_path)
    table = read_table(tmp_path / "t.csv", dims=["c"], value="v", count="freq", status="status")
    hierarchy = read_hierarchy(tmp_path / "tree.json")
    violations = check_additivity(table, {"c": hierarchy})
    assert [
        {
            "total": v.total,
            "published": v.published,
            "sum_of_parts": v.sum_of_parts,
            "difference": v.difference,
        }
        for v in violations
    ] == [
        {key: x if isinstance(x, str) else Decimal(str(x)) for key, x in row.items()}
        for row in expected["violations"]
    ]
    wrong_counts = {v.total for v in check_additivity(table, {"c": hierarchy}, counts=True)}
    totals = [row["total"] for row in expected["violations"]]
    assert [total not in wrong_counts for total in totals] == expected["additive_freq"]


def test_084_choices(tmp_path: Path) -> None:
    unpack("084", tmp_path)
    table = read_table(tmp_path / "t.csv", dims=["c"], value="v", count="freq", status="status")
    hierarchy = read_hierarchy(tmp_path / "tree.json")
    frame = {"c": table.codes[0], "v": table.decimals, "n": table.count, "s": table.status}
    roles: dict[str, Any] = {"rows": "cells", "count": "n", "status": "s"}
    with pytest.raises(MultipleInputError) as refused:
        protect(frame, ["c"], {"c": hierarchy}, "v", **roles)
    assert "difference 0.1" in str(refused.value)
    assert "P is sensitive, but all its parts are empty" in str(refused.value)
    with pytest.raises(InputError, match="all its parts are empty"):
        protect(frame, ["c"], {"c": hierarchy}, "v", non_additive="constant", **roles)
    # Without the broken P the difference of the Total may be kept or mended.
    sound = {name: column[:4] for name, column in frame.items()}
    tree = {"Total": {"a": {}, "b": {}, "c": {}}}
    constant = protect(sound, ["c"], {"c": tree}, "v", non_additive="constant", **roles)
    assert constant.frame["value"][0] == 100.3
    mended = protect(sound, ["c"], {"c": tree}, "v", non_additive="recompute", **roles)
    assert mended.frame["value"][0] == 100.2
    for done in (constant, mended):
        assert done.frame["status"][2] == "primary"
        assert done.solution.cost == 20
        assert done.audit.ok


def test_086_all_mistakes_at_once_in_the_users_names(tmp_path: Path) -> None:
    expected = unpack("086", tmp_path)
    roles = {"dims": ["reg"], "value": "n", "status": "flag"}
    with pytest.raises(MultipleInputError) as caught:
        read_table(tmp_path / "t.csv", cost="n_obs", **roles)
    found = [f"line {p.line}: {p.cause}" if p.line else p.cause for p in caught.value.problems]
    assert [text.rstrip(".") for text in found] == expected["errors"]
    text = read_delimited(tmp_path / "t.csv")
    frame = {name: text.column(name) for name in text.header}
    with pytest.raises(MultipleInputError) as frame_error:
        protect(
            frame, ["reg"], {"reg": {"T": {"N": {}, "S": {}}}}, "n", rows="cells", status="flag", cost="n_obs"
        )
    assert "n_obs not found; columns are reg, n, flag" in str(frame_error.value)
    assert "flag is empty; need TRUE or FALSE" in str(frame_error.value)
    # No sensitive cell at all is a normal result.
    calm = protect(
        {**frame, "flag": [False] * 3},
        ["reg"],
        {"reg": {"T": {"N": {}, "S": {}}}},
        "n",
        rows="cells",
        status="flag",
    )
    assert calm.solution.cost == 0
    assert calm.frame["published"] == [12, 5, 7]


def test_048_a_long_hierarchy() -> None:
    expected = ALL["048"]["expected"]
    assert ALL["048"]["case_type"] == "scale"
    tree: dict[str, Any] = {}
    leaves = ["T"]
    level = [("T", tree.setdefault("T", {}))]
    for _ in range(11):
        level = [(code + bit, node.setdefault(code + bit, {})) for code, node in level for bit in "01"]
        leaves = [code for code, _ in level]
    values = [3, 5, *(20 + (13 * i) % 97 for i in range(2, len(leaves)))]
    frame = {
        "code": leaves,
        "value": values,
        "unsafe": [code in expected["must_suppress"] for code in leaves],
        "level": [1] * len(leaves),
    }
    done = protect(
        frame, ["code"], {"code": tree}, "value", rows="cells", status="unsafe", lpl="level", upl="level"
    )
    assert len(done.frame["code"]) == 4095
    assert done.solution.cost == expected["optimum_cost"]
    found = [c for c, s in zip(done.frame["code"], done.frame["status"], strict=True) if s == "secondary"]
    assert found in expected["optimal_patterns"]
    assert done.audit.ok


def test_every_parse_case_is_exercised() -> None:
    tested = {name.split("_")[1] for name in globals() if name.startswith("test_0")} - {"048"}
    assert set(PARSE_CASES) == tested
    assert {number for number, case in ALL.items() if case["case_type"] == "scale"} == {"048"}
    assert {case["case_type"] for case in ALL.values()} == {"csp", "rule", "parse", "scale"}


def test_a_threshold_needs_counts() -> None:
    with pytest.raises(InputError, match="count column"):
        protect({"a": ["x", "y"], "v": [1, 2]}, ["a"], value="v", rows="cells", rules=[Threshold(3)])
