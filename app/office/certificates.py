"""Checking a certificate: its signature by anybody, all that it says by whoever has the office's database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.db.store import Store
from app.domain.certificate import fingerprint, public_digest, read_certificate, signed_part
from app.domain.errors import UserError
from app.office.keys import is_signed, key_name
from app.pipeline.certify import commitments, recheck
from app.pipeline.memory import facts_kept, read_memory


@dataclass(frozen=True)
class Finding:
    """One thing that was checked; ``checked`` False: that couldn't be, and may be right or wrong."""

    what: str
    ok: bool
    detail: str = ""
    checked: bool = True


@dataclass(frozen=True)
class CertificateReport:
    """What checking a certificate found."""

    release: str
    key: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)


def check_signature(text: str) -> CertificateReport:
    """Check what needs the certificate alone.

    Raises
    ------
    UserError
        If it is no certificate.
    """
    document = read_certificate(text)
    key = str(document.get("key", ""))
    signed = bool(key) and is_signed(signed_part(document), str(document.get("signature", "")), key)
    detail = "" if signed else "nobody signed it" if not key else "it was changed, or another key signed it"
    named = key_name(key) if key and signed else ""
    return CertificateReport(str(document["release"]), named, (Finding("signature", signed, detail),))


def check_against(text: str, store: Store) -> CertificateReport:
    """Check a certificate against the database of its publication: hash again, and audit again.

    Raises
    ------
    UserError
        If it is no certificate, or the database has no such release.
    """
    report = check_signature(text)
    document = read_certificate(text)
    record = store.book.get(report.release)
    findings = list(report.findings)
    kept = store.book.certificate(record.id)
    findings.append(Finding("the certificate that the office keeps", kept == text.strip()))
    body = store.book.knowledge(record.id)
    memory = read_memory(body) if body else None
    if memory is None:
        raise UserError(f"What release {record.id} was made of isn't kept: it can't be checked again.")
    release, catalogue = store.release(record.id), store.catalogue(record.id)
    if release is not None and release.keys and catalogue is not None:
        same = public_digest(release.keys, release.status, release.values) == document["public"]["sha256"]
        findings.append(Finding("cells as readers see them", same))
    elif record.pruned:
        findings.append(Finding("cells as readers see them", True, "pruned since", checked=False))
    fingerprints = {item.cells.cube.name: item.cells.fingerprint for item in memory.shown}
    again = commitments(fingerprints, memory)
    said: dict[str, Any] = document["committed"]
    findings.append(Finding("definitions", again["definitions"] == said["definitions"]))
    for name, parts in again["cubes"].items():
        promised = said["cubes"].get(name, {})
        findings += [
            Finding(f"{part} of {name}", promised.get(part) == parts.get(part))
            for part in dict.fromkeys((*parts, *promised))
        ]
    if document["previous"]:
        others = (store.book.certificate(other.id) for other in store.book.all())
        known = {fingerprint(other) for other in others if other}
        findings.append(Finding("the certificate before", document["previous"] in known))
    hide_zeros = catalogue.hide_zeros if catalogue is not None else True
    for number, shown in enumerate(memory.shown):
        insiders = memory.insiders[number] if memory.insiders is not None else ()
        unions = memory.unions[number] if memory.unions else ()
        facts = facts_kept(store, shown.cells.cube.name, shown.cells.fingerprint)
        exposed = recheck(shown, insiders, hide_zeros, unions, facts)
        name = shown.cells.cube.name
        findings.append(Finding(f"audit of {name}", not exposed, "; ".join(exposed[:5])))
        if memory.insiders is None:
            detail = "who they are wasn't kept with this release; those of releases made from now on are"
            findings.append(
                Finding(f"audit of {name} against sole contributors", True, detail, checked=False)
            )
    return CertificateReport(report.release, report.key, tuple(findings))
