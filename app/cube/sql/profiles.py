"""Contributor profiles and recomputed values of cells, worked out in the database.

Every cell is a set of parts, cells of own members; the parts go beside the facts, and one statement joins
them, adds up each contributor's rows in each cell, and ranks the contributors. No fact row comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.cube.cuboids import Cuboids
from app.cube.parts import expand
from app.cube.port import Group, Profiles
from app.cube.sql.scanner import SqlScanner
from app.cube.tables import steps
from app.domain.cellset import FloatArray
from app.domain.cube import Cube, IntArray

_PARTS = "celosia_parts"


class SqlProfiler:
    """See `app.cube.server.Profiling`; ``signed`` are the measures with values below zero."""

    def __init__(self, cube: Cube, cuboids: Cuboids, scanner: SqlScanner, signed: frozenset[int]) -> None:
        self.cube = cube
        self.cuboids = cuboids
        self.scanner = scanner
        self.signed = signed
        self._numbers: dict[str, int] = {}
        self._lock = RLock()

    def measure(self, coords: IntArray, groups: Sequence[Group], top: int) -> Profiles:
        """See `CubeServer.measure`."""
        n = len(coords)
        answer = Profiles(
            np.nan_to_num(self._values(coords, groups)), np.zeros(n, dtype=np.int64), np.zeros(n),
            np.zeros((n, top)), np.full(n, -1, dtype=np.int64), np.zeros(n), np.zeros(n),
        )  # fmt: skip
        with self._lock:
            for measure in np.unique(coords[:, 0]).tolist():
                rows = np.flatnonzero(coords[:, 0] == measure)
                self._profile(measure, coords[rows], groups, top, rows, answer)
        return answer

    def recompute(self, measure: int, coords: IntArray, groups: Sequence[Group]) -> FloatArray:
        """Values of a measure in cells of groups: float64[n], nan where no fact has one."""
        result = np.full(len(coords), np.nan)
        if not len(coords):
            return result
        with self._lock:
            hits = self._hits(coords, groups, measure)
            found = self.scanner.arrays(
                f"SELECT owner, {', '.join(self.scanner.aggregates(measure))} "
                f"FROM ({hits}) AS hits GROUP BY owner"
            )
        column = self.scanner.column(measure, found)
        result[found["owner"].astype(np.int64)] = self.cuboids.column_values(measure, column)
        return result

    def _values(self, coords: IntArray, groups: Sequence[Group]) -> FloatArray:
        sizes = np.array([tree.size for tree in self.cube.hierarchies])
        grouped = (coords[:, 1:] >= sizes).any(axis=1)
        values = np.full(len(coords), np.nan)
        values[~grouped] = self.cuboids.values(coords[~grouped])
        for measure in np.unique(coords[grouped, 0]).tolist():
            rows = np.flatnonzero(grouped & (coords[:, 0] == measure))
            values[rows] = self.recompute(measure, coords[rows], groups)
        return values

    def _hits(self, coords: IntArray, groups: Sequence[Group], measure: int) -> str:
        """A statement that gives every fact of every cell, with the cell's place as ``owner``."""
        group_of = [[g for g in groups if g.column == column] for column in range(coords.shape[1])]
        parts, owner = expand(self.cube, coords, group_of)
        combinations, which = self.cuboids.signatures(parts)
        places = {f"p{h}": pa.array(parts[:, 1 + h].astype(np.int64)) for h in range(parts.shape[1] - 1)}
        table = pa.table(
            {"owner": pa.array(owner), "combination": pa.array(which.astype(np.int64)), **places}
        )
        self.scanner.foreign.keep(_PARTS, table)
        columns = [name for name in ("0", "p", "v") if self._has(measure, name)]
        wanted = ["who", "own", "w", "asked", *(f"m{measure}_{name}" for name in columns)]
        ways = " UNION ALL ".join(f"SELECT {number} AS number" for number in range(len(combinations)))
        met = [f"parts.p{h} = {self._at(h, [way[h] for way in combinations])}" for h in range(len(places))]
        return (
            f"SELECT parts.owner, {', '.join(f'facts.{name}' for name in wanted)} "
            f"FROM facts CROSS JOIN ({ways}) AS ways JOIN {_PARTS} AS parts "
            f"ON {' AND '.join(['parts.combination = ways.number', *met])}"
        )

    def _at(self, hierarchy: int, levels: Sequence[int]) -> str:
        """The member of a fact at a hierarchy's level, which each combination has its own of; 0 is All."""
        names = ["0" if level < 0 else f"facts.{self.scanner.grouped[hierarchy, level]}" for level in levels]
        if len(set(names)) == 1:
            return names[0]
        cases = " ".join(f"WHEN {number} THEN {name}" for number, name in enumerate(names))
        return f"CASE ways.number {cases} END"

    def _has(self, measure: int, name: str) -> bool:
        return (name != "v") == (self.cube.measures[measure].aggregator in ("sum", "count", "avg"))

    def _profile(
        self,
        measure: int,
        coords: IntArray,
        groups: Sequence[Group],
        top: int,
        rows: NDArray[np.intp],
        answer: Profiles,
    ) -> None:
        unit = 10.0 ** (self.cuboids.scales[measure].decimals or 0)
        amount = f"CAST(m{measure}_0 AS BIGINT)" if self._has(measure, "0") else "CAST(0 AS BIGINT)"
        found = self.scanner.arrays(
            f"""
            WITH hits AS ({self._hits(coords, groups, measure)}),
            people AS (
                SELECT owner, who, CAST(sum({amount}) AS BIGINT) AS amount, min(w) AS w, max(asked) AS asked
                FROM hits WHERE who IS NOT NULL GROUP BY owner, who
                UNION ALL SELECT owner, own AS who, {amount} AS amount, w, asked FROM hits WHERE who IS NULL
            ),
            sized AS (
                SELECT owner, who, CAST(w AS DOUBLE) AS w, asked,
                CAST(abs(amount) AS DOUBLE) / CAST({unit} AS DOUBLE) AS mass,
                CAST(abs(amount) AS DOUBLE) / CAST({unit} AS DOUBLE) / CAST(w AS DOUBLE) AS size FROM people
            ),
            ranked AS (
                SELECT owner, size, w, count(*) OVER (PARTITION BY owner) AS people,
                sum(w) OVER (PARTITION BY owner) AS weighted,
                sum(mass) OVER (PARTITION BY owner) AS mass,
                max(CASE WHEN asked = 1 THEN size ELSE 0 END) OVER (PARTITION BY owner) AS requested,
                min(who) OVER (PARTITION BY owner) AS who,
                row_number() OVER (PARTITION BY owner ORDER BY size DESC, who) AS place,
                sum(w) OVER (
                    PARTITION BY owner ORDER BY size DESC, who
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
                ) - w AS before
                FROM sized
            )
            SELECT owner, size, w, people, weighted, mass, requested,
            CASE WHEN people = 1 THEN who END AS who, place
            FROM ranked WHERE before < {top} ORDER BY owner, place
            """
        )
        owner = found["owner"].astype(np.int64)
        if not len(owner):
            return
        place = found["place"].astype(np.int64) - 1
        size, width = (np.zeros((len(coords), int(place.max()) + 1)) for _ in range(2))
        size[owner, place], width[owner, place] = found["size"], found["w"]
        answer.top[rows] = steps(size, width, top)
        first = np.flatnonzero(place == 0)
        cells = rows[owner[first]]
        answer.count[cells] = found["people"][first]
        answer.weighted_count[cells] = found["weighted"][first]
        answer.requested[cells] = found["requested"][first]
        answer.mass[cells] = found["mass"][first] if measure in self.signed else answer.value[cells]
        for cell, row in zip(cells, first, strict=True):
            if found["people"][row] == 1:
                answer.holder[cell] = self._numbers.setdefault(found["who"][row], len(self._numbers))
