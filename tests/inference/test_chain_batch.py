"""`crfkit.inference.ChainBatch` against brute force: in both precisions, with arcs that do not exist, on several threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.errors import ShapeError
from crfkit.inference import ChainBatch
from crfkit.structures import SpanLabels
from tests.oracles.oracle import ChainOracle


def scores(seed: int, own: bool, forbidden: bool, spread: float = 1.0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    N, T, L = 9, 4, 3
    arcs = spread * rng.standard_normal((N, L, L) if own else (L, L))
    if forbidden:
        arcs[..., 1, 2] = -np.inf
    states = spread * rng.standard_normal((N, T, L))
    return states, arcs, rng.standard_normal(L), rng.standard_normal(L), np.arange(N) % (T + 1)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("forbidden", "spread"), [(False, 1.0), (True, 1.0), (True, 40.0), (False, 400.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers(own: bool, forbidden: bool, spread: float, dtype: Any) -> None:
    *given, lengths = scores(3, own, forbidden, spread)
    states, arcs, start, end = (part.astype(dtype) for part in given)
    tolerance = 1e-9 if dtype == np.float64 else 2e-5
    weights = np.linspace(0.5, 1.5, len(states)).astype(dtype)
    chains = ChainBatch(states, arcs, start, end, lengths=lengths, n_threads=2)
    found, best = chains.expectations(weights), chains.decode()
    one = ChainBatch(states, arcs, start, end, lengths=lengths).expectations(weights)
    assert all(np.array_equal(a, b) for a, b in zip(found, one, strict=True))
    np.testing.assert_array_equal(chains.log_partition(), found.log_partition)
    expected_arcs = np.zeros(arcs.shape)
    for n, length in enumerate(lengths.tolist()):
        oracle = ChainOracle(states[n, :length], arcs[n] if own else arcs, start, end)
        parts = oracle.marginals
        np.testing.assert_allclose(
            found.log_partition[n], oracle.log_partition, rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(
            found.states[n, :length].ravel(), parts[: length * 3], atol=tolerance, rtol=0
        )
        assert not found.states[n, length:].any()
        by_arc = parts[length * 3 :][: max(length - 1, 0) * 9].reshape(-1, 3, 3).sum(0) * weights[n]
        expected_arcs[n if own else ...] += by_arc
        assert tuple(best[n, :length].tolist()) in oracle.best_outputs(1e-4 * spread)
        assert (best[n, length:] == -1).all()
    np.testing.assert_allclose(found.arcs, expected_arcs, atol=10 * tolerance, rtol=0)


def test_what_is_impossible() -> None:
    never = np.full((2, 2), -np.inf)
    chains = ChainBatch(np.zeros((2, 3, 2)), never, lengths=np.array([3, 1]))
    assert chains.log_partition()[0] == -np.inf
    assert not chains.expectations().states[0].any()
    assert (chains.decode()[0] == -1).all()
    assert chains.decode()[1].tolist() == [0, -1, -1]


@pytest.mark.parametrize(
    ("states", "arcs", "lengths", "complaint"),
    [
        (np.zeros((2, 3)), np.zeros((2, 2)), None, r"states are float64 with shape \[2, 3\]"),
        (np.zeros((2, 3, 2), np.int64), np.zeros((2, 2)), None, "states are int64"),
        (np.zeros((2, 3, 2)), np.zeros((3, 3)), None, r"arcs have shape \[3, 3\]"),
        (np.zeros((2, 3, 2)), np.zeros((2, 2)), np.array([1, 4]), "expected 2 lengths from 0 to 3"),
    ],
)
def test_what_does_not_fit_is_refused(states: Any, arcs: Any, lengths: Any, complaint: str) -> None:
    with pytest.raises(ShapeError, match=complaint):
        ChainBatch(states, arcs, lengths=lengths)


def test_spans_have_the_same_bits_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    labels = SpanLabels.of(["O", "B-x", "I-x", "B-y", "I-y"], "bio")
    given = (rng.standard_normal((9, 30, 5)), rng.standard_normal((5, 5)))
    one, three = (ChainBatch(*given, n_threads=n_threads) for n_threads in (1, 3))
    found = one.spans(labels, 0.05)
    assert len(found[0]) > 20
    assert all(map(np.array_equal, found, three.spans(labels, 0.05)))
    assert np.array_equal(three.n_spans(labels), one.n_spans(labels))
    np.testing.assert_allclose(three.span_probabilities(labels, *found[:4]), found[4], rtol=1e-12)
    with pytest.raises(ValueError, match="out of range"):
        one.span_probabilities(labels, *(np.array([n]) for n in (0, 29, 31, 0)))
    with pytest.raises(ValueError, match="labels of spans"):
        one.n_spans(SpanLabels.of(["O", "B-x"], "bio"))
