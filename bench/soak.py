"""A day of an office compressed: real web and worker processes, a job each hour, readers and staff always.

Prints, round by round, what each process holds (memory, open files, threads), the connections of the
database, and temporary files. ``python -m bench.soak --database postgresql``; the tests do the same in small
(``tests/jobs/test_soak.py``).
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep

import httpx
import sqlalchemy as sa

from app.bootstrap import DATABASE_VARIABLE, run_publication
from app.bootstrap.office import add_account
from app.domain.people import Role
from demo.starting import create_starter
from tests.databases import KINDS, database_url

PASSWORD = "a lattice of olive wood"
PUBLIC = (
    "/en/",
    "/en/s/economy/towns",
    "/en/s/economy/activities",
    "/en/s/economy/towns/table.csv",
    "/en/s/economy/towns/table.xlsx",
    "/api/v1/data/dataflow/*/Firms/*",
    "/en/search?q=firms",
)
STUDIO = ("/studio", "/studio/jobs", "/studio/releases", "/studio/journal", "/studio/api/jobs")
_TOKEN = re.compile(r'name="form-token" content="([0-9a-f]{64})"')


def resident(pid: int | str = "self") -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held(pid: int | str = "self") -> dict[str, int]:
    """Open files and threads of a process, and Celosia's temporary files on this machine."""
    return {
        "files": len(os.listdir(f"/proc/{pid}/fd")),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "temporary": sum(name.startswith("celosia") for name in os.listdir(tempfile.gettempdir())),
    }


def connections(url: str) -> int:
    """Connections that others have to a PostgreSQL database; 0 for SQLite, which has none."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "postgresql":
        return 0
    engine = sa.create_engine(parsed.set(drivername="postgresql+psycopg", database="postgres"))
    query = sa.text("select count(*) from pg_stat_activity where datname = :name")
    with engine.connect() as connection:
        found = connection.scalar(query, {"name": parsed.database})
    engine.dispose()
    return int(found or 0)


@contextmanager
def command(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command of Celosia that stays, and the first line that it said."""
    code = "from app.cli import main; main()"
    environment = {**os.environ, "CELOSIA_REQUESTS_PER_SECOND": "0", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def form_token(client: httpx.Client, page: str) -> str:
    found = _TOKEN.search(client.get(page).text)
    assert found is not None, page
    return found.group(1)


def sign_in(client: httpx.Client) -> None:
    fields = {"csrf": form_token(client, "/studio/sign-in"), "name": "ada", "password": PASSWORD}
    assert client.post("/studio/sign-in", data=fields).status_code == 303


def one_round(client: httpx.Client, folder: Path, number: int, views: int) -> None:
    """A job on inputs that no job had before, and the page views of an hour."""
    text = (folder / "publication.toml").read_text()
    (folder / "publication.toml").write_text(
        re.sub(r'(?m)^(title\.en = ").*$', rf'\g<1>Hour {number}"', text)
    )
    answer = client.post(
        "/studio/jobs", data={"csrf": form_token(client, "/studio/jobs"), "version": "folder"}
    )
    assert answer.status_code == 303, answer.text
    page = answer.headers["location"].partition("?")[0]
    for view in range(views):
        path = STUDIO[view // 8 % len(STUDIO)] if view % 8 == 7 else PUBLIC[view % len(PUBLIC)]
        status = client.get(path).status_code
        assert status == 200, (path, status)
    job = page.replace("/studio/", "/studio/api/")
    while (state := client.get(job).json()["state"]) in ("queued", "running"):
        sleep(0.2)
    assert state == "done", client.get(job).text


def soak(url: str, folder: Path, rounds: int, views: int) -> None:
    """The whole day; prints a line for each round."""
    os.environ[DATABASE_VARIABLE] = url
    create_starter(folder)
    run_publication(folder)
    add_account(folder, "bench", "ada", Role.ADMIN, PASSWORD)
    head = (
        "round",
        "seconds",
        "web MB",
        "worker MB",
        "web files",
        "threads",
        "worker files",
        "connections",
        "temporary",
    )
    print(" | ".join(head))
    with (
        command("serve", str(folder), "--studio", "--jobs", "0", "--port", "0") as (web, said),
        command("worker", str(folder)) as (worker, _),
    ):
        address = re.search(r"http://localhost:\d+", said)
        assert address is not None, said
        with httpx.Client(base_url=address.group(), timeout=120) as client:
            sign_in(client)
            for number in range(1, rounds + 1):
                began = perf_counter()
                one_round(client, folder, number, views)
                mine, its = held(web.pid), held(worker.pid)
                figures = (
                    number,
                    f"{perf_counter() - began:.1f}",
                    f"{resident(web.pid) / (1 << 20):.1f}",
                    f"{resident(worker.pid) / (1 << 20):.1f}",
                    mine["files"],
                    mine["threads"],
                    its["files"],
                    connections(url),
                    its["temporary"],
                )
                print(" | ".join(map(str, figures)), flush=True)


def main() -> None:
    """Run it as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=KINDS, default=KINDS[0])
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--views", type=int, default=400)
    wish = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as scratch,
        database_url(wish.database, Path(scratch)) as url,
    ):
        soak(url, Path(scratch) / "firms", wish.rounds, wish.views)


if __name__ == "__main__":
    main()
