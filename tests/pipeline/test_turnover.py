"""Real business data: five linked tables with sampling weights go through and nothing is exposed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from app.cube.duckdb import open_cube
from app.db import Store
from app.domain.masked import CellStatus
from app.pipeline.define import load_publication
from app.pipeline.run import run
from app.pipeline.running import RESULTS
from tests.pipeline.turnover import write_turnover


def test_the_turnover_publication_is_released_safely(tmp_path: Path, store: Store) -> None:
    publication = load_publication(write_turnover(tmp_path / "turnover"))
    status = run(publication, store, open_cube).status
    assert status["exposures"] == 0
    assert status["audit_complete"]
    assert status["cells"] > 1_500
    assert status["primaries"] > 100
    # Single firms that make up all of a class: what is told of lowered levels is not silence.
    assert status["lowered_levels"] > 0
    assert 0 < status["lower_bound"] <= status["cost"] * (1 + 1e-9)
    release = store.live_release()
    assert release is not None
    stored = store.step("assess")
    assert stored is not None
    verdicts = RESULTS.decode(stored.body).cubes[0]
    assert {"freq<3", "(1,85)"} <= set(verdicts.reasons)
    n = len(release.keys)
    assert (release.status[np.flatnonzero(verdicts.sensitive[:n])] == CellStatus.CONFIDENTIAL).all()
