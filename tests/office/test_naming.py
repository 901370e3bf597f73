"""Cells are called by captions, whatever names hold."""

from __future__ import annotations

import numpy as np
import pytest

from app.domain.cube import Cube, Hierarchy, Level, Measure
from app.office.naming import Names


def cube(name: str = "Shops") -> Cube:
    keys = ("", "1", "a]b", "x | y")
    place = Hierarchy(
        dimension="Place",
        name="Place",
        unique_name="[Place]",
        captions={"en": "Place"},
        levels=(Level("(All)", "[Place].[(All)]", {}), Level("Town", "[Place].[Town]", {})),
        has_all=True,
        default_member=0,
        keys=keys,
        unique_names=(
            "[Place].[All]",
            "[Place].[Town].&[1]",
            "[Place].[Town].&[a]]b]",
            "[Place].[Town].&[x | y]",
        ),
        member_captions={
            "en": ("All", "One", "A or B", "Between"),
            "es": ("Todo", "Uno", "A o B", "Entre"),
        },
        parent=np.array([-1, 0, 0, 0], dtype=np.int32),
        depth=np.array([0, 1, 1, 1], dtype=np.int32),
    )
    staff = Measure("Staff", "[Measures].[Staff]", {"en": "Staff", "es": "Personal"}, "sum", {}, "#,##0", 0)
    return Cube(name, {"en": name}, (place,), (staff,))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Shops | [Measures].[Staff] | [Place].[Town].&[1]", "Personal · Uno"),
        ("Shops | [Measures].[Staff] | [Place].[Town].&[a]]b]", "Personal · A o B"),
        ("Shops | [Measures].[Staff]", "Personal"),
        (
            "Shops | [Measures].[Staff] [hidden] = Shops | [Measures].[Staff] | [Place].[Town].&[1] + 2",
            "Personal [hidden] = Personal · Uno + 2",
        ),
        ("Shops | [Measures].[Pay] | [Place].[Town].&[9]", "[Measures].[Pay] · [Place].[Town].&[9]"),
        (
            "Shops | [Measures]=(Chain [Measures].[Staff] [Measures].[Pay] /) | [Place].[Town].&[1]",
            "Personal / [Measures].[Pay] · Uno",
        ),
        ("Shops | [Place]=(Chain [Place].[Town].&[1] [Place].[Town].&[a]]b] -)", "Uno - A o B"),
        ("", ""),
    ],
)
def test_keys_and_relations_are_said_in_captions(text: str, said: str) -> None:
    assert Names([cube()], "es").said(text) == said


def test_of_several_cubes_each_is_named() -> None:
    names = Names([cube(), cube("Markets")], "fr")
    assert names.said("Markets | [Measures].[Staff] | [Place].[Town].&[1]") == "Markets · Staff · One"
