"""Dockerfile and compose file: their linters, and their build and start steps run without Docker."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from app.cli.serving import reserve, running
from app.web.app import create_app
from app.web.operate import Operations
from tests.web.office import MemoryStore

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sysconfig.get_path("scripts"))


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions and what they say, lines joined."""
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def said(name: str) -> list[str]:
    return [words for instruction, words in instructions() if instruction == name]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text())
    return found


def check(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_linters_have_nothing_to_say() -> None:
    check(str(BIN / "hadolint"), str(ROOT / "Dockerfile"))
    schema = "vendor.compose-spec"
    check(str(BIN / "check-jsonschema"), "--builtin-schema", schema, str(ROOT / "docker-compose.yml"))


def test_services_run_unprivileged_on_a_root_that_cannot_be_written() -> None:
    assert said("USER") == ["10001"]
    assert said("HEALTHCHECK")
    services = compose()["services"]
    for name, service in services.items():
        if name != "database":
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
    assert [name for name, service in services.items() if service.get("ports")] == ["proxy"]
    assert compose()["networks"]["inside"]["internal"] is True
    assert "password" not in json.dumps(services).replace("${CELOSIA_DATABASE_PASSWORD:?set a password}", "")


# ---------------------------------------------------------------------- the proxy


@contextmanager
def proxied(upstream: int, folder: Path) -> Iterator[str]:
    """nginx with the compose file's configuration, in front of a port of this machine."""
    listener = reserve("127.0.0.1", 0)
    port = listener.getsockname()[1]
    listener.close()
    text = compose()["configs"]["proxy"]["content"].replace("$$", "$")
    # Started by root, its workers would be somebody who can't look into the tests' folders.
    who = "user root;\n" if os.getuid() == 0 else ""
    for before, after in {
        "pid /run/nginx.pid": f"pid {folder}/nginx.pid",
        "server web:8000": f"server 127.0.0.1:{upstream}",
        "listen 8080": f"listen 127.0.0.1:{port}",
        "/var/cache/nginx": str(folder),
        "worker_processes auto": "worker_processes 1",
    }.items():
        assert before in text
        text = text.replace(before, after)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(who + text.replace("http {", f"http {{ {temporary}", 1))
    (folder / "celosia").mkdir()
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    arguments = [nginx, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    check(*arguments, "-t")
    process = subprocess.Popen([*arguments, "-g", "daemon off;"])
    try:
        transport = httpx.HTTPTransport(retries=8)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=transport) as client:
            client.get("/healthz")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(60)


def test_the_proxy_keeps_what_never_changes_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = MemoryStore()
    folder = tmp_path_factory.mktemp("nginx")
    site = Operations(create_app(store, patience=0), lambda: "")
    with (
        running(site) as address,
        proxied(int(address.rpartition(":")[2]), folder) as front,
        httpx.Client(base_url=front) as client,
    ):
        page = client.get("/en/")
        assert page.status_code == 200
        style = re.search(r'href="(/static/site\.css\?v=[^"]+)"', page.text)
        assert style is not None
        assert [client.get(style.group(1)).headers["x-cache"] for _ in range(2)] == ["MISS", "HIT"]
        sheet = re.search(r'href="(/en/s/[^"?#]+)"', client.get("/en/f/territory").text)
        path = sheet.group(1) if sheet else "/en/"
        assert {client.get(path).headers["x-cache"] for _ in range(2)} <= {"MISS", "EXPIRED", "BYPASS"}
        assert client.get("/metrics").status_code == 404
        assert "x-cache" not in client.get("/studio/sign-in").headers
        assert client.post("/en/", content=b"x" * (2 << 20)).status_code == 413


# ---------------------------------------------------------------------- the image


def test_what_the_image_copies_builds_and_starts(tmp_path: Path) -> None:
    """Its COPY, RUN, ENTRYPOINT, CMD and HEALTHCHECK, with what they need from here instead of a network."""
    source = tmp_path / "src"
    source.mkdir()
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for words in said("COPY"):
        if words.startswith("--from"):
            continue
        *names, target = words.split()
        for name in names:
            assert name in allowed, f"{name} is copied, but .dockerignore keeps it out"
            if (ROOT / name).is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, source / target, ignore=ignore)
            else:
                shutil.copy(ROOT / name, source / target)
    python = sys.executable
    wheel = [python, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    check(*wheel, "-w", str(tmp_path), str(source))
    (built,) = tmp_path.glob("celosia-*.whl")
    venv = tmp_path / "venv"
    check(python, "-m", "venv", "--without-pip", str(venv))
    check(python, "-m", "pip", "--python", str(venv), "install", "-q", "--no-deps", "--no-index", str(built))
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    publication = tmp_path / "publication"
    publication.mkdir()
    (command,) = said("CMD")
    arguments = [
        {"/publication": str(publication), "8000": "0"}.get(item, item) for item in json.loads(command)
    ]
    environment = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "CELOSIA_LOG": "json"}
    process = subprocess.Popen(
        [str(venv / "bin" / json.loads(said("ENTRYPOINT")[0])[0]), *arguments, "--studio"],
        cwd=publication,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = ""
        for line in process.stdout:
            if "http://localhost:" in line:
                break
        port = line.split("localhost:")[1].split("/")[0]
        probe = json.loads(re.sub(r"^.*?CMD ", "", said("HEALTHCHECK")[0]).replace("8000", port))
        subprocess.run(probe, env=environment, check=True, timeout=60)
        page = httpx.get(f"http://127.0.0.1:{port}/studio/sign-in", timeout=60)
        assert page.status_code == 200
        assert "studio.css" in page.text
        where = subprocess.run(
            [str(venv / "bin" / "python"), "-c", "import app; print(app.__file__)"],
            cwd=publication,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert str(packages) in where.stdout
    finally:
        process.terminate()
        process.wait(60)
    assert process.returncode == 0


@pytest.mark.parametrize("ends", [0, 1, 130])
def test_ctrl_c_ends_the_demo_in_peace_and_a_failure_is_one(tmp_path: Path, ends: int) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (tmp_path / ".installed").touch()
    command = tmp_path / "bin" / "celosia"
    waits = "import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, [2])\n"
    waits += "print(0, flush=True); signal.sigwait([2]); os.read(0, 1); os._exit"
    command.write_text(f"#!{sys.executable}\n{waits}({ends})\n")
    command.chmod(0o755)
    # As at a terminal: not below another make, which names its directory first, nor with Ctrl-C ignored.
    typed = ["env", "--default-signal=INT", *(f"--unset=MAKE{name}" for name in ("LEVEL", "FLAGS")), "make"]
    process = subprocess.Popen(
        [*typed, "demo", f"VENV={tmp_path}"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    os.killpg(process.pid, signal.SIGINT)
    # A program takes its time to end. One that is gone before make has heard of the signal is a child that
    # make waits for twice.
    status = Path(f"/proc/{process.pid}/status")
    while int(re.findall(r"ShdPnd:\s*(\w+)", status.read_text())[0], 16) & 1 << (signal.SIGINT - 1):
        pass
    _, said = process.communicate(timeout=60)
    assert ("***" in said) == (ends == 1), said
