"""The results of the chain benchmark as Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.tasks import TASKS

Row = dict[str, Any]

# (what the reader sees, key of the figure, how it is written, whether more is better; None: not compared)
FIGURES: tuple[tuple[str, str, str, bool | None], ...] = (
    ("seconds per iteration", "seconds_per_iteration", ".3f", False),
    ("seconds to a relative gap of 1e-4", "seconds_to_gap", ".1f", False),
    ("`fit` of {iterations} iterations from Python lists, seconds", "fit_seconds", ".1f", False),
    ("tagging from Python lists, tokens per second", "tokens_per_second", ",.0f", True),
    ("peak memory beyond the input, MB", "peak_mb", ".0f", False),
    ("model file, MB", "model_mb", ".1f", False),
    ("objective after {iterations} iterations", "objective", ",.2f", None),
    ("token accuracy, %", "accuracy", ".2%", None),
    ("span F1, %", "f1", ".2%", None),
)


def markdown(results: dict[str, Any]) -> str:
    """Everything that was measured, one table for each kind of measurement."""
    parts = [_machine(results["machine"])]
    parts += [_speed(name, outcome) for name, outcome in results["speed"].items()]
    if results["optimum"]:
        parts += [_optimum(name, outcome["rows"]) for name, outcome in results["optimum"].items()]
    if results["scaling"]:
        parts.append(_scaling(results["scaling"]))
    if results["startup"] is not None:
        parts.append(_startup(results["startup"]))
    return "\n\n".join(parts)


def _machine(machine: dict[str, Any]) -> str:
    return (
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}; "
        "best of repeats; one thread: CPU seconds, two threads: seconds by the wall clock; "
        "in brackets: how many times better than python-crfsuite."
    )


def grid(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table, numbers to the right."""
    head = list(head)
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _written(value: float | None, how: str) -> str:
    if value is None:
        return "–"
    if math.isinf(value):
        return "not reached"
    return format(value, how).removesuffix("%")


def _speed(name: str, outcome: dict[str, Any]) -> str:
    rows: list[Row] = outcome["rows"]
    rival = next((row for row in rows if row["toolkit"] == "crfsuite"), None)
    head = [TASKS[name].title, *(f"{row['version']}, {_threads(row['n_threads'])}" for row in rows)]
    lines = []
    for title, key, how, more_is_better in FIGURES:
        if any(row[key] is not None for row in rows):
            cells = [_written(row[key], how) + _times(row, rival, key, more_is_better) for row in rows]
            lines.append([title.format(iterations=outcome["iterations"]), *cells])
    return grid(head, lines)


def _threads(n_threads: int) -> str:
    return f"{n_threads} thread{'s' * (n_threads > 1)}"


def _times(row: Row, rival: Row | None, key: str, more_is_better: bool | None) -> str:
    """How many times better than the rival, in brackets."""
    if rival is None or row is rival or more_is_better is None or row[key] is None:
        return ""
    better: Callable[[float, float], float] = (lambda a, b: a / b) if more_is_better else (lambda a, b: b / a)
    if math.isinf(row[key]) or math.isinf(rival[key]):
        return ""
    return f" ({better(row[key], rival[key]):.1f}×)"


def _optimum(name: str, rows: list[Row]) -> str:
    head = [f"{TASKS[name].title}, to convergence", *(row["version"] for row in rows)]
    figures = (
        ("objective", "objective", ",.3f"),
        ("iterations", "iterations", "d"),
        ("`fit`, seconds", "fit_seconds", ".1f"),
        ("token accuracy, %", "accuracy", ".3%"),
        ("span F1, %", "f1", ".2%"),
    )
    return grid(head, ([title, *(_written(row[key], how) for row in rows)] for title, key, how in figures))


def _scaling(scaling: dict[str, Any]) -> str:
    lines = []
    for name, outcome in scaling.items():
        first = outcome["rows"][0]
        for row in outcome["rows"]:
            seconds = row["seconds_per_iteration"]
            per_token = seconds / row["tokens"]
            growth = per_token / (first["seconds_per_iteration"] / first["tokens"])
            lines.append(
                [
                    f"{name}, {row['copies']}× the data",
                    f"{row['tokens']:,}",
                    f"{seconds:.3f}",
                    f"{growth:.2f}",
                ]
            )
    return grid(["crfkit, 1 thread", "tokens", "seconds per iteration", "per token, relative to 1×"], lines)


def _startup(startup: dict[str, float]) -> str:
    lines = [
        ["chunk F1, %", f"{100 * startup['f1']:.2f}"],
        ["model file, MB", f"{startup['model_mb']:.1f}"],
        ["`import crfkit`, seconds", f"{startup['import']:.3f}"],
        ["`crfkit tag` of one sentence from a cold start, seconds", f"{startup['tag']:.3f}"],
    ]
    return grid(["chunking with the preset `chunks`", "crfkit"], lines)
