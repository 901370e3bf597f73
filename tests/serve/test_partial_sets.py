"""No figure hangs on a set that was chosen without the hidden cells: it is the true one, or hidden."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from app.cube.duckdb import open_cube
from app.cube.port import CubeServer
from app.domain.errors import UserError
from app.domain.masked import CellStatus, MaskedCellSet
from app.mdx import parse
from app.pipeline.define import load_publication
from app.pipeline.run import run
from app.serve.adhoc import Adhoc
from app.serve.answer import LiveReader
from tests.databases import new_store
from tests.pipeline.offices import write_office

HIDDEN = (CellStatus.CONFIDENTIAL, CellStatus.UNRELEASED)
TOWNS, FIRMS = "[Place].[Town].Members", "[Measures].[Firms]"
FEW = f"Filter({TOWNS}, {FIRMS} > 5)"
SETS = (
    FEW,
    f"Filter({TOWNS}, NOT {FIRMS} > 5)",
    f"Filter({TOWNS}, Rank([Place].CurrentMember, {TOWNS}, {FIRMS}) < 3)",
    f"Filter({TOWNS}, IsEmpty({FIRMS}))",
    *(f"{end}Count({TOWNS}, 2, {FIRMS})" for end in ("Top", "Bottom")),
    *(f"{end}Percent({TOWNS}, 60, {FIRMS})" for end in ("Top", "Bottom")),
    *(f"{end}Sum({TOWNS}, 20, {FIRMS})" for end in ("Top", "Bottom")),
    *(f"Order({TOWNS}, {FIRMS}, {way})" for way in ("ASC", "DESC", "BASC", "BDESC")),
    f"Head(Order({TOWNS}, {FIRMS}, BDESC), 3)",
    f"Subset(Order({TOWNS}, {FIRMS}, BASC), 1, 2)",
    f"Except({TOWNS}, {FEW})",
    f"Union({{[Place].[Town].&[c1]}}, {FEW})",
    f"Generate([Place].[Region].Members, TopCount([Place].CurrentMember.Children, 1, {FIRMS}))",
    f"NonEmpty({TOWNS}, ([Size].[Size].&[large], {FIRMS}))",
    f"Extract({FEW} * {{[Size].[All]}}, [Place])",
)
USES = (
    "Count({0})",
    "Count({0}) * 0 + [Measures].[Firms]",
    "Sum({0}, [Measures].[Firms])",
    "Aggregate({0}, [Measures].[Firms])",
    "Avg({0}, [Measures].[Firms])",
    "Max({0}, [Measures].[Firms])",
    "({0}.Item(0).Item(0), [Measures].[Firms])",
    "{0}.Item(0).Item(0).Name",
    "{0}.Item(0).Item(0).Parent.Name",
    "SetToStr({0})",
    'Generate({0}, [Place].CurrentMember.Name, ",")',
    "Rank([Place].[Town].&[b1], {0})",
    "Rank([Place].[Town].&[b1], {0}, [Measures].[Firms])",
    "Count(Intersect({0}, {{[Place].[Town].&[b1]}}))",
    "IIF([Place].[Town].&[b1] IN {0}, 'in', 'out')",
    "IIF(Count({0}) > 2, 1, 0)",
    "CASE WHEN Count({0}) > 2 THEN 'many' ELSE 'few' END",
    "CoalesceEmpty(Sum({0}, [Measures].[Firms]), 0)",
)


def written(chosen: str) -> Iterator[str]:
    """Queries of which the cells hang on a set in all the ways: each by itself, and one upon another."""
    of, alone = "[Activity].[Activity].Members ON 1 FROM Firms", "[Size].[Size].Members ON 1 FROM Firms"
    formulas = [use.format(chosen) for use in USES]
    yield f"WITH {measures(formulas)} SELECT {names('X')} ON 0, {of}"
    above = [f"[Measures].[X{n}]" for n in range(len(USES))]
    yield f"WITH {measures(formulas)} {measures(above, 'Y')} SELECT {names('Y')} ON 0, {of}"
    named = measures([use.format("[S]") for use in USES])
    where = "WHERE [Activity].[Activity].&[farm]"
    yield f"WITH SET [S] AS {chosen} {named} SELECT {names('X')} ON 0, {alone} {where}"
    # Of other cells than its own.
    made = measures(formulas, on="[Size]").replace(FIRMS, f"([Size].[All], {FIRMS})")
    made = made.replace("large], ([Size].[All], ", "large], (")
    yield f"WITH {made} SELECT {names('X', '[Size]')} * [Activity].Members ON 0 FROM Firms"


def measures(formulas: list[str], name: str = "X", on: str = "[Measures]") -> str:
    return " ".join(f"MEMBER {on}.[{name}{n}] AS {formula}" for n, formula in enumerate(formulas))


def names(name: str, on: str = "[Measures]") -> str:
    return f"{{{', '.join(f'{on}.[{name}{n}]' for n in range(len(USES)))}}}"


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveReader, CubeServer]]:
    """Readers of a release, and the facts that it was made of."""
    folder = write_office(tmp_path_factory.mktemp("office"))
    store = new_store(folder / "release.sqlite3")
    publication = load_publication(folder)
    run(publication, store, open_cube)
    server = open_cube(publication.cubes[0])
    yield LiveReader(store, asker=Adhoc()), server
    server.close()
    store.close()


def ask(reader: LiveReader, text: str) -> MaskedCellSet:
    release_id = reader.live_id()
    assert release_id is not None
    return reader.ask(release_id, text).asked.masked


@pytest.mark.parametrize("chosen", SETS)
def test_what_hangs_on_a_chosen_set_is_true_or_hidden(
    office: tuple[LiveReader, CubeServer], chosen: str
) -> None:
    reader, server = office
    met: set[bool] = set()
    for text in written(chosen):
        answer, truth = ask(reader, text), server.explore(parse(text))
        for cell, status in enumerate(answer.status.tolist()):
            met.add(status in HIDDEN)
            if status in HIDDEN:
                continue
            assert answer.texts.get(cell) == truth.texts.get(cell), cell
            np.testing.assert_allclose(answer.values[cell], truth.values[cell])
    assert True in met


def test_what_is_shown_in_full_is_counted(office: tuple[LiveReader, CubeServer]) -> None:
    """Where nothing that the choice looks at is hidden, the figure is there and the true one."""
    reader, server = office
    text = (
        f"WITH MEMBER [Measures].[X] AS Count(Filter([Activity].[Activity].Members, {FIRMS} > 5)) "
        "SELECT [Measures].[X] ON 0, [Place].Members ON 1 FROM Firms"
    )
    answer, truth = ask(reader, text), server.explore(parse(text))
    shown = answer.status == CellStatus.SHOWN
    assert shown.any()
    assert not shown.all()
    np.testing.assert_array_equal(answer.values[shown], truth.values[: len(shown)][shown])


def test_the_reason_is_that_of_the_cells_looked_at(office: tuple[LiveReader, CubeServer]) -> None:
    """Confidential as soon as one of them is, else not released."""
    reader, _ = office
    answer = ask(
        reader,
        f"WITH MEMBER [Measures].[Some] AS Count({FEW}) "
        f"MEMBER [Measures].[None] AS Count(Filter({TOWNS}, ({FIRMS}, [Size].[Size].&[large]) > 5)) "
        "SELECT {[Measures].[Some], [Measures].[None]} ON 0 FROM Firms WHERE [Activity].[Activity].&[bank]",
    )
    assert answer.status.tolist() == [CellStatus.CONFIDENTIAL, CellStatus.UNRELEASED]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {FIRMS} ON 0 FROM Firms WHERE {FEW} * {{[Activity].[Activity].&[bank]}}",
        f"SELECT {FIRMS} ON 0 FROM Firms WHERE ({FEW}.Item(0).Item(0), [Activity].[Activity].&[bank])",
        f"SELECT {FIRMS} ON 0 FROM (SELECT {FEW} ON 0 FROM Firms) WHERE [Activity].[Activity].&[bank]",
        f"SELECT VisualTotals({{[Place].[All], {FEW}}}) ON 0 FROM Firms WHERE [Activity].[Activity].&[bank]",
    ],
)
def test_cells_are_not_taken_over_a_set_that_is_chosen_in_part(
    office: tuple[LiveReader, CubeServer], text: str
) -> None:
    reader, _ = office
    bank = text.replace(f"{FIRMS} >", f"({FIRMS}, [Activity].[Activity].&[bank]) >")
    with pytest.raises(UserError, match="chosen or ordered by values"):
        ask(reader, bank)
    # Where every cell that is looked at is shown, the set is the true one.
    assert (
        CellStatus.SHOWN
        in ask(reader, bank.replace(TOWNS, "{[Place].[Town].&[a1]}").replace("5", "1")).status
    )


def test_axes_by_figures_say_so(office: tuple[LiveReader, CubeServer]) -> None:
    reader, _ = office
    for chosen in SETS:
        by_figures = "NonEmpty(" not in chosen
        assert ask(reader, f"SELECT {chosen} ON 0 FROM Firms").by_figures == by_figures, chosen
        named = f"WITH SET [S] AS {chosen} MEMBER [Measures].[N] AS Count([S])"
        assert ask(reader, f"{named} SELECT [S] ON 0 FROM Firms").by_figures == by_figures
        assert not ask(reader, f"{named} SELECT [Measures].[N] ON 0 FROM Firms").by_figures
    assert not ask(reader, f"SELECT {TOWNS} ON 0 FROM Firms").by_figures
