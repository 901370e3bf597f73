"""Operators' commands as a terminal runs them: backup, restore, doctor, and serving with a studio."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import httpx

from app.bootstrap import publication_store
from app.bootstrap.office import make_office
from tests.cli.test_commands import assert_words, celosia
from tests.cli.test_fault_process import begin
from tests.pipeline.offices import write_office


def test_backup_restore_and_doctor(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    assert celosia("run", str(office), "--help").returncode == 0
    assert celosia("run", str(office)).returncode == 0
    file = tmp_path / "office.backup"
    done = celosia("backup", str(file), str(office))
    assert done.returncode == 0, done.stderr
    assert_words(celosia("backup", str(file), str(office)), 2, "exists")
    copy = tmp_path / "copy"
    done = celosia("restore", str(file), str(copy))
    assert done.returncode == 0, done.stderr
    assert_words(celosia("restore", str(file), str(copy)), 2, "isn't empty")
    looked = celosia("doctor", str(copy), "--json")
    findings = {item["name"]: item for item in json.loads(looked.stdout)}
    assert looked.returncode == 0, looked.stdout
    assert findings["solver"]["state"] == "ok"
    assert "is live" in findings["release"]["words"]
    assert findings["address"]["state"] == "warning"
    # What is damaged is found.
    database = copy / ".celosia" / "celosia.sqlite3"
    body = bytearray(database.read_bytes())
    body[len(body) // 2 : len(body) // 2 + 6000] = b"\xff" * 6000
    database.write_bytes(bytes(body))
    (copy / ".celosia").chmod(0o755)
    looked = celosia("doctor", str(copy), "--json")
    assert looked.returncode == 1
    states = {item["name"]: item["state"] for item in json.loads(looked.stdout)}
    assert "failed" in states.values()
    assert states["rights"] == "warning"


def test_serving_with_a_studio_works_on_its_jobs_and_ends_in_order(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    os.environ["CELOSIA_LOG"], os.environ["CELOSIA_METRICS"] = "json", "127.0.0.1:0"
    try:
        process = begin("serve", str(office), "--port", "0", "--studio")
    finally:
        del os.environ["CELOSIA_LOG"], os.environ["CELOSIA_METRICS"]
    try:
        assert process.stdout is not None
        ports = {}
        for line in process.stdout:
            if line.startswith("Metrics at port "):
                ports["metrics"] = int(line.split()[3].strip(","))
            if "http://localhost:" in line:
                ports["site"] = int(line.split("localhost:")[1].split("/")[0])
                break
        with httpx.Client(base_url=f"http://127.0.0.1:{ports['site']}", timeout=60) as client:
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").json() == {"status": "ok"}
            assert client.get("/metrics").status_code in (404, 503)
            assert client.get("/studio/sign-in").status_code == 200
        told = httpx.get(f"http://127.0.0.1:{ports['metrics']}/metrics", timeout=60).text
        assert 'celosia_jobs{state="queued"} 0.0' in told
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "Traceback" not in said
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        assert {"worker ends", "request"} <= {line["event"] for line in lines}
    finally:
        process.kill()
        process.wait()


def test_a_worker_without_folder_and_database_is_told(tmp_path: Path) -> None:
    for command in (["worker"], ["doctor"], ["backup", str(tmp_path / "x")]):
        assert_words(celosia(*command), 2, "CELOSIA_DATABASE_URL")


def test_an_account_is_made_with_a_password_from_a_pipe(tmp_path: Path) -> None:
    office = str(write_office(tmp_path / "office"))
    add = ("account", "add", office, "ana", "--role", "admin")
    assert_words(celosia(*add), 2, "--password-stdin")
    assert_words(celosia("account", "add", office, "ana", "--password-stdin", piped="x\n"), 2, "--role")
    assert_words(celosia(*add, "--password-stdin", piped=""), 2, "no password")
    done = celosia(*add, "--password-stdin", piped="a lattice of olive wood\r\n")
    assert done.returncode == 0, done.stderr
    assert "lattice" not in done.stdout + done.stderr
    with publication_store(Path(office)) as store:
        people = make_office(Path(office), store).people
        assert people.sign_in("ana", "a lattice of olive wood") is not None
