"""What is kept of a release so that later ones take it into account."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.db.codec import Codec, digest_of
from app.db.store import RELEASED_CLASSES, Store
from app.domain import bands, crawled, equation, known, lattice, nearly
from app.domain.crawled import Crawl
from app.domain.errors import OperatorError, UserError
from app.domain.known import FactRows, ShownCells
from app.domain.primary import PrimaryResult
from app.domain.publication import Confidentiality, Position
from app.pipeline.build import Problems
from app.pipeline.earlier import Past
from app.pipeline.suppress import Suppression, levels_kept
from app.pipeline.unions import Union, unions_in
from solver import Insider


@dataclass(frozen=True, eq=False)
class Memory:
    """What is kept of a release.

    ``salt`` (hex) is the secret of its certificate, ``definitions`` the digest of the publication's text.
    ``insiders`` are, cube by cube, the sole contributors that the audit held the pattern against; their cells
    are rows of the table, and behind those its unions. None: made by a program that didn't keep them.
    ``unions`` are the sums of hidden cells that have levels, cube by cube, over rows of the table; none where
    no cube has any. ``rules`` is what `rules_digest` gives; empty: made by a program that didn't keep it.
    """

    salt: str
    definitions: str
    shown: tuple[ShownCells, ...]
    insiders: tuple[tuple[Insider, ...], ...] | None = None
    unions: tuple[tuple[Union, ...], ...] = ()
    rules: str = ""


REMEMBERED = Codec(
    (
        *RELEASED_CLASSES,
        bands.Band,
        crawled.CubeCells,
        crawled.Derived,
        equation.Equations,
        known.FactRows,
        known.ShownCells,
        lattice.Extra,
        nearly.Nearly,
        Insider,
        Memory,
        Union,
    )
)


def rules_digest(confidentiality: Confidentiality) -> str:
    """The same for the same rules and decisions, wherever they are written."""
    somewhere = Position("", 0)
    decisions = tuple(replace(decision, at=somewhere) for decision in confidentiality.decisions)
    return digest_of(repr(replace(confidentiality, decisions=decisions)).encode())


def read_memory(body: bytes) -> Memory:
    """What was kept of a release.

    Raises
    ------
    OperatorError
        If it is damaged.
    """
    found = REMEMBERED.decode(body)
    if not isinstance(found, Memory):
        raise OperatorError("What a release showed can't be read: it is damaged.")
    return found


def facts_kept(store: Store, cube: str, fingerprint: str) -> FactRows | None:
    """The facts of a cube that a release was made from, if they are kept."""
    kept = store.book.snapshot(cube, fingerprint)
    rows = REMEMBERED.decode(kept) if kept else None
    return rows if isinstance(rows, FactRows) else None


def shown_cells(
    release_id: str, crawl: Crawl, primaries: PrimaryResult, problems: Problems, suppression: Suppression
) -> tuple[ShownCells, ...]:
    """What a release shows and promises, cube by cube."""
    result = []
    for number, (cells, verdicts, hidden) in enumerate(
        zip(crawl.cubes, primaries.cubes, suppression.hidden, strict=True)
    ):
        lpl, upl, spl = levels_kept(number, verdicts, problems, suppression)
        result.append(ShownCells(release_id, cells, hidden, lpl, upl, spl))
    return tuple(result)


def insiders_met(
    crawl: Crawl, problems: Problems, suppression: Suppression
) -> tuple[tuple[Insider, ...], ...]:
    """The insiders of all problems by cube, with the rows of the cube's table in place of their cells.

    Behind the rows come the cube's unions, as in `unions_kept`. Cells of earlier releases are left out.
    """
    result: list[list[Insider]] = [[] for _ in crawl.cubes]
    behind = [len(cells) for cells in crawl.cubes]
    for number, problem in enumerate(problems.problems):
        instance = suppression.solved(number, problem)
        more = instance.n - problem.instance.n
        place = np.full(instance.n, -1, dtype=np.int64)
        place[: len(problem.rows)] = problem.rows
        place[problem.instance.n :] = behind[problem.cube] + np.arange(more)
        behind[problem.cube] += more
        for insider in instance.insiders:
            targets = place[insider.targets]
            met = targets >= 0
            levels = (insider.lpl[met], insider.upl[met], insider.spl[met])
            result[problem.cube].append(
                Insider(insider.name, problem.rows[insider.known], targets[met], *levels)
            )
    return tuple(map(tuple, result))


def unions_kept(cubes: int, problems: Problems, suppression: Suppression) -> tuple[tuple[Union, ...], ...]:
    """The unions of all problems by cube, over rows of the cube's table; () without any."""
    result: list[list[Union]] = [[] for _ in range(cubes)]
    for number, problem in enumerate(problems.problems):
        for union in unions_in(problem.instance, suppression.solved(number, problem)):
            result[problem.cube].append(replace(union, parts=problem.rows[union.parts]))
    return tuple(map(tuple, result)) if any(result) else ()


def read_past(store: Store, release_ids: Sequence[str]) -> Past:
    """What the releases showed, oldest first.

    Raises
    ------
    UserError
        If what one of them showed isn't kept: it was made by a program that didn't keep it.
    """
    shown: dict[str, list[ShownCells]] = defaultdict(list)
    order: list[str] = []
    rules: dict[str, str] = {}
    for record in reversed(store.book.all()):
        if record.id not in release_ids:
            continue
        body = store.book.knowledge(record.id)
        if not body:
            raise UserError(
                f"What release {record.id} showed isn't kept, so that nothing can be compared with it. If "
                f"nobody remembers it: celosia releases forget D {record.id} --reason …"
            )
        order.append(record.id)
        memory = read_memory(body)
        rules[record.id] = memory.rules
        for item in memory.shown:
            shown[item.cells.cube.name].append(item)

    def snapshot(cube: str, fingerprint: str) -> FactRows | None:
        return facts_kept(store, cube, fingerprint)

    return Past({name: tuple(items) for name, items in shown.items()}, snapshot, tuple(order), rules=rules)
