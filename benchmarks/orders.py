"""`python -m benchmarks.orders`: first order, all label n-grams, and the patterns that training finds by itself.

CoNLL-2000 chunking, and CoNLL-2002 names in Spanish and Dutch: the same local features and the same penalty for every
structure, one thread. ``--held-out`` tests on every fifth training sentence instead of the test file, for choices that the
test file should have no part in; ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, Outcome
from crfkit import CRF, Chain, Growth, Ngrams, Patterns
from crfkit.data import read_columns
from crfkit.evaluation import span_report

RESULTS = PROJECT / "benchmarks" / "results"
QUICK = 300  # sentences of each file
PASSES = 5  # over the test sentences; the fastest counts
FIFTH = 5

Sentences = list[list[tuple[str, ...]]]
Labels = list[list[str]]


class Task(NamedTuple):
    """A corpus, and the preset that makes its features."""

    title: str
    folder: str
    train: str
    test: str
    preset: str
    n_columns: int  # that the features are made of


TASKS = {
    "chunks": Task("CoNLL-2000 chunks", "conll2000", "train.txt", "test.txt", "chunks", 2),
    "spanish": Task("CoNLL-2002 names, Spanish", "conll2002", "esp.train", "esp.testb", "names", 1),
    "dutch": Task("CoNLL-2002 names, Dutch", "conll2002", "ned.train", "ned.testb", "names", 1),
}

STRUCTURES: dict[str, Callable[[], Chain | Patterns]] = {
    "1": Chain,
    "2": lambda: Patterns([Ngrams(3, min_count=3)]),
    "3": lambda: Patterns([Ngrams([3, 4], min_count=3)]),
    "auto": lambda: Patterns(grow=Growth()),
}
DEFAULT = ("1", "2", "auto")


def sentences(task: Task, file: str, limit: int | None) -> tuple[Sentences, Labels]:
    """The rows of a file, as far as features read them, and the labels."""
    found = [sequence.rows for sequence in islice(read_columns(corpus_path(task.folder, file)), limit)]
    inputs = [[row[: task.n_columns] for row in rows] for rows in found]
    return inputs, [[row[-1] for row in rows] for rows in found]


def fitted(order: str, task: Task, X: Sentences, y: Labels) -> tuple[CRF, Outcome]:
    """A model of one order, and what its training took."""
    start = time.process_time()
    crf = CRF(STRUCTURES[order](), features=task.preset, l2=1.0, n_threads=1, span_states=False).fit(X, y)
    return crf, {
        "fit_cpu": time.process_time() - start,
        "patterns": len(crf.pattern_names_),
        "rounds": [round._asdict() for round in getattr(crf, "growth_", [])],
    }


def measure(name: str, orders: Sequence[str], limit: int | None, *, held_out: bool) -> Outcome:
    """Train all orders, then tag with all of them in turn, so that a busy machine is busy for each."""
    task = TASKS[name]
    X, y = sentences(task, task.train, limit)
    if held_out:
        test = [part[FIFTH - 1 :: FIFTH] for part in (X, y)]
        X, y = ([one for i, one in enumerate(part) if i % FIFTH != FIFTH - 1] for part in (X, y))  # type: ignore[assignment]
    else:
        test = list(sentences(task, task.test, limit))
    X_test, y_test = test
    models, outcomes = {}, {}
    for order in orders:
        print(f"{task.title}, order {order} …", file=sys.stderr, flush=True)
        models[order], outcomes[order] = fitted(order, task, X, y)
    for order, crf in models.items():
        predicted = crf.predict(X_test)
        outcomes[order]["f1"] = span_report(y_test, predicted, "IOB2").overall.f1
    seconds: dict[str, list[float]] = {order: [] for order in orders}
    for _ in range(PASSES):
        for order, crf in models.items():
            start = time.process_time()
            crf.predict(X_test)
            seconds[order].append(time.process_time() - start)
    n_words = sum(map(len, X_test))
    for order, found in seconds.items():
        outcomes[order]["words_a_second"] = n_words / min(found)
    return {"sentences": len(X), "words": sum(map(len, X)), "held_out": held_out, "orders": outcomes}


def markdown(results: Mapping[str, Any]) -> str:
    """One table for each task."""
    found = results["machine"]
    blocks = [f"{found['processor']}, Python {found['python']}; one thread, CPU seconds."]
    for name, outcome in results["tasks"].items():
        where = "every fifth training sentence" if outcome["held_out"] else "the test file"
        head = f"| {TASKS[name].title}, order | F1 | patterns | training, s | words a second |"
        lines = [head, "|---|---:|---:|---:|---:|"]
        first = next(iter(outcome["orders"].values()))["words_a_second"]
        for order, row in outcome["orders"].items():
            speed = f"{row['words_a_second']:,.0f} ({row['words_a_second'] / first:.2f})"
            figures = (f"{row['f1']:.2%}", f"{row['patterns']:,}", f"{row['fit_cpu']:.0f}", speed)
            lines.append(f"| {order} | {' | '.join(figures)} |")
        size = f"{outcome['sentences']:,} training sentences, {outcome['words']:,} words; F1 on {where}."
        blocks.append("\n".join(lines) + f"\n\n{size}")
    return "\n\n".join(blocks)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them with all figures to the folder of results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.orders", description="first order and beyond")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument(
        "--task", action="append", choices=list(TASKS), help="only this one (may be repeated)"
    )
    parser.add_argument(
        "--order", action="append", choices=list(STRUCTURES), help="only this one (may be repeated)"
    )
    parser.add_argument("--held-out", action="store_true", help="test on every fifth training sentence")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    given = parser.parse_args(arguments)
    limit = QUICK if given.quick else None
    orders = given.order or DEFAULT
    tasks = {name: measure(name, orders, limit, held_out=given.held_out) for name in given.task or TASKS}
    results = {"machine": machine(), "tasks": tasks}
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "orders.md").write_text(text + "\n", encoding="utf-8")
        (out / "orders.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
