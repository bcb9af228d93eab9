"""`python -m benchmarks.optimizers`: every optimizer beside every method of python-crfsuite, on four corpora.

All minimise the same objective, on one thread, each in a process of its own; tables go to benchmarks/results/ and, with
``--plots FOLDER``, pictures of the descents to a folder. ``--quick`` is a smoke test on a part of the data that writes
no tables.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import machine
from benchmarks.measure import PROJECT, run_module
from benchmarks.plots import Axis, line_plot
from benchmarks.problems import PROBLEMS
from benchmarks.racing import ONLINE, Entry, Mark

RESULTS = PROJECT / "benchmarks" / "results"
GAPS = (1e-2, 1e-4, 1e-6)  # relative distances (f − f*) / f*
EPOCHS = (1, 3, 10)
EXACT = {"tolerance": 1e-9, "change": 0.0}  # no early stop


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    part: float = 1.0  # share of the sequences
    iterations: int = 1000  # of methods that see all data at once
    passes: int = 30  # of stochastic ones
    epochs: int = 10  # of those that go from mistake to mistake
    repeats: int = 2


QUICK = Plan(part=0.02, iterations=5, passes=2, epochs=2, repeats=1)


def entries(problem: str, plan: Plan) -> list[Entry]:
    """Everybody who takes part."""
    batch = [Entry(problem, "crfsuite", "lbfgs", plan.iterations)]
    batch += [
        Entry(problem, "crfkit", method, plan.iterations, EXACT) for method in ("lbfgs", "tron", "newton")
    ]
    stochastic = [Entry(problem, "crfsuite", "l2sgd", plan.passes)]
    stochastic += [Entry(problem, "crfkit", method, plan.passes) for method in ("sgd", "adagrad", "sag")]
    online = [Entry(problem, "crfsuite", method, plan.epochs, scored=True) for method in ("ap", "pa", "arow")]
    online += [Entry(problem, "crfkit", method, plan.epochs, scored=True) for method in ONLINE]
    return [replace(entry, part=plan.part) for entry in (*batch, *stochastic, *online)]


class Descent(NamedTuple):
    """What one entry did; of each iteration the least seconds of all repeats."""

    entry: Entry
    marks: tuple[Mark, ...]

    @property
    def name(self) -> str:
        """Toolkit and method."""
        return f"{self.entry.toolkit} {self.entry.method}"

    def reached(self, level: float) -> Mark | None:
        """The first mark with an objective up to this level; None where there is none."""
        return next(
            (mark for mark in self.marks if mark.objective is not None and mark.objective <= level), None
        )

    def gaps(self, optimum: float, by: str) -> list[tuple[float, float]]:
        """(seconds or passes, relative gap) of all marks."""
        return [
            (max(getattr(mark, by), 1e-3), max((mark.objective - optimum) / optimum, 1e-12))
            for mark in self.marks
            if mark.objective is not None
        ]


def run(entry: Entry) -> list[Mark]:
    """One training in a process of its own."""
    return [Mark(*mark) for mark in run_module("racing", json.dumps(asdict(entry)), n_threads=1)]


def race(problem: str, plan: Plan, methods: Sequence[str] | None) -> list[Descent]:
    """All entries of a problem, the repeats of all taking turns."""
    taking_part = [entry for entry in entries(problem, plan) if methods is None or entry.method in methods]
    runs: dict[int, list[list[Mark]]] = {i: [] for i in range(len(taking_part))}
    for _ in range(plan.repeats):
        for i, entry in enumerate(taking_part):
            marks = run(entry)
            runs[i].append(marks)
            print(f"{problem}: {entry.toolkit} {entry.method} {marks[-1]}", file=sys.stderr, flush=True)
    return [Descent(entry, fastest(runs[i])) for i, entry in enumerate(taking_part)]


def fastest(runs: Sequence[Sequence[Mark]]) -> tuple[Mark, ...]:
    """The same descent several times: the sum of the least seconds of each iteration."""
    total, before, found = 0.0, [0.0] * len(runs), []
    for marks in zip(*runs, strict=False):
        total += min(mark.seconds - last for mark, last in zip(marks, before, strict=True))
        before = [mark.seconds for mark in marks]
        found.append(marks[0]._replace(seconds=total))
    return tuple(found)


def lowest(descents: Sequence[Descent]) -> float:
    """f*: the lowest objective that anybody saw."""
    return min(
        (
            mark.objective
            for descent in descents
            if not descent.entry.scored and descent.entry.method != "l2sgd"
            for mark in descent.marks
            if mark.objective is not None
        ),
        default=math.nan,
    )


def objective_table(descents: Sequence[Descent], optimum: float) -> str:
    """Seconds and passes to each gap, of all methods that minimise the objective."""
    head = ["method", "seconds a pass"]
    head += [f"{what} to {gap:.0e}" for gap in GAPS for what in ("seconds", "passes")] + ["last gap"]
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    for descent in descents:
        if descent.entry.scored:
            continue
        last = descent.marks[-1]
        cells = [descent.name, f"{last.seconds / max(last.passes, 1.0):.3f}"]
        for gap in GAPS:
            mark = None if descent.entry.method == "l2sgd" else descent.reached(optimum * (1 + gap))
            cells += ["–", "–"] if mark is None else [f"{mark.seconds:.2f}", f"{mark.passes:.0f}"]
        gap = math.nan if last.objective is None else (last.objective - optimum) / optimum
        lines.append(_line([*cells, f"{gap:.1e}"]))
    return "\n".join([*lines, "", *_ratios(descents, optimum)])


def _ratios(descents: Sequence[Descent], optimum: float) -> list[str]:
    """How many times faster our best method is than the best of python-crfsuite."""
    lines = []
    for gap in GAPS:
        best = {}
        for toolkit in ("crfsuite", "crfkit"):
            marks = [
                (mark.seconds, descent.entry.method)
                for descent in descents
                if descent.entry.toolkit == toolkit and descent.entry.method != "l2sgd"
                if not descent.entry.scored and (mark := descent.reached(optimum * (1 + gap))) is not None
            ]
            best[toolkit] = min(marks, default=None)
        theirs, our = best["crfsuite"], best["crfkit"]
        if theirs is not None and our is not None:
            words = f"{our[1]} {our[0]:.2f} s, python-crfsuite's {theirs[1]} {theirs[0]:.2f} s"
            lines.append(f"To a gap of {gap:.0e}: {words}, {theirs[0] / our[0]:.1f} times faster.")
    return lines


def online_table(descents: Sequence[Descent]) -> str:
    """Seconds an epoch and test accuracy of the methods that go from mistake to mistake."""
    head = ["method", "seconds an epoch", "times faster", *(f"accuracy after {k}, %" for k in EPOCHS)]
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    online = [descent for descent in descents if descent.entry.scored]
    theirs = [descent for descent in online if descent.entry.toolkit == "crfsuite"]
    ours = [descent for descent in online if descent.entry.toolkit == "crfkit"]
    for i, descent in enumerate((*theirs, *ours)):
        seconds = descent.marks[-1].seconds / len(descent.marks)
        times = "–"
        if descent.entry.toolkit == "crfkit" and len(theirs) == len(ours):
            rival = theirs[i - len(theirs)].marks
            times = f"{rival[-1].seconds / len(rival) / seconds:.1f}×"
        marks = [descent.marks[k - 1] if k <= len(descent.marks) else None for k in EPOCHS]
        scores = ["–" if m is None or m.accuracy is None else f"{100 * m.accuracy:.2f}" for m in marks]
        lines.append(_line([descent.name, f"{seconds:.3f}", times, *scores]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def plots(problem: str, descents: Sequence[Descent], optimum: float, folder: Path) -> None:
    """Pictures of the gap against seconds and against passes, and of test errors against seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = error_plot(problem, [descent for descent in descents if descent.entry.scored])
    (folder / f"optimizers-{problem}-errors.svg").write_text(picture, encoding="utf-8")
    shown = [descent for descent in descents if not descent.entry.scored]
    for by, title in (("seconds", "CPU seconds"), ("passes", "passes over the data")):
        lines = {descent.name: descent.gaps(optimum, by) for descent in shown}
        along = [point[0] for points in lines.values() for point in points]
        x = Axis(title, min(along), max(along) * 1.05)
        y = Axis("relative gap (f − f*) / f*", 1e-8, 1e1)
        dashed = frozenset(descent.name for descent in shown if descent.entry.toolkit == "crfsuite")
        picture = line_plot(PROBLEMS[problem].title, x, y, lines, dashed)
        (folder / f"optimizers-{problem}-{by}.svg").write_text(picture, encoding="utf-8")


def error_plot(problem: str, descents: Sequence[Descent]) -> str:
    """The share of test labels that are wrong, against seconds, of the methods that go from mistake to mistake."""
    lines = {
        descent.name: [
            (mark.seconds, 1 - mark.accuracy) for mark in descent.marks if mark.accuracy is not None
        ]
        for descent in descents
    }
    points = [point for line in lines.values() for point in line]
    seconds, errors = [point[0] for point in points] or [1.0], [point[1] for point in points] or [1.0]
    x = Axis("CPU seconds", 0.9 * min(seconds), 1.1 * max(seconds))
    y = Axis("test labels that are wrong", 0.9 * min(errors), 1.1 * max(errors))
    dashed = frozenset(descent.name for descent in descents if descent.entry.toolkit == "crfsuite")
    return line_plot(PROBLEMS[problem].title, x, y, lines, dashed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Race on the problems asked for, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optimizers", description=__doc__)
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS), help="default: all")
    parser.add_argument("--method", action="append", help="only these, of both toolkits; default: all")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--plots", type=Path, help="folder for pictures")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    plan = QUICK if options.quick else Plan()
    if options.repeats is not None:
        plan = replace(plan, repeats=options.repeats)
    found = machine()
    parts = [
        f"{found['processor']}, {found['cores']} cores, load {found['load']:.1f}; CPU seconds of one thread."
    ]
    for problem in options.problem or PROBLEMS:
        descents = race(problem, plan, options.method)
        optimum = lowest(descents)
        parts.append(f"## {PROBLEMS[problem].title}\n\nf* = {optimum:,.4f}, l2 = {PROBLEMS[problem].l2}")
        parts += [objective_table(descents, optimum), online_table(descents)]
        if options.plots is not None:
            plots(problem, descents, optimum, options.plots)
        report = "\n\n".join(parts) + "\n"
        if not options.quick:
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / "optimizers.md").write_text(report, encoding="utf-8")
    print(report)


if __name__ == "__main__":
    main()
