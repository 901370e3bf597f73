"""Sheets whose rows are chosen or ordered by values, from the text to the release."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.errors import UserError
from app.domain.masked import CellStatus, MaskedCellSet
from app.domain.masking import mask
from app.pipeline.check import check_publication
from app.pipeline.define import load_publication
from tests.databases import new_store
from tests.pipeline.offices import SHEETS, write_office
from tests.pipeline.test_protection import Ran

TOWNS = "[Place].[Town].Members"


def sheet(*queries: str) -> str:
    parts = (f'[[query]]\nid = "q{n}"\nmdx = """{text}"""' for n, text in enumerate(queries))
    return "\n".join(['title.en = "Ordered"', *parts])


def rows_of(masked: MaskedCellSet) -> list[tuple[str, CellStatus, float]]:
    keys = (position[0].unique_name.split("&")[-1].strip("[]") for position in masked.axes[-1].positions)
    states = map(CellStatus, masked.status.tolist())
    return list(zip(keys, states, masked.values.tolist(), strict=True))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, list[MaskedCellSet]]:
    folder = tmp_path_factory.mktemp("ordered")
    where = "WHERE ([Measures].[Turnover], [Activity].[Activity].&[mill])"
    queries = sheet(
        f"SELECT {{[Measures].[Turnover]}} ON 0, {TOWNS} ON 1 FROM Firms WHERE [Activity].[Activity].&[mill]",
        f"SELECT Order({TOWNS}, [Turnover], BDESC) ON 0 FROM Firms {where}",
        f"SELECT TopCount({TOWNS}, 4, [Turnover]) ON 0 FROM Firms {where}",
        f"SELECT Filter({TOWNS}, [Turnover] >= 0) ON 0 FROM Firms {where}",
        f"WITH MEMBER [Measures].[R] AS Rank([Place].CurrentMember, {TOWNS}, [Turnover]), DECIMALS = 0 "
        f"SELECT {TOWNS} ON 0 FROM Firms WHERE ([R], [Activity].[Activity].&[mill])",
        f"SELECT Order({TOWNS}, ([Turnover], [Activity].[Activity].&[bank]), BASC) ON 0 FROM Firms "
        "WHERE ([Measures].[Firms], [Activity].[Activity].&[farm])",
    )
    write_office(folder, sheets={**SHEETS, "ordered": queries})
    store = new_store(folder / "celosia.sqlite3")
    made = Ran(folder, store)
    answers = []
    for number in range(6):
        layout = store.layout(made.release.id, "ordered", f"q{number}", ())
        assert layout is not None
        answers.append(mask(layout, made.release))
    store.close()
    return made, answers


def test_hidden_rows_come_last_and_into_no_choice(ran: tuple[Ran, list[MaskedCellSet]]) -> None:
    made, answers = ran
    assert made.status["arranged"] == 5
    plain = rows_of(answers[0])
    hidden = [key for key, status, _ in plain if status == CellStatus.CONFIDENTIAL]
    shown = {key: value for key, status, value in plain if status == CellStatus.SHOWN}
    empty = [key for key, status, _ in plain if status == CellStatus.EMPTY]
    assert len(hidden) >= 2
    assert len(shown) >= 2
    by_value = sorted(shown, key=lambda key: -shown[key])
    assert [key for key, _, _ in rows_of(answers[1])] == [*by_value, *empty, *hidden]
    assert [key for key, _, _ in rows_of(answers[2])] == [*by_value, *empty][:4]
    assert sorted(key for key, _, _ in rows_of(answers[3])) == sorted([*by_value, *empty])
    ranks = {key: (status, value) for key, status, value in rows_of(answers[4])}
    assert [answer.by_figures for answer in answers] == [False, True, True, True, True, True]
    for place, key in enumerate(by_value, 1):
        assert ranks[key] == (CellStatus.SHOWN, place)
    for key in hidden:
        assert ranks[key][0] == CellStatus.CONFIDENTIAL
        assert math.isnan(ranks[key][1])


def test_cells_that_decide_an_order_are_protected_though_no_table_shows_them(
    ran: tuple[Ran, list[MaskedCellSet]],
) -> None:
    made, answers = ran
    rows = made.crawl.pending["ordered", "q5", ()].cell
    assert len(rows) == 6
    status = made.release.status[rows]
    assert (status == CellStatus.CONFIDENTIAL).any()
    assert np.isnan(made.release.values[rows[status == CellStatus.CONFIDENTIAL]]).all()
    keys = [key for key, _, _ in rows_of(answers[5])]
    assert len(keys) == 6


def test_a_cell_that_hangs_on_a_choice_is_refused(tmp_path: Path, store: Store) -> None:
    bad = sheet(
        f"WITH MEMBER [Measures].[Best] AS Sum(TopCount({TOWNS}, 3, [Turnover]), [Turnover]) "
        "SELECT [Best] ON 0 FROM Firms",
        f"SELECT [Turnover] ON 0 FROM Firms WHERE TopCount({TOWNS}, 3, [Turnover])",
    )
    write_office(tmp_path / "office", sheets={**SHEETS, "ordered": bad})
    with pytest.raises(UserError, match="can stand on an axis") as raised:
        check_publication(load_publication(tmp_path / "office"), open_cube)
    assert len(raised.value.mistakes) == 2
