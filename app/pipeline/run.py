"""run: the steps in order, each result kept, so that a run that is lost goes on where it was."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress as suppress_errors
from dataclasses import dataclass
from typing import Any

from app.db.codec import digest_of
from app.db.releases import Making
from app.db.store import DamagedResultError, StepResult, Store
from app.domain.catalogue import Catalogue
from app.domain.certificate import canonical, fingerprint
from app.domain.crawled import Address, Crawl
from app.domain.errors import CelosiaError, OperatorError, UserError
from app.domain.masked import Layout
from app.domain.primary import PrimaryResult
from app.domain.progress import ProgressCallback, StepProgress
from app.domain.publication import Publication
from app.domain.release import Release
from app.domain.release_life import ReleaseRecord, ReleaseState
from app.pipeline.arrange import arrange
from app.pipeline.assess import assess_cells
from app.pipeline.audit import ReleaseAudit, audit_release
from app.pipeline.build import Problems, build_problems
from app.pipeline.certify import audit_facts, certify, sealed
from app.pipeline.crawl import crawl
from app.pipeline.earlier import Past, pattern_before, telltale
from app.pipeline.memory import (
    REMEMBERED,
    Memory,
    insiders_met,
    read_past,
    rules_digest,
    shown_cells,
    unions_kept,
)
from app.pipeline.release import make_release
from app.pipeline.running import OPERATOR, RESULTS, Context, OpenCube, Wish
from app.pipeline.suppress import Suppression, lowered_levels, suppress
from app.pipeline.union_rules import UnionRules
from app.watch.traces import span

#: Changes whenever a step would give another result from the same input.
PIPELINE_VERSION = "10"

REPORT_SECONDS = 1.0

Summary = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Made:
    """What the last step makes."""

    release: Release
    catalogue: Catalogue
    layouts: Mapping[Address, Layout]


def _crawl(context: Context) -> tuple[Crawl, Summary]:
    found = crawl(context.publication, context.servers, context.progress, context.past)
    return found, {
        "cells": found.n_published,
        "implied_cells": found.n_implied,
        "equations": found.n_equations,
        "arranged": len(found.pending),
    }


def _assess(context: Context) -> tuple[PrimaryResult, Summary]:
    found: Crawl = context.result("crawl")
    verdicts = assess_cells(context.publication, found, context.servers, context.progress, context.past)
    published = [
        int(verdict.sensitive[: cells.n_published].sum())
        for cells, verdict in zip(found.cubes, verdicts.cubes, strict=True)
    ]
    everywhere = sum(int(verdict.sensitive.sum()) for verdict in verdicts.cubes)
    return verdicts, {"primaries": sum(published), "implied_primaries": everywhere - sum(published)}


def _build(context: Context) -> tuple[Problems, Summary]:
    problems = build_problems(context.publication, context.result("crawl"), context.result("assess"))
    return problems, {"problems": len(problems.problems)}


def _suppress(context: Context) -> tuple[Suppression, Summary]:
    found: Crawl = context.result("crawl")
    verdicts: PrimaryResult = context.result("assess")
    effort = context.publication.confidentiality.effort
    problems: Problems = context.result("build")
    judge = UnionRules(context.publication.confidentiality, found, context.servers)
    begin = pattern_before(context.past, found, rules_digest(context.publication.confidentiality))
    pattern = suppress(effort, found, verdicts, problems, judge, context.progress, begin)
    hidden = secondaries = 0
    for cells, verdict, mark in zip(found.cubes, verdicts.cubes, pattern.hidden, strict=True):
        n = cells.n_published
        hidden += int(mark[:n].sum())
        secondaries += int((mark[:n] & ~verdict.sensitive[:n]).sum())
    return pattern, {
        "secondaries": secondaries,
        "lowered_levels": lowered_levels(found, verdicts, problems, pattern, judge),
        "hidden_share": hidden / max(found.n_published, 1),
        "cost": sum(solution.cost for solution in pattern.solutions),
        "lower_bound": sum(solution.lower_bound for solution in pattern.solutions),
    }


def _audit(context: Context) -> tuple[ReleaseAudit, Summary]:
    found: Crawl = context.result("crawl")
    report = audit_release(
        found,
        context.result("assess"),
        context.result("build"),
        context.result("suppress"),
        UnionRules(context.publication.confidentiality, found, context.servers),
        context.progress,
    )
    return report, {"exposures": len(report.breaches), "audit_complete": report.complete}


def _release(context: Context) -> tuple[Made, Summary]:
    found: Crawl = context.result("crawl")
    release, catalogue = make_release(
        context.publication, found, context.result("suppress"), context.result("audit")
    )
    release, layouts = arrange(context.publication, found, release, context.servers)
    return Made(release, catalogue, layouts), {
        "telltale": telltale(context.past, found, context.result("assess"))
    }


@dataclass(frozen=True)
class Step:
    """A step of the pipeline: its name, and what makes its value and the figures for the status."""

    name: str
    work: Callable[[Context], tuple[Any, Summary]]


STEPS = (
    Step("crawl", _crawl),
    Step("assess", _assess),
    Step("build", _build),
    Step("suppress", _suppress),
    Step("audit", _audit),
    Step("release", _release),
)

STEP_NAMES = tuple(step.name for step in STEPS)


_OVER = (ReleaseState.DRAFT, ReleaseState.SUPERSEDED, ReleaseState.WITHDRAWN)


@dataclass(frozen=True)
class Outcome:
    """What a run did: the steps that it ran, those that it found done, and the release that it made.

    The live one where it made none.
    """

    ran: tuple[str, ...]
    reused: tuple[str, ...]
    release_id: str | None
    status: Mapping[str, Any]


def run(
    publication: Publication,
    store: Store,
    open_cube: OpenCube,
    steps: Sequence[str] = STEP_NAMES,
    progress: ProgressCallback | None = None,
    wish: Wish = OPERATOR,
) -> Outcome:
    """Run the steps that aren't done yet on these inputs.

    A step's input is the publication's text, the data, and the results before it. A process that dies
    loses the step it was in, no more; a release appears in one transaction or not at all.

    Parameters
    ----------
    steps
        Names out of `STEP_NAMES`. Those before them must be among them or be done.
    wish
        What to do with the release once it is audited.

    Raises
    ------
    UserError, OperatorError, InternalError
        What the steps raise; what was finished before stays.
    """
    with store.exclusive():
        job = store.start_job()
        try:
            tell = _reporter(store, job, progress)
            outcome = run_steps(publication, store, open_cube, steps, tell, wish)
        except BaseException as error:
            text = str(error) if isinstance(error, CelosiaError) else type(error).__name__
            with suppress_errors(OperatorError):
                store.finish_job(job, text)
            raise
        store.finish_job(job)
        return outcome


def run_steps(
    publication: Publication,
    store: Store,
    open_cube: OpenCube,
    steps: Sequence[str],
    progress: ProgressCallback,
    wish: Wish = OPERATOR,
) -> Outcome:
    """As `run`, for a caller that holds the right to run in the store's scope and keeps the record itself."""
    context = Context(publication, store, open_cube, progress, wish)
    try:
        return _run_steps(context, steps)
    finally:
        context.close()


def _run_steps(context: Context, wanted: Sequence[str]) -> Outcome:
    store = context.store
    ran: list[str] = []
    reused: list[str] = []
    fingerprints = context.fingerprints()
    # Results that another version of Celosia kept in another shape are made again.
    version = (PIPELINE_VERSION, RESULTS.shape)
    inputs = (*version, context.publication.digest, *map(str, sorted(fingerprints.items())))
    context.basis, before = _basis(store, inputs)
    last = max((STEP_NAMES.index(name) for name in wanted), default=-1)
    for step in STEPS[: last + 1]:
        input_digest = _hash(step.name, before)
        stored = _sound(store, step.name)
        if stored is not None and stored.input_digest == input_digest and _still_holds(context, stored):
            context.keep(step.name, stored.digest, None)
            reused.append(step.name)
        elif step.name in wanted:
            context.keep(step.name, _work(context, step, input_digest), None)
            ran.append(step.name)
        else:
            raise _not_done(context, step.name, stored, fingerprints)
        before = context.digests[step.name]
    made = store.step("release") if "release" in context.digests else None
    release_id = store.live_release_id() if made is None else released_id(made)
    return Outcome(tuple(ran), tuple(reused), release_id, store.status())


def _basis(store: Store, inputs: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Releases that readers know or will know before this one, and the digest of all inputs.

    Releases of the very pattern that is stored add nothing to it: a run doesn't begin anew because its
    own release was shown.
    """
    known = _known(store)
    pattern = _pattern_digest(store)
    # A pattern that is lost or damaged is made again. Should it come out another than a release's was, that
    # release is missing from the basis, and the book lets nothing go live that doesn't know of it.
    possible = [pattern] if pattern else [*sorted({record.made_from for record in known} - {""}), ""]
    crawled_then = _sound(store, "crawl")
    for candidate in possible:
        others = tuple(sorted(record.id for record in known if record.made_from != candidate))
        before = _hash(*inputs, *others)
        if crawled_then is not None and crawled_then.input_digest == _hash("crawl", before):
            return others, before
    everyone = tuple(sorted(record.id for record in known))
    return everyone, _hash(*inputs, *everyone)


def _known(store: Store) -> list[ReleaseRecord]:
    return [
        record for record in store.book.all() if record.was_shown or record.state is ReleaseState.SCHEDULED
    ]


def known_releases(store: Store) -> tuple[str, ...]:
    """Releases that readers know, or will know by their embargo."""
    return tuple(sorted(record.id for record in _known(store)))


def remembered(store: Store) -> Past:
    """What readers may remember of the releases that they know.

    Raises
    ------
    UserError
        If what one of them showed isn't kept.
    """
    return read_past(store, known_releases(store))


def _pattern_digest(store: Store) -> str:
    """What the releases of the stored crawl and pattern have in common; nothing if they aren't there."""
    crawled_then, pattern = _sound(store, "crawl"), _sound(store, "suppress")
    if crawled_then is None or pattern is None:
        return ""
    try:
        return _digest_of_pattern(crawled_then.digest, RESULTS.decode(pattern.body))
    except OperatorError:
        return ""


def _digest_of_pattern(crawl_digest: str, pattern: Suppression) -> str:
    return _hash(crawl_digest, *(digest_of(mark.tobytes()) for mark in pattern.hidden))


def _work(context: Context, step: Step, input_digest: str) -> str:
    """Do a step and keep its result; returns the result's digest."""
    started = time.perf_counter()
    context.progress(StepProgress(step.name, 0, 0, "begins"))
    with span(f"step {step.name}"):
        value, summary = step.work(context)
    body = RESULTS.encode(value.release.id if isinstance(value, Made) else value)
    result = StepResult(
        step.name, input_digest, digest_of(body), body, summary, time.perf_counter() - started
    )
    if isinstance(value, Made):
        _check_unchanged(context)
        snapshots = {
            (name, fingerprint): kept
            for name, fingerprint in value.release.fingerprints.items()
            if (kept := _snapshot(context, name, fingerprint))
        }
        memory = _memory(context, value.release.id)
        making = Making(
            by=context.wish.actor,
            made_from=_digest_of_pattern(context.digests["crawl"], context.result("suppress")),
            basis=context.basis,
            live=context.wish.live,
            keep=context.publication.release.keep,
            knowledge=REMEMBERED.encode(memory),
            snapshots=snapshots,
            certificate=_certificate(context, value.release, memory),
            trail=context.wish.trail,
            telltale=summary["telltale"],
            accepted=context.wish.accepted,
        )
        context.store.publish(
            value.release,
            value.catalogue,
            value.layouts,
            result,
            making,
            lambda: time.perf_counter() - started,
        )
    else:
        context.store.put_step(result)
        context.keep(step.name, result.digest, value)
    context.progress(StepProgress(step.name, 1, 1, "done"))
    return result.digest


def _memory(context: Context, release_id: str) -> Memory:
    """What is kept of the release for those that follow, and to check it again."""
    found: Crawl = context.result("crawl")
    problems, pattern = context.result("build"), context.result("suppress")
    shown = shown_cells(release_id, found, context.result("assess"), problems, pattern)
    insiders = insiders_met(found, problems, pattern)
    unions = unions_kept(len(found.cubes), problems, pattern)
    rules = rules_digest(context.publication.confidentiality)
    return Memory(secrets.token_hex(32), context.publication.digest, shown, insiders, unions, rules)


def _certificate(context: Context, release: Release, memory: Memory) -> str:
    book, signer = context.store.book, context.wish.signer
    before = next((record.id for record in book.all() if record.state is ReleaseState.LIVE), None)
    previous = book.certificate(before) if before is not None else None
    document = certify(
        release,
        memory,
        context.basis,
        fingerprint(previous) if previous else "",
        audit_facts(context.result("build"), context.result("suppress"), context.result("audit")),
        context.past.forgotten,
    )
    return canonical(document).decode() if signer is None else sealed(document, signer.public, signer.sign)


def _snapshot(context: Context, cube: str, fingerprint: str) -> bytes | None:
    """The facts of a cube to be kept, unless they are kept already or the engine doesn't give them."""
    if context.store.book.has_snapshot(cube, fingerprint):
        return None
    facts = context.servers[cube].facts()
    return None if facts is None else REMEMBERED.encode(facts)


def _sound(store: Store, name: str) -> StepResult | None:
    """The last result of a step; none when it is damaged, so that it is made again."""
    try:
        return store.step(name)
    except DamagedResultError:
        return None


def released_id(result: StepResult) -> str:
    """Id of the release that a result of the last step tells of."""
    return str(RESULTS.decode(result.body))


def _still_holds(context: Context, stored: StepResult) -> bool:
    """A release that is over must be made again, and one that waits while it is wanted live is shown."""
    if stored.name != "release":
        return True
    release_id = released_id(stored)
    found = [record for record in context.store.book.all() if record.id == release_id]
    if not found or found[0].state in _OVER:
        return False
    record, actor = found[0], context.wish.actor
    if context.wish.live and not record.four_eyes and record.state is not ReleaseState.LIVE:
        book, trail = context.store.book, context.wish.trail
        if record.state is ReleaseState.AUDITED:
            accepted = context.wish.accepted
            if record.telltale and not accepted:
                return True
            record = book.approve(record.id, record.version, actor, accepted=accepted, trail=trail)
        book.publish(record.id, record.version, actor, trail=trail)
    return True


def _check_unchanged(context: Context) -> None:
    """The data must be those of the crawl up to the moment of release."""
    crawled_data = context.result("crawl").fingerprints
    for definition in context.publication.cubes:
        before = crawled_data.get(definition.name)
        if before is not None and context.fresh_fingerprint(definition) != before:
            raise _changed(definition.name)


def _changed(cube: str) -> UserError:
    return UserError(
        f"The data of cube {cube} changed since the crawl, so nothing is released. Run all steps again."
    )


def _not_done(
    context: Context, name: str, stored: StepResult | None, fingerprints: Mapping[str, str]
) -> UserError:
    if name == "crawl" and stored is not None:
        old: Crawl = RESULTS.decode(stored.body)
        for cube, fingerprint in old.fingerprints.items():
            if fingerprints.get(cube, fingerprint) != fingerprint:
                return _changed(cube)
    return UserError(f"Step {name} has not been run on these inputs. Run it first.")


def _reporter(store: Store, job: int, progress: ProgressCallback | None) -> ProgressCallback:
    """Pass progress on, and note it with the job now and then."""
    last = ("", 0.0)

    def tell(state: StepProgress) -> None:
        nonlocal last
        now = time.monotonic()
        if state.step != last[0] or now - last[1] >= REPORT_SECONDS:
            store.report(job, state)
            last = (state.step, now)
        if progress is not None:
            progress(state)

    return tell


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
