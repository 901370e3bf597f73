"""Random small cubes: ragged, with nulls, zeros and repetitions."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from tests.cube.naive import Fact, NaiveCube, Path_


@st.composite
def paths(draw: st.DrawFn, depth: int) -> Path_:
    """A path of keys that are unique in their level: each key spells its whole path."""
    path: list[tuple[int, str]] = []
    spelled = ""
    for level in range(depth):
        step = draw(st.sampled_from(["a", "b", "c", None] if level else ["a", "b"]))
        if step is None:
            if draw(st.booleans()):
                break
            continue
        spelled += f"{level}{step}"
        path.append((level, spelled))
    return tuple(path)


@st.composite
def cubes(draw: st.DrawFn) -> NaiveCube:
    depths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    n = draw(st.integers(1, 25))
    facts = [
        Fact(
            tuple(draw(paths(depth)) for depth in depths),
            draw(st.one_of(st.none(), st.integers(-5, 20))),
            draw(st.one_of(st.none(), st.integers(-500, 2000).map(lambda cents: Fraction(cents, 100)))),
            draw(st.sampled_from("pqrstuvw")),
            draw(st.integers(1, 3)),
            draw(st.sampled_from([False, False, False, True])),
        )
        for _ in range(n)
    ]
    return NaiveCube(depths, facts)
