"""The attack reads sizes off captions: a site that forgot them is caught, and one that didn't isn't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.bootstrap import promises, run_publication
from app.domain.masked import CellStatus
from app.domain.release import Release
from app.redteam import attack
from app.redteam.bands import range_of
from app.redteam.structure import Member, Structure
from tests.pipeline.test_leak_bands import firms_by_class, office, without_bands
from tests.redteam.test_leaks import site
from tests.redteam.test_relations import COUNT, SUM, Seen, cells, intervals
from tests.redteam.world import kind, place, structure


@pytest.mark.parametrize(
    ("caption", "found"),
    [
        ("Under 12,000 €", (-inf, 12000)),
        ("12,000 to 21,000 €", (12000, 21000)),
        ("150,000 € or more", (150000, inf)),
        ("Menos de 12.000 €", (-inf, 12000)),
        ("De 12.000 a 21.000 €", (12000, 21000)),
        ("150.000 € o más", (150000, inf)),
        ("Menys de 12.000 €", (-inf, 12000)),
        ("Fins a 9", (-inf, 9)),
        ("150.000 € o més", (150000, inf)),
        ("10–49 employees", (10, 49)),
        ("1 000 a 2 500", (1000, 2500)),
        ("0.5 to 1.5", (0.5, 1.5)),
        ("250+", (250, inf)),
        ("< 10", (-inf, 10)),
        ("2022", None),
        ("not stated", None),
        ("49 to 10", None),
        ("1, 2 or 3", None),
    ],
)
def test_captions_say_sizes_in_three_languages(caption: str, found: tuple[float, float] | None) -> None:
    assert range_of(caption) == found


@given(st.integers(0, 10**7), st.integers(1, 10**7), st.sampled_from([",", ".", " ", "’"]))
def test_any_two_numbers_are_a_range(low: int, more: int, sign: str) -> None:
    written = [f"{number:,}".replace(",", sign) for number in (low, low + more)]
    assert range_of(f"{written[0]} – {written[1]} €") == (low, low + more)


def banded(captions: Mapping[str, str]) -> Structure:
    world = structure()
    places, kinds = world.hierarchies
    members = {
        name: Member(name, member.parent, member.level, frozenset({captions.get(name, "all")}))
        for name, member in kinds.members.items()
    }
    return replace(world, hierarchies=(places, replace(kinds, members=members)))


BANDS = {kind("a"): "under 10", kind("b"): "10 to 50", kind("c"): "50 or more"}


def tables(*hidden: tuple[str, str]) -> Seen:
    """Two towns with a number and a sum in each band."""
    count = {("N1", "a"): 4, ("N1", "b"): 5, ("N1", "c"): 6, ("N2", "a"): 3, ("N2", "b"): 2, ("N2", "c"): 1}
    total = {
        ("N1", "a"): 20,
        ("N1", "b"): 90,
        ("N1", "c"): 900,
        ("N2", "a"): 9,
        ("N2", "b"): 70,
        ("N2", "c"): 60,
    }
    seen: dict[tuple[str, ...], float | None] = {}
    for measure, numbers in ((COUNT, count), (SUM, total)):
        seen |= cells(measure, [(p, k, None if (p, k) in hidden else n) for (p, k), n in numbers.items()])
    return seen


def test_a_number_is_bounded_by_the_sum_beside_it() -> None:
    seen = {**tables(("N2", "b")), (SUM, place("N2"), kind("b")): 70.0}
    assert intervals(banded(BANDS), seen)[COUNT, place("N2"), kind("b")] == (1.4, 7)
    assert intervals(structure(), seen)[COUNT, place("N2"), kind("b")] == (1, inf)


def test_a_cell_outside_its_caption_says_that_it_is_no_size() -> None:
    seen = {**tables(("N2", "b")), (SUM, place("N2"), kind("b")): 70.0, (SUM, place("N1"), kind("a")): 41.0}
    assert intervals(banded(BANDS), seen)[COUNT, place("N2"), kind("b")] == (1, inf)


def test_a_sum_of_all_is_bounded_by_the_numbers_of_its_bands() -> None:
    seen = dict(tables())
    for k, n in (("a", 0.0), ("b", 2.0), ("c", None)):
        seen[COUNT, place("S1"), kind(k)] = n
    seen[SUM, place("S1"), kind("all")] = 270.0
    assert intervals(banded(BANDS), seen)[COUNT, place("S1"), kind("c")] == (1, 5)


@pytest.fixture(scope="module")
def firms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = office(tmp_path_factory.mktemp("bands") / "office", firms_by_class(7))
    run_publication(folder)
    return folder


def test_a_sound_site_withstands_what_its_labels_say(firms: Path) -> None:
    with site(firms) as client:
        for report in (attack(client), attack(client, promises(firms))):
            assert not report.notes
            assert not report.findings


def test_a_site_whose_suppression_forgot_its_bands_is_caught(firms: Path) -> None:
    found, _, _, pattern = without_bands(firms)
    (table,) = found.cubes
    n = table.n_published
    keys = table.keys(np.arange(n))
    hidden = dict(zip(keys, pattern.hidden[0][:n].tolist(), strict=True))
    value = dict(zip(keys, table.values[:n].tolist(), strict=True))

    def shown(release: Release) -> dict[int, float]:
        rows = np.flatnonzero(release.status == CellStatus.CONFIDENTIAL).tolist()
        return {row: value[release.keys[row]] for row in rows if not hidden[release.keys[row]]}

    with site(firms, shown) as client:
        report = attack(client, promises(firms))
    assert "too narrow" in {finding.kind for finding in report.findings}
