"""What is stored comes back the same, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from app.db.codec import Codec
from app.domain.errors import InternalError, OperatorError


class Colour(IntEnum):
    RED = 1


@dataclass(frozen=True)
class Leaf:
    colour: Colour
    name: str


@dataclass(frozen=True)
class Stranger:
    name: str


CODEC = Codec((Leaf, Colour))

PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False),
    st.text(),
    st.builds(Leaf, st.just(Colour.RED), st.text()),
)
TREES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple), st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(TREES)
def test_trees_come_back_equal(value: object) -> None:
    found = CODEC.decode(CODEC.encode(value))
    assert found == value
    assert CODEC.encode(found) == CODEC.encode(value)


@given(
    hnp.arrays(
        st.sampled_from([np.int8, np.int32, np.int64, np.float64, np.bool_]),
        hnp.array_shapes(min_dims=1, max_dims=2, min_side=0),
    )
)
def test_arrays_come_back_equal(array: np.ndarray) -> None:
    found = CODEC.decode(CODEC.encode({"a": array}))["a"]
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)


def test_unknown_classes_are_our_fault() -> None:
    with pytest.raises(InternalError):
        CODEC.encode(Stranger("x"))
    with pytest.raises(InternalError):
        CODEC.encode(np.array([object()]))


@pytest.mark.parametrize("damage", [lambda b: b[:-3], lambda b: b[:8] + b"x" * 9, lambda b: b"other" + b])
def test_damage_is_told(damage) -> None:
    with pytest.raises(OperatorError):
        CODEC.decode(damage(CODEC.encode((1, "a", np.arange(100)))))


def test_a_class_that_is_no_longer_known_is_told() -> None:
    body = CODEC.encode(Leaf(Colour.RED, "x"))
    with pytest.raises(OperatorError):
        Codec(()).decode(body)


def test_fields_that_were_added_since_have_their_defaults() -> None:
    @dataclass(frozen=True)
    class Thing:
        name: str

    body = Codec((Thing,)).encode(Thing("a"))
    assert Codec((Thing,)).decode(body) == Thing("a")

    @dataclass(frozen=True)
    class Thing:  # type: ignore[no-redef]
        name: str
        size: int = 7

    longer = Codec((Thing,))
    assert longer.decode(body) == Thing("a", 7)

    @dataclass(frozen=True)
    class Shorter:
        name: str

    Shorter.__name__ = "Thing"
    with pytest.raises(OperatorError):
        Codec((Shorter,)).decode(longer.encode(longer.decode(body)))


def test_another_shape_of_a_class_is_another_codec() -> None:
    @dataclass(frozen=True)
    class Thing:
        name: str

    first = Codec((Thing,)).shape

    @dataclass(frozen=True)
    class Thing:  # type: ignore[no-redef]
        name: str
        size: int = 0

    assert Codec((Thing,)).shape != first
