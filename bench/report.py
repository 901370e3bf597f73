"""What the benchmark writes: a table, the bars that the solver is held to, and a performance profile."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from judge import CHECKED


@dataclass(frozen=True)
class Answer:
    """What a method gave for an instance.

    Attributes
    ----------
    cost, seconds, bound
        NaN where there is none.
    exposures, independent
        Exposed cells by our audit and by the independent one; negative where there was none to the end.
    proven
        Does the method call it optimal?
    note
        Why there is no answer.
    """

    cost: float = float("nan")
    seconds: float = float("nan")
    bound: float = float("nan")
    exposures: int = -1
    independent: int = -1
    proven: bool = False
    note: str = ""

    @property
    def there(self) -> bool:
        """Is there an answer, safe or not?"""
        return not np.isnan(self.cost)

    @property
    def safe(self) -> bool:
        """Did both audits pass?"""
        return self.exposures == 0 and self.independent == 0

    def line(self) -> str:
        """For the terminal."""
        if not self.there:
            return self.note
        proven = "\tproven" if self.proven else ""
        exposed = f"exposed {self.exposures}/{self.independent}"
        return f"cost {self.cost:,.0f}\tbound {self.bound:,.0f}\t{self.seconds:.2f} s\t{exposed}{proven}"


@dataclass(frozen=True)
class Result:
    """All answers for an instance of so many cells; `best` is the least cost known of a safe one, or NaN."""

    name: str
    cells: int
    best: float
    answers: dict[str, Answer]

    def over(self, answer: Answer) -> float:
        """How much dearer than the best an answer is, as a part of that."""
        return (answer.cost - self.best) / self.best if self.best else float(answer.cost > 0)


def table(results: list[Result], methods: list[str]) -> str:
    """Markdown: cost, seconds and what the audits say, per instance and method."""
    lines = [
        "| instance | cells | best | " + " | ".join(methods) + " |",
        "|---|---:|---:|" + "---:|" * len(methods),
    ]
    for result in results:
        entries = []
        for method in methods:
            answer = result.answers[method]
            if not answer.there:
                entries.append(answer.note)
                continue
            text = f"{result.over(answer):+.1%} · {answer.seconds:.2f} s"
            if not answer.safe:
                text = f"**{max(answer.exposures, answer.independent)} exposed** · {text}"
            entries.append(text + (" ✓" if answer.proven else ""))
        lines.append(
            f"| {result.name} | {result.cells:,} | {result.best:,.0f} | " + " | ".join(entries) + " |"
        )
    return "\n".join(lines)


def summary(results: list[Result], methods: list[str]) -> str:
    """Markdown: each method over all instances."""
    lines = [
        "| method | answered | exposed somewhere | proven or claimed | geometric mean of seconds |",
        "|---|---:|---:|---:|---:|",
    ]
    for method in methods:
        answers = [r.answers[method] for r in results if r.answers[method].there]
        exposed, proven = sum(not a.safe for a in answers), sum(a.proven for a in answers)
        mean = _mean([a.seconds for a in answers])
        lines.append(f"| {method} | {len(answers)} of {len(results)} | {exposed} | {proven} | {mean:.2f} |")
    return "\n".join(lines)


def bars(results: list[Result]) -> str:
    """Markdown: what the solver is held to, and where it falls short."""
    return "\n".join(
        [
            *_against_optimal(results),
            *_against_modular(results),
            *_against_gconfid(results),
            *_quality(results),
        ]
    )


def _against_optimal(results: list[Result]) -> list[str]:
    pairs = [(r.name, r.answers["exact"], r.answers["τ-Argus OPT"]) for r in results]
    both = [(ours.seconds, its.seconds) for _, ours, its in pairs if ours.proven and its.proven]
    ratio = _mean([max(ours, 1e-3) / max(its, 1e-3) for ours, its in both])
    ours_alone = [name for name, ours, its in pairs if ours.proven and not its.proven]
    its_alone = [name for name, ours, its in pairs if its.proven and not ours.proven]
    disagree = [
        name
        for name, ours, its in pairs
        if ours.proven and its.proven and abs(ours.cost - its.cost) > 1e-6 * ours.cost
    ]
    dearer = [
        f"{name} ({ours.cost / its.cost - 1:+.1%})"
        for name, ours, its in pairs
        if its.safe and not its.proven and not (ours.cost <= its.cost * (1 + 1e-9))
    ]
    return [
        f"- *exact* against τ-Argus OPT: seconds over its seconds, geometric mean of the {len(both)}"
        f" instances that both prove: **{ratio:.2f}**. Proven by *exact* alone: {_names(ours_alone)};"
        f" by τ-Argus alone: {_names(its_alone)}; proven at different costs: {_names(disagree)};"
        f" dearer than a safe answer of it that it does not prove: {_names(dearer)}."
    ]


def _against_modular(results: list[Result]) -> list[str]:
    lines = []
    pairs = [(r, r.answers["τ-Argus modular"], r.answers["auto (2× modular)"]) for r in results]
    exposed = [f"{r.name} ({its.exposures})" for r, its, _ in pairs if its.there and not its.safe]
    safe = [(r.name, its, ours) for r, its, ours in pairs if its.safe]
    dearer = [
        f"{name} ({ours.cost / its.cost - 1:+.1%} in {ours.seconds:.2f} s)" if ours.there else name
        for name, its, ours in safe
        if not ours.cost <= its.cost * (1 + 1e-9)
    ]
    late = [
        f"{name} ({ours.seconds:.2f} s instead of {2 * its.seconds:.2f})"
        for name, its, ours in safe
        if ours.there and ours.seconds > max(2 * its.seconds * 1.05, 2 * its.seconds + 1)
    ]
    lines.append(
        f"- *auto* in twice the time of τ-Argus modular: that exposes cells of {len(exposed)} instances:"
        f" {_names(exposed)}. Of the {len(safe)} where it is safe, *auto* is dearer on {len(dearer)}:"
        f" {_names(dearer)}; more than 1 s and 5% late: {_names(late)}."
    )
    return lines


def _against_gconfid(results: list[Result]) -> list[str]:
    pairs = [(r.name, r.answers["auto (1× G-Confid)"], r.answers["G-Confid"]) for r in results]
    safe = [(name, ours, its) for name, ours, its in pairs if its.there]
    dearer = [name for name, ours, its in safe if its.safe and not ours.cost <= its.cost * (1 + 1e-9)]
    slower = []
    for name, ours, its in safe:
        if ours.seconds > its.seconds:
            slower.append(f"{name} ({ours.seconds:.1f} s, {its.seconds:.1f} s)")
    unsafe = [name for name, _, its in safe if not its.safe]
    fast = []
    for r in results:
        its = r.answers["G-Confid"]
        if its.there and not any(
            a.safe and a.seconds <= its.seconds and (not its.safe or a.cost <= its.cost * (1 + 1e-9))
            for m, a in r.answers.items()
            if m not in ("τ-Argus OPT", "τ-Argus modular", "G-Confid")
        ):
            fast.append(r.name)
    return [
        f"- G-Confid answers {len(safe)} instances, with exposed cells on {_names(unsafe)}. *auto*"
        f" in its time is dearer on {_names(dearer)}, slower on {_names(slower)}; none of our methods is as"
        f" cheap and as fast on {_names(fast) if fast else 'no instance'}."
    ]


def _quality(results: list[Result]) -> list[str]:
    over = {r.name: r.over(r.answers["auto"]) for r in results if r.answers["auto"].safe}
    if not over:
        return []
    values = np.array(list(over.values()))
    worst = sorted(over, key=lambda name: -over[name])[:5]
    median, high = np.quantile(values, 0.5), np.quantile(values, 0.95)
    shown = [f"{name} ({over[name]:+.1%})" for name in worst if over[name] > 0.01]
    return [
        f"- *auto* over the best safe cost known: median {median:.2%}, 95% within {high:.2%}; within"
        f" 1% on {(values <= 0.01).sum()}, within 5% on {(values <= 0.05).sum()} of {len(values)}."
        f" Worst: {_names(shown)}."
    ]


def _names(names: list[str]) -> str:
    return ", ".join(names) or "none"


def _mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-3))))) if values else float("nan")


def profile(results: list[Result], methods: list[str]) -> str:
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
        "#c27ba0",
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
        for result in results:
            answer = result.answers[method]
            ratios.append(result.over(answer) + 1 if answer.safe else np.inf)
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


def write(docs: Path, results: list[Result], methods: list[str], seconds: float, ours: float) -> None:
    """docs/benchmarks.md and docs/benchmarks.svg."""
    (docs / "benchmarks.svg").write_text(profile(results, methods))
    machine = f"{platform.machine()}, {os.cpu_count()} processors"
    less = f", ours {ours:g} (*exact* {seconds:g} where τ-Argus OPT proves and it does not, or is cheaper)"
    text = f"""# Benchmarks of the solver

Written by `make bench-solver` on {time.strftime("%Y-%m-%d")}: {machine}, one thread, {seconds:g} seconds for
each answer{less if ours < seconds else ""}, 10 for
*auto*; *auto (2× modular)* has twice what τ-Argus modular took, *auto (1× G-Confid)* what G-Confid did.
Seconds are CPU seconds of the search, limits too. Costs are over the best safe cost known, of this run or an
earlier one; ✓ marks an answer that its method calls optimal. **Exposed** counts sensitive cells that an audit
can narrow down too far: every answer goes through our audit, and up to {CHECKED} of its targets through one
linear program each by scipy, which shares nothing with the solver. An answer that exposes a cell is none.

τ-Argus OPT checks its limit only between rounds of cuts and counts in whole minutes; its modular method
takes tables alone. G-Confid protects by half the value of each cell and knows no external bounds, so that
it hides more.

## What was wanted, and what was found

{bars(results)}

## Methods

{summary(results, methods)}

![Part of the instances answered safely within a factor of the best cost](benchmarks.svg)

## Instances

{table(results, methods)}
"""
    (docs / "benchmarks.md").write_text(text)
