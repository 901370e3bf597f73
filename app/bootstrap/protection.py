"""Wires the questions about a publication's protection: why a cell is hidden, what if, certificates."""

from __future__ import annotations

from pathlib import Path

import httpx

from app.bootstrap import STATE, publication_store
from app.bootstrap.office import open_office
from app.domain.errors import OperatorError
from app.office.certificates import CertificateReport, Finding, check_against, check_signature
from app.office.keys import key_name, signer_of
from app.office.protection import Change, WhatIf, Why
from app.pipeline.define import load_publication


def explain_cell(folder: Path, cell: str) -> Why:
    """Why a cell of the last run is as it is."""
    with open_office(folder) as office:
        return office.protection.why(cell)


def ask_what_if(folder: Path, change: Change, sheets: tuple[Path, ...] = ()) -> WhatIf:
    """What a change of the folder's files would hide and cost."""
    given = load_publication(folder)
    with open_office(folder) as office:
        return office.protection.what_if(change, sheets, given)


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
