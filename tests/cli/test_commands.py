"""The commands as a person types them."""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from app.cli import main, tell
from app.redteam.report import Finding, Report
from tests.jobs.forks import SERVER

COMMANDS = (
    "demo", "init", "run", "serve", "crawl", "assess", "build", "suppress", "audit", "release", "check",
    "status", "mdx", "explain-formula", "import-schema", "export-problems", "attack",
)  # fmt: skip


def celosia(
    *arguments: str, folder: Path | None = None, piped: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, forked from one that has loaded the program already."""
    with TemporaryDirectory() as streams:
        names = [Path(streams, name) for name in ("stdin", "stdout", "stderr")]
        names[0].write_text(piped or "")
        around = surroundings(environment)
        process = SERVER.Process(target=perform, args=(arguments, folder or Path.cwd(), around, names))
        process.start()
        process.join(240)
        process.kill()
        process.join()
        said = [name.read_text() for name in names[1:]]
    assert process.exitcode is not None
    return subprocess.CompletedProcess(["celosia", *arguments], process.exitcode, *said)


def perform(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], streams: Sequence[Path]
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, name in enumerate(streams):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False) for number, mode in enumerate("rww")
    )
    sys.argv = ["celosia", *arguments]
    main()


def surroundings(more: Mapping[str, str]) -> dict[str, str]:
    """Variables of the environment of a command, with nothing said of Celosia but these."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CELOSIA_")}
    return {**inherited, "COLUMNS": "100", "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **more}


def celosia_code(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=surroundings({}),
        timeout=240,
    )


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small publication that was run."""
    folder = tmp_path_factory.mktemp("cli") / "firms"
    assert celosia("init", str(folder)).returncode == 0
    done = celosia("run", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def assert_words(result: subprocess.CompletedProcess[str], code: int, *said: str) -> None:
    """The command ended with this code and in words: no traceback, no empty message."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr + result.stdout
    for text in said:
        assert text in result.stderr


def test_help_names_every_command() -> None:
    shown = celosia("--help")
    assert shown.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b", shown.stdout)


def test_help_begins_with_what_one_begins_with() -> None:
    lines = celosia("--help").stdout.splitlines()
    panels = [line.strip("╭╮─ ") for line in lines if line.startswith("╭")]
    assert panels == [
        "Options", "Publish", "The steps of run, each alone", "Look and check", "The office", "Run for many",
    ]  # fmt: skip
    first = next(n for n, line in enumerate(lines) if "Publish ─" in line) + 1
    assert lines[first].split()[1] == "demo"


@pytest.mark.parametrize("arguments", ["--help", "--version", "run --help", "releases", "no-command"])
def test_who_asks_for_help_waits_for_no_engine(arguments: str) -> None:
    code = (
        "import atexit, sys\n"
        "from app.cli import main\n"
        "heavy = {'numpy', 'scipy', 'duckdb', 'highspy', 'sqlalchemy', 'fastapi', 'pyarrow', 'httpx'}\n"
        "atexit.register(lambda: print('LOADED', *sorted(heavy & sys.modules.keys())))\n"
        "main()\n"
    )
    shown = celosia_code(code, *arguments.split())
    assert shown.stdout.splitlines()[-1].strip() == "LOADED", shown.stdout


def test_a_new_publication_checks_runs_and_reports(published: Path) -> None:
    checked = celosia("check", str(published))
    assert (checked.returncode, "in order: 1 cube, 2 sheets." in checked.stdout) == (0, True)
    status = json.loads(celosia("status", str(published), "--json").stdout)
    assert status["release"]["state"] == "live"
    assert status["exposures"] == 0
    assert status["cells"] > 50
    assert status["primaries"] > 0
    wanted = {
        "release", "cells", "implied_cells", "equations", "problems", "primaries", "secondaries",
        "hidden_share", "exposures", "cost", "lower_bound", "seconds",
    }  # fmt: skip
    assert wanted <= status.keys()
    assert set(status["seconds"]) >= {"crawl", "assess", "build", "suppress", "audit", "release"}


def test_a_second_run_computes_nothing_and_changes_nothing(published: Path) -> None:
    before = json.loads(celosia("status", str(published), "--json").stdout)
    assert celosia("run", str(published)).returncode == 0
    assert json.loads(celosia("status", str(published), "--json").stdout) == before


def test_the_attack_on_a_folder_finds_nothing(published: Path) -> None:
    result = celosia("attack", str(published), "--json")
    report = json.loads(result.stdout)
    assert result.returncode == 0, result.stdout
    assert report["findings"] == report["notes"] == []
    assert report["hidden"] > 0
    assert report["checked_promises"] > 0


def test_what_only_the_office_can_judge_does_not_alarm(capsys: pytest.CaptureFixture[str]) -> None:
    narrowed = Finding("[Measures].[Firms], [Town].&[1]", "too narrow", 2, 4, certain=False)
    report = Report(9, 9, 3, 3, findings=(), suspicions=(narrowed,), notes=())
    tell.attack(report)
    said = capsys.readouterr().out
    assert report.ok
    assert "Nothing found.\nOnly the office can judge: 1\n" in said
    assert "--truth D" in said
    assert "too narrow" not in said


def test_exported_problems_solve_to_the_costs_that_are_told(published: Path, tmp_path: Path) -> None:
    from solver import Instance, solve

    out = tmp_path / "out"
    result = celosia("export-problems", str(published), str(out))
    assert result.returncode == 0, result.stderr
    told = re.findall(r"(problem-\d+\.jj): cost (\S+), (no pattern costs less)?(.*)", result.stdout)
    files = sorted(out.iterdir())
    status = json.loads(celosia("status", str(published), "--json").stdout)
    assert len(files) == status["problems"]
    assert [file.name for file in files] == [name for name, *_ in told]
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    for file, (_, cost, proven, insiders) in zip(files, told, strict=True):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert proven
        found, expected = solve(Instance.from_jj(file)).cost, float(cost.replace(",", ""))
        assert found <= expected * (1 + 1e-5)
        assert insiders or found == pytest.approx(expected, rel=1e-5)


def test_why_promises_no_saving(published: Path, tmp_path: Path) -> None:
    """Of amounts too, of which some go because their counts are hidden."""
    from solver import Instance, Status

    assert celosia("export-problems", str(published), str(tmp_path / "out")).returncode == 0
    instances = [Instance.from_jj(file) for file in sorted((tmp_path / "out").iterdir())]
    (amounts, *_) = [item for item in instances if (item.status == Status.HIDDEN).any()]
    costs = []
    for cell in np.flatnonzero(amounts.status == Status.FREE).tolist():
        result = celosia("why", str(published), amounts.name(cell))
        assert result.returncode == 0, result.stderr
        costs += re.findall(r"shown for a cost of (\S+), by", result.stdout)
    assert costs
    assert all(float(cost.replace(",", "")) >= 0 for cost in costs), costs


def test_init_leaves_a_full_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert_words(celosia("init", str(tmp_path)), 2, "isn't an empty folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.txt"]


@pytest.mark.parametrize("command", ["check", "run", "crawl", "status", "serve"])
def test_a_folder_that_is_no_publication_is_said_in_one_line(command: str, tmp_path: Path) -> None:
    result = celosia(command, str(tmp_path / "nowhere"), *(["--port", "0"] if command == "serve" else []))
    assert_words(result, 2, "nowhere")
    assert len(result.stderr.strip().splitlines()) == 1


def test_check_lists_every_mistake_with_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "firms"
    celosia("init", str(folder))
    rules = folder / "publication.toml"
    rules.write_text(rules.read_text().replace("threshold", "treshold"))
    sheet = folder / "sheets" / "economy" / "towns.toml"
    sheet.write_text(sheet.read_text().replace("[Measures].[Firms]", "[Measures].[Firma]"))
    result = celosia("check", str(folder))
    assert_words(result, 2, "publication.toml:", "sheets/economy/towns.toml:", "Firma")


def test_wrong_usage_exits_2() -> None:
    assert_words(celosia("run"), 2)
    assert_words(celosia("dance"), 2, "dance")
    assert_words(celosia("attack", "gopher://example"), 2, "no address of a site")


def test_a_port_that_is_taken_is_said(published: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert_words(celosia("serve", str(published), "--port", port), 2, port, "taken")


def test_an_attack_on_nobody_is_said() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        assert_words(celosia("attack", f"http://127.0.0.1:{port}"), 2, "no site of Celosia")


def test_data_that_vanished_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "firms"
    celosia("init", str(folder))
    (folder / "data" / "firms.csv").unlink()
    assert_words(celosia("run", str(folder)), 2, "firms.csv")


def test_damaged_state_is_the_machines_fault(tmp_path: Path) -> None:
    folder = tmp_path / "firms"
    celosia("init", str(folder))
    (folder / ".celosia").mkdir()
    (folder / ".celosia" / "celosia.sqlite3").write_bytes(b"this is no database, whatever its name says" * 99)
    assert_words(celosia("status", str(folder)), 1)


def test_a_database_that_is_not_there_is_said(published: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:9/nothing"
    assert_words(celosia("status", str(published), CELOSIA_DATABASE_URL=url), 1)


@pytest.mark.parametrize(
    ("raised", "said"),
    [("KeyError('4711')", "KeyError"), ("OSError(28, 'No space left on device')", "No space")],
)
def test_a_fault_of_ours_is_one_line_without_values(raised: str, said: str, tmp_path: Path) -> None:
    code = (
        "from app import bootstrap\n"
        "from app.cli import main\n"
        "def break_down(folder):\n"
        f"    raise {raised}\n"
        "bootstrap.read_status = break_down\n"
        "main()\n"
    )
    result = celosia_code(code, "status", str(tmp_path))
    assert_words(result, 1, said)
    assert len(result.stderr.strip().splitlines()) == 1
    assert "4711" not in result.stderr
