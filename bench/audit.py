"""Intervals of all hidden cells: our audit, a fresh linear program for each end, and G-Confid's auditing.

    python bench/audit.py [--peers FOLDER] [FAMILY:SHAPE:PRIMARIES ...]

Ratios of CPU seconds taken in one run, one thread. The fresh programs are HiGHS's, by scipy, on the hidden
columns alone; a sample of them stands for all. Intervals of the sample must agree with ours. G-Confid runs
where its environment is (`bench/solver.py` makes it).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402
from scipy.optimize import linprog  # noqa: E402

from solver import Instance, audit, solve  # noqa: E402
from solver.formats.jj import write_jj  # noqa: E402
from solver.generate import generate  # noqa: E402

Cells = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]

TABLES = ("random:100x100:600", "random:4.4.4x60:1600", "random:11x11x11:250")
SAMPLE = 30


def fresh(instance: Instance, columns: Cells, cells: Cells) -> tuple[float, Floats]:
    """CPU seconds and intervals (float64[k, 2]) of some hidden cells, a program of its own for each end."""
    matrix = sparse.csc_array(instance.matrix)[:, columns]
    matrix = sparse.csr_array(matrix)
    matrix = matrix[np.flatnonzero(np.diff(matrix.indptr))]
    value = instance.value[columns]
    lower, upper = instance.lower_bound[columns] - value, instance.upper_bound[columns] - value
    bounds = np.stack([lower, upper], axis=1)
    ends = np.zeros((len(cells), 2))
    began = time.process_time()
    for row, cell in enumerate(cells.tolist()):
        at = int(np.searchsorted(columns, cell))
        for side, sign in enumerate((1.0, -1.0)):
            cost = np.zeros(len(columns))
            cost[at] = sign
            found = linprog(cost, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=bounds, method="highs")
            ends[row, side] = value[at] + sign * found.fun
    return time.process_time() - began, ends


def gconfid(instance: Instance, hidden: Flags, peers: Path) -> float:
    """CPU seconds of its auditing; NaN without it."""
    python = peers / "gconfid" / "bin" / "python"
    if not python.exists():
        return float("nan")
    with tempfile.TemporaryDirectory() as folder:
        table, pattern = Path(folder) / "table.jj", Path(folder) / "pattern.json"
        write_jj(instance, table)
        pattern.write_text(json.dumps(hidden.tolist()))
        script = ROOT / "bench" / "peers" / "gconfid_audit.py"
        command = [str(python), str(script), str(table), str(pattern)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.strip().split("\n")[-1])["seconds"])


def main() -> None:
    """Every table asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--peers", type=Path, default=Path(tempfile.gettempdir()) / "celosia-peers")
    options = parser.parse_args()
    for table in options.tables:
        family, shape, primaries = table.split(":")
        instance = generate(family, shape, primaries=int(primaries))
        hidden = solve(instance, "light").hidden
        columns = np.flatnonzero(hidden)
        began = time.process_time()
        report = audit(instance, hidden)
        ours = time.process_time() - began
        some = np.unique(np.linspace(0, len(report.cells) - 1, SAMPLE).astype(int))
        cells = report.cells[some]
        seconds, ends = fresh(instance, columns, cells)
        seconds *= len(columns) / len(cells)
        mine = np.stack([report.lower[some], report.upper[some]], axis=1)
        if not np.allclose(mine, ends, rtol=1e-6, atol=1e-5):
            raise SystemExit(f"{table}: intervals differ")
        theirs = gconfid(instance, hidden, options.peers)
        print(
            f"{table}: {len(columns)} hidden cells, ours {ours:.2f} CPU s, fresh programs {seconds:.1f} "
            f"({seconds / ours:.0f}×), G-Confid {theirs:.1f} ({theirs / ours:.0f}×)",
            flush=True,
        )


if __name__ == "__main__":
    main()
