"""The same office released again shows the same, and all that was ever shown together tells of nobody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from app.db import Store
from app.domain.masked import CellStatus
from app.pipeline.running import RESULTS
from app.pipeline.suppress import levels_kept
from tests.pipeline.offices import PUBLICATION, firms, write_office
from tests.pipeline.test_leak_differences import NEW, Rows, Seen, bounds, release

HEAD = "[confidentiality]\n"
#: What is said of the whole, and the facts of one release after the other, by number.
OFFICES: dict[str, tuple[str, list[Rows]]] = {
    "hasty": (f"{HEAD}effort = 0.01\n", [firms(n=40)]),
    "hasty, nobody inside": (f"{HEAD}effort = 0.01\ninsiders = false\n", [firms(seed=2, n=60)]),
    "one firm more": (HEAD, [firms(seed=3), [*firms(seed=3), NEW]]),
}


def write_title(folder: Path, title: str, section: str) -> None:
    text = PUBLICATION.replace("Small office", title, 1).replace(HEAD, section, 1)
    (folder / "publication.toml").write_text(text, encoding="utf-8")


def assert_nothing_told(store: Store, seen: Sequence[Seen]) -> None:
    """Each sensitive cell of the last release is as uncertain as it promises, to whoever kept all of them."""
    last, cells = seen[-1], seen[-1].cells
    problems, pattern = (RESULTS.decode(store.step(name).body) for name in ("build", "suppress"))  # type: ignore[union-attr]
    lpl, upl, _ = levels_kept(0, last.verdicts, problems, pattern)
    asked = last.verdicts.sensitive & cells.has_contributors & (np.maximum(lpl, upl) > 0)
    rows = np.flatnonzero(asked[: cells.n_published]).tolist()
    assert len(rows) > 3
    for row in rows:
        inside = last.inside(cells.coords[row])
        low, high = bounds(
            seen,
            int(cells.coords[row, 0]),
            lambda state, leaf, inside=inside: float(state == len(seen) - 1 and inside[leaf]),
        )
        assert low <= cells.values[row] - lpl[row] + 1e-6, last.keys[row]
        assert high >= cells.values[row] + upl[row] - 1e-6, last.keys[row]


def assert_same(one: Seen, other: Seen) -> None:
    assert dict(zip(one.keys, one.status, strict=True)) == dict(zip(other.keys, other.status, strict=True))


@pytest.mark.parametrize("kind", OFFICES)
def test_the_same_office_shows_the_same_again(kind: str, tmp_path: Path, store: Store) -> None:
    section, facts = OFFICES[kind]
    folder = write_office(tmp_path / "office")
    seen = []
    for rows in facts:
        write_title(folder, "Office", section)
        seen.append(release(folder, store, rows))
    write_title(folder, "Bureau", section)
    seen.append(release(folder, store, facts[-1]))
    assert len(store.book.all()) == len(seen)
    assert_same(seen[-2], seen[-1])


def test_what_a_longer_search_shows_besides_tells_nobody(tmp_path: Path, store: Store) -> None:
    folder, rows = write_office(tmp_path / "office"), firms(5, 40)
    seen = []
    for effort in (0.001, 40):
        write_title(folder, "Office", f"{HEAD}effort = {effort}\n")
        seen.append(release(folder, store, rows))
    before, after = ({*np.array(item.keys)[item.status == CellStatus.SHOWN]} for item in seen)
    assert before < after
    assert_nothing_told(store, seen)
