"""A day's worth of jobs and page views in a minute: nothing grows. CELOSIA_SOAK_ROUNDS makes it longer."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

import httpx

from app.bootstrap.jobs import make_queue
from app.cli.serving import running
from app.cube.duckdb import open_cube
from app.db import open_store
from app.pipeline.define import load_publication
from app.pipeline.run import run
from app.web.app import create_app
from tests.jobs.test_worker import wait_for, working

ROUNDS = int(os.environ.get("CELOSIA_SOAK_ROUNDS", "6"))
VIEWS = 150
PATHS = ("/en/", "/en/s/coast", "/en/s/activity/by-place", "/es/s/coast", "/en/s/coast/table.csv")


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held() -> dict[str, int]:
    """What this process and the machine's temporary folder hold."""
    gc.collect()
    return {
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "temporary": sum(name.startswith("celosia") for name in os.listdir(tempfile.gettempdir())),
    }


def test_nothing_grows(office: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'celosia.sqlite3'}"
    store = open_store(url)
    queue = make_queue(store, url, office)
    memory, things, pools = [], [], []
    run(load_publication(office), store, open_cube)
    with (
        running(create_app(store)) as address,
        working(queue, tmp_path / "work"),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        for _ in range(ROUNDS):
            job = queue.jobs.submit("ana")
            for number in range(VIEWS):
                path = f"{PATHS[number % len(PATHS)]}?release={store.live_release_id()}"
                assert client.get(path).status_code == 200, path
            assert wait_for(queue, job, "done", "failed") == "done"
            # The last job's folder may be on its way out.
            assert len(list((tmp_path / "work").glob("*/job-*"))) <= 1
            memory.append(resident())
            things.append(held())
            pools.append(store.database.engine.pool.checkedout())  # type: ignore[attr-defined]
    # The first rounds fill caches; from then on it stays.
    warm = ROUNDS // 2
    assert memory[-1] - memory[warm] < 12 << 20, memory
    for name in things[0]:
        assert things[-1][name] <= things[warm][name] + 2, (name, things)
    assert max(pools) <= 1
    store.close()
