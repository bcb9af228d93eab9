"""`python -m benchmarks.segments`: what semi-Markov chains cost, and what they are worth on CoNLL-2000 chunks.

``iteration``: value and gradient of the training objective, segments beside a chain, with the features of the preset
`chunks`. ``lengths``: the same for random labels by the greatest length K of a segment, beside a K C + b C², fitted.
``accuracy``: F1, on a part of the training sentences unless ``--test`` asks the test file. One thread; ``--quick`` is a
smoke test.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.chunk_features import TAGGED, WIDE, second_tagger, with_tags
from benchmarks.knowledge import package_clusters
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, Outcome
from benchmarks.orders import FIFTH, QUICK, TASKS, Labels, Sentences, sentences
from benchmarks.use_log import log_test
from crfkit import CRF, Chain, Segments
from crfkit.evaluation import span_report, spans
from crfkit.features import PRESETS, Resource, Template, resource_lines
from crfkit.models.training.training_set import TrainingInput
from crfkit.objective import Objective
from crfkit.structures import segment_labels

RESULTS = PROJECT / "benchmarks" / "results"
REPEATS = 7  # evaluations; the fastest counts
LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
TYPES = (8, 24)
TASK = TASKS["chunks"]


def evaluation_seconds(model: CRF[Any], X: Any, y: Any) -> float:
    """CPU seconds of one value with its gradient, at random weights."""
    settings = model._settings()
    inputs, template = settings.fit_template(X)
    found = TrainingInput(inputs, y, None, settings, template, 1).learn()
    objective = Objective(found.model.potentials.loss(found.data, None, 1), l2=1.0)
    w = 0.1 * np.random.default_rng(0).normal(size=found.model.n_weights)
    objective.value_and_gradient(w)
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        objective.value_and_gradient(w)
        times.append(time.process_time() - start)
    return min(times)


def iteration(limit: int | None) -> Outcome:
    """Chain and segments on the training sentences."""
    X, y = sentences(TASK, TASK.train, limit)
    structures: dict[str, Chain | Segments] = {
        "chain": Chain(),
        "segments": Segments(),
        "segments, 5 lengths": Segments(longest_weighted=5),
    }
    found = {
        name: evaluation_seconds(CRF(structure, features=TASK.preset, n_threads=1), X, y)
        for name, structure in structures.items()
    }
    return {"words": sum(map(len, X)), "seconds": found}


def random_sequences(n_types: int, longest: int, n: int, length: int) -> tuple[Any, Labels]:
    """Sequences of random words and segments; each begins with a segment of every type."""
    random = np.random.default_rng(n_types)
    X, y = [], []
    for _ in range(n):
        labels: list[Any] = []
        for kind in range(n_types):
            labels += segment_labels(str(kind), min(longest, 2), "bio")
        while len(labels) < length:
            left = min(longest, length - len(labels))
            labels += segment_labels(str(random.integers(n_types)), int(random.integers(1, left + 1)), "bio")
        X.append([(str(random.integers(100)),) for _ in labels])
        y.append(labels)
    return X, y


def lengths(*, quick: bool) -> list[Outcome]:
    """Microseconds of a position by types and greatest length."""
    n, length = (2, 200) if quick else (4, 2000)
    found = []
    for n_types in TYPES[:1] if quick else TYPES:
        for longest in LENGTHS[:3] if quick else LENGTHS:
            X, y = random_sequences(n_types, longest, n, length)
            model = CRF(Segments(longest), features=Template.parse("U:%x[0,0]\nB", "words"), n_threads=1)
            seconds = evaluation_seconds(model, X, y)
            found.append({"types": n_types, "longest": longest, "microseconds": 1e6 * seconds / (n * length)})
            print(found[-1], file=sys.stderr, flush=True)
    return found


def fit(rows: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """a and b of microseconds = a K C + b C², by least squares of relative errors."""
    terms = np.array([[row["longest"] * row["types"], row["types"] ** 2] for row in rows])
    times = np.array([row["microseconds"] for row in rows])
    a, b = np.linalg.lstsq(terms / times[:, None], np.ones(len(rows)), rcond=None)[0]
    return float(a), float(b)


def tags(x: Any, start: int, end: int) -> list[str]:
    """Parts of speech of a segment and around it."""
    inside = [row[1] for row in x[start:end]]
    before, after = x[start - 1][1] if start else "<", x[end][1] if end < len(x) else ">"
    return [f"tags={' '.join(inside)}", f"ends={inside[0]} {inside[-1]}", f"around={before} {after}"]


def words(x: Any, start: int, end: int) -> list[str]:
    """The words of a segment of several."""
    inside = [row[0].lower() for row in x[start:end]]
    return [f"words={' '.join(inside)}", f"ends={inside[0]} {inside[-1]}"] if end - start > 1 else []


class Model(NamedTuple):
    """One way to find chunks."""

    structure: Callable[[], Chain | Segments]
    scheme: str
    features: str = TASK.preset
    min_count: int = 1
    clusters: bool = False  # English ones of spacy-lookups-data


MODELS = {
    "chain": Model(Chain, "bio"),
    "chain, IOBES": Model(Chain, "iobes"),
    "segments": Model(Segments, "bio"),
    "segments, IOBES": Model(Segments, "iobes"),
    "segments, IOBES, tags of segments": Model(partial(Segments, segment_features=tags), "iobes"),
    "segments, IOBES, words of segments": Model(partial(Segments, segment_features=words), "iobes"),
    "chain, IOBES, wide window": Model(Chain, "iobes", WIDE, 2),
    "segments, IOBES, wide window": Model(Segments, "iobes", WIDE, 2),
    "chain, IOBES, wide window, second tagger": Model(Chain, "iobes", TAGGED, 2),
    "segments, IOBES, wide window, second tagger": Model(Segments, "iobes", TAGGED, 2),
    "chain, IOBES, clusters": Model(Chain, "iobes", TASK.preset, 2, clusters=True),
    "chain, IOBES, wide window, second tagger, clusters": Model(Chain, "iobes", TAGGED, 2, clusters=True),
}
Data = tuple[Sentences, Labels]


def _usable() -> list[str]:
    """The models whose packages are installed."""
    known = importlib.util.find_spec("spacy_lookups_data") is not None
    return [name for name, model in MODELS.items() if known or not model.clusters]


def in_scheme(labels: Labels, scheme: str) -> Labels:
    """Labels of BIO in another scheme."""
    found: Labels = []
    for y in labels:
        written: list[Any] = ["O"] * len(y)
        for start, end, kind, _ in spans(y):
            written[start:end] = segment_labels(kind, end - start, scheme)
        found.append(written)
    return found


def split(limit: int | None, *, test: bool, quarter: int | None) -> tuple[Data, Data]:
    """What is learned from, and what is tested on: the test file, a quarter, or every fifth sentence."""
    X, y = sentences(TASK, TASK.train, limit)
    if test:
        return (X, y), sentences(TASK, TASK.test, limit)
    n = len(X)
    held = [i % FIFTH == FIFTH - 1 if quarter is None else 4 * i // n == quarter for i in range(n)]

    def part(wanted: bool) -> Data:
        chosen = [i for i, out in enumerate(held) if out == wanted]
        return [X[i] for i in chosen], [y[i] for i in chosen]

    return part(False), part(True)


def accuracy(
    parts: tuple[Data, Data], l2: float, names: Sequence[str], limit: int | None, *, test: bool
) -> dict[str, Outcome]:
    """F1 of chains and segments; uses of the test file are logged."""
    found = {}
    (X, y), (X_test, y_test) = parts
    columns: dict[bool, tuple[Sentences, Sentences]] = {}  # with tags of a tagger, by clusters
    for name in names:
        model = MODELS[name]
        resources = {"brown": package_clusters("en")} if model.clusters else {}
        data = X, X_test
        if model.features == TAGGED:
            if model.clusters not in columns:
                tagger = second_tagger(limit, resources)
                columns[model.clusters] = with_tags(tagger, X), with_tags(tagger, X_test)
            data = columns[model.clusters]
        found[name] = _accuracy(model, (data[0], y), (data[1], y_test), l2, resources)
        print(name, found[name], file=sys.stderr, flush=True)
        if test and limit is None:
            file = f"{TASK.folder}/{TASK.test}"
            log_test(file, f"segments: {name}, l2 = {l2}", found[name]["f1"])
            log_test(file, f'segments: {name}, l2 = {l2}, decode="f1"', found[name]["f1_expected"])
    return found


def _accuracy(model: Model, train: Data, test: Data, l2: float, resources: Mapping[str, Resource]) -> Outcome:
    start = time.process_time()
    structure = model.structure()
    whole = isinstance(structure, Segments) and structure.segment_features
    strength = {"default": l2, "segments": 4 * l2} if whole else l2
    features = model.features  # a preset has lines for resources
    if resources and features not in PRESETS:
        features += resource_lines(resources) + "\n"
    crf = CRF(
        structure, features, l2=strength, min_count=model.min_count, n_threads=1, resources=resources or None
    )
    crf.fit(train[0], in_scheme(train[1], model.scheme))
    seconds = time.process_time() - start
    gold = in_scheme(test[1], model.scheme)
    chosen = []
    for x, some in zip(test[0], crf.predict_spans(test[0], decode="f1"), strict=True):
        labels: list[Any] = ["O"] * len(x)
        for found in some:
            labels[found.start : found.end] = segment_labels(
                found.label, found.end - found.start, model.scheme
            )
        chosen.append(labels)
    return {
        "f1": span_report(gold, crf.predict(test[0])).overall.f1,
        "f1_expected": span_report(gold, chosen).overall.f1,
        "weights": len(crf.weights_),
        "fit_cpu": seconds,
    }


def markdown(results: Mapping[str, Any]) -> str:
    """The tables."""
    found = results["machine"]
    blocks = [f"{found['processor']}, Python {found['python']}; one thread, CPU time."]
    if "iteration" in results:
        seconds = results["iteration"]["seconds"]
        lines = ["| CoNLL-2000, value and gradient | seconds | × chain |", "|---|---:|---:|"]
        lines += [f"| {name} | {s:.3f} | {s / seconds['chain']:.2f} |" for name, s in seconds.items()]
        blocks.append("\n".join(lines))
    if "lengths" in results:
        rows = results["lengths"]
        a, b = fit(rows)
        lines = ["| types C | greatest length K | µs a position | a K C + b C² |", "|---:|---:|---:|---:|"]
        for row in rows:
            k, c = row["longest"], row["types"]
            lines.append(f"| {c} | {k:,} | {row['microseconds']:.2f} | {a * k * c + b * c * c:.2f} |")
        blocks.append("\n".join(lines) + f"\n\na = {1e3 * a:.3f} ns, b = {1e3 * b:.3f} ns.")
    if "accuracy" in results:
        head = f"| {results['of']} | F1 | F1, highest expected F1 | weights | training, s |"
        lines = [head, "|---|---:|---:|---:|---:|"]
        for name, row in results["accuracy"].items():
            rates = f"{row['f1']:.2%} | {row['f1_expected']:.2%}"
            lines.append(f"| {name} | {rates} | {row['weights']:,} | {row['fit_cpu']:.0f} |")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them with all figures to the folder of results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.segments", description="semi-Markov chains")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument(
        "--only", action="append", choices=["iteration", "lengths", "accuracy"], help="may be repeated"
    )
    parser.add_argument("--test", action="store_true", help="accuracy on the test file, not on training data")
    parser.add_argument(
        "--quarter", type=int, choices=range(4), help="hold out this one, whose articles are new"
    )
    parser.add_argument(
        "--model", action="append", choices=list(MODELS), help="only this one (may be repeated)"
    )
    parser.add_argument("--l2", type=float, default=1.0, help="penalty of the models of `accuracy` (1)")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    given = parser.parse_args(arguments)
    limit, only = QUICK if given.quick else None, given.only or ["iteration", "lengths", "accuracy"]
    results: dict[str, Any] = {"machine": machine()}
    if "iteration" in only:
        results["iteration"] = iteration(limit)
    if "lengths" in only:
        results["lengths"] = lengths(quick=given.quick)
    if "accuracy" in only:
        held_out = "every fifth training sentence" if given.quarter is None else f"quarter {given.quarter}"
        results["of"] = "the test file" if given.test else held_out
        parts = split(limit, test=given.test, quarter=given.quarter)
        results["accuracy"] = accuracy(parts, given.l2, given.model or _usable(), limit, test=given.test)
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "segments.md").write_text(text + "\n", encoding="utf-8")
        (out / "segments.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
