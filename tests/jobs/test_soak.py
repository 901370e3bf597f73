"""A day's worth of jobs and page views in a minute: nothing grows. CELOSIA_SOAK_ROUNDS makes it longer.

The site and the studio are a process of their own, the worker is another, as for an office of some size; the
same over the real commands, with figures, is ``python -m bench.soak``.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

from app.bootstrap.jobs import make_queue
from app.cube.duckdb import open_cube
from app.db import open_store
from app.domain.people import Role
from app.pipeline.define import load_publication
from app.pipeline.run import run
from bench.soak import connections, held, resident
from tests.jobs.test_worker import wait_for, working
from tests.jobs.webs import web
from tests.pipeline.offices import firms, write_csv
from tests.studio.visitors import staffed

ROUNDS = int(os.environ.get("CELOSIA_SOAK_ROUNDS", "6"))
VIEWS = 60
PUBLIC = (
    "/en/",
    "/en/s/coast",
    "/en/s/activity/by-place",
    "/es/s/coast",
    "/en/s/coast/table.csv",
    "/en/s/activity/by-place/turnover.xlsx",
)
STUDIO = (
    "/studio",
    "/studio/jobs",
    "/studio/releases",
    "/studio/journal",
    "/studio/cells",
    "/studio/api/jobs",
)


def test_nothing_grows(url: str, office: Path, tmp_path: Path) -> None:
    store = open_store(url)
    staff = staffed(office, store)
    queue = make_queue(store, url, office)
    run(load_publication(office), store, open_cube)
    memory: dict[str, list[int]] = {"web": [], "worker": []}
    things: list[dict[str, int]] = []
    with working(queue, tmp_path / "work"), web(url, office) as site:
        site.sign_in(Role.ADMIN)
        for number in range(ROUNDS):
            # Two states of the data in turn, so that each job computes everything anew.
            write_csv(office / "data/firms.csv", firms(seed=1 + number % 2))
            job = queue.jobs.submit("ana")
            for view in range(VIEWS):
                paths = STUDIO if view % 4 == 3 else PUBLIC
                path = paths[view // 4 % len(paths)]
                assert site.get(f"{path}?utm_view={view}").status_code == 200, path
            assert wait_for(queue, job, "done", "failed") == "done"
            # The last job's folder may be on its way out.
            assert len(list((tmp_path / "work").glob("*/job-*"))) <= 1
            gc.collect()
            memory["web"].append(resident(site.pid))
            memory["worker"].append(resident())
            web_things = {f"web {name}": count for name, count in held(site.pid).items()}
            things.append({**held(), **web_things, "connections": connections(url)})
    # The first rounds fill caches; from then on it stays.
    warm = ROUNDS // 2
    for name, figures in memory.items():
        assert figures[-1] - figures[warm] < 12 << 20, (name, figures)
    # What is on its way out at one moment isn't there at every one.
    for name in things[0]:
        before, after = (row[name] for row in things[:warm]), (row[name] for row in things[-2:])
        assert min(after) <= max(before) + 1, (name, things)
    staff.previews.close()
    store.close()
