"""What holds at the optimum of the training objective, whatever led there."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks import corpora
from crfkit import CRF, LBFGS, Chain
from crfkit.evaluation import span_report

PRECISE = LBFGS(max_iterations=2000, tolerance=1e-9, change=0.0)
Position = list[str]
Name = tuple[Any, ...]  # of a weight


def _data(seed: int, n: int = 12, n_labels: int = 3) -> tuple[list[list[Position]], list[list[str]]]:
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 6))
        X.append([[f"w={rng.integers(4)}", f"s={rng.integers(3)}"] for _ in range(length)])
        y.append([f"L{rng.integers(n_labels)}" for _ in range(length)])
    return X, y


def _counts(positions: list[Position], labels: Name) -> dict[Name, int]:
    """Every feature of one label sequence and how often it is active: (feature, label), (before, after), start and end."""
    out: dict[Name, int] = {}
    active: list[Name] = [("start", labels[0]), ("end", labels[-1])]
    active += [
        (feature, label) for position, label in zip(positions, labels, strict=True) for feature in position
    ]
    active += [("arc", *pair) for pair in pairwise(labels)]
    for key in active:
        out[key] = out.get(key, 0) + 1
    return out


def _weight_by_name(crf: CRF) -> dict[Name, float]:
    """The weights of a trained model under the same names."""
    classes, feature_map, w = crf.classes_, crf.feature_map_, crf.weights_
    named: dict[Name, float] = {}
    for f, name in enumerate(crf.encoder_.vocabulary.names()):
        for p in range(feature_map.pair_ptr[f], feature_map.pair_ptr[f + 1]):
            named[(name, classes[feature_map.pair_labels[p]])] = w[p]
    arcs, start, end = feature_map.arc_weights(w)
    for a, b in product(range(len(classes)), repeat=2):
        named[("arc", classes[a], classes[b])] = arcs[a, b]
    for b, label in enumerate(classes):
        named[("start", label)], named[("end", label)] = start[b], end[b]
    return named


@pytest.mark.parametrize("l2", [0.1, 2.0])
def test_expected_features_are_observed_features_less_the_penalty(l2: float) -> None:
    """Σ E[φ_d] = Σ φ_d(gold) − l2 w_d for every weight d, by enumerating all label sequences (equations 37 and 38)."""
    X, y = _data(1)
    crf = CRF(optimizer=PRECISE, l2=l2, all_possible_states=True).fit(X, y)
    weights = _weight_by_name(crf)
    gap = {key: l2 * value for key, value in weights.items()}
    for positions, gold in zip(X, y, strict=True):
        outputs = list(product(crf.classes_, repeat=len(positions)))
        counts = [_counts(positions, output) for output in outputs]
        scores = np.array([sum(weights[key] * n for key, n in count.items()) for count in counts])
        probabilities = np.exp(scores - scores.max())
        probabilities /= probabilities.sum()
        for p, count in zip(probabilities, counts, strict=True):
            for key, n in count.items():
                gap[key] += p * n
        for key, n in _counts(positions, tuple(gold)).items():
            gap[key] -= n
    assert max(abs(value) for value in gap.values()) < 1e-6


def test_with_l1_the_gap_stays_within_the_penalty() -> None:
    """|expected − observed| ≤ l1 where a weight is 0, and equals l1 against its sign elsewhere."""
    X, y = _data(2, n=20)
    crf = CRF(optimizer=PRECISE, l1=0.7, l2=0.0, all_possible_states=True).fit(X, y)
    named = _weight_by_name(crf)  # features without weight are no longer there
    features = sorted({feature for positions in X for position in positions for feature in position})
    names: list[Name] = list(product([*features, "start", "end"], crf.classes_))
    names += product(["arc"], crf.classes_, crf.classes_)
    w = np.array([named.get(name, 0.0) for name in names])
    slopes = _log_likelihood_slopes(X, y, names, w, crf.classes_)
    at_zero = w == 0
    assert at_zero.any()
    assert (~at_zero).any()
    assert np.all(np.abs(slopes[at_zero]) <= 0.7 + 1e-5)
    np.testing.assert_allclose(slopes[~at_zero], -0.7 * np.sign(w[~at_zero]), atol=1e-5)


def _log_likelihood_slopes(
    X: list[list[Position]], y: list[list[str]], names: list[Name], w: np.ndarray, classes: list[Any]
) -> np.ndarray:
    """Gradient of the negative log-likelihood by enumeration: expected less observed counts."""
    index = {name: i for i, name in enumerate(names)}
    slopes = np.zeros(len(names))
    for positions, gold in zip(X, y, strict=True):
        outputs = list(product(classes, repeat=len(positions)))
        table = np.zeros((len(outputs), len(names)))
        for row, output in enumerate(outputs):
            for key, n in _counts(positions, output).items():
                table[row, index[key]] = n
        scores = table @ w
        p = np.exp(scores - scores.max())
        slopes += (p / p.sum()) @ table - table[outputs.index(tuple(gold))]
    return slopes


def test_without_transitions_the_positions_are_independent_logistic_regressions() -> None:
    X, y = _data(3, n=30)
    template = "U0:%x[0,0]\nU1:%x[0,1]\n"  # no B line: no arcs
    rows = [[tuple(part.split("=")[1] for part in position) for position in positions] for positions in X]
    crf = CRF(
        structure=Chain(start=False, end=False),
        features=template,
        optimizer=PRECISE,
        l2=0.5,
        all_possible_states=True,
    )
    crf.fit(rows, y)
    positions = [position for sequence in rows for position in sequence]
    columns = sorted({(c, position[c]) for position in positions for c in range(2)})
    table = np.array([[float(position[c] == value) for c, value in columns] for position in positions])
    labels = [label for sequence in y for label in sequence]
    oracle = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10000).fit(table, labels)
    assert list(oracle.classes_) == crf.classes_
    marginals = np.concatenate(crf.predict_marginals(rows))
    np.testing.assert_allclose(marginals, oracle.predict_proba(table), atol=1e-6)


def test_doubling_the_data_and_the_penalty_keeps_the_optimum() -> None:
    X, y = _data(4)
    once = CRF(optimizer=PRECISE, l2=0.8).fit(X, y)
    twice = CRF(optimizer=PRECISE, l2=1.6).fit(X + X, y + y)
    np.testing.assert_allclose(twice.weights_, once.weights_, atol=1e-6)
    assert twice.history_[-1].objective == pytest.approx(2 * once.history_[-1].objective, rel=1e-10)


def test_renaming_labels_permutes_the_weights_and_nothing_else() -> None:
    X, y = _data(5)
    names = {"L0": "z", "L1": "a", "L2": "m"}
    crf = CRF(optimizer=PRECISE, l2=0.5).fit(X, y)
    other = CRF(optimizer=PRECISE, l2=0.5).fit(X, [[names[label] for label in labels] for labels in y])
    order = [other.classes_.index(names[str(label)]) for label in crf.classes_]
    for mine, theirs in zip(crf.predict_marginals(X), other.predict_marginals(X), strict=True):
        np.testing.assert_allclose(mine, theirs[:, order], atol=1e-7)


@pytest.fixture(scope="module")
def chunks() -> tuple[Any, Any, Any, Any]:
    """CoNLL-2000: words and tags, and chunks, for training and for test."""
    from crfkit.data import read_columns

    parts: list[Any] = []
    for name in ("train.txt.xz", "test.txt.xz"):
        path = corpora.find_corpus("conll2000", name)
        if path is None:
            pytest.skip("the corpus conll2000 is not here")
        rows = [sequence.rows for sequence in read_columns(path)]
        parts.append([[row[:-1] for row in sequence] for sequence in rows])
        parts.append([[row[-1] for row in sequence] for sequence in rows])
    return tuple(parts)


CRFPP_EXAMPLE = """
U00:%x[-2,0]\nU01:%x[-1,0]\nU02:%x[0,0]\nU03:%x[1,0]\nU04:%x[2,0]
U05:%x[-1,0]/%x[0,0]\nU06:%x[0,0]/%x[1,0]
U10:%x[-2,1]\nU11:%x[-1,1]\nU12:%x[0,1]\nU13:%x[1,1]\nU14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]\nU16:%x[-1,1]/%x[0,1]\nU17:%x[0,1]/%x[1,1]\nU18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]\nU21:%x[-1,1]/%x[0,1]/%x[1,1]\nU22:%x[0,1]/%x[1,1]/%x[2,1]
B
"""


@pytest.mark.slow
def test_the_optimum_of_the_example_template_is_that_of_other_tools(
    chunks: tuple[Any, Any, Any, Any],
) -> None:
    """CRFsuite stops at 8,930.38 (c2 = ½); its F1 there is 93.66."""
    X, y, X_test, y_test = chunks
    optimizer = LBFGS(max_iterations=600, tolerance=1e-6)
    crf = CRF(
        structure=Chain(False, False),
        features=CRFPP_EXAMPLE,
        optimizer=optimizer,
        l2=1.0,
        all_possible_transitions=False,
    )
    crf.fit(X, y)
    assert crf.history_[-1].objective == pytest.approx(8930.31, rel=1e-6)
    assert span_report(y_test, crf.predict(X_test)).overall.f1 >= 0.936


@pytest.mark.slow
def test_the_chunk_preset_reaches_its_score(chunks: tuple[Any, Any, Any, Any]) -> None:
    X, y, X_test, y_test = chunks
    crf = CRF(features="chunks", l2=1.0).fit(X, y)
    assert span_report(y_test, crf.predict(X_test)).overall.f1 >= 0.940


def test_the_value_at_the_start_is_that_of_equal_labels() -> None:
    X, y = _data(6)
    crf = CRF(optimizer=LBFGS(max_iterations=0)).fit(X, y)
    n_positions = sum(map(len, y))
    assert crf.history_[0].objective == pytest.approx(n_positions * math.log(3), rel=1e-6)
