"""define: cubes on other OLAP servers, and what they can't say of contributors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from app.domain.publication import Confidentiality, CubeDefinition, MeasureProtection, RemoteDefinition
from app.pipeline.define_rules import rule_of
from app.pipeline.toml import Mistakes, Reader
from solver.errors import InputError

#: Engines by the name that a cube file gives them.
FACTS, DATABASES, REMOTE = "duckdb", ("postgresql", "spark"), ("xmla", "atoti")
_OTHERWISE = "read the facts with the duckdb engine."
# Nobody who writes a cube's file may send another secret of the process to a server.
_VARIABLE = re.compile(r"OLAP_[A-Za-z0-9_]+")


def read_remote(reader: Reader, engine: str, cube: str) -> RemoteDefinition:
    """The tables ``[server]`` and ``[contributors]`` of a cube file; mistakes are noted."""
    server = reader.table("server", required=True)
    url = catalog = user = password = ""
    called, timeout = cube, 300.0
    hierarchies: tuple[str, ...] = ()
    if server is not None:
        url = server.text("url", required=True) or ""
        try:
            split = urlsplit(url)
            proper = split.scheme in ("http", "https") and bool(split.hostname)
            secret = bool(split.username or split.password)
        except ValueError:
            proper, secret = False, False
        if url and not proper:
            server.wrong("The address of the server is none.", "Write https://….", "url")
        if secret:
            remedy = "Name environment variables that hold them, as user and password."
            server.wrong("User and password don't belong into a file.", remedy, "url")
        catalog, called = server.text("catalog") or "", server.text("cube") or cube
        user, password = server.text("user") or "", server.text("password") or ""
        for key, name in (("user", user), ("password", password)):
            if name and not _VARIABLE.fullmatch(name):
                cause = f"Key {key} is to name an environment variable that begins with OLAP_ and holds it."
                server.wrong(cause, f"Write e.g. OLAP_{key.upper()}.", key)
        timeout = server.number("timeout", 300.0)
        if not 1 <= timeout <= 86_400:
            server.wrong("Key timeout is out of range.", "Give seconds, from 1 to 86400.", "timeout")
        hierarchies = server.strings("hierarchies")
        server.done()
    count, top = _contributors(reader)
    return RemoteDefinition(engine, url, catalog, called, user, password, timeout, hierarchies, count, top)


def _contributors(reader: Reader) -> tuple[str, Mapping[str, tuple[str, ...]]]:
    table = reader.table("contributors")
    if table is None:
        return "", {}
    count = table.text("count", required=True) or ""
    inner = table.table("top")
    top = {name: inner.strings(name) for name in inner.values} if inner is not None else {}
    table.done()
    return count, top


def check_remotes(
    cubes: Mapping[str, CubeDefinition], confidentiality: Confidentiality, mistakes: Mistakes
) -> None:
    """Note what confidentiality asks of a server that it can't say."""
    for protection in confidentiality.measures:
        cube = cubes.get(protection.cube)
        remote = cube.remote if cube is not None else None
        if cube is None or remote is None or not protection.rules:
            continue
        name = f"{protection.measure} of cube {cube.name}"
        who = f"The {remote.engine} engine can't say who"
        if not remote.count:
            cause = f"{who} is behind a cell, so {name} can't be protected."
            mistakes.add(cube.at, cause, f"Name measures that can under [contributors], or {_OTHERWISE}")
        if any(rule.name == "request" for rule in protection.rules):
            cause = f"{who} asked for confidentiality ({name})."
            mistakes.add(cube.at, cause, f"Leave the rule request out, or {_OTHERWISE}")
        needed, given = _depth(protection), remote.top.get(protection.measure)
        if given is not None and len(given) < needed:
            cause = f"The rules of {name} need its {needed} largest contributions; there are {len(given)}."
            mistakes.add(cube.at, cause, "Name more measures under [contributors.top].")
        measure = next((item for item in cube.measures if item.name == protection.measure), None)
        if measure is not None and not measure.nonnegative:
            cause = f"{who} has gains and who has losses, so {name} can't be protected."
            mistakes.add(cube.at, cause, f"Publish gains and losses apart, or {_OTHERWISE}")
    for cube in cubes.values():
        if cube.remote is not None and confidentiality.insiders:
            mistakes.add(
                cube.at,
                f"The {cube.remote.engine} engine can't tell contributors apart, so it can't protect one "
                "from another who knows its own part.",
                f"Say insiders = false in publication.toml, or {_OTHERWISE}",
            )


def _depth(protection: MeasureProtection) -> int:
    """How many of the largest contributions the rules look at; wrong rules are told of elsewhere."""
    depths = [2]
    for rule in protection.rules:
        with suppress(InputError):
            depths.append(rule_of(rule).depth)
    return max(depths)
