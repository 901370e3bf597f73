"""export: the problems of the last run as they were solved, one file each, for other solvers to try."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from app.db.store import Store
from app.domain.errors import OperatorError, UserError
from app.pipeline.build import Problems
from app.pipeline.running import RESULTS
from app.pipeline.suppress import Suppression
from solver.formats.jj import format_jj


@dataclass(frozen=True)
class ExportedProblem:
    """A problem in a file, and what the run's pattern costs by it.

    ``proven`` says that no pattern costs less. The file holds the problem against outsiders: where
    ``insiders`` is true the run reckoned with sole contributors too, whom JJ doesn't know, so that a pattern
    may be cheaper which they would see through.
    """

    path: Path
    cost: float
    proven: bool
    insiders: bool


def export_problems(store: Store, out: Path) -> tuple[ExportedProblem, ...]:
    """Write every problem of the last run as one .jj file that only its owner may read.

    Raises
    ------
    UserError
        If nothing has been solved, or by an earlier version of Celosia.
    OperatorError
        If a file can't be written.
    """
    built, solved = store.step("build"), store.step("suppress")
    if built is None or solved is None:
        raise UserError("There are no solved problems yet. Run the pipeline up to suppress first.")
    problems: Problems = RESULTS.decode(built.body)
    suppression: Suppression = RESULTS.decode(solved.body)
    instances = [suppression.solved(number, problem) for number, problem in enumerate(problems.problems)]
    exported = []
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.mkdir(mode=0o700, exist_ok=True)
        for number, (instance, solution) in enumerate(zip(instances, suppression.solutions, strict=True), 1):
            path = out / f"problem-{number:04d}.jj"
            _write_private(path, format_jj(replace(instance, insiders=())).encode())
            proven = solution.status == "optimal"
            exported.append(ExportedProblem(path, solution.cost, proven, bool(instance.insiders)))
    except OSError as error:
        raise OperatorError(f"The problems can't be written to {out}: {error.strerror}.") from error
    return tuple(exported)


def _write_private(path: Path, body: bytes) -> None:
    """Write a file of the owner's alone, whole or not at all; whatever had its name is gone then."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
