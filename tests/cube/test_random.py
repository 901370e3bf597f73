"""Random cubes and random formulas give what walking over all facts gives."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cube.duckdb import open_cube
from app.cube.port import CubeServer, Group
from app.domain.cellset import CellSet
from app.mdx import parse
from tests.cube.naive import NaiveCube, Path_
from tests.cube.strategies import cubes

ADDITIVE = ("n", "x", "d")
Cell = tuple[str, tuple[Path_, ...]]
Value = Callable[[Cell], "Fraction | None"]


@dataclass(frozen=True)
class Formula:
    """A formula as MDX and as what it means; ``linear`` as far as cells are concerned."""

    text: str
    value: Value
    linear: bool


def close(found: float, wanted: Fraction | None) -> bool:
    if wanted is None:
        return math.isnan(found)
    return math.isclose(found, float(wanted), rel_tol=1e-9, abs_tol=1e-9)


def open_naive(cube: NaiveCube, folder: str, weighted: bool = False) -> CubeServer:
    return open_cube(cube.definition(Path(folder), weighted=weighted))


def plain(cube: NaiveCube) -> NaiveCube:
    """The cube without sampling weights."""
    facts = [type(fact)(fact.paths, fact.x, fact.d, fact.who, 1, fact.asked) for fact in cube.facts]
    return NaiveCube(cube.depths, facts)


@settings(max_examples=60, deadline=None)
@given(cubes(), st.booleans())
def test_every_cell_of_every_measure(cube: NaiveCube, weighted: bool) -> None:
    if not weighted:
        cube = plain(cube)
    with tempfile.TemporaryDirectory() as folder:
        server = open_naive(cube, folder, weighted)
        for h, tree in enumerate(cube.trees):
            known = server.discover().hierarchies[h]
            assert known.unique_names == tuple(cube.name(h, path) for path in tree)
        axes = ["[Measures].Members", *(f"[H{h}].Members" for h in range(len(cube.depths)))]
        text = ", ".join(f"{axis} ON {number}" for number, axis in enumerate(axes))
        answer = server.execute(parse(f"SELECT {text} FROM C"))
        assert answer.n_cells == len(answer.values)
        for row, value in zip(answer.coords.tolist(), answer.values.tolist(), strict=True):
            measure = answer.cube.measures[row[0]].name
            cell = [[cube.trees[h][number]] for h, number in enumerate(row[1:])]
            assert close(value, cube.value(measure, cell)), (measure, cell)
        server.close()


@st.composite
def sets(draw: st.DrawFn, cube: NaiveCube, h: int) -> tuple[str, list[Path_]]:
    """A set of one hierarchy, as MDX and as members."""
    tree = cube.trees[h]
    member = draw(st.sampled_from(tree))
    name = cube.name(h, member)
    level = draw(st.integers(0, cube.depths[h] - 1))
    under = [path for path in tree if path[: len(member)] == member]
    children = [path for path in under if len(path) == len(member) + 1]
    options: list[tuple[str, list[Path_]]] = [
        (f"{{{name}}}", [member]),
        (f"[H{h}].Members", list(tree)),
        (f"[H{h}].[L{level}].Members", [path for path in tree if path and path[-1][0] == level]),
        (f"{name}.Children", children),
        (f"Descendants({name})", under),
        (f"Descendants({name}, [H{h}].[L{level}])", [p for p in under if p and p[-1][0] == level]),
        (
            f"Descendants({name},, LEAVES)",
            [p for p in under if not any(q[: len(p)] == p and q != p for q in tree)],
        ),
    ]
    text, members = draw(st.sampled_from(options))
    match draw(st.sampled_from(["", "head", "tail", "except", "union", "distinct"])):
        case "head":
            return f"Head({text}, 2)", members[:2]
        case "tail":
            return f"Tail({text}, 2)", members[-2:]
        case "except":
            return f"Except({text}, {{{name}}})", [path for path in members if path != member]
        case "union":
            return f"{{{text}, {name}}}", [*members, member]
        case "distinct":
            return f"Distinct({{{name}, {text}}})", list(dict.fromkeys([member, *members]))
        case _:
            return text, members


def moved(cell: Cell, h: int, path: Path_) -> Cell:
    members = list(cell[1])
    members[h] = path
    return cell[0], tuple(members)


def add(left: Fraction | None, right: Fraction | None) -> Fraction | None:
    return left if right is None else right if left is None else left + right


@st.composite
def formulas(draw: st.DrawFn, cube: NaiveCube, depth: int) -> Formula:
    """A formula over the measures that add up, and what it means at a cell (measure, members)."""

    def base(cell: Cell) -> Fraction | None:
        return cube.value(cell[0], [[path] for path in cell[1]])

    kind = draw(
        st.sampled_from(
            ["cell", "number", "previous", "parent", "sum"]
            if depth == 0
            else ["add", "subtract", "times", "divide", "by number", "negative", "sum over", "if"]
        )
    )
    measure = draw(st.sampled_from(ADDITIVE))
    h = draw(st.integers(0, len(cube.depths) - 1))
    tree = cube.trees[h]
    here = f"[H{h}].CurrentMember"
    if kind == "cell":
        return Formula(f"[Measures].[{measure}]", lambda cell: base((measure, cell[1])), True)
    if kind == "number":
        number = draw(st.integers(0, 9))
        return Formula(str(number), lambda cell: Fraction(number), True)
    if kind == "previous":

        def previous(cell: Cell) -> Fraction | None:
            member = cell[1][h]
            level = [
                path
                for path in tree
                if bool(path) == bool(member) and (not path or path[-1][0] == member[-1][0])
            ]
            place = level.index(member)
            return base((measure, moved(cell, h, level[place - 1])[1])) if place else None

        return Formula(f"([Measures].[{measure}], {here}.PrevMember)", previous, True)
    if kind == "parent":

        def parent(cell: Cell) -> Fraction | None:
            member = cell[1][h]
            return base((measure, moved(cell, h, member[:-1])[1])) if member else None

        return Formula(f"([Measures].[{measure}], {here}.Parent)", parent, True)
    if kind == "sum":
        text, members = draw(sets(cube, h))

        def total(cell: Cell) -> Fraction | None:
            result: Fraction | None = None
            for path in members:
                result = add(result, base((measure, moved(cell, h, path)[1])))
            return result

        function = draw(st.sampled_from(["Sum", "Aggregate"]))
        return Formula(f"{function}({text}, [Measures].[{measure}])", total, True)
    left = draw(formulas(cube, depth - 1))
    right = draw(formulas(cube, depth - 1))
    factor = Fraction(draw(st.integers(-4, 4)), 2)
    match kind:
        case "add":
            return Formula(
                f"({left.text}) + ({right.text})",
                lambda cell: add(left.value(cell), right.value(cell)),
                left.linear and right.linear,
            )
        case "subtract":

            def difference(cell: Cell) -> Fraction | None:
                other = right.value(cell)
                return add(left.value(cell), None if other is None else -other)

            return Formula(f"({left.text}) - ({right.text})", difference, left.linear and right.linear)
        case "negative":

            def negative(cell: Cell) -> Fraction | None:
                value = left.value(cell)
                return None if value is None else -value

            return Formula(f"-({left.text})", negative, left.linear)
        case "by number":

            def scaled(cell: Cell) -> Fraction | None:
                value = left.value(cell)
                return None if value is None else value * factor

            return Formula(f"({left.text}) * ({float(factor)})", scaled, left.linear)
        case "times":

            def product(cell: Cell) -> Fraction | None:
                one, other = left.value(cell), right.value(cell)
                return None if one is None or other is None else one * other

            return Formula(f"({left.text}) * ({right.text})", product, False)
        case "divide":

            def quotient(cell: Cell) -> Fraction | None:
                one, other = left.value(cell), right.value(cell)
                return None if one is None or not other else one / other

            return Formula(f"({left.text}) / ({right.text})", quotient, False)
        case "sum over":
            text, members = draw(sets(cube, h))

            def over(cell: Cell) -> Fraction | None:
                result: Fraction | None = None
                for path in members:
                    result = add(result, left.value(moved(cell, h, path)))
                return result

            return Formula(f"Sum({text}, {left.text})", over, left.linear)
        case _:
            leaf = draw(st.booleans())
            test = f"{here}.Level.Ordinal > 0" if leaf else f"{here} IS [H{h}].[All]"

            def either(cell: Cell) -> Fraction | None:
                return left.value(cell) if bool(cell[1][h]) == leaf else right.value(cell)

            return Formula(f"IIF({test}, {left.text}, {right.text})", either, left.linear and right.linear)


def check_relations(answer: CellSet) -> None:
    """Linear relations hold for the values, and every calculated row is in exactly one list."""
    sizes = [len(answer.cube.measures), *(tree.size for tree in answer.cube.hierarchies)]
    calculated = set(np.flatnonzero((answer.coords >= np.array(sizes)).any(axis=1)).tolist())
    linear, nonlinear = set(answer.linear.cell.tolist()), set(answer.nonlinear.cell.tolist())
    assert linear | nonlinear == calculated
    assert not linear & nonlinear
    for index, row in enumerate(answer.linear.cell.tolist()):
        entries = slice(answer.linear.indptr[index], answer.linear.indptr[index + 1])
        operands = np.nan_to_num(answer.values[answer.linear.indices[entries]])
        total = answer.linear.constant[index] + float(operands @ answer.linear.coefs[entries])
        if not math.isnan(answer.values[row]):
            assert math.isclose(total, answer.values[row], rel_tol=1e-9, abs_tol=1e-6)
        assert row not in answer.linear.indices[entries]
    for index in range(len(answer.nonlinear.cell)):
        entries = slice(answer.nonlinear.indptr[index], answer.nonlinear.indptr[index + 1])
        assert (answer.nonlinear.indices[entries] >= 0).all()
    assert len(answer.nonlinear.kind) == len(answer.nonlinear.cell)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_formulas(data: st.DataObject) -> None:
    cube = plain(data.draw(cubes()))
    formula = data.draw(formulas(cube, data.draw(st.integers(0, 3))))
    text, members = data.draw(sets(cube, 0))
    rows = f"Union({text}, {{[H0].[All]}})"
    shown = list(dict.fromkeys([*members, ()]))
    with tempfile.TemporaryDirectory() as folder:
        server = open_naive(cube, folder)
        query = (
            f"WITH MEMBER [Measures].[F] AS {formula.text} "
            f"SELECT {{[Measures].[F], [Measures].[x]}} ON 0, {rows} ON 1 FROM C"
        )
        answer = server.execute(parse(query))
        server.close()
    found = answer.values[: answer.n_cells].reshape(-1, 2)
    elsewhere = ((),) * (len(cube.depths) - 1)
    for path, (value, _) in zip(shown, found.tolist(), strict=True):
        assert close(value, formula.value(("n", (path, *elsewhere)))), (query, path)
    check_relations(answer)
    if formula.linear:
        assert not len(answer.nonlinear.cell), query


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_members_calculated_on_a_hierarchy(data: st.DataObject) -> None:
    """Groups and differences over a hierarchy, met by a ratio: the ratio of the group's sums."""
    cube = plain(data.draw(cubes()))
    text, members = data.draw(sets(cube, 0))
    one, other = data.draw(st.sampled_from(cube.trees[0])), data.draw(st.sampled_from(cube.trees[0]))
    elsewhere = [[()] for _ in cube.depths[1:]]
    with tempfile.TemporaryDirectory() as folder:
        server = open_naive(cube, folder)
        query = (
            f"WITH MEMBER [H0].[G] AS Aggregate({text}) "
            f"MEMBER [H0].[D] AS {cube.name(0, one)} - {cube.name(0, other)} "
            "MEMBER [Measures].[R] AS [Measures].[x] / [Measures].[n], SOLVE_ORDER = 1 "
            "SELECT {[Measures].[x], [Measures].[n], [Measures].[R]} ON 0, {[H0].[G], [H0].[D]} ON 1 FROM C"
        )
        answer = server.execute(parse(query))
        server.close()
    group, difference = answer.values[: answer.n_cells].reshape(2, 3).tolist()
    sums: dict[str, tuple[Fraction | None, Fraction | None]] = {}
    for measure in ("x", "n"):
        total: Fraction | None = None
        for path in members:
            total = add(total, cube.value(measure, [[path], *elsewhere]))
        first, second = (cube.value(measure, [[path], *elsewhere]) for path in (one, other))
        sums[measure] = (total, add(first, None if second is None else -second))
    for values, which in ((group, 0), (difference, 1)):
        x, n = sums["x"][which], sums["n"][which]
        assert close(values[0], x)
        assert close(values[1], n)
        assert close(values[2], None if x is None or not n else x / n)
    check_relations(answer)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_profiles(data: st.DataObject) -> None:
    weighted = data.draw(st.booleans())
    cube = data.draw(cubes())
    if not weighted:
        cube = plain(cube)
    top = data.draw(st.integers(2, 4))
    groups: list[Group] = []
    options: list[list[tuple[int, list[Path_]]]] = []
    for h, tree in enumerate(cube.trees):
        choices = [(number, [path]) for number, path in enumerate(tree)]
        for _ in range(data.draw(st.integers(0, 2))):
            chosen = data.draw(
                st.lists(st.sampled_from(range(len(tree))), min_size=1, max_size=4, unique=True)
            )
            kept = [
                m for m in chosen if not any(tree[m][: len(tree[o])] == tree[o] and m != o for o in chosen)
            ]
            choices.append((len(choices), [tree[number] for number in kept]))
            groups.append(Group(1 + h, np.array(kept, dtype=np.int32)))
        options.append(choices)
    cells = [
        (measure, [data.draw(st.sampled_from(choices)) for choices in options])
        for measure in data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=12))
    ]
    coords = np.array([[m, *(number for number, _ in cell)] for m, cell in cells], dtype=np.int32)
    with tempfile.TemporaryDirectory() as folder:
        server = open_naive(cube, folder, weighted)
        found = server.measure(coords, groups, top)
        again = server.measure(coords, groups, top)
        server.close()
    assert np.array_equal(found.top, again.top)
    holders: dict[int, set[str]] = {}
    for row, (m, cell) in enumerate(cells):
        members = [paths for _, paths in cell]
        count, weight, pieces, requested = cube.profile(ADDITIVE[m], members, top)
        assert found.count[row] == count
        assert found.weighted_count[row] == weight
        assert close(found.value[row], cube.value(ADDITIVE[m], members) or Fraction(0))
        assert np.allclose(found.top[row], [float(piece) for piece in pieces], atol=1e-9)
        assert close(found.requested[row], requested)
        assert (found.holder[row] >= 0) == (count == 1)
        if count == 1:
            holders.setdefault(int(found.holder[row]), set()).add(cube.facts[cube.rows(members)[0]].who)
    assert all(len(who) == 1 for who in holders.values())


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_aggregate_of_what_does_not_add_up(data: st.DataObject) -> None:
    cube = plain(data.draw(cubes()))
    text, members = data.draw(sets(cube, 0))
    with tempfile.TemporaryDirectory() as folder:
        server = open_naive(cube, folder)
        query = (
            f"WITH MEMBER [H0].[G] AS Aggregate({text}) "
            "SELECT {[Measures].[u], [Measures].[lo], [Measures].[hi]} ON 0, {[H0].[G]} ON 1 FROM C"
        )
        answer = server.execute(parse(query))
        server.close()
    for measure, value in zip(("u", "lo", "hi"), answer.values[:3].tolist(), strict=True):
        wanted = cube.value(measure, [members, *([()] for _ in cube.depths[1:])]) if members else None
        assert close(value, wanted), (query, measure)
