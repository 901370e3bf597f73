"""Command line: ``python -m solver COMMAND FILE …``; ``--help`` lists the commands."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from solver import early
from solver.audit import Exposure, audit, insider_intervals
from solver.commands import add_protect, run_protect
from solver.errors import InfeasibleError, InputError, SolverError
from solver.explain import explain, spelled
from solver.formats.convert import convert
from solver.formats.text import parse_json, read_text
from solver.generate import add_generate, run_generate
from solver.instance import BoolArray, Instance, Status
from solver.outgoing import DEFAULT, add_output, add_search, run_adjust, run_intervals, run_round
from solver.solution import Progress, Solution
from solver.solve import METHODS, solve

# Exit codes: a failed audit or an infeasible problem is an answer; bad input is not.
OK, EXPOSED, WRONG_INPUT, INFEASIBLE = 0, 1, 2, 3
INTERRUPTED = early.INTERRUPTED
A_PATTERN = "hidden cells, one per line, or solve --json (default: the cells that every pattern hides)"
A_PROBLEM = "a JJ file (.jj, .csp, .gz) or a case (.json)"


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code (0 done, 1 exposed, 2 wrong input, 3 infeasible, 130 interrupted)."""
    # Whoever closed one of them wants to hear nothing there.
    sys.stdout = sys.stdout or io.StringIO()
    sys.stderr = sys.stderr or io.StringIO()
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        early.hand_over()
        _check_words(options)
        code = int(options.run(options))
        # Not at the exit, where nobody would be told that there is no room.
        sys.stdout.flush()
        return code
    except SolverError as error:
        told, code = str(error), WRONG_INPUT
    except BrokenPipeError:
        # Whoever read the answer has seen enough.
        _say_no_more()
        return OK
    except OSError as error:
        # Readers of files tell of their own; what is left could not be written.
        told, code = f"{error.filename or 'the answer'}: cannot be written: {error.strerror}.", WRONG_INPUT
    except KeyboardInterrupt:
        told, code = "interrupted.", INTERRUPTED
    if getattr(options, "json", False):
        try:
            print(json.dumps({"error": told}), flush=True)
            return code
        except OSError:
            _say_no_more()
    print(f"error: {told}", file=sys.stderr)
    return code


def _check_words(options: argparse.Namespace) -> None:
    """Before the work: the names of files that it ends with are opened only then."""
    for name, words in vars(options).items():
        if any(
            "\0" in word for word in (words if isinstance(words, list) else [words]) if isinstance(word, str)
        ):
            told = name.replace("_", "-")
            raise InputError(f"{told} holds a NUL character, which no name of a file may.", "Leave it out.")


def _say_no_more() -> None:
    """Nothing goes to standard output from now on, what it still holds at the exit neither."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load(path: str) -> Instance:
    """Read a problem by the ending of its name: `.json` a case, else JJ."""
    return Instance.from_case(path) if path.endswith(".json") else Instance.from_jj(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m solver",
        description="Choose the cells of a table to hide, and prove that none can be worked out.",
        epilog="COMMAND --help lists the options of a command; docs/solver.md has examples.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Any, text: str, file: str = A_PROBLEM) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("file", help=file)
        command.add_argument("--json", action="store_true", help="print one JSON object (default: words)")
        command.set_defaults(run=run)
        return command

    solving = add("solve", _solve, "find a cheap safe pattern")
    solving.add_argument("--method", choices=METHODS, default="auto", help=f"how to search {DEFAULT}")
    add_search(solving)
    solving.add_argument(
        "--work-limit", type=float, metavar="WORK", help="deterministic limit, about seconds (default: none)"
    )
    solving.add_argument("--start", metavar="PATTERN", help="a pattern to start from (default: none)")
    solving.add_argument(
        "--clip-levels",
        action="store_true",
        help="cut levels to what the bounds allow (default: refuse such levels)",
    )
    solving.add_argument(
        "--output", metavar="PATTERN", help="write the hidden cells, one per line (default: not written)"
    )
    for name, run, text in (
        ("audit", _audit, "what an attacker can find out about each hidden cell"),
        ("explain", _explain, "why a cell is hidden"),
    ):
        command = add(name, run, text)
        command.add_argument("--pattern", metavar="PATTERN", help=A_PATTERN)
        if name == "audit":
            command.add_argument(
                "--insiders",
                action="store_true",
                help="also tell what each insider finds out of its targets (default: of exposed ones alone)",
            )
        if name == "explain":
            command.add_argument("--cell", required=True, help="name or number of the cell")
    adjusting = add("adjust", _adjust, "change the table so that no sensitive cell is near its value")
    adjusting.add_argument("--unit", help="changes are multiples of it (default: the last decimal written)")
    adjusting.add_argument(
        "--move-zeros", action="store_true", help="zeros may change too (default: they stay)"
    )
    rounding = add("round", _round, "round the table to multiples of a base so that it adds up")
    rounding.add_argument("--base", required=True, help="values become multiples of it")
    for command in (adjusting, rounding):
        add_search(command)
        add_output(command, problems=True)
    telling = add(
        "intervals", _intervals, "write the table with intervals for the cells that a pattern hides"
    )
    telling.add_argument("--pattern", metavar="PATTERN", help=A_PATTERN)
    add_output(telling, problems=False)
    converting = add(
        "convert",
        _convert,
        "write a problem or a hierarchy in another format",
        "a problem (.jj, .csp, .gz, case .json) or a hierarchy (.hrc, tree .json, .cdl, .csv)",
    )
    converting.add_argument("output", help="file to write; its ending tells the format")
    converting.add_argument("--mark", help="level mark of an .hrc file (default: as the file tells)")
    protecting = add(
        "protect",
        _protect,
        "build a table from microdata or cells, apply rules, suppress, audit",
        "microdata or a table of cells, as text (CSV, or what --metadata describes)",
    )
    add_protect(protecting)
    text = "write a test instance of a family"
    generating = commands.add_parser("generate", help=text, description=text)
    generating.set_defaults(run=run_generate)
    add_generate(generating)
    return parser


def _solve(options: argparse.Namespace) -> int:
    instance = load(options.file)
    clipped: list[str] = []
    if options.clip_levels:
        clipped = [instance.name(int(cell)) for cell in instance.out_of_reach]
        instance = instance.clipped()
    start = None if options.start is None else _pattern(instance, options.start)
    bar = _Bar(sys.stderr.isatty() and not options.json)
    try:
        solution = solve(
            instance,
            options.method,
            time_limit=options.time_limit,
            threads=options.threads,
            seed=options.seed,
            progress=bar.update,
            work_limit=options.work_limit,
            start=start,
        )
    except InfeasibleError as error:
        bar.close()
        _print_infeasible(error, options.json)
        return INFEASIBLE
    bar.close()
    if options.output:
        _write_pattern(instance, solution, options.output)
    if options.json:
        print(json.dumps(_solution_json(instance, solution, clipped)))
    else:
        print(
            f"{solution.status}: cost {solution.cost:.15g}, lower bound {solution.lower_bound:.15g}", end=""
        )
        print(f", gap {solution.gap:.2%}, {solution.seconds:.2f} s, {solution.method}")
        if clipped:
            print(f"levels clipped to the bounds: {', '.join(clipped)}")
        if solution.statistics.get("stopped") == "interrupt":
            print("interrupted: the cheapest pattern until then, audited; a longer search may find better")
        secondaries = _secondaries(instance, solution)
        between = ", " if any(" " in name for name in secondaries) else " "
        print("secondaries:", between.join(secondaries) or "none")
    return OK


def _solution_json(instance: Instance, solution: Solution, clipped: list[str]) -> dict[str, Any]:
    return {
        "status": solution.status,
        "cost": solution.cost,
        "lower_bound": solution.lower_bound,
        "gap": solution.gap,
        "secondaries": _secondaries(instance, solution),
        # No pattern leaves `solve` that its own audit doesn't find safe.
        "exposures": [],
        "method": solution.method,
        "seconds": solution.seconds,
        "clipped": clipped,
        "statistics": dict(solution.statistics),
    }


def _print_infeasible(error: InfeasibleError, as_json: bool) -> None:
    if not as_json:
        print(f"infeasible: {error}")
        return
    answer = {
        "status": "infeasible",
        "cost": None,
        "lower_bound": None,
        "gap": None,
        "secondaries": [],
        "exposures": [],
        "message": str(error),
        "obstacles": [
            {
                "cell": obstacle.cell,
                "attacker": obstacle.attacker,
                "interval": [_finite(v) for v in obstacle.interval],
                "required": list(obstacle.required),
                "required_width": obstacle.required_width,
                "relations": list(obstacle.relations),
                "spelled": list(obstacle.spelled),
                "shown": list(obstacle.shown),
                "frozen": list(obstacle.frozen),
            }
            for obstacle in error.obstacles
        ],
        "conflict": None if error.conflict is None else asdict(error.conflict),
    }
    print(json.dumps(answer))


def _audit(options: argparse.Namespace) -> int:
    instance = load(options.file)
    hidden = _pattern(instance, options.pattern)
    report = audit(instance, hidden)
    inside = insider_intervals(instance, hidden) if options.insiders else ()
    if options.json:
        rows = zip(report.cells, report.lower, report.upper, report.slack, strict=True)
        answer = {
            "ok": report.ok,
            "complete": report.complete,
            "cells": [
                {
                    "cell": instance.name(int(cell)),
                    "interval": [_finite(low), _finite(high)],
                    "slack": _finite(slack),
                }
                for cell, low, high, slack in rows
            ],
            "exposures": [_exposure_json(exposure) for exposure in report.exposures],
        }
        if options.insiders:
            answer["insiders"] = [
                {
                    "cell": instance.name(known.cell),
                    "attacker": known.attacker,
                    "interval": [_finite(v) for v in known.interval],
                    "required": list(known.required[:2]),
                    "required_width": known.required[2],
                }
                for known in inside
            ]
        print(json.dumps(answer))
    else:
        print("safe" if report.ok else "EXPOSED" if report.complete else "INCOMPLETE", end=": ")
        print(f"{len(report.cells)} hidden cells, {len(report.exposures)} exposures")
        for exposure in report.exposures:
            low, high = exposure.interval
            need = "[{:.15g}, {:.15g}], width {:.15g}".format(*exposure.required)
            print(f"  {exposure.name}: {exposure.attacker} knows [{low:.15g}, {high:.15g}], needs {need}")
        for known in inside:
            low, high = known.interval
            print(f"  {instance.name(known.cell)}: {known.attacker} knows [{low:.15g}, {high:.15g}]")
    return OK if report.ok else EXPOSED


def _explain(options: argparse.Namespace) -> int:
    instance = load(options.file)
    found = explain(instance, _pattern(instance, options.pattern), options.cell)
    if options.json:
        answer = {
            "cell": found.name,
            "status": found.status,
            "hidden": found.hidden,
            "necessary": found.necessary,
            "exposes": [_exposure_json(exposure) for exposure in found.exposes],
            "relations": list(found.relations),
        }
        print(json.dumps(answer))
        return OK
    state = "hidden" if found.hidden else "shown"
    print(f"{found.name} (status {found.status}) is {state}.")
    for exposure in found.exposes:
        low, high = exposure.interval
        print(f"  Showing it tells {exposure.attacker}: {exposure.name} is in [{low:.15g}, {high:.15g}].")
    for relation in found.relations:
        print(f"  Relation {relation}: {spelled(instance, relation)}")
    return OK


def _adjust(options: argparse.Namespace) -> int:
    answer = _searched(run_adjust, options)
    if answer is None:
        return INFEASIBLE
    told = (
        "{status}: distance {cost:.15g}, lower bound {lower_bound:.15g}, gap {gap:.2%}, {moved} cells changed"
    )
    _tell(answer, told.format(**answer), options)
    return OK


def _round(options: argparse.Namespace) -> int:
    answer = _searched(run_round, options)
    if answer is None:
        return INFEASIBLE
    lines = ["{status}: distance {cost:.15g}, lower bound {lower_bound:.15g}, gap {gap:.2%}".format(**answer)]
    if answer["steps"] > 1:
        lines.append(f"no table within one base adds up; cells are less than {answer['steps']} bases away")
    for known in answer["known"]:
        if not known["protected"]:
            ends = ", ".join("…" if end is None else f"{end:.15g}" for end in known["interval"])
            need = "{:.15g}, {:.15g}".format(*known["required"])
            lines.append(f"  {known['cell']}: {known['attacker']} knows [{ends}], needs [{need}]")
    _tell(answer, "\n".join(lines), options)
    return OK if answer["protects"] else EXPOSED


def _intervals(options: argparse.Namespace) -> int:
    instance = load(options.file)
    answer = run_intervals(instance, _pattern(instance, options.pattern), options)
    _tell(answer, f"{answer['hidden']} hidden cells of {instance.n}", options)
    return OK


def _searched(run: Any, options: argparse.Namespace) -> dict[str, Any] | None:
    """What a search for a changed table gives; None if there is none, which is told."""
    instance = load(options.file)
    bar = _Bar(sys.stderr.isatty() and not options.json)
    try:
        answer: dict[str, Any] = run(instance, options, bar.update)
    except InfeasibleError as error:
        bar.close()
        _print_infeasible(error, options.json)
        return None
    bar.close()
    return answer


def _tell(answer: dict[str, Any], told: str, options: argparse.Namespace) -> None:
    """An answer as JSON, or in words and its table."""
    if options.json:
        print(json.dumps(answer))
        return
    print(told, file=sys.stdout if options.output else sys.stderr)
    print(answer.get("table", ""), end="")


def _convert(options: argparse.Namespace) -> int:
    convert(options.file, options.output, mark=options.mark)
    return OK


def _protect(options: argparse.Namespace) -> int:
    bar = _Bar(sys.stderr.isatty() and not options.json)
    try:
        answer = run_protect(options, bar.update)
    except InfeasibleError as error:
        bar.close()
        _print_infeasible(error, options.json)
        return INFEASIBLE
    bar.close()
    if options.json:
        print(json.dumps(answer))
        return OK
    for notice in answer["notices"]:
        print(f"note: {notice}", file=sys.stderr)
    told = "{status}: {cells} cells, {primaries} primary, {secondaries} secondary, cost {cost:.15g}"
    print(told.format(**answer), file=sys.stdout if options.out else sys.stderr)
    print(answer.get("table", ""), end="")
    return OK


def _pattern(instance: Instance, path: str | None) -> BoolArray:
    """Cells named in a file, with those hidden in every pattern; None: only the latter."""
    hidden = instance.always_hidden
    if path is None:
        return hidden
    text = read_text(path)
    if text.lstrip().startswith("{"):
        try:
            names = [str(name) for name in parse_json(text, path)["secondaries"]]
        except (KeyError, TypeError):
            raise InputError("expected the JSON of `solve`, with its secondaries.", file=path) from None
    else:
        names = [line.strip() for line in text.splitlines() if line.strip()]
    positions = {instance.name(i): i for i in range(instance.n)}
    unknown = [name for name in names if name not in positions]
    if unknown:
        raise InputError(f"there is no cell named {unknown[0]}.", file=path, line=names.index(unknown[0]) + 1)
    hidden[[positions[name] for name in names]] = True
    return hidden


def _write_pattern(instance: Instance, solution: Solution, path: str) -> None:
    lines = [instance.name(int(cell)) for cell in np.flatnonzero(solution.hidden)]
    Path(path).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _secondaries(instance: Instance, solution: Solution) -> list[str]:
    cells = np.flatnonzero(solution.hidden & (instance.status == Status.FREE))
    return [instance.name(int(cell)) for cell in cells]


def _exposure_json(exposure: Exposure) -> dict[str, Any]:
    return {
        "cell": exposure.name,
        "attacker": exposure.attacker,
        "interval": [_finite(v) for v in exposure.interval],
        "required": [_finite(v) for v in exposure.required[:2]],
        "required_width": exposure.required[2],
        "certificate": [
            {str(relation): number for relation, number in proof.items()} for proof in exposure.certificate
        ],
    }


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


class _Bar:
    """One line on a terminal that follows both bounds."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def update(self, progress: Progress) -> None:
        """Rewrite the line."""
        if self._on:
            gap = (progress.upper - progress.lower) / progress.upper if progress.upper > 0 else 0.0
            text = f"{progress.seconds:8.1f} s  {progress.lower:.6g} … {progress.upper:.6g}  gap {gap:.2%}"
            print(f"\r\x1b[K{text}  {progress.phase}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the line."""
        if self._on:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
