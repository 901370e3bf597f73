"""The solver against its peers, every method on the same instances in the same call.

    python bench/solver.py [--seconds 60] [--match TEXT] [--peers FOLDER] [--instances FOLDER]

Every answer is audited by our audit, and by an independent linear program per target (scipy's
``linprog`` on the original relations, nothing shared with the solver). Peers run in their own
environments, made in FOLDER/tau and FOLDER/gconfid when they are missing (``pip install pytauargus``,
``pip install gconfid``). Writes docs/benchmarks.md and docs/benchmarks.svg.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from solver import Instance, audit, solve  # noqa: E402
from solver.formats.jj import write_jj  # noqa: E402
from solver.generate import generate  # noqa: E402
from solver.instance import Status  # noqa: E402

PEERS = {
    "τ-Argus OPT": ("tau", "pytauargus", "tau_opt.py"),
    "G-Confid": ("gconfid", "gconfid", "gconfid_suppress.py"),
}
OURS = ("exact", "auto", "lp", "shortest-path", "modular", "hypercube", "gauss")
FAMILIES = (
    ("g_random_20x20", "random", "20x20", {"primaries": 20}),
    ("g_random_40x40", "random", "40x40", {"primaries": 80}),
    ("g_random_6x6x6", "random", "6x6x6", {"primaries": 15}),
    ("g_hier2d_4.4.4x12", "random", "4.4.4x12", {"primaries": 60}),
    ("g_hier3d_3.3x3.3x3", "random", "3.3x3.3x3", {"primaries": 25}),
    ("g_counts_30x20", "counts", "30x20", {}),
    ("g_percent_4.4x12", "p-percent", "4.4x12", {}),
    ("g_linked_12x10x8", "linked", "12x10x8", {"primaries": 30}),
)
# So many targets of an answer are put to the independent linear program, evenly spread.
CHECKED = 40
# An answer this long over its limit is stopped.
GRACE = 60.0


@dataclass(frozen=True)
class Answer:
    """What a method gave for an instance."""

    cost: float = float("nan")
    seconds: float = float("nan")
    bound: float = float("nan")
    exposures: int = -1
    independent: int = -1
    note: str = ""

    @property
    def safe(self) -> bool:
        """Did both audits pass?"""
        return self.exposures == 0 and self.independent == 0


def independent_exposures(instance: Instance, hidden: np.ndarray[Any, np.dtype[np.bool_]]) -> int:
    """How many of the checked targets the answer exposes, by linprog alone."""
    columns = np.flatnonzero(hidden)
    matrix = sparse.csc_array(instance.matrix)[:, columns]
    used = np.flatnonzero(np.diff(sparse.csr_array(matrix).indptr))
    matrix = sparse.csr_array(matrix)[used]
    lower = instance.lower_bound[columns] - instance.value[columns]
    upper = instance.upper_bound[columns] - instance.value[columns]
    targets = instance.protected
    targets = targets[np.unique(np.linspace(0, len(targets) - 1, min(CHECKED, len(targets))).astype(int))]
    exposed = 0
    for cell in targets.tolist():
        at = int(np.searchsorted(columns, cell))
        reach = []
        for sign in (-1.0, 1.0):
            cost = np.zeros(len(columns))
            cost[at] = sign
            found = linprog(
                cost,
                A_eq=matrix,
                b_eq=np.zeros(len(used)),
                bounds=np.stack([lower, upper], axis=1),
                method="highs",
            )
            reach.append(np.inf if found.status == 3 else -sign * float(found.x[at]))
        up, down = reach
        near = 1 - 1e-6
        fine = up >= instance.upl[cell] * near and down >= instance.lpl[cell] * near
        exposed += not (fine and up + down >= instance.spl[cell] * near)
    return exposed


def judge(
    instance: Instance, hidden: np.ndarray[Any, np.dtype[np.bool_]], seconds: float, bound: float, note: str
) -> Answer:
    """An answer with both audits."""
    report = audit(instance, hidden)
    exposed = len({exposure.cell for exposure in report.exposures})
    return Answer(
        instance.cost(hidden),
        seconds,
        bound,
        exposed if report.complete else -1,
        independent_exposures(instance, hidden),
        note,
    )


def run_ours(instance: Instance, path: Path, method: str, seconds: float) -> Answer:
    """One of our methods in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--one", method, str(path), str(seconds)]
    found = _run(command, seconds)
    if isinstance(found, str):
        return Answer(note=found)
    hidden = np.zeros(instance.n, dtype=np.bool_)
    hidden[found["hidden"]] = True
    return judge(instance, hidden, found["seconds"], found["bound"], "proven" if found["proven"] else "")


def run_peer(instance: Instance, path: Path, peer: str, folder: Path, seconds: float) -> Answer:
    """A peer in its own environment."""
    environment, _, script = PEERS[peer]
    python = folder / environment / "bin" / "python"
    found = _run([str(python), str(ROOT / "bench" / "peers" / script), str(path), str(seconds)], seconds)
    if isinstance(found, str):
        return Answer(note=found)
    hidden = instance.always_hidden.copy()
    names = {instance.name(k): k for k in range(instance.n)}
    hidden[[names[str(k)] for k in found["hidden"] if str(k) in names]] = True
    proven = bool(found["proven"])
    return judge(instance, hidden, found["seconds"], float("nan"), "claims optimum" if proven else "")


def _run(command: list[str], seconds: float) -> dict[str, Any] | str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds + GRACE, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return "no answer in time"
    if done.returncode:
        return "failed: " + (done.stderr.strip().split("\n")[-1] or f"code {done.returncode}")[:80]
    found: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return found


def one(method: str, path: str, seconds: float) -> None:
    """Solve in this process and print the answer."""
    instance = Instance.from_jj(path)
    solution = solve(instance, method, time_limit=seconds)
    print(
        json.dumps(
            {
                "hidden": np.flatnonzero(solution.hidden).tolist(),
                "seconds": solution.seconds,
                "bound": solution.lower_bound,
                "proven": solution.status == "optimal",
            }
        )
    )


def prepare_peers(folder: Path) -> list[str]:
    """Make the peers' environments; the names of those that are there."""
    ready = []
    for name, (environment, package, _) in PEERS.items():
        home = folder / environment
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            subprocess.run([str(home / "bin" / "pip"), "install", "-q", package], check=False)
        check = [str(home / "bin" / "python"), "-c", f"import {package}"]
        if subprocess.run(check, capture_output=True, check=False).returncode == 0:
            ready.append(name)
        else:
            print(f"{name} cannot be installed here; it is left out", file=sys.stderr)
    return ready


def gather(folder: Path | None, match: str, work: Path) -> dict[str, Path]:
    """Plain JJ files of the instances chosen, in a working folder."""
    chosen = {}
    for source in sorted(folder.glob("*.jj.gz")) if folder is not None else []:
        name = source.name.removesuffix(".jj.gz")
        if match in name:
            chosen[name] = work / f"{name}.jj"
            chosen[name].write_bytes(gzip.decompress(source.read_bytes()))
    for name, family, shape, options in FAMILIES:
        if match in name:
            chosen[name] = work / f"{name}.jj"
            write_jj(generate(family, shape, **options), chosen[name])
    return chosen


def table(results: dict[str, dict[str, Answer]], methods: list[str]) -> str:
    """Markdown: cost, seconds and what the audits say, per instance and method."""
    lines = ["| instance | best | " + " | ".join(methods) + " |", "|---|---:|" + "---:|" * len(methods)]
    for name, answers in results.items():
        best = min((a.cost for a in answers.values() if a.safe), default=float("nan"))
        entries = []
        for method in methods:
            answer = answers[method]
            if np.isnan(answer.cost):
                entries.append(answer.note)
                continue
            over = (answer.cost - best) / best if best else 0.0
            text = f"{over:+.1%} · {answer.seconds:.1f} s"
            if not answer.safe:
                text = f"**{max(answer.exposures, answer.independent)} exposed** · {text}"
            entries.append(text + (" ✓" if answer.note else ""))
        lines.append(f"| {name} | {best:,.0f} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def profile(results: dict[str, dict[str, Answer]], methods: list[str]) -> str:
    """SVG: part of the instances that a method answers safely within a factor of the best cost."""
    width, height, left, top = 760, 380, 60, 20
    colours = (
        "#0b5394",
        "#38761d",
        "#b45f06",
        "#741b47",
        "#134f5c",
        "#7f6000",
        "#990000",
        "#351c75",
        "#444444",
    )
    most = 2.0
    size = f'width="{width + 230}" height="{height + 70}" font-family="sans-serif" font-size="13"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Performance profile">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]

    def text(x: float, y: float, words: str, anchor: str = "start") -> None:
        parts.append(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>')

    for k in range(6):
        y = top + height * (1 - k / 5)
        parts.append(f'<path d="M{left} {y}H{left + width}" stroke="#ddd"/>')
        text(left - 8, y + 4, f"{k * 20}%", "end")
    for k in range(5):
        text(left + width * k / 4, top + height + 20, f"{1 + (most - 1) * k / 4:.2f}×", "middle")
    text(left + width / 2, top + height + 45, "cost over the best safe cost known", "middle")
    for k, method in enumerate(methods):
        ratios = []
        for answers in results.values():
            best = min((a.cost for a in answers.values() if a.safe), default=np.nan)
            answer = answers[method]
            ratios.append((answer.cost / best if best else 1.0) if answer.safe else np.inf)
        steps = np.sort([ratio for ratio in ratios if ratio <= most])
        path = f"M{left} {top + height}"
        for i, ratio in enumerate(steps, 1):
            across = left + width * (ratio - 1) / (most - 1)
            path += f"H{across:.1f}V{top + height * (1 - i / len(ratios)):.1f}"
        path += f"H{left + width}"
        colour = colours[k % len(colours)]
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = top + 20 * k + 10
        parts.append(f'<path d="M{left + width + 15} {y}h24" stroke="{colour}" stroke-width="3"/>')
        text(left + width + 45, y + 4, method)
    return "".join(parts) + "</svg>\n"


def write(results: dict[str, dict[str, Answer]], methods: list[str], seconds: float) -> None:
    """docs/benchmarks.md and docs/benchmarks.svg."""
    docs = ROOT / "docs"
    (docs / "benchmarks.svg").write_text(profile(results, methods))
    answered = {m: [r[m] for r in results.values() if not np.isnan(r[m].cost)] for m in methods}
    summary = [
        "| method | answered | exposed somewhere | proven or claimed | geometric mean of seconds |",
        "|---|---:|---:|---:|---:|",
    ]
    for method in methods:
        answers = answered[method]
        mean = (
            float(np.exp(np.mean(np.log([max(a.seconds, 0.01) for a in answers]))))
            if answers
            else float("nan")
        )
        exposed, proven = sum(not a.safe for a in answers), sum(bool(a.note) for a in answers)
        summary.append(f"| {method} | {len(answers)} of {len(results)} | {exposed} | {proven} | {mean:.2f} |")
    machine = f"{platform.machine()}, {os.cpu_count()} processors"
    text = f"""# Benchmarks of the solver

Written by `make bench-solver` on {time.strftime("%Y-%m-%d")}: {machine}, one thread,
{seconds:g} seconds for each answer. Costs are over the best safe cost of any method in this run; ✓ marks
an answer that its method calls optimal. **Exposed** counts sensitive cells that an audit can narrow down
too far: every answer goes through our audit, and up to {CHECKED} of its targets through one linear program
each by scipy, which shares nothing with the solver. An answer that exposes a cell is no answer.

τ-Argus OPT checks its limit only between rounds of cuts and counts in whole minutes. G-Confid
protects by half the value of each cell and knows no external bounds, so that it hides more.

{chr(10).join(summary)}

![Part of the instances answered safely within a factor of the best cost](benchmarks.svg)

{table(results, methods)}
"""
    (docs / "benchmarks.md").write_text(text)


def main() -> None:
    """Run everything that was asked for."""
    if len(sys.argv) == 5 and sys.argv[1] == "--one":
        one(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--match", default="", help="only instances whose name holds this")
    parser.add_argument("--most-cells", type=int, default=30_000)
    parser.add_argument("--methods", default=",".join(OURS))
    parser.add_argument("--peers", type=Path, default=Path(tempfile.gettempdir()) / "celosia-peers")
    parser.add_argument("--instances", type=Path, default=ROOT.parent / "shared" / "instances")
    options = parser.parse_args()
    peers = prepare_peers(options.peers)
    methods = options.methods.split(",") + peers
    results: dict[str, dict[str, Answer]] = {}
    with tempfile.TemporaryDirectory() as work:
        folder = options.instances if options.instances.is_dir() else None
        for name, path in gather(folder, options.match, Path(work)).items():
            instance = Instance.from_jj(path)
            if instance.n > options.most_cells:
                continue
            answers = {}
            for method in methods:
                if method in peers:
                    answers[method] = run_peer(instance, path, method, options.peers, options.seconds)
                else:
                    answers[method] = run_ours(instance, path, method, options.seconds)
                shown = answers[method]
                print(
                    f"{name}\t{method}\tcost {shown.cost:,.0f}\tbound {shown.bound:,.0f}",
                    f"{shown.seconds:.2f} s\texposed {shown.exposures}/{shown.independent}\t{shown.note}",
                    sep="\t",
                    flush=True,
                )
            results[name] = answers
            sensitive = int((instance.status == Status.SENSITIVE).sum())
            print(f"{name}: {instance.n} cells, {sensitive} sensitive", flush=True)
            write(results, methods, options.seconds)


if __name__ == "__main__":
    main()
