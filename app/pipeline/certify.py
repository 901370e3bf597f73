"""release: the certificate that goes with it, and checking one against what the office keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from app.cube.port import Group
from app.domain.cellset import FloatArray
from app.domain.certificate import FORMAT, canonical, commitment, public_digest, slack_in_words
from app.domain.cube import Cube, IntArray
from app.domain.errors import InternalError
from app.domain.known import FactRows, ShownCells
from app.domain.lattice import Longs
from app.domain.masked import CellStatus
from app.domain.primary import CubePrimaries
from app.domain.publication import Confidentiality, Forgetting
from app.domain.release import Release
from app.pipeline.audit import ReleaseAudit
from app.pipeline.build import Problems, problems_of
from app.pipeline.earlier import nothing_earlier
from app.pipeline.extremes import Extremes, Promise
from app.pipeline.memory import Memory
from app.pipeline.suppress import Suppression
from app.pipeline.unions import Union, UnionVerdicts, with_unions
from solver import Insider, audit

#: The public key and the signature of some bytes, both in base64.
Sign = Callable[[bytes], str]


def certify(
    release: Release,
    memory: Memory,
    basis: Sequence[str],
    previous: str,
    audited: Mapping[str, Any],
    forgotten: Sequence[Forgetting] = (),
) -> dict[str, Any]:
    """The certificate of a release, not signed yet.

    Parameters
    ----------
    memory
        What is kept of it: cells, relations and patterns, and the secret without which nobody can check a
        guess at what was hashed.
    basis
        Releases that the audit took as known.
    previous
        Fingerprint of the certificate before, or ``""``.
    audited
        See `audit_facts`.
    forgotten
        What the audit left aside of that, because its authors decided so.
    """
    left_aside = [{"cube": item.cube, "what": item.what, "reason": item.reason} for item in forgotten]
    return {
        "format": FORMAT,
        "release": release.id,
        "made": release.created.isoformat(),
        "previous": previous,
        "basis": sorted(basis),
        **({"forgotten": left_aside} if left_aside else {}),
        "public": {
            "sha256": public_digest(release.keys, release.status, release.values),
            "cells": len(release.keys),
            "confidential": int((release.status == CellStatus.CONFIDENTIAL).sum()),
        },
        "committed": commitments(release.fingerprints, memory),
        "audit": dict(audited),
        "software": {"celosia": version("celosia"), "highs": version("highspy")},
    }


def commitments(fingerprints: Mapping[str, str], memory: Memory) -> dict[str, Any]:
    """Keyed hashes of what isn't public."""
    salt = bytes.fromhex(memory.salt)
    cubes: dict[str, dict[str, str]] = {
        item.cells.cube.name: {
            "facts": commitment(salt, "facts", fingerprints[item.cells.cube.name]),
            "cells": commitment(
                salt,
                "cells",
                "\n".join(item.cells.keys(np.arange(len(item.cells)))),
                item.cells.values,
                item.cells.decimals,
            ),
            "relations": commitment(
                salt,
                "relations",
                item.cells.equations.indptr,
                item.cells.equations.indices,
                item.cells.equations.coefs,
                item.cells.equations.rhs,
            ),
            "levels": commitment(salt, "levels", item.lpl, item.upl, item.spl),
            "pattern": commitment(salt, "pattern", item.hidden),
        }
        for item in memory.shown
    }
    for item, insiders in zip(memory.shown, memory.insiders or (), strict=memory.insiders is not None):
        columns = (column for insider in insiders for column in _columns(insider))
        cubes[item.cells.cube.name]["insiders"] = commitment(salt, "insiders", *columns)
    for item, unions in zip(memory.shown, memory.unions, strict=bool(memory.unions)):
        if unions:
            parts = (part for union in unions for part in (union.parts, _levels(union)))
            cubes[item.cells.cube.name]["unions"] = commitment(salt, "unions", *parts)
    return {"definitions": commitment(salt, "definitions", memory.definitions), "cubes": cubes}


def _columns(insider: Insider) -> tuple[Any, ...]:
    return insider.known, insider.targets, insider.lpl, insider.upl, insider.spl


def _levels(union: Union) -> FloatArray:
    return np.array([union.lpl, union.upl, union.spl])


def audit_facts(problems: Problems, suppression: Suppression, report: ReleaseAudit) -> dict[str, Any]:
    """What the audit found, as far as it says nothing about any cell."""
    smallest = np.inf
    for number, (problem, found) in enumerate(zip(problems.problems, report.reports, strict=True)):
        instance = suppression.solved(number, problem)
        levels = np.maximum(np.maximum(instance.lpl, instance.upl), instance.spl)[found.cells]
        finite = (levels > 0) & np.isfinite(found.slack)
        smallest = min(smallest, float((found.slack[finite] / levels[finite]).min(initial=np.inf)))
    return {
        "complete": report.complete,
        "exposures": len(report.breaches),
        "problems": len(problems.problems),
        "smallest_slack": slack_in_words(smallest),
    }


def sealed(document: Mapping[str, Any], public: str, sign: Sign) -> str:
    """The certificate's text, with key and signature."""
    whole = {**document, "key": public}
    return canonical({**whole, "signature": sign(canonical(whole))}).decode()


def recheck(
    shown: ShownCells,
    insiders: Sequence[Insider],
    hide_zeros: bool,
    unions: Sequence[Union] = (),
    facts: FactRows | None = None,
) -> tuple[str, ...]:
    """Audit the cells of one cube again, from what is kept of them: cells that somebody finds out, and who.

    Parameters
    ----------
    shown
    insiders
        Sole contributors to hold the pattern against, over the rows of the table and the unions behind them.
    hide_zeros
    unions
        Sums of hidden cells that were promised levels, over the rows of the table.
    facts
        What the release was made from, to tell which places attain the maxima that it shows; without them
        these are left out.
    """
    n = len(shown.cells)
    nobody = np.zeros(n, dtype=np.bool_)
    verdicts = CubePrimaries(
        sensitive=(np.maximum(np.maximum(shown.lpl, shown.upl), shown.spl) > 0),
        must_show=nobody,
        lpl=shown.lpl,
        upl=shown.upl,
        spl=shown.spl,
        reasons={},
        partner=np.full(n, -1, dtype=np.int64),
        holder=np.full(n, -1, dtype=np.int64),
        occupied=~nobody,
        known=nobody,
        behind=nothing_earlier(n).behind,
        since={},
    )
    found: list[str] = []
    for problem in problems_of(Confidentiality((), (), hide_zeros, False), 0, shown.cells, verdicts):
        place = np.full(n + len(unions), -1, dtype=np.int64)
        place[problem.rows] = np.arange(len(problem.rows))
        instance = problem.instance
        for number, union in enumerate(unions):
            parts = place[union.parts]
            if (parts >= 0).all():
                place[n + number] = instance.n
                instance = with_unions(instance, [replace(union, parts=parts)])
        within = tuple(part for insider in insiders if (part := _within(place, insider)) is not None)
        instance = instance.replace(insiders=within)
        report = audit(instance, problem.pattern(instance, shown.hidden, shown.cells.n_given, nobody))
        found.extend(f"{exposure.name} to {exposure.attacker}" for exposure in report.exposures)
        if not report.complete:
            found.append("the audit could not be finished")
    if facts is not None and _same_members(facts.cube, shown.cells.cube):
        promise = Promise(verdicts.sensitive, nobody, nobody, shown.lpl, shown.upl, shown.spl)
        extremes = Extremes(0, shown.cells, promise, _Kept(facts))
        found.extend(f"{told} to outsider" for told, _ in extremes.told(shown.hidden))
    return tuple(found)


def _same_members(one: Cube, other: Cube) -> bool:
    return [item.unique_names for item in one.hierarchies] == [
        item.unique_names for item in other.hierarchies
    ]


@dataclass(frozen=True, eq=False)
class _Kept:
    """An `ExtremeJudge` that has the facts, and no rules: cells are held against what they were promised."""

    facts: FactRows

    def protects(self, cube: int, measure: int) -> bool:
        return False

    def together(self, cube: int, columns: tuple[int, ...]) -> IntArray | None:
        return np.unique(np.stack([self.facts.leaf[column - 1] for column in columns], axis=1), axis=0)

    def judge(self, cube: int, coords: IntArray, groups: Sequence[Group]) -> UnionVerdicts:
        raise InternalError("no rules are kept with a release")


def _within(place: Longs, insider: Insider) -> Insider | None:
    """An insider as it is in one problem, which has a ``place`` for some rows of the table and unions behind
    them, -1 for the others; None where it has nothing to find out."""
    known = place[insider.known]
    # A sum of hidden cells may be missing from what is kept, which its own commitment tells.
    met = insider.targets < len(place)
    met[met] = place[insider.targets[met]] >= 0
    if not met.any() or not (known >= 0).any():
        return None
    levels = (insider.lpl[met], insider.upl[met], insider.spl[met])
    return Insider(insider.name, known[known >= 0], place[insider.targets[met]], *levels)
