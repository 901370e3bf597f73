"""The red team against real business data, with sampling weights and two kinds of rules."""

from __future__ import annotations

from pathlib import Path

import httpx

from app.bootstrap import promises, run_publication
from app.cli.serving import served
from app.redteam import attack
from tests.pipeline.turnover import write_turnover


def test_nothing_gives_way_in_the_turnover_publication(tmp_path: Path) -> None:
    folder = write_turnover(tmp_path / "turnover")
    run_publication(folder)
    with served(folder) as address, httpx.Client(base_url=address, timeout=120.0) as client:
        report = attack(client, promises(folder))
        outsider = attack(client)
    assert list(report.findings) == list(report.notes) == list(outsider.findings) == []
    assert report.hidden > 100
    assert report.checked_promises > 100
