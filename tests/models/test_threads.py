"""Training has the same bits for any number of threads, with data of many blocks, for every kind of evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain, Ngrams, Patterns, Segments
from crfkit.features import Encoder, FeatureMap, Labels
from crfkit.objective import Objective

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB0:%x[0,0]\nB"
MODELS: dict[str, dict[str, Any]] = {
    "rows": {"features": "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB"},
    "features of transitions": {"features": TEMPLATE},
    "lattices": {"features": TEMPLATE, "tag_dictionary": True},
    "facets": {"features": "U0:%x[0,0]\nB", "facets": lambda label: {"place": label[0], "type": label[1:]}},
    "few transitions": {"features": "U0:%x[0,0]\nB", "structure": Chain(bigrams="observed")},
    "segments": {"features": "U0:%x[0,0]\nB", "structure": Segments(max_length=4, scheme="bio")},
    "patterns": {"features": "U0:%x[0,0]\nB", "structure": Patterns([Ngrams(3)])},
}


def corpus(n: int = 900) -> tuple[list[list[str]], list[list[str]]]:
    """Words that say something of their labels; about 9,000 positions, so that there are many blocks."""
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n):
        labels: list[str] = []
        while len(labels) < 6:
            kind = "AB"[random.integers(2)]
            labels += (
                [f"B-{kind}", f"I-{kind}"] if random.random() < 0.4 else ["O"] * int(random.integers(1, 6))
            )
        y.append(labels)
        X.append([f"{label}{random.integers(30)}"[random.integers(3) :] for label in labels])
    return X, y


@pytest.mark.parametrize("kind", MODELS)
def test_training_has_the_same_bits_for_any_number_of_threads(kind: str) -> None:
    X, y = corpus()

    def weights(n_threads: int) -> bytes:
        model = CRF(optimizer=LBFGS(max_iterations=4), n_threads=n_threads, **MODELS[kind])
        return model.fit(X, y).weights_.tobytes()

    assert weights(1) == weights(2) == weights(5)


def objective(n_threads: int, weights: Sequence[float] | None = None, n_copies: int = 1) -> Objective:
    """Of about 36,000 positions, which are some dozens of blocks; each feature is active `n_copies` times."""
    X, y = corpus(3600)
    encoder = Encoder(None)
    dataset = encoder.fit_encode([[["bias", word, word[:1]] * n_copies for word in words] for words in X])
    labels = Labels.learn(y)
    annotation = labels.encode(y, np.diff(dataset.sequence_ptr))
    feature_map = FeatureMap.build(
        dataset, annotation, Chain(), n_labels=len(labels), n_features=len(encoder.vocabulary)
    )
    sample_weight = None if weights is None else np.resize(weights, len(X))
    return Objective(
        feature_map.loss(dataset, annotation, sample_weight=sample_weight, n_threads=n_threads), l2=0
    )


@pytest.mark.parametrize("n_copies", [1, 20])
@pytest.mark.parametrize(
    "weights", [None, [1.0, 0.3, 0.02], [1.0, 1e-6, 3e5]], ids=["equal", "even", "uneven"]
)
def test_gradients_have_the_same_bits_whichever_thread_adds_first(
    weights: list[float] | None, n_copies: int
) -> None:
    point = np.random.default_rng(1).normal(size=objective(1).n_weights)
    value, gradient = objective(1, weights, n_copies).value_and_gradient(point)
    for n_threads in (2, 3, 8):
        threaded = objective(n_threads, weights, n_copies)
        for _ in range(10):
            again, its_gradient = threaded.value_and_gradient(point)
            assert again == value
            assert its_gradient.tobytes() == gradient.tobytes()


@pytest.mark.parametrize("weights", [None, [1.0, 0.02]], ids=["equal", "even"])
def test_rounded_sums_are_as_exact_as_single_precision(weights: list[float] | None) -> None:
    single, double = objective(2, weights), objective(2, weights)
    double.refine()
    point = np.random.default_rng(1).normal(size=single.n_weights)
    gradient, exact = (each.value_and_gradient(point)[1] for each in (single, double))
    np.testing.assert_allclose(gradient, exact, rtol=3e-6, atol=1e-3 * np.abs(exact).min())


@pytest.mark.parametrize("kind", ["rows", "features of transitions"])
def test_partial_labels_and_weights_have_the_same_bits(kind: str) -> None:
    X, y = corpus(3600)
    partial = [
        [None if t % 7 == 3 else {label, "O"} if t % 7 == 5 else label for t, label in enumerate(labels)]
        for labels in y
    ]
    weights = np.resize([1.0, 0.3, 0.02], len(X))

    def trained(n_threads: int) -> bytes:
        model = CRF(optimizer=LBFGS(max_iterations=3), n_threads=n_threads, **MODELS[kind])
        return model.fit(X, partial, sample_weight=weights).weights_.tobytes()

    assert {trained(n_threads) for n_threads in (1, 2, 8, 8, 8)} == {trained(1)}


def test_products_after_rounded_sums_are_those_of_double_precision() -> None:
    single, double = objective(2), objective(2)
    double.refine()
    point, direction = np.random.default_rng(1).normal(size=(2, single.n_weights))
    single.value_and_gradient(point)  # which keeps the messages
    products = [each.hessian_vector(point, direction) for each in (single, single, double)]
    assert products[0].tobytes() == products[1].tobytes()
    np.testing.assert_allclose(products[0], products[2], rtol=1e-4, atol=1e-5 * np.abs(products[2]).max())
