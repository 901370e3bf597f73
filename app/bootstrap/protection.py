"""Wires the questions about a publication's protection: why a cell is hidden, what if, certificates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from app.bootstrap import STATE, publication_store
from app.cube.duckdb import open_cube
from app.db.store import Store
from app.domain.errors import OperatorError, UserError
from app.domain.publication import Publication
from app.office.certificates import CertificateReport, Finding, check_against, check_signature
from app.office.keys import key_name, signer_of
from app.pipeline.define import load_publication
from app.pipeline.define_sheet import sheet_of_file
from app.pipeline.memory import read_past
from app.pipeline.run import RESULTS, known_releases
from app.pipeline.what_if import Computed, WhatIf, what_if, with_sheets
from app.pipeline.why import Why, why

#: Changes a publication into the one that is asked about.
Change = Callable[[Publication], Publication]


def explain_cell(folder: Path, cell: str) -> Why:
    """Why a cell of the last run is as it is.

    Raises
    ------
    UserError
        If nothing has been run, or no sheet has the cell.
    """
    with publication_store(folder) as store:
        last = store.of_last_run()
        found: Any = [_result(last, name) for name in ("crawl", "assess", "build", "suppress")]
        crawl, primaries, problems, suppression = found
        return why(crawl, primaries, problems, suppression, cell)


def ask_what_if(folder: Path, change: Change, sheets: tuple[Path, ...] = ()) -> WhatIf:
    """What another rule or sheet would hide and cost.

    Raises
    ------
    UserError
        If nothing has been run, or the changed publication can't be computed.
    """
    given = load_publication(folder)
    asked = change(given)
    if sheets:
        asked = with_sheets(asked, (sheet_of_file(path, asked) for path in sheets))
    with publication_store(folder) as store:
        last = store.of_last_run()
        found: Any = [_result(last, name) for name in ("crawl", "assess", "suppress")]
        return what_if(asked, given, Computed(*found), read_past(store, known_releases(store)), open_cube)


def _result(store: Store, name: str) -> object:
    stored = store.step(name)
    if stored is None:
        raise UserError("The publication hasn't been run yet. Run it first.")
    return RESULTS.decode(stored.body)


def verify_certificate(text: str, folder: Path | None, url: str) -> CertificateReport:
    """Check a certificate: its signature, what a site publishes, what the office's database holds.

    Raises
    ------
    UserError
        If it is no certificate, or there is no such site or release.
    OperatorError
        If the site doesn't answer.
    """
    report = check_signature(text)
    if folder is not None:
        with publication_store(folder) as store:
            report = check_against(text, store)
    if url:
        try:
            answer = httpx.get(f"{url.rstrip('/')}/r/{report.release}/certificate.json", timeout=30.0)
        except (httpx.HTTPError, httpx.InvalidURL):
            raise OperatorError(f"The site at {url} doesn't answer.") from None
        same = answer.status_code == httpx.codes.OK and answer.text.strip() == text.strip()
        findings = (*report.findings, Finding("the certificate that the site publishes", same))
        report = CertificateReport(report.release, report.key, findings)
    return report


def signing_key(folder: Path) -> tuple[str, str]:
    """The public key that certificates are checked with, and its short name."""
    with publication_store(folder):
        public = signer_of(folder / STATE).public
    return public, key_name(public)
