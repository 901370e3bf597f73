"""How long an exact search goes on: without a safe pattern, and before heuristics have their turn."""

from __future__ import annotations

from dataclasses import dataclass

from solver.borrow import crowded
from solver.heuristics.network import find_network
from solver.presolve import Problem

# So few seconds are few. A problem of up to so many columns is tiny, and one of up to so many for each second
# may be searched to the end.
_FEW, _TINY, _EACH_SECOND = 1.0, 300, 13_000
# Part of a limit for the exact search before heuristics: in general, where most columns lie in four relations
# (patterns near the relaxation take long there, and more depends on it), and where it mostly ends with a
# proof, on tables of so many columns, at most so many for each second. In fewer seconds than these heuristics
# do little.
_SHARE, _CROWDED_SHARE, _PROOF_SHARE, _LEAST = 0.25, 0.4, 0.85, 0.3
_PROVABLE, _PROVABLE_EACH_SECOND = 300, 30
# Relations that a column is in on average, up to which a table counts as one of two dimensions.
_FLAT = 2.5


@dataclass(frozen=True)
class Pace:
    """How long a search without a safe pattern goes on.

    Attributes
    ----------
    late
        Part of the limit after which the root ends, as a pattern is wanted more.
    unsafe
        Part of the seconds after which all ends, as a pattern must be found otherwise.
    rounds
        It ends at once where so many rounds of the root won't fit before that, or aren't nearly all, and
        nothing is rounded. 0: neither.
    hopeful
        Do HiGHS's runs go on when it is late?
    """

    late: float
    unsafe: float
    rounds: int
    hopeful: bool


PATIENT = Pace(0.3, 0.6, 0, hopeful=False)
_TINY_PACE, _SMALL_PACE = Pace(0.6, 0.95, 0, hopeful=True), Pace(0.6, 0.8, 6, hopeful=True)


def pace_of(problem: Problem, time_limit: float | None) -> Pace | None:
    """The pace of a search that comes before heuristics; None where seconds (of the whole) are too few for
    that: large networks have good patterns and bounds at once.
    """
    if time_limit is None or time_limit >= _FEW:
        return PATIENT
    if problem.n <= _TINY:
        # To know whether it is a network would take as long as much of the search.
        return _TINY_PACE if problem.matrix.nnz <= _FLAT * problem.n else PATIENT
    if find_network(problem) is None:
        return PATIENT
    return _SMALL_PACE if problem.n <= _EACH_SECOND * time_limit else None


def exact_share(problem: Problem, seconds: float | None) -> float:
    """The part of what is left of a limit (seconds, if any) for a search that heuristics go on from."""
    share = _CROWDED_SHARE if crowded(problem) else _SHARE
    if seconds is None:
        return share
    if problem.n <= min(_PROVABLE, _PROVABLE_EACH_SECOND * seconds):
        share = _PROOF_SHARE
    return max(share, min(_LEAST / max(seconds, 1e-9), 1.0))
