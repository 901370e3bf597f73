"""The work on one job, in a process of its own: it may be stopped or killed at any moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from app.db.database import StorageError
from app.db.jobs import JobTable, LeaseLostError
from app.db.store import Store
from app.domain.errors import CelosiaError
from app.domain.job import Job, JobState, Lease
from app.domain.progress import StepProgress
from app.domain.release_life import Trail
from app.pipeline.define import load_publication
from app.pipeline.run import STEP_NAMES, Outcome, released_id, run_steps
from app.pipeline.running import OpenCube, Signer, Wish

#: Results of that many lines of work are kept beside those that are waited for or released.
KEPT_SCOPES = 6
#: At least so many seconds between two events of a step, more the longer it takes.
REPORT_SECONDS = 0.5
REPORT_SHARE = 1 / 300

#: Writes the publication of a job's version into a new folder below the one given, and returns it.
Materialise = Callable[[Job, Path], Path]


class Ending(StrEnum):
    """How the work on a job ended: with its state stored, lost to another worker, or to be done again."""

    OVER = "over"
    LOST = "lost"
    AGAIN = "again"


@dataclass(frozen=True)
class Report:
    """How the work ended and, for a job to be done again, why."""

    ending: Ending
    reason: str = ""


def perform(
    lease: Lease,
    table: JobTable,
    store: Store,
    materialise: Materialise,
    open_cube: OpenCube,
    folder: Path,
    signer: Signer | None = None,
) -> Report:
    """Run the steps of a job that aren't done yet, tell how it goes, and store how it ended.

    Parameters
    ----------
    folder
        A folder of its own for the publication's files.
    signer
        Signs the certificate; None: it stays unsigned.
    """
    job = lease.job
    mine = store.scoped(job.scope, table.fence(lease))
    try:
        try:
            publication = load_publication(materialise(job, folder))
            wanted = tuple(job.options.get("steps") or STEP_NAMES)
            tell = _Teller(table, lease)
            # What a job computes waits for approval.
            trail = Trail(job.author, f"job {job.id}")
            wish = Wish(job.author, live=False, signer=signer, trail=trail)
            outcome = run_steps(publication, mine, open_cube, wanted, tell, wish)
            tell.last()
            table.log(lease, _summary(outcome.ran, outcome.reused))
            forget_old_scopes(store, table, job.scope)
            table.finish(lease, JobState.DONE, figures=_figures(outcome))
        except (StorageError, LeaseLostError):
            raise
        except CelosiaError as error:
            table.finish(lease, JobState.FAILED, str(error))
        except Exception as error:
            # Its text may quote cells.
            table.finish(lease, JobState.FAILED, f"A fault of Celosia's own ({type(error).__name__}).")
            raise
    except LeaseLostError:
        return Report(Ending.LOST)
    except StorageError as error:
        return Report(Ending.AGAIN, str(error))
    return Report(Ending.OVER)


def forget_old_scopes(store: Store, table: JobTable, own: str) -> None:
    """Forget the results of lines of work that nobody waits for and no release came from."""
    busy = table.active_scopes() | {own, store.scope}
    live = store.live_release_id()
    for place, (scope, result) in enumerate(store.scopes().items()):
        if scope in busy or place < KEPT_SCOPES:
            continue
        if result is None or live is None or released_id(result) != live:
            store.forget_scope(scope)


def _summary(ran: tuple[str, ...], reused: tuple[str, ...]) -> str:
    parts = [f"ran {', '.join(ran)}"] if ran else []
    if reused:
        parts.append(f"found {', '.join(reused)} done")
    return "; ".join(parts)


def _figures(outcome: Outcome) -> dict[str, Any]:
    figures = {name: value for name, value in outcome.status.items() if name != "release"}
    return figures | {"release": outcome.release_id}


class _Teller:
    """Passes progress on to the job's events, now and then."""

    def __init__(self, table: JobTable, lease: Lease) -> None:
        self._table = table
        self._lease = lease
        self._step = ""
        self._began = self._told = 0.0
        self._held: StepProgress | None = None

    def __call__(self, state: StepProgress) -> None:
        now = time.monotonic()
        if state.step != self._step:
            self.last()
            self._step, self._began, self._told = state.step, now, float("-inf")
        pause = max(REPORT_SECONDS, (now - self._began) * REPORT_SHARE)
        held = self._held
        turns = state.message in ("begins", "done")
        if held is not None and (turns or held.done != state.done):
            self.last()  # How a part ended is told, however short it was.
        if turns or now - self._told >= pause:
            self._held, self._told = None, now
            self._table.report(self._lease, state)
        else:
            self._held = state

    def last(self) -> None:
        """Tell what was held back."""
        held, self._held = self._held, None
        if held is not None:
            self._table.report(self._lease, held)
