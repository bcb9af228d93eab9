"""By which number models are judged: F1 of spans where labels are spans, in `score`, dev sets, scorers and commands."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from crfkit import CRF, LBFGS, Checkpoint, Parser, load
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, FunctionError, ShapeError, UnsupportedError
from crfkit.evaluation import METRICS, TREE_METRICS, Metric, evaluate, evaluate_trees, make_scorer, metric_for
from crfkit.models import CheckpointMismatchError, Progress
from tests.cli.commands import run
from tests.oracles.treebanks import random_treebank

Labels = list[list[str]]
SHORT = LBFGS(max_iterations=8)
TREES = random_treebank([1, 3, 5, 8, 4, 6] * 2, 0)


def span_corpus(n: int = 40, seed: int = 0) -> tuple[list[list[str]], Labels]:
    """Words with IOB2 labels, noisy, so that spans and labels are not equally easy."""
    draw = random.Random(seed)
    X: list[list[str]] = []
    y: Labels = []
    for _ in range(n):
        words: list[str] = []
        labels: list[str] = []
        while len(words) < draw.randint(3, 9):
            kind = draw.choice(["PER", "LOC", None, None])
            if kind is None:
                words.append(draw.choice(["sees", "the", "Bo", "of"]))
                labels.append("O")
            else:
                for i in range(draw.randint(1, 3)):
                    words.append(
                        draw.choice({"PER": ["Ann", "Bo", "of"], "LOC": ["York", "Bo", "the"]}[kind])
                    )
                    labels.append(f"{'I' if i else 'B'}-{kind}")
        X.append(words)
        y.append(labels)
    return X, y


def iob2_spans(labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """Spans of IOB2 as read by a cursor; an I without its B begins a span."""
    found, i = set(), 0
    while i < len(labels):
        begin, kind = i, labels[i][2:]
        i += 1
        if kind:
            while i < len(labels) and labels[i] == f"I-{kind}":
                i += 1
            found.add((begin, i, kind))
    return found


def span_figures(gold: Labels, predicted: Labels, weights: Sequence[float] | None = None) -> dict[str, float]:
    """Precision, recall and F1, written without the package."""
    right = guessed = known = 0.0
    for g, p, weight in zip(gold, predicted, weights or [1.0] * len(gold), strict=True):
        a, b = iob2_spans(g), iob2_spans(p)
        right += weight * len(a & b)
        known += weight * len(a)
        guessed += weight * len(b)
    precision, recall = right / guessed, right / known
    return {"precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall)}


@pytest.fixture(scope="module")
def trained() -> CRF:
    return CRF(features="names", optimizer=SHORT).fit(*span_corpus())


def test_the_score_of_span_labels_is_the_f1_of_spans(trained: CRF) -> None:
    X, y = span_corpus(30, seed=1)
    predicted = trained.predict(X)
    wanted = span_figures(y, predicted)
    right = sum(g == p for a, b in zip(y, predicted, strict=True) for g, p in zip(a, b, strict=True))
    accuracy = right / sum(map(len, y))
    assert trained.score(X, y) == pytest.approx(wanted["f1"], rel=1e-12)
    assert wanted["f1"] < accuracy - 0.05
    for name, value in wanted.items():
        assert trained.score(X, y, metric=name) == pytest.approx(value, rel=1e-12)
    assert trained.score(X, y, metric="accuracy") == pytest.approx(accuracy, rel=1e-12)
    whole = [g == p for g, p in zip(y, predicted, strict=True)]
    assert trained.score(X, y, metric="sequence_accuracy") == pytest.approx(
        sum(whole) / len(whole), rel=1e-12
    )
    assert trained.score(X, y, metric=lambda gold, guess: len(gold) + (guess == predicted)) == 31.0


@pytest.mark.parametrize("name", METRICS)
def test_a_weight_counts_a_sequence_so_many_times(trained: CRF, name: str) -> None:
    X, y = span_corpus(8, seed=2)
    weights = [0, 1, 2, 3, 1, 2, 0, 5]
    again = [n for n, weight in enumerate(weights) for _ in range(weight)]
    repeated = trained.score([X[n] for n in again], [y[n] for n in again], metric=name)
    assert trained.score(X, y, weights, metric=name) == pytest.approx(repeated, rel=1e-12)
    with pytest.raises(ShapeError):
        METRICS[name](y, y, sample_weight=[1.0, 2.0])


def test_unknown_labels_leave_accuracy(trained: CRF) -> None:
    X = [["Ann", "sees"]]
    first = trained.predict(X)[0][0]
    assert trained.score(X, [[first, None]]) == 1.0
    assert trained.score(X, [[{first, "B-LOC"}, "no such label"]]) == 0.5
    with pytest.raises(ArgumentError, match="the gold label is None, expected one label"):
        trained.score(X, [[first, None]], metric="f1")
    assert trained.score(X, [[first, "no such label"]]) == 0.5  # not a label of spans: accuracy


def test_the_default_metric() -> None:
    assert metric_for({"O", "B-X", "I-X"}) == Metric("f1") == metric_for({"O"}, [["O"], ["S-X", "E-X"]])
    for labels, gold in (({"N", "V"}, ()), ({"O"}, [["O"]]), ({"B-X"}, [["N"]]), ({"B-X"}, [["O", None]])):
        assert metric_for(labels, gold) == Metric("accuracy")
    assert [Metric(name).title for name in ("f1", "sequence_accuracy")] == ["F1", "sequence accuracy"]


def test_metrics_that_there_are_not_are_refused(trained: CRF) -> None:
    X, y = span_corpus(3)
    attempts: list[Any] = [
        lambda: trained.score(X, y, metric="F1"),
        lambda: CRF().fit(X, y, dev=(X, y), metric="F1"),
        lambda: make_scorer("F1"),
        lambda: Metric("F1"),
    ]
    for attempt in attempts:
        with pytest.raises(ArgumentError, match="metric"):
            attempt()
    with pytest.raises(ArgumentError, match=r"metric .*; for a parser, one of las"):
        make_scorer("F1")
    for attempt in (
        lambda: trained.score(X, y, metric=evaluate),  # type: ignore[arg-type]
        lambda: CRF(features="pos").fit(X, y, dev=(X, y), metric=evaluate),  # type: ignore[arg-type]
        lambda: make_scorer(evaluate)(trained, X, y),  # type: ignore[arg-type]
    ):
        with pytest.raises(
            FunctionError, match="the metric gave an object of type Evaluation, expected a number"
        ):
            attempt()
    with pytest.raises(ArgumentError, match="metric"):
        trained.score(X, y, metric=7)  # type: ignore[arg-type]


def test_a_dev_set_is_judged_by_the_same_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, dev = span_corpus(), span_corpus(20, seed=3)
    seen: list[Progress] = []
    crf = CRF(features="names", optimizer=SHORT).fit(*train, dev=dev, callback=seen.append)
    scores = [progress.dev_score or 0.0 for progress in seen]
    best = crf.predict(dev[0])
    assert max(scores) == crf.score(*dev) == pytest.approx(span_figures(dev[1], best)["f1"])
    by_accuracy: list[Progress] = []
    CRF(features="names", optimizer=SHORT).fit(
        *train, dev=dev, metric="accuracy", callback=by_accuracy.append
    )
    assert scores != [progress.dev_score or 0.0 for progress in by_accuracy]
    # The command line keeps the same numbers.
    monkeypatch.chdir(tmp_path)
    for name, (X, y) in (("train.txt", train), ("dev.txt", dev)):
        rows = ("".join(f"{w} {t}\n" for w, t in zip(*pair, strict=True)) for pair in zip(X, y, strict=True))
        Path(name).write_text("\n".join(rows))
    options = ("--features", "names", "--dev", "dev.txt", "--set", "max_iterations=8", "--quiet")
    run("train", "train.txt", "--model", "m.crf", *options)
    assert [record.dev_score or 0.0 for record in load("m.crf").history_][1:] == scores


def test_a_checkpoint_knows_its_metric_by_name(tmp_path: Path) -> None:
    (X, y), path = span_corpus(10), tmp_path / "c.checkpoint"

    def fit(metric: Any, n: int, *, resume: bool) -> CRF:
        crf = CRF(features="names", optimizer=LBFGS(max_iterations=n))
        return crf.fit(X, y, dev=(X, y), metric=metric, checkpoint=Checkpoint(path, every=1, resume=resume))

    fit("accuracy", 2, resume=False)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "metric"):
        fit("f1", 4, resume=True)
    whole = CRF(features="names", optimizer=LBFGS(max_iterations=4)).fit(X, y, dev=(X, y), metric="accuracy")
    np.testing.assert_array_equal(fit(Metric("accuracy"), 4, resume=True).weights_, whole.weights_)


# ---- scorers


def test_scorers_of_sequences(trained: CRF) -> None:
    X, y = span_corpus(20, seed=4)
    assert make_scorer()(trained, X, y) == trained.score(X, y) == make_scorer("f1")(trained, X, y)
    assert make_scorer("accuracy")(trained, X, y) == trained.score(X, y, metric="accuracy")
    weights = np.arange(20.0)
    assert make_scorer()(trained, X, y, sample_weight=weights) == trained.score(X, y, weights)

    def wrong(gold: Labels, predicted: Labels) -> float:
        return float(sum(g != p for g, p in zip(gold, predicted, strict=True)))

    assert make_scorer(wrong, greater_is_better=False)(trained, X, y) == -wrong(y, trained.predict(X))
    assert pickle.loads(pickle.dumps(make_scorer("f1"))) == make_scorer("f1")


def test_scorers_in_scikit_learn() -> None:
    X, y = span_corpus(30)
    crf = CRF(features="names", optimizer=SHORT)
    names = ("f1", "accuracy", "recall")
    found = cross_validate(
        crf, X, y, cv=3, scoring={name: make_scorer(name) for name in names}, return_estimator=True
    )
    for fold, (test, model) in enumerate(
        zip(np.array_split(np.arange(30), 3), found["estimator"], strict=True)
    ):
        for name in names:
            wanted = model.score([X[n] for n in test], [y[n] for n in test], metric=name)
            assert found[f"test_{name}"][fold] == wanted
    plain = GridSearchCV(crf, {"l2": [0.1, 10.0]}, cv=3).fit(X, y)
    scored = GridSearchCV(crf, {"l2": [0.1, 10.0]}, cv=3, scoring=make_scorer("f1")).fit(X, y)
    np.testing.assert_array_equal(plain.cv_results_["mean_test_score"], scored.cv_results_["mean_test_score"])
    pipe = Pipeline([("same", FunctionTransformer()), ("crf", crf)]).fit(X, y)
    assert make_scorer()(pipe, X, y) == pipe.score(X, y) == pipe.named_steps["crf"].score(X, y)


# ---- parsers


def test_scores_of_a_parser() -> None:
    parser = Parser().fit(TREES[:6])
    held_out = TREES[6:]
    report = evaluate_trees(held_out, parser.predict(held_out))
    assert parser.score(held_out) == parser.score(held_out, metric="las") == pytest.approx(report.las)
    for name in TREE_METRICS:
        assert parser.score(held_out, metric=name) == pytest.approx(getattr(report, name))
        assert make_scorer(name)(parser, held_out) == parser.score(held_out, metric=name)
    assert make_scorer()(parser, held_out) == parser.score(held_out)

    def same_words(gold: Sequence[Sentence], predicted: Sequence[Sentence]) -> float:
        return float([len(s.words) for s in gold] == [len(s.words) for s in predicted])

    assert parser.score(held_out, metric=same_words) == 1.0
    with pytest.raises(ArgumentError, match="metric"):
        parser.score(held_out, metric="f1")
    with pytest.raises(UnsupportedError, match="metric"):
        Parser().fit(TREES, metric="uas")


def test_a_parser_keeps_the_weights_with_the_best_metric() -> None:
    seen: list[Progress] = []
    parser = Parser().fit(TREES[:6], dev=TREES[6:], metric="uas", callback=seen.append)
    assert parser.score(TREES[6:], metric="uas") == max(progress.dev_score or 0.0 for progress in seen)


def test_a_search_over_parsers() -> None:
    search = GridSearchCV(Parser(), {"l2": [0.1, 10.0]}, cv=2, scoring=make_scorer("uas")).fit(TREES)
    assert 0.0 < search.best_score_ <= 1.0
    assert search.best_estimator_.score(TREES, metric="uas") == search.score(TREES)
