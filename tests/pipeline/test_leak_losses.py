"""Gains and losses may cancel: a sum near zero of large contributions is protected by their size."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.db import Store
from app.domain.masked import CellStatus
from tests.pipeline.offices import CUBE, PUBLICATION, firms_of, write_office
from tests.pipeline.test_protection import Ran, sheet

LOSSES = CUBE.replace('unit.en = "euros"', 'unit.en = "euros"\nnonnegative = false')
QUERY = """SELECT {[Measures].[Turnover]} ON 0,
  {[Place].[Region].[A], [Place].[Region].[B], [Place].[Region].[A].Children} ON 1 FROM [Firms]"""
BOTH = '{ rule = "p-percent", p = 10 }, { rule = "dominance", n = 1, k = 85 }'


def rows(pair: tuple[int, int]) -> list[dict[str, object]]:
    amounts = {"a1": [10] * 20, "a2": list(pair), "a3": [12] * 10, "b1": [500, -450, 300, -280, 90, 80, 70]}
    return firms_of(amounts)


@pytest.mark.parametrize("pair", [(500, -500), (500, -499)])
@pytest.mark.parametrize("own", ["", '{ rule = "threshold", n = 3 }'], ids=["associated", "threshold"])
def test_what_cancels_is_hidden_and_stays_uncertain(
    tmp_path: Path, store: Store, pair: tuple[int, int], own: str
) -> None:
    publication = PUBLICATION.replace(BOTH, own)
    folder = write_office(tmp_path / "office", rows(pair), publication, LOSSES, {"a": sheet(QUERY)})
    ran = Ran(folder, store)
    thin = ran.row("[Measures].[Turnover]", "[Place].[Town].&[a2]")
    assert ran.verdicts.sensitive[thin]
    assert ran.verdicts.lpl[thin] == ran.verdicts.upl[thin] == pytest.approx(0.1 * (pair[0] - pair[1]))
    hidden = [key for key, state in zip(ran.release.keys, ran.release.status, strict=True)
              if state == CellStatus.CONFIDENTIAL]  # fmt: skip
    assert len(hidden) >= 2


def test_nobody_dominates_a_total_by_being_near_its_difference(tmp_path: Path, store: Store) -> None:
    """310 of 1,770 moved: the largest, 500, is not 85 % of it, though more than the sum."""
    folder = write_office(tmp_path / "office", rows((7, 9)), PUBLICATION, LOSSES, {"a": sheet(QUERY)})
    ran = Ran(folder, store)
    assert not ran.verdicts.sensitive[ran.row("[Measures].[Turnover]", "[Place].[Region].&[B]")]
