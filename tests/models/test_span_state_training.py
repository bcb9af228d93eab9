"""Training with `span_states="iobes"`: the objective and its minimum by enumeration; all forms of data."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, AdaGrad, AveragedPerceptron
from crfkit.data import open_dataset
from crfkit.errors import UnsupportedError
from crfkit.features import encode_pairs
from crfkit.models import average_models, self_train
from tests.models.test_span_states import LABELS, STATES, corpus
from tests.oracles.span_states import Weights, fits, log_sum_exp, spans_of, valid_sequences, write

EXACT = LBFGS(max_iterations=500, tolerance=1e-9, change=0.0)


def partial_corpus() -> tuple[Any, Any]:
    """Sequences with unknown labels and sets of labels."""
    X, y = corpus(12, seed=5)
    random = np.random.default_rng(6)
    entries: list[Any] = []
    for own in y:
        drawn = random.random(len(own))
        entries.append([None if r < 0.2 else {label, "I-PER", "B-PER"} if r < 0.4 else label
                        for label, r in zip(own, drawn, strict=True)])  # fmt: skip
    return [x[:4] for x in X], [own[:4] for own in entries]


def negative_log_likelihood(weights: Weights, X: Any, y: Any, cost: Any = None) -> float:
    """−log of the probability of all label sequences that y allows, with costs added to the scores of all."""
    total = 0.0
    for x, own in zip(X, y, strict=True):
        scores = {z: weights.score(x, z) for z in valid_sequences(LABELS, len(x))}
        gold = log_sum_exp(score for z, score in scores.items() if fits(z, own))
        added = scores if cost is None else {z: score + cost(own, z) for z, score in scores.items()}
        total += log_sum_exp(added.values()) - gold
    return total


def check_minimum(crf: CRF, X: Any, y: Any, cost: Any = None) -> None:
    """The recorded objective is that of enumeration, and its derivatives are 0 there."""
    l2, w = 0.3, crf.weights_

    def objective(at: Any) -> float:
        return negative_log_likelihood(Weights.of(crf, at), X, y, cost) + l2 / 2 * float(at @ at)

    best = w.copy()
    assert objective(best) == pytest.approx(crf.history_[-1].objective, rel=1e-9)
    random = np.random.default_rng(7)
    for d in random.choice(len(best), 12, replace=False):
        step = np.zeros(len(best))
        step[d] = 1e-4
        slope = (objective(best + step) - objective(best - step)) / 2e-4
        assert slope == pytest.approx(0, abs=1e-5)
    moved = best + 0.2 * random.normal(size=len(best))
    assert objective(moved) > objective(best)


@pytest.mark.parametrize("data", [corpus(12, seed=5), partial_corpus()], ids=["complete", "partial"])
def test_objective_and_its_minimum(data: Any) -> None:
    X, y = data[0], data[1]
    X, y = [x[:4] for x in X], [own[:4] for own in y]
    crf = CRF(l2=0.3, span_states="iobes", optimizer=EXACT).fit(X, y)
    check_minimum(crf, X, y)


def test_costs_are_those_of_labels() -> None:
    X, y = corpus(12, seed=5)
    X, y = [x[:4] for x in X], [own[:4] for own in y]
    costs = {("B-PER", "O"): 1.5, ("O", "I-LOC"): 0.5, ("I-PER", "B-PER"): 2.0}
    crf = CRF(l2=0.3, span_states="iobes", optimizer=EXACT).fit(X, y, costs=costs)
    check_minimum(
        crf, X, y, lambda gold, z: math.fsum(costs.get(pair, 0.0) for pair in zip(gold, z, strict=True))
    )


def test_margin_is_that_of_states() -> None:
    X, y = corpus(12, seed=5)
    X, y = [x[:4] for x in X], [own[:4] for own in y]
    crf = CRF(l2=0.3, span_states="iobes", optimizer=EXACT, margin=0.7).fit(X, y)

    def n_wrong(gold: Any, z: Any) -> float:
        states = (write(spans_of(labels), len(labels), "iobes") for labels in (gold, z))
        return 0.7 * sum(a != b for a, b in zip(*states, strict=True))

    check_minimum(crf, X, y, n_wrong)


@pytest.mark.parametrize("optimizer", [AdaGrad(max_iterations=10), AveragedPerceptron(max_iterations=10)])
def test_methods_that_make_passes(optimizer: Any) -> None:
    X, y = corpus(60)
    crf = CRF(span_states="iobes", optimizer=optimizer).fit(X, y)
    assert crf.states_ == STATES
    assert crf.score(X, y, metric="accuracy") > 0.5


def test_the_same_from_all_forms_of_data(tmp_path: Path) -> None:
    X, y = corpus(60)
    settings: dict[str, Any] = {"span_states": "iobes", "n_threads": 1}
    expected = CRF(**settings).fit(X, y, shard_size=40)
    stored = encode_pairs(zip(X, y, strict=True), tmp_path / "data", shard_size=40)
    assert stored.n_shards > 2
    for given in (open_dataset(tmp_path / "data"), iter([*zip(X, y, strict=True)])):
        crf = CRF(**settings).fit(given, shard_size=40)
        assert crf.states_ == STATES
        np.testing.assert_allclose(crf.log_probability(X, y), expected.log_probability(X, y), rtol=1e-4)


def test_words_with_known_labels(tmp_path: Path) -> None:
    """A tag dictionary names labels, and allows all their states; of stored data as of lists."""
    X, y = corpus(60)
    words = [[(position[0],) for position in x] for x in X]
    template = "U0:%x[0,0]\nB"
    settings: dict[str, Any] = {"features": template, "span_states": "iobes", "tag_dictionary": True}
    crf = CRF(**settings).fit(words, y)
    for x, labels in zip(words, crf.predict(words), strict=True):
        for (word,), label in zip(x, labels, strict=True):
            assert label in crf._get_model().dictionary.allowed_labels(word)  # type: ignore[union-attr]
    from crfkit import Template

    encode_pairs(zip(words, y, strict=True), tmp_path / "d", features=Template.parse(template), word_column=0)
    stored = CRF(**settings).fit(open_dataset(tmp_path / "d"))
    np.testing.assert_allclose(stored.log_probability(words, y), crf.log_probability(words, y), rtol=1e-4)


def test_words_that_were_always_inside() -> None:
    """They may begin a span too, so that every sequence has a possible label sequence."""
    words = [[("the",), ("New",), ("York",)], [("a",), ("house",)]] * 10
    settings: dict[str, Any] = {"features": "U:%x[0,0]\nB", "span_states": "iobes", "tag_dictionary": True}
    for y in ([["O", "B-LOC", "I-LOC"], ["O", "O"]], [["O", "I-LOC", "I-LOC"], ["O", "O"]]):
        crf = CRF(**settings).fit(words, y * 10)
        assert crf.predict([[("York",)], [("New",), ("York",), ("York",)]])[0] == ["B-LOC"]
        assert crf.predict(words[:2]) == [["O", "B-LOC", "I-LOC"], ["O", "O"]]
        found = crf.predict_marginals([[("York",), ("York",), ("the",)]])[0]  # B-LOC, I-LOC, O
        assert (found > 0).tolist() == [[True, False, False], [True, True, False], [False, False, True]]


def test_stored_labels_without_beginnings(tmp_path: Path) -> None:
    stored = encode_pairs([([["a"], ["b"]], ["I-X", "O"])], tmp_path / "data")
    with pytest.raises(UnsupportedError, match="no label 'B-X', which they are read as"):
        CRF(span_states="iobes").fit(stored)


def test_l2_auto_and_dev_sets() -> None:
    X, y = corpus(80)
    crf = CRF(l2="auto", span_states="iobes").fit(X, y)
    assert crf.l2_search_.trials
    crf = CRF(span_states="iobes", decode="spans").fit(X[:60], y[:60], dev=(X[60:], y[60:]), patience=3)
    best = max(record.dev_score or 0.0 for record in crf.history_)
    assert crf.score(X[60:], y[60:]) == pytest.approx(best)


def test_further_training() -> None:
    X, y = corpus(40)
    crf = CRF(span_states="iobes").fit(X, y)
    more = [[["w=x", "bias"]] * 2], [["B-ORG", "I-ORG"]]
    crf.partial_fit(*more)
    assert crf.classes_ == ["B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O"]
    assert crf.predict(more[0]) == more[1]
    again = CRF(span_states="iobes").fit(X, y, start=crf)
    assert again.states_ == STATES


def test_means_of_models() -> None:
    X, y = corpus(40)
    models = [CRF(span_states="iobes").fit(X[i::2], y[i::2]) for i in range(2)]
    models.append(CRF(span_states="iobes").fit([[["w=x", "bias"]] * 2], [["B-ORG", "I-ORG"]]))
    mean = average_models(models)
    assert len(mean.classes_) == 7
    for labels in mean.predict(X):
        assert write(spans_of(labels), len(labels), "bio") == labels
    found = mean.structure_.chain.bigrams
    assert ("E-ORG", "B-LOC") in found  # type: ignore[operator]
    with pytest.raises(UnsupportedError, match="some of the models have states"):
        average_models([models[0], CRF().fit(X, y)])


def test_self_training() -> None:
    X, y = corpus(60)
    crf = self_train(CRF(span_states="iobes"), X[:30], y[:30], X[30:], threshold=0.6)
    assert crf.states_ == STATES
