"""Large tables by `shortest-path`: cost, bound, gap, CPU seconds and peak memory of each, in one run.

    python bench/large.py [FAMILY:SHAPE:PRIMARIES ...]

Without arguments, the two sizes of Castro 2005 §6: a random table of 750×750 with 3,000 primaries, and one
with a hierarchy, of 247,237 cells with 1,000. Each runs in a process of its own; `gap` counts the secondaries
alone. Every pattern is audited by `solve`. There is no limit of seconds: a run can be repeated exactly.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from solver import solve  # noqa: E402
from solver.generate import generate  # noqa: E402

TABLES = ("random:750x750:3000", "random:8.7.7x540:1000")


def one(table: str) -> None:
    """Protect one table in this process and print its line."""
    family, shape, primaries = table.split(":")
    instance = generate(family, shape, primaries=int(primaries))
    began = time.process_time()
    found = solve(instance, "shortest-path")
    seconds = time.process_time() - began
    # Kilobytes on Linux.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{table}: {instance.n} cells, cost {found.cost:.0f}, bound {found.lower_bound:.0f}, "
        f"gap {100 * found.gap:.2f}%, {seconds:.1f} CPU s, {memory:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Every table asked for."""
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2])
        return
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for table in sys.argv[1:] or TABLES:
        subprocess.run([sys.executable, str(Path(__file__)), "--one", table], env=environment, check=True)


if __name__ == "__main__":
    main()
