"""Certificates, explanations and questions over a real run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from app.bootstrap import publication_store, run_publication
from app.bootstrap.protection import ask_what_if, explain_cell, signing_key, verify_certificate
from app.db import tables as t
from app.db.store import Store
from app.domain.certificate import canonical
from app.domain.errors import UserError
from app.office.keys import KEY_VARIABLE, signer_of
from app.pipeline.memory import REMEMBERED, read_memory
from app.pipeline.what_if import with_threshold, without_sheets
from solver import Insider
from tests.pipeline.offices import SHEETS, firms, write_csv, write_office
from tests.pipeline.test_protection import sheet
from tests.pipeline.test_unions import ROW, SEVEN, THRESHOLD, firms_of, publication


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_office(tmp_path_factory.mktemp("certified") / "office")
    run_publication(made)
    return made


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with publication_store(folder) as opened:
        yield opened


@pytest.fixture
def certificate(store: Store) -> str:
    text = store.certificate(str(store.live_release_id()))
    assert text is not None
    return text


def test_a_certificate_says_what_holds(folder: Path, certificate: str) -> None:
    alone = verify_certificate(certificate, None, "")
    assert alone.ok
    assert alone.key == signing_key(folder)[1]
    against = verify_certificate(certificate, folder, "")
    assert against.ok
    assert len(against.findings) > 8
    document = json.loads(certificate)
    assert document["audit"]["exposures"] == 0
    assert document["audit"]["complete"] is True
    assert document["public"]["confidential"] > 20


def test_no_number_of_a_cell_and_no_open_hash_stands_in_a_certificate(store: Store, certificate: str) -> None:
    document = json.loads(certificate)
    release = store.live_release()
    assert release is not None
    assert release.fingerprints["Firms"] not in certificate
    numbers = [value for value in _leaves(document) if isinstance(value, int | float)]
    assert sorted(numbers) == sorted(
        [True, 0, document["audit"]["problems"], *(document["public"][k] for k in ("cells", "confidential"))]
    )


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


@pytest.mark.parametrize(
    "path",
    [("audit", "exposures"), ("public", "sha256"), ("committed", "definitions"), ("release",), ("key",)],
)
def test_whatever_is_changed_in_a_certificate_is_noticed(
    folder: Path, certificate: str, path: tuple[str, ...]
) -> None:
    document = json.loads(certificate)
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = 1 if path[-1] == "exposures" else inner[path[-1]][::-1]
    assert not verify_certificate(canonical(document).decode(), None, "").ok
    with pytest.raises(UserError, match="canonically"):
        verify_certificate(json.dumps(document), None, "")


def test_each_certificate_names_the_one_before(tmp_path: Path) -> None:
    office = write_office(tmp_path / "office")
    run_publication(office)
    write_csv(office / "data/firms.csv", firms(seed=2))
    run_publication(office)
    with publication_store(office) as store:
        newer, older = (str(store.certificate(record.id)) for record in store.book.all())
    assert json.loads(older)["previous"] == ""
    assert json.loads(newer)["basis"] == [json.loads(older)["release"]]
    assert verify_certificate(newer, office, "").ok
    assert verify_certificate(older, office, "").ok


def test_the_audit_is_made_again_against_insiders_too(tmp_path: Path) -> None:
    """Somebody who knows all but one cell finds that one out, and the check says who it was."""
    office = write_office(tmp_path / "office")
    run_publication(office)
    with publication_store(office) as store:
        release = str(store.live_release_id())
        text = str(store.certificate(release))
        kept = store.book.knowledge(release)
    assert kept is not None
    memory = read_memory(kept)
    assert memory.insiders is not None
    assert memory.insiders[0]
    shown = memory.shown[0]
    aim = np.flatnonzero(shown.hidden & (shown.upl > 0))[:1]
    others = np.setdiff1d(np.arange(len(shown.cells)), aim)
    spy = Insider("a know-all", others, aim, shown.lpl[aim], shown.upl[aim], shown.spl[aim])
    for insiders, wrong in (
        (memory.insiders, set()),
        (((*memory.insiders[0], spy),), {"insiders of Firms", "audit of Firms"}),
        (None, {"insiders of Firms"}),
    ):
        body = REMEMBERED.encode(replace(memory, insiders=insiders))
        with publication_store(office) as store, store.database.writing() as connection:
            connection.execute(sa.update(t.release_knowledge).values(body=body))
        report = verify_certificate(text, office, "")
        assert {finding.what for finding in report.findings if not finding.ok} == wrong
        (found,) = (finding for finding in report.findings if finding.what == "audit of Firms")
        assert ("to a know-all" in found.detail) is (insiders not in (None, memory.insiders))
        unchecked = {item.what for item in report.findings if not item.checked}
        assert unchecked == ({"audit of Firms against sole contributors"} if insiders is None else set())


def test_the_audit_is_made_again_for_sums_of_hidden_cells_too(tmp_path: Path) -> None:
    rows = firms_of({**SEVEN, "a1": 1, "a2": 2, "b1": 2})
    text = publication("true", THRESHOLD % 8)
    office = write_office(tmp_path / "office", rows, text, sheets={"a": sheet(ROW)})
    run_publication(office)
    with publication_store(office) as store:
        release = str(store.live_release_id())
        certificate = str(store.certificate(release))
        kept = store.book.knowledge(release)
    assert kept is not None
    assert verify_certificate(certificate, office, "").ok
    memory = read_memory(kept)
    (unions,) = memory.unions
    n = len(memory.shown[0].cells)
    assert memory.insiders is not None
    assert any(insider.targets.max() >= n for insider in memory.insiders[0])
    greedy = replace(unions[0], upl=1e9)
    for changed, wrong in (
        (((greedy, *unions[1:]),), {"unions of Firms", "audit of Firms"}),
        ((), {"unions of Firms"}),
    ):
        body = REMEMBERED.encode(replace(memory, unions=changed))
        with publication_store(office) as store, store.database.writing() as connection:
            connection.execute(sa.update(t.release_knowledge).values(body=body))
        report = verify_certificate(certificate, office, "")
        assert {finding.what for finding in report.findings if not finding.ok} >= wrong


def test_the_key_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = signer_of(tmp_path)
    file = tmp_path / "signing-key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert signer_of(tmp_path).public == first.public
    os.chmod(file, 0o644)
    with pytest.raises(UserError, match="read by others"):
        signer_of(tmp_path)
    monkeypatch.setenv(KEY_VARIABLE, file.read_text())
    assert signer_of(tmp_path / "elsewhere").public == first.public
    monkeypatch.setenv(KEY_VARIABLE, "no key")
    with pytest.raises(UserError, match="32 bytes"):
        signer_of(tmp_path)


# ---------------------------------------------------------------------- why and what if


def test_every_hidden_cell_is_explained(folder: Path, store: Store) -> None:
    release = store.live_release()
    assert release is not None
    kinds = {}
    for key in ("Firms | [Measures].[Firms]", *release.keys[:40:4]):
        found = explain_cell(folder, key)
        kinds.setdefault(found.kind, found)
        assert found.cell == key
        assert (found.state == "hidden") == (found.kind != "shown")
        if found.kind == "rule":
            assert found.reasons
        if found.kind in ("tied", "ratio"):
            assert found.because
        if found.kind == "secondary":
            assert found.threats or found.alternative is not None
    assert {"rule", "secondary", "shown"} <= kinds.keys()
    secondary = kinds["secondary"]
    assert any(threat.relations for threat in secondary.threats)
    assert secondary.alternative is not None
    assert secondary.alternative.possible
    by_members = explain_cell(folder, "[Measures].[Firms]")
    assert by_members.cell == "Firms | [Measures].[Firms]"
    with pytest.raises(UserError, match="No sheet has a cell"):
        explain_cell(folder, "[Measures].[Nothing]")


def test_a_question_changes_nothing_and_tells_both_sides(folder: Path, store: Store, tmp_path: Path) -> None:
    before = (store.status(), store.book.all())
    stricter = ask_what_if(folder, lambda given: with_threshold(given, "", "", 5))
    assert stricter.then.sensitive > stricter.now.sensitive
    assert stricter.then.hidden > stricter.now.hidden
    assert (
        len(stricter.newly_hidden) - len(stricter.newly_shown) == stricter.then.hidden - stricter.now.hidden
    )
    fewer = ask_what_if(folder, lambda given: without_sheets(given, ["coast"]))
    assert fewer.then.cells < fewer.now.cells
    sheet = tmp_path / "more.toml"
    sheet.write_text(SHEETS["coast"].replace("[Place].[Coast]}", "[Place].[Coast], [Place].[Region].&[B]}"))
    more = ask_what_if(folder, lambda given: given, (sheet,))
    assert more.then.cells > more.now.cells
    with pytest.raises(UserError, match="no sheet nowhere"):
        ask_what_if(folder, lambda given: without_sheets(given, ["nowhere"]))
    with pytest.raises(UserError, match="2 or more"):
        ask_what_if(folder, lambda given: with_threshold(given, "", "", 1))
    assert (store.status(), store.book.all()) == before
