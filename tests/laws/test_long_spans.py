"""Probabilities of spans at any scores: random ones against enumeration, and long sequences in log space."""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crfkit import CRF, Chain, Span
from crfkit.inference import Answerer, ChainPotentials
from crfkit.structures import SpanLabels
from tests.oracles.conlleval import names, probabilities

Floats = npt.NDArray[np.float64]
LABELS = ["B-X", "B-Y", "I-X", "I-Y", "O"]
SCHEMES = ["bio", "iobes", "plain"]


def model(labels: list[str], n_positions: int, bigrams: str | None = None) -> CRF:
    """Every position has one feature, with a weight for each label."""
    X = [[[f"t{t}"] for t in range(n_positions)]] * len(labels)
    y = [
        [labels[(t * step + b) % len(labels)] for t in range(n_positions)]
        for b, step in enumerate(range(len(labels)))
    ]
    chain = Chain(bigrams=bigrams) if bigrams else Chain()
    return CRF(structure=chain, all_possible_states=True, optimizer="averaged_perceptron").fit(X, y)


def with_weights(crf: CRF, weights: Floats) -> CRF:
    crf._set_model(crf._model, weights)
    return crf


def scores(crf: CRF, x: list[Any]) -> tuple[Floats, Floats]:
    """Emissions [T, L], start and end included, and transitions [L, L]."""
    ask = crf._ask([x], None)
    found = ask.answerer.potentials.scores(ask.design, 0)  # type: ignore[attr-defined]
    return found.emissions, found.transitions


MODELS = {scheme: model(sorted(set(names(scheme, 6))), 4) for scheme in SCHEMES}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SCHEMES), st.integers(0, 4), st.sampled_from([0.1, 3, 40, 800]), st.integers(0, 2**32 - 1)
)
def test_random_scores(scheme: str, n_positions: int, scale: float, seed: int) -> None:
    crf = MODELS[scheme]
    with_weights(crf, scale * np.random.default_rng(seed).normal(size=len(crf.weights_)))
    x = [[f"t{t}"] for t in range(n_positions)]
    emissions, transitions = scores(crf, x) if x else (np.zeros((0, 1)), np.zeros((1, 1)))
    paths = list(itertools.product(range(len(crf.classes_)), repeat=n_positions))
    totals = np.array(
        [
            sum(emissions[t, b] for t, b in enumerate(y))
            + sum(transitions[a, b] for a, b in itertools.pairwise(y))
            for y in paths
        ]
    )
    p = np.exp(totals - totals.max())
    outputs = zip(([crf.classes_[b] for b in y] for y in paths), (p / p.sum()).tolist(), strict=True)
    expected = probabilities(outputs, scheme)
    found = {span[:3]: span.probability for span in crf.predict_spans([x], 1e-12, scheme=scheme)[0]}
    assert found.keys() <= expected.keys()
    assert {span: found.get(span, 0.0) for span in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_chain_that_is_normalised_at_each_position(scheme: str) -> None:
    crf = MODELS[scheme]
    weights = np.random.default_rng(1).normal(size=len(crf.weights_))
    answerer = Answerer(ChainPotentials(crf.feature_map_.layout, weights, local=True))
    ask = crf._ask([[["t0"], ["t1"], ["t2"]]], None)
    outputs = []
    for y in itertools.product(range(len(crf.classes_)), repeat=3):
        [log_p] = answerer.log_partitions(ask.design, np.array(y, np.int32))
        outputs.append(([crf.classes_[b] for b in y], float(np.exp(log_p))))
    assert sum(p for _, p in outputs) == pytest.approx(1)
    [found] = answerer.spans(ask.design, SpanLabels.of(crf.classes_, scheme), 1e-12)
    assert {s[:3]: s.probability for s in found} == pytest.approx(probabilities(outputs, scheme), abs=1e-12)


def log_sum(values: Floats) -> Floats:
    """log Σ exp over the first axis."""
    top = values.max(axis=0)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(values - top).sum(axis=0)))


def log_space_probability(emissions: Floats, transitions: Floats, labels: SpanLabels, span: Span) -> float:
    """Forward recursions in log space, over all label sequences, and over those that have the span."""
    L = len(labels.type_of)
    continues = np.array([[labels.continues(a, b) for b in range(L)] for a in range(L)])
    inside = labels.type_of == labels.types.index(span.label)
    message = total = emissions[0]
    message = np.where(inside, message, -np.inf) if span.start == 0 else message
    for t in range(1, len(emissions)):
        total = log_sum(total[:, None] + transitions) + emissions[t]
        exists = np.ones((L, L), bool)
        if t in (span.start, span.end):
            exists = ~continues
        elif span.start < t < span.end:
            exists = continues
        message = log_sum(message[:, None] + np.where(exists, transitions, -np.inf)) + emissions[t]
        if t == span.start:
            message = np.where(inside, message, -np.inf)
    return float(np.exp(log_sum(message) - log_sum(total)))


@pytest.mark.parametrize("bigrams", [None, "bio"])
@pytest.mark.parametrize("scale", [0.5, 20.0, 2000.0])
def test_long_sequences(scale: float, bigrams: str | None) -> None:
    crf, random = model(LABELS, 40), np.random.default_rng(0)
    if bigrams is not None:
        X = [[[f"t{t}"] for t in range(40)]] * 2
        y = [(["B-X", "I-X", "O", "B-Y", "I-Y"] * 8), ["O"] * 40]
        crf = CRF(Chain(bigrams=bigrams), all_possible_states=True, optimizer="averaged_perceptron").fit(X, y)
    with_weights(crf, scale * random.normal(size=len(crf.weights_)))
    x = [[f"t{k}"] for k in random.integers(0, 40, size=2000)]
    labels = SpanLabels.of(crf.classes_)
    emissions, transitions = scores(crf, x)
    [found] = crf.predict_spans([x], 1e-8)
    for k in random.choice(len(found), 12, replace=False).tolist():
        expected = log_space_probability(emissions, transitions, labels, found[k])
        assert found[k].probability == pytest.approx(expected, abs=1e-9, rel=1e-6)
    # Every position is outside, or in exactly one span.
    covered = crf.predict_marginals([x])[0][:, crf.classes_.index("O")].copy()
    for span in found:
        covered[span.start : span.end] += span.probability
    np.testing.assert_allclose(covered, 1.0, rtol=0, atol=1e-4 if scale < 1 else 1e-6)
