"""Calculated members that no query uses are tried too."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.bootstrap import check_publication
from app.domain.errors import UserError
from tests.pipeline.offices import CUBE, firms, write_office

CALCULATED = """
[[calculated]]
name = "Fine"
formula = "[Measures].[Firms] * [Measures].[Firms]"
[[calculated]]
name = "Odd"
formula = "[Measures].[Nothing] + 1"
[[calculated]]
name = "Round and round"
formula = "[Measures].[Round and round] + 1"
"""


def test_each_is_told_once_where_it_stands(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office", firms(), cube=CUBE + CALCULATED)
    with pytest.raises(UserError) as caught:
        check_publication(office)
    odd, circle = caught.value.mistakes
    assert "Nothing" in odd.cause
    assert "refers to itself" in circle.cause
    assert (office / odd.file).read_text().splitlines()[odd.line - 1].endswith('[Measures].[Nothing] + 1"')
