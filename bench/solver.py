"""The solver against its peers, every method on the same instances in the same call.

    python bench/solver.py [--seconds 60] [--ours 60] [--match TEXT] [--peers FOLDER] [--instances FOLDER]

Every answer is audited by our audit, and by an independent linear program per target (scipy's
``linprog`` on the original relations, nothing shared with the solver). Peers run in their own
environments, made in FOLDER/tau and FOLDER/gconfid when they are missing (``pip install pytauargus``,
``pip install gconfid``). Writes docs/benchmarks.md and docs/benchmarks.svg.

Answers are kept in a file of lines (``--results``) as they come: a run that was stopped goes on where it
was, and what has changed since (an instance, a limit, the solver, a peer's version) is run again.
Seconds are CPU seconds, limits too, as τ-Argus counts them: the machine may be a shared one. Our methods
may be given fewer seconds than the peers (``--ours``); `exact` then has the peers' seconds only on what
τ-Argus proves and it did not, or answers at less cost.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
if sys.argv[1:2] == ["--one"]:
    # The solver's clocks count CPU seconds in a run of its own.
    time.perf_counter = time.process_time

import numpy as np  # noqa: E402
from grid import find_grid  # noqa: E402
from judge import exposed_cells  # noqa: E402
from report import Answer, Result, write  # noqa: E402

from solver import Instance, solve  # noqa: E402
from solver.formats.jj import write_jj  # noqa: E402
from solver.generate import generate  # noqa: E402

# Environment and package of each peer, its script, and whether that takes a table instead of a problem.
PEERS = {
    "τ-Argus OPT": ("tau", "pytauargus", "tau_opt.py", False),
    "τ-Argus modular": ("tau", "pytauargus", "tau_modular.py", True),
    "G-Confid": ("gconfid", "gconfid", "gconfid_suppress.py", False),
}
# `auto` has 10 seconds of its own, and once more so many times what a peer took.
AUTO_SECONDS = 10.0
AS_LONG_AS = {"auto (2× modular)": ("τ-Argus modular", 2.0), "auto (1× G-Confid)": ("G-Confid", 1.0)}
OURS = ("exact", "auto", *AS_LONG_AS, "lp", "shortest-path", "modular")
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
# An answer this long over its limit is stopped.
GRACE = 60


@dataclass(frozen=True)
class Task:
    """One method on one instance."""

    name: str
    path: Path
    method: str
    seconds: float
    instance: str
    version: str

    @property
    def key(self) -> str:
        """What must be the same for an answer to be kept."""
        return f"{self.name} {self.instance} {self.method} {self.seconds:g} {self.version}"


def run(task: Task, instance: Instance, peers: Path) -> Answer:
    """The answer of a method, with both audits."""
    with tempfile.TemporaryDirectory() as folder:
        source: Path = task.path
        grid = None
        if task.method in PEERS:
            environment, _, script, wants_table = PEERS[task.method]
            if wants_table:
                grid = find_grid(instance)
                if grid is None:
                    return Answer(note="not one table")
                source = Path(folder)
                grid.write(instance, source)
            python = peers / environment / "bin" / "python"
            command = [str(python), str(ROOT / "bench" / "peers" / script), str(source), str(task.seconds)]
        else:
            method = "auto" if task.method in AS_LONG_AS else task.method
            command = [sys.executable, str(Path(__file__)), "--one", method, str(source), str(task.seconds)]
        found = _run(command, task.seconds)
    if isinstance(found, str):
        return Answer(note=found)
    hidden = instance.always_hidden.copy()
    if task.method not in PEERS:
        hidden[found["hidden"]] = True
    elif grid is not None:
        hidden[[grid.cell(codes) for codes in found["hidden"]]] = True
    else:
        names = {instance.name(k): k for k in range(instance.n)}
        hidden[[names[str(k)] for k in found["hidden"] if str(k) in names]] = True
    ours, independent = exposed_cells(instance, hidden)
    bound = found.get("bound", float("nan"))
    cost = instance.cost(hidden)
    return Answer(cost, found["seconds"], bound, ours, independent, bool(found["proven"]))


def _run(command: list[str], seconds: float) -> dict[str, Any] | str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    most = int(max(seconds, 60)) + GRACE
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        code = subprocess.run(
            command,
            stdout=out,
            stderr=errors,
            timeout=20 * most,
            env=environment,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
        ).returncode
        out.seek(0)
        errors.seek(0)
        text, trouble = out.read().strip(), errors.read().strip()
    if code < 0:
        return "no answer in time"
    if code:
        return "failed: " + (trouble.split("\n")[-1] or f"code {code}")[:80]
    found: dict[str, Any] = json.loads(text.split("\n")[-1])
    return found


def one(method: str, path: str, seconds: float) -> None:
    """Solve in this process and print the answer."""
    instance = Instance.from_jj(path)
    began = time.process_time()
    solution = solve(instance, method, time_limit=seconds)
    answer = {
        "hidden": np.flatnonzero(solution.hidden).tolist(),
        "seconds": time.process_time() - began,
        "bound": solution.lower_bound,
        "proven": solution.status == "optimal",
    }
    print(json.dumps(answer))


def prepare_peers(folder: Path) -> dict[str, str]:
    """Make the peers' environments; the versions of those that are there."""
    ready = {}
    for name, (environment, package, _, _) in PEERS.items():
        home = folder / environment
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            subprocess.run([str(home / "bin" / "pip"), "install", "-q", package], check=False)
        script = f"import {package}, importlib.metadata as m; print(m.version('{package}'))"
        check = [str(home / "bin" / "python"), "-c", script]
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            ready[name] = done.stdout.strip().split("\n")[-1]
        else:
            print(f"{name} cannot be installed here; it is left out", file=sys.stderr)
    return ready


def gather(folder: Path | None, match: str, work: Path) -> dict[str, Path]:
    """Plain JJ files of the instances chosen, in a working folder, the smallest first."""
    chosen = {}
    for source in folder.glob("*.jj.gz") if folder is not None else []:
        name = source.name.removesuffix(".jj.gz")
        if match in name:
            chosen[name] = work / f"{name}.jj"
            chosen[name].write_bytes(gzip.decompress(source.read_bytes()))
    for name, family, shape, options in FAMILIES:
        if match in name:
            chosen[name] = work / f"{name}.jj"
            write_jj(generate(family, shape, **options), chosen[name])
    return dict(sorted(chosen.items(), key=lambda item: item[1].stat().st_size))


def our_version() -> str:
    """Changes with the solver's code."""
    digest = hashlib.sha256()
    for file in sorted((ROOT / "solver").rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


class Kept:
    """The answers so far, one line of JSON each; several runs may share them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers: dict[str, Answer] = {}

    def _read(self) -> None:
        lines = self._path.read_text().split("\n") if self._path.exists() else []
        for line in lines:
            # The last line of a run that was killed may be half a line.
            if line.endswith("}"):
                entry = json.loads(line)
                key = entry.pop("key")
                self._answers[key] = Answer(**entry)

    def get(self, key: str) -> Answer | None:
        """A kept answer."""
        if key not in self._answers:
            self._read()
        return self._answers.get(key)

    def best(self, name: str, instance: str) -> float:
        """The least cost of a safe answer for an instance, of any run; NaN without one."""
        self._read()
        about = [a for key, a in self._answers.items() if key.startswith(f"{name} {instance} ")]
        return min((a.cost for a in about if a.safe), default=float("nan"))

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as stream:
            stream.write(json.dumps({"key": key, **asdict(answer)}) + "\n")


def better(its: Answer | None, ours: Answer) -> bool:
    """Is a peer's answer proven, or safe and cheaper than ours?"""
    return its is not None and (its.proven or (its.safe and not ours.cost <= its.cost * (1 + 1e-9)))


def main() -> None:
    """Run everything that was asked for."""
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3], float(sys.argv[4]))
        return
    scratch = Path(tempfile.gettempdir())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--ours", type=float, default=None, help="seconds of our methods, if fewer")
    parser.add_argument("--match", default="", help="only instances whose name holds this")
    parser.add_argument("--most-cells", type=int, default=130_000)
    parser.add_argument("--methods", default=",".join((*PEERS, *OURS)))
    parser.add_argument("--peers", type=Path, default=scratch / "celosia-peers")
    parser.add_argument("--results", type=Path, default=scratch / "celosia-bench.jsonl")
    parser.add_argument("--instances", type=Path, default=ROOT.parent / "shared" / "instances")
    parser.add_argument("--only-write", action="store_true", help="write down what is kept, run nothing")
    options = parser.parse_args()
    versions = prepare_peers(options.peers)
    methods = [m for m in options.methods.split(",") if m not in PEERS or m in versions]
    kept, ours = Kept(options.results), our_version()
    own_seconds = options.seconds if options.ours is None else options.ours
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as work:
        folder = options.instances if options.instances.is_dir() else None
        for name, path in gather(folder, options.match, Path(work)).items():
            instance = Instance.from_jj(path)
            if instance.n > options.most_cells:
                continue
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            answers: dict[str, Answer] = {}
            for method in methods:
                seconds = options.seconds if method in PEERS else own_seconds
                seconds = AUTO_SECONDS if method == "auto" else seconds
                if method in AS_LONG_AS:
                    peer, times = AS_LONG_AS[method]
                    other = answers.get(peer, Answer())
                    if np.isnan(other.cost):
                        answers[method] = Answer(note="–")
                        continue
                    seconds = max(round(times * other.seconds, 3), 0.01)
                    sooner = answers.get("auto", Answer())
                    if seconds >= AUTO_SECONDS and (sooner.cost <= other.cost * (1 + 1e-9) or not other.safe):
                        # What it found sooner is as good.
                        answers[method] = sooner
                        continue
                for limit in sorted({seconds, options.seconds} if method == "exact" else {seconds}):
                    task = Task(name, path, method, limit, digest, versions.get(method, ours))
                    answer = kept.get(task.key)
                    if answer is None and not options.only_write:
                        answer = run(task, instance, options.peers)
                        kept.put(task.key, answer)
                        print(f"{name}\t{method}\t{answer.line()}", flush=True)
                    answers[method] = Answer(note="not run") if answer is None else answer
                    if answers[method].proven or not better(answers.get("τ-Argus OPT"), answers[method]):
                        break
            results.append(Result(name, instance.n, kept.best(name, digest), answers))
            if len(answers) == len((*PEERS, *OURS)):
                write(ROOT / "docs", results, methods, options.seconds, own_seconds)
    if len(methods) == len((*PEERS, *OURS)):
        write(ROOT / "docs", results, methods, options.seconds, own_seconds)


if __name__ == "__main__":
    main()
