"""crawl: two cubes of the same records under other names: what one hides, the other may show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from app.cube.port import CubeServer
from app.domain.cube import Hierarchy
from app.domain.errors import Mistake
from app.domain.known import FactRows, row_hashes
from app.domain.publication import Publication

Hashes = NDArray[np.uint64]

#: Records that can't be alike by chance, and the share of the smaller cube's that must be in the other.
ENOUGH = 20
SHARE = 0.95
#: Records of one kind may be alike; most have to be told apart for a likeness to mean anything.
TOLD_APART = 0.5


def same_facts(publication: Publication, servers: Mapping[str, CubeServer]) -> Iterator[Mistake]:
    """Pairs of cubes of which the one holds the other's records, where the engines give their facts."""
    if len(servers) < 2:
        return
    facts = {name: server.facts() for name, server in servers.items()}
    for one, other in combinations([cube for cube in publication.cubes if cube.name in servers], 2):
        first, second = facts[one.name], facts[other.name]
        if first is not None and second is not None and alike(first, second):
            at = other.at
            cause = f"Cubes {one.name} and {other.name} read the same facts, but are protected apart."
            remedy = "Make one cube of them, which all their sheets use."
            yield Mistake(at.file, at.line, at.column, cause, remedy)


def alike(one: FactRows, other: FactRows) -> bool:
    """Whether all but all records of the smaller cube are records of the other.

    Records are the same if the same contributor brings as much at the same members to some measure of each;
    only hierarchies that both have are looked at, by their members' names. Amounts that hardly two records
    have in common tell the same records under other names of contributors, too.
    """
    here, there = _places(one, other)
    both = one.who is not None and other.who is not None
    for (a, mine), (b, theirs) in product(enumerate(one.cube.measures), enumerate(other.cube.measures)):
        if mine.additive and mine.aggregator == theirs.aggregator:
            for named in (*[True] * both, *[False] * (mine.aggregator == "sum")):
                if _contained(_records(one, here, a, named), _records(other, there, b, named)):
                    return True
    return False


def _places(one: FactRows, other: FactRows) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """The leaves of each row in hierarchies that both cubes have, numbered alike."""
    theirs = {tree.unique_name: h for h, tree in enumerate(other.cube.hierarchies)}
    found: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
    for h, tree in enumerate(one.cube.hierarchies):
        if tree.unique_name in theirs:
            g = theirs[tree.unique_name]
            found[0].append(one.leaf[h].astype(np.int64))
            found[1].append(_numbers(other.cube.hierarchies[g], tree)[other.leaf[g]])
    return found


def _numbers(tree: Hierarchy, other: Hierarchy) -> NDArray[np.int64]:
    """Each member's number in another hierarchy, or one that it doesn't have."""
    names = enumerate(tree.unique_names)
    return np.array([other.index_of.get(name, -1 - number) for number, name in names], dtype=np.int64)


def _records(rows: FactRows, places: Sequence[NDArray[np.int64]], measure: int, named: bool) -> Hashes:
    """A hash of each record that brings something."""
    who = [rows.who.view(np.int64)] if named and rows.who is not None else []
    amount = np.asarray(rows.amounts[measure], dtype=np.float64)
    kept = np.flatnonzero(np.nan_to_num(amount))
    return row_hashes([column[kept] for column in (*who, *places, amount)])


def _contained(one: Hashes, other: Hashes) -> bool:
    if min(len(one), len(other)) < ENOUGH:
        return False
    mine, counts = np.unique(one, return_counts=True)
    theirs, others = np.unique(other, return_counts=True)
    small = min(len(one), len(other))
    _, a, b = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    met = int(np.minimum(counts[a], others[b]).sum())
    kinds = len(mine) if len(one) == small else len(theirs)
    return met >= SHARE * small and kinds >= TOLD_APART * small
