"""The page about the attack names what the attack says, and readers find the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from app.redteam.report import Kind, Report

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "attack.md").read_text(encoding="utf-8")


def test_every_kind_of_finding_and_key_of_the_report_is_explained() -> None:
    explained = {line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")}
    assert set(get_args(Kind)) <= explained
    keys = Report(0, 0, 0, 0, (), (), ()).as_dict()
    assert all(f"`{key}`" in PAGE for key in keys)
    assert {"0", "1", "2"} <= explained


def test_every_page_of_the_documentation_is_linked_from_another_one() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\(docs/([a-z-]+\.md)", readme))
    for text in pages.values():
        linked |= set(re.findall(r"\(([a-z-]+\.md)", text))
    assert pages.keys() - linked == set()
