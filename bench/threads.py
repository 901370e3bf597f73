"""Independent tables in one instance, on one thread and on several, in turn.

    python bench/threads.py [--threads 2] [--rounds 3]

Prints per case the seconds of the clock and of the processor, and the ratio of the clock's: the least of the
rounds each, as the machine may be a shared one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solver import solve
from solver.generate import generate, side_by_side

# Shape and primaries of a table, seeds of those side by side, and the method.
CASES = (
    ("4.4.4x12", 60, (1, 2, 3, 4), "exact"),
    ("50x50", 60, (3, 3), "exact"),
    ("4.4x4.4x4", 25, (1, 1), "auto"),
    ("9x9x9", 30, (1, 2), "light"),
)


def main() -> None:
    """Run all cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for shape, primaries, seeds, method in CASES:
        instance = side_by_side(
            *(generate("random", shape, primaries=primaries, seed=seed) for seed in seeds)
        )
        least: dict[int, tuple[float, float]] = {}
        for threads in (1, options.threads) * options.rounds:
            began = time.perf_counter(), time.process_time()
            solve(instance, method, threads=threads, work_limit=8.0)
            taken = time.perf_counter() - began[0], time.process_time() - began[1]
            least[threads] = min(least.get(threads, taken), taken)
        one, many = least[1], least[options.threads]
        print(
            f"{len(seeds)} × {shape}, {method}: {one[0]:.2f} → {many[0]:.2f} s on {options.threads} threads"
            f" ({one[0] / many[0]:.2f}×; processor {one[1]:.2f} → {many[1]:.2f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
