"""`python -m benchmarks.span_probabilities`: how good are the probabilities of names?

CoNLL-2002, Spanish and Dutch, first-order chains on the preset `names`. Spans get a probability in three ways: the exact one
of the whole span, and the average and the minimum of the marginals of its labels. The spans are those of the best labels
(Viterbi), or all whose exact probability is at least 0.001. Beside these: what is left of the labels whose marginals are
above a threshold, if all others become O.

There are two models: penalties are chosen by F1, as is usual, and by log-likelihood, which makes better probabilities.
They and all thresholds are chosen on testa; testb is asked once. ``--dev`` reports testa instead, and ``--quick`` is a
smoke test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, Outcome
from benchmarks.table import grid
from crfkit import CRF, Span
from crfkit.data import read_columns
from crfkit.evaluation import SpanCurve, span_calibration, span_precision_recall, spans

RESULTS = PROJECT / "benchmarks" / "results"
LANGUAGES = {"spanish": "esp", "dutch": "ned"}
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
PRECISIONS = (0.95, 0.99)
LEAST = 0.001  # probability of all spans
QUICK = 300  # sentences of each file
PASSES = 10

Spans = list[list[Span]]


class Data(NamedTuple):
    """Sentences as lists of words, and their labels."""

    X: list[list[tuple[str, ...]]]
    y: list[list[str]]


def read(language: str, split: str, limit: int | None) -> Data:
    """One file of the corpus."""
    path = corpus_path("conll2002", f"{LANGUAGES[language]}.{split}")
    rows = [sequence.rows for sequence in islice(read_columns(path, comment=None), limit)]
    return Data([[row[:1] for row in some] for some in rows], [[row[-1] for row in some] for some in rows])


def chosen(language: str, dev: Data, limit: int | None) -> dict[str, CRF]:
    """The models with the highest F1 and the highest log-likelihood on the development data."""
    train = read(language, "train", limit)
    models: list[tuple[CRF, dict[str, float]]] = []
    for l2 in PENALTIES:
        print(f"{language}, l2 = {l2} …", file=sys.stderr, flush=True)
        crf = CRF(features="names", l2=l2, n_threads=1).fit(*train)
        likelihood = float(crf.log_probability(dev.X, dev.y).sum())
        models.append((crf, {"F1": crf.score(*dev), "log-likelihood": likelihood}))
    return {by: max(models, key=lambda model: model[1][by])[0] for by in ("F1", "log-likelihood")}


def rated(crf: CRF, X: Sequence[Any]) -> dict[str, Spans]:
    """Spans with probabilities of three kinds: those of the best labels, and all."""
    marginals, best, column = (
        crf.predict_marginals(X),
        crf.predict(X),
        {b: k for k, b in enumerate(crf.classes_)},
    )
    found: dict[str, Spans] = {}
    for kind, exact in (
        ("viterbi", crf.predict_spans(X, decode="viterbi")),
        ("all", crf.predict_spans(X, LEAST)),
    ):
        found[f"{kind}, exact"] = exact
        for name, of in (("average", np.mean), ("minimum", np.min)):
            found[f"{kind}, {name}"] = [
                [
                    span._replace(probability=float(of(rows[range(span.start, span.end), ids])))
                    for span in some
                    for ids in [[column[label] for label in labels_of(span, labels, kind)]]
                ]
                for some, labels, rows in zip(exact, best, marginals, strict=True)
            ]
    return found


def labels_of(span: Span, best: list[str], kind: str) -> list[str]:
    """The labels of a span: those of the best label sequence, or those of the scheme."""
    if kind == "viterbi":
        return best[span.start : span.end]
    return [f"B-{span.label}", *[f"I-{span.label}"] * (span.end - span.start - 1)]


def area_of_marginals(crf: CRF, data: Data) -> float:
    """The area under precision and recall of the spans that are left of the labels above a threshold; others are O."""
    marginals = crf.predict_marginals(data.X)
    best = [(row.argmax(1), row.max(1)) for row in marginals]
    gold = [set(spans(labels)) for labels in data.y]
    points = []
    for threshold in np.concatenate([np.linspace(0, 0.99, 100), 1 - np.logspace(-2, -8, 40)]):
        correct = predicted = 0
        for right, (ids, probabilities) in zip(gold, best, strict=True):
            labels = [
                crf.classes_[b] if p >= threshold else "O" for b, p in zip(ids, probabilities, strict=True)
            ]
            found = set(spans(labels))
            correct += len(found & right)
            predicted += len(found)
        if predicted:
            points.append((correct / sum(map(len, gold)), correct / predicted))
    recall, area = 0.0, 0.0
    for r, p in sorted(points):
        area, recall = area + (r - recall) * p, r
    return area


def at_precision(dev: SpanCurve, test: SpanCurve) -> list[Outcome]:
    """For each precision, the threshold that reaches it on the development data, and what it gives on the test data."""
    rows = []
    for precision in PRECISIONS:
        threshold = dev.threshold_for(precision)
        found = test.at(2.0 if threshold is None else threshold)
        rows.append(
            {
                "wanted": precision,
                "threshold": threshold,
                "precision": found.precision,
                "recall": found.recall,
            }
        )
    return rows


def f1(gold: list[list[str]], found: Spans) -> float:
    """Of these spans."""
    return span_precision_recall(gold, found).at(0.0).f1


def seconds(crf: CRF, X: Sequence[Any]) -> dict[str, float]:
    """CPU seconds of the fastest of several passes, the questions in turn."""
    questions: dict[str, Callable[[], Any]] = {
        "predict_marginals": lambda: crf.predict_marginals(X),
        "predict_spans": lambda: crf.predict_spans(X),
        "predict_spans, threshold 0.01": lambda: crf.predict_spans(X, 0.01),
        "predict_spans, viterbi": lambda: crf.predict_spans(X, decode="viterbi"),
        "predict_spans, f1": lambda: crf.predict_spans(X, decode="f1"),
    }
    fastest = dict.fromkeys(questions, float("inf"))
    for _ in range(PASSES):
        for name, ask in questions.items():
            start = time.process_time()
            ask()
            fastest[name] = min(fastest[name], time.process_time() - start)
    return fastest


def figures(crf: CRF, dev: Data, test: Data) -> Outcome:
    """All figures of one model."""
    of_dev, of_test = rated(crf, dev.X), rated(crf, test.X)
    rows: dict[str, Any] = {}
    for name, found in of_test.items():
        curve = span_precision_recall(test.y, found)
        rows[name] = {
            "calibration_error": span_calibration(test.y, found).error,
            "area": curve.area,
            "at_precision": at_precision(span_precision_recall(dev.y, of_dev[name]), curve),
        }
    rows["labels above a threshold"] = {"area": area_of_marginals(crf, test)}
    return {
        "l2": crf.l2,
        "rows": rows,
        "f1": {
            "viterbi": f1(test.y, of_test["viterbi, exact"]),
            "f1": f1(test.y, crf.predict_spans(test.X, decode="f1")),
            "threshold 0.5": f1(test.y, crf.predict_spans(test.X)),
        },
        "seconds": seconds(crf, dev.X),
    }


def measure(language: str, limit: int | None, *, on_dev: bool) -> dict[str, Outcome]:
    """All figures of one language, by what its penalty is chosen."""
    dev = read(language, "testa", limit)
    models = chosen(language, dev, limit)
    test = dev if on_dev else read(language, "testb", limit)
    return {by: figures(crf, dev, test) for by, crf in models.items()}


def markdown(results: Outcome) -> str:
    """A table for each model."""
    blocks = [
        f"{results['machine']['processor']}, Python {results['machine']['python']}; one thread, CPU seconds."
    ]
    every = [
        (f"{language}, {results['test']}, l2 = {found['l2']} by {by}", found)
        for language, outcomes in results["languages"].items()
        for by, found in outcomes.items()
    ]
    for title, found in every:
        head = [title, "calibration error", "area"]
        head += (f"threshold for {p:.0%}: precision, recall" for p in PRECISIONS)
        table = []
        for name, row in found["rows"].items():
            error = f"{row['calibration_error']:.2%}" if "calibration_error" in row else ""
            cells = [name, error, f"{row['area']:.2%}"]
            for one in row.get("at_precision", [None] * len(PRECISIONS)):
                reached = one is not None and one["threshold"] is not None
                cells.append(
                    f"{one['threshold']:.4f}: {one['precision']:.2%}, {one['recall']:.2%}" if reached else ""
                )
            table.append(cells)
        blocks.append(grid(head, table))
        scores = ", ".join(f"{name} {value:.2%}" for name, value in found["f1"].items())
        base = found["seconds"]["predict_marginals"]
        times = ", ".join(f"{name} {s:.3f} s ({s / base:.2f})" for name, s in found["seconds"].items())
        blocks.append(f"F1: {scores}. Time on testa: {times}.")
    return "\n\n".join(blocks)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them with all figures to the folder of results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.span_probabilities", description="probabilities of names"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument("--dev", action="store_true", help="report the development data, do not read testb")
    parser.add_argument("--language", action="append", choices=list(LANGUAGES), help="only this one")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    given = parser.parse_args(arguments)
    limit = QUICK if given.quick else None
    found = {name: measure(name, limit, on_dev=given.dev) for name in given.language or LANGUAGES}
    results = {"machine": machine(), "test": "testa" if given.dev else "testb", "languages": found}
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "span_probabilities.md").write_text(text + "\n", encoding="utf-8")
        (out / "span_probabilities.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
