"""Chains too large to list: every number of labels, long sequences, scores that leave the range of exp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from crfkit import inference
from crfkit.structures import Chain, ChainScores
from tests.oracles.instances import ChainInstance, draw_chain
from tests.oracles.oracle import Floats, LogSpaceChain, long_chain


def best_scores(states: Floats, arcs: Floats, start: Floats, end: Floats, k: int) -> Floats:
    """The k highest scores of outputs, highest first, by keeping the k best for every label."""
    L = states.shape[1]
    kept = (start + states[0])[None, :]  # [k, L]
    for here, arc in zip(states[1:], arcs, strict=True):
        candidates = (kept[:, :, None] + arc).reshape(-1, L) + here
        kept = -np.sort(-candidates, axis=0)[:k]
    return -np.sort(-(kept + end).ravel())[:k]


def parts_of(instance: ChainInstance) -> tuple[Floats, Floats, Floats, Floats]:
    """The scores with nothing left to default."""
    scores = instance.spelled_out().scores
    L = instance.n_labels
    start = np.zeros(L) if scores.start is None else scores.start
    end = np.zeros(L) if scores.end is None else scores.end
    return scores.emissions, np.asarray(scores.transitions), start, end


KINDS: dict[str, dict[str, Any]] = {
    "shared": {},
    "pairs": {"arcs": "pairs"},
    "forbidden": {"forbidden": 0.3, "restricted": 0.3, "start": False},
    "forbidden pairs": {"forbidden": 0.3, "restricted": 0.3, "arcs": "pairs", "end": False},
    "spread": {"scale": 250.0},
    "spread pairs": {"scale": 250.0, "arcs": "pairs"},
}


def draw(n_labels: int, kind: str) -> ChainInstance:
    """One instance of this size; the lengths run through 1 … 60."""
    n_positions = 1 + (n_labels * 13 + len(kind)) % 60
    random = np.random.default_rng([n_labels, len(kind)])
    return draw_chain(
        random, positions=(n_positions, n_positions), labels=(n_labels, n_labels), **KINDS[kind]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_labels", [*range(1, 41), 45, 64, 65, 130])
def test_every_number_of_labels(n_labels: int, kind: str) -> None:
    instance = draw(n_labels, kind)
    question: dict[str, Any] = {
        "structure": instance.structure,
        "scores": instance.scores,
        "allowed": instance.allowed,
    }
    plain = LogSpaceChain(*parts_of(instance))

    assert inference.log_partition(**question) == pytest.approx(
        float(plain.log_partition), rel=1e-12, abs=1e-12 * instance.scale
    )
    marginals = inference.marginals(**question)
    states, arcs = plain.marginals()
    np.testing.assert_allclose(marginals.emissions, states, rtol=0, atol=1e-9)
    np.testing.assert_allclose(marginals.transitions, arcs, rtol=0, atol=1e-9)

    entropy = float(
        -np.sum(_log_times(states[0], states[0])) - np.sum(_log_times(arcs, _given(arcs, states)))
    )
    assert inference.entropy(**question) == pytest.approx(entropy, rel=1e-9, abs=1e-9)

    expected = best_scores(*parts_of(instance), k=4)
    expected = expected[np.isfinite(expected)]
    found = inference.k_best(**question, k=4)
    np.testing.assert_allclose(
        [entry.score for entry in found], expected, rtol=1e-12, atol=1e-12 * instance.scale
    )
    assert len({entry.output.tobytes() for entry in found}) == len(expected)
    for entry in [*found, inference.decode(**question)]:
        score = inference.score(instance.structure, instance.scores, entry.output)
        assert entry.score == pytest.approx(score, rel=1e-12, abs=1e-12 * instance.scale)
    assert inference.decode(**question).score == pytest.approx(expected[0], rel=1e-12)


def _given(arcs: Floats, states: Floats) -> Floats:
    """P(y_{t+1} = b | y_t = a) [T − 1, L, L]."""
    return np.asarray(arcs / np.where(states[:-1] > 0, states[:-1], 1.0)[:, :, None])


def _log_times(weights: Floats, values: Floats) -> Floats:
    """Weights · log values, 0 where the value is 0."""
    return np.asarray(weights * np.log(np.where(values > 0, values, 1.0)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 22, 31, 32, 33, 45, 64, 65])
def test_hessian_vector_is_the_complex_derivative(n_labels: int, kind: str) -> None:
    instance = draw(n_labels, kind)
    random = np.random.default_rng(n_labels)
    direction = np.where(instance.existing(), random.normal(size=len(instance.existing())), 0.0)
    tiny = 1e-30
    moved = [
        scores + 1j * tiny * move
        for scores, move in zip(parts_of(instance), instance.parts.split(direction), strict=True)
    ]
    states, arcs = LogSpaceChain(*moved).marginals()
    hessian_vector = inference.hessian_vector(
        instance.structure, instance.scores, instance.part_scores(direction), allowed=instance.allowed
    )
    np.testing.assert_allclose(hessian_vector.emissions, states.imag / tiny, rtol=0, atol=1e-9)
    np.testing.assert_allclose(hessian_vector.transitions, arcs.imag / tiny, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 9, 22, 45, 130])
def test_samples_of_many_labels_follow_the_marginals(n_labels: int) -> None:
    instance = draw(n_labels, "shared")
    n = 4000
    samples = inference.sample(instance.structure, instance.scores, n, random_state=1)
    p, _ = LogSpaceChain(*parts_of(instance)).marginals()
    frequencies = np.zeros_like(p)
    for position, labels in enumerate(samples.T):
        frequencies[position] = np.bincount(labels, minlength=n_labels) / n
    assert np.all(np.abs(frequencies - p) <= 5.0 * np.sqrt(p * (1.0 - p) / n) + 5.0 / n)


def draw_long(n_positions: int, n_labels: int, spread: float) -> tuple[Floats, Floats, Floats, Floats]:
    """States, arcs, start and end within ± spread, in 512 steps: few different numbers, and all exact."""
    random = np.random.default_rng(5)
    shapes = ((n_positions, n_labels), (n_labels, n_labels), (n_labels,), (n_labels,))
    states, arcs, start, end = (random.integers(-256, 257, size=shape) / 256 * spread for shape in shapes)
    return states, arcs, start, end


def assert_long(scores: ChainScores, log_partition: float, at: dict[int, Floats]) -> None:
    """Log Z to a relative 1e-12 and these marginals to 1e-9."""
    assert inference.log_partition(Chain(), scores) == pytest.approx(log_partition, rel=1e-12)
    states = inference.marginals(Chain(), scores).emissions
    for position, expected in at.items():
        np.testing.assert_allclose(states[position], expected, rtol=0, atol=1e-9)


def test_a_hundred_thousand_positions() -> None:
    T = 100_000
    numbers = draw_long(T, 3, 4.0)
    log_partition, at = long_chain(*numbers, positions=[0, 1, 777, T // 2, T - 2, T - 1])
    scores = ChainScores(*numbers)
    assert_long(scores, log_partition, at)
    best, second = inference.k_best(Chain(), scores, 2)
    assert log_partition >= best.score >= second.score
    assert best.score == pytest.approx(inference.decode(Chain(), scores).score, rel=1e-12)
    assert best.score == pytest.approx(inference.score(Chain(), scores, best.output), rel=1e-12)
    assert inference.sample(Chain(), scores, 2, random_state=0).shape == (2, T)


@pytest.mark.parametrize("spread", [512.0, 8192.0])
def test_thousands_of_positions_with_scores_far_apart(spread: float) -> None:
    T = 3000
    numbers = draw_long(T, 3, spread)
    numbers[0][T // 3 : T // 3 + 500] /= 512.0  # a stretch on which the labels compete
    log_partition, at = long_chain(*numbers, positions=[0, T // 3, T // 3 + 250, T // 3 + 499, T - 1])
    assert_long(ChainScores(*numbers), log_partition, at)


@pytest.mark.parametrize("n_labels", [2, 3, 9, 22, 45])
@pytest.mark.parametrize("depth", [30.0, 600.0, 744.0, 760.0, 1e4, 1e8])
def test_mass_that_leads_nowhere(n_labels: int, depth: float) -> None:
    """Label 0 leads by `depth` from the left and label 1 from the right, and no arc joins them.

    What counts are labels that look negligible from either side: in a scaled message they round to nothing.
    """
    T = 7
    states = np.zeros((T, n_labels))
    states[: T // 2, 0] = depth
    states[T // 2 :, 1] = depth
    arcs = np.full((n_labels, n_labels), -np.inf)
    np.fill_diagonal(arcs, 0.0)  # a label is kept from the first position to the last
    forbidden = np.zeros(n_labels)
    forbidden[0] = -np.inf
    expected = LogSpaceChain(states, np.broadcast_to(arcs, (T - 1, *arcs.shape)), 0.0, forbidden)
    for scores in (
        ChainScores(states, arcs, end=forbidden),
        ChainScores(states, np.repeat(arcs[None], T - 1, axis=0), end=forbidden),
        ChainScores(states[::-1], arcs, forbidden),
    ):
        log_partition = inference.log_partition(Chain(), scores)
        assert log_partition == pytest.approx(expected.log_partition, rel=1e-12)
        position_marginals = inference.marginals(Chain(), scores).emissions
        np.testing.assert_allclose(position_marginals, expected.marginals()[0], rtol=0, atol=1e-9)
        assert inference.decode(Chain(), scores).output.tolist() == [1] * T


@pytest.mark.parametrize("n_labels", [2, 9, 22])
@pytest.mark.parametrize("depth", [300.0, 700.0, 740.0, 750.0, 800.0, 1e4])
def test_two_paths_that_are_level_only_at_the_end(n_labels: int, depth: float) -> None:
    """Label 0 pays `depth` at the last position for what it gained at the first: both paths weigh the same."""
    T = 6
    states = np.full((T, n_labels), -2.0 * depth)
    states[:, :2] = 0.0
    states[0, 0], states[-1, 0] = depth, -depth
    arcs = np.full((n_labels, n_labels), -4.0 * depth)
    np.fill_diagonal(arcs, 0.0)
    scores = ChainScores(states, arcs)
    assert inference.log_partition(Chain(), scores) == pytest.approx(math.log(2.0), rel=0, abs=1e-12 * depth)
    marginals = inference.marginals(Chain(), scores)
    np.testing.assert_allclose(marginals.emissions[:, :2], 0.5, rtol=0, atol=1e-9)
    assert inference.entropy(Chain(), scores) == pytest.approx(math.log(2.0), rel=0, abs=1e-9)
    drawn = inference.sample(Chain(), scores, 2000, random_state=0)
    assert np.all(drawn == drawn[:, :1])
    assert 900 < int(drawn[:, 0].sum()) < 1100


def test_worked_example() -> None:
    """Two positions, two labels, four outputs: Z = e² + e + e³ + e⁻¹, the best is (2, 1) if labels begin at 1."""
    scores = ChainScores(emissions=[[1, 0], [2, 0]], transitions=[[-2, -1], [2, 0]], start=[1, -1])  # type: ignore[arg-type]
    chain = Chain(end=False)
    total = sum(math.exp(score) for score in (2, 1, 3, -1))
    assert math.exp(inference.log_partition(chain, scores)) == pytest.approx(total, rel=1e-12)
    best = inference.decode(chain, scores)
    assert (best.output.tolist(), best.score) == ([1, 0], 3.0)
    assert [entry.score for entry in inference.k_best(chain, scores, 9)] == [3.0, 2.0, 1.0, -1.0]
    for output, score in (((0, 0), 2), ((0, 1), 1), ((1, 0), 3), ((1, 1), -1)):
        probability = math.exp(inference.log_probability(chain, scores, output))
        assert probability == pytest.approx(math.exp(score) / total, rel=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 9, 22, 45])
@pytest.mark.parametrize("arcs", ["none", "zero"])
def test_without_arcs_the_positions_are_independent(n_labels: int, arcs: str) -> None:
    """Each position is then a logistic regression of its own: p(y) = Π_t softmax(states[t])[y_t]."""
    states = np.random.default_rng(n_labels).normal(size=(25, n_labels)) * 3
    scores = ChainScores(states, None if arcs == "none" else np.zeros((n_labels, n_labels)))
    chain = Chain(start=False, end=False)
    softmax = np.exp(states) / np.exp(states).sum(axis=1, keepdims=True)
    log_partition = inference.log_partition(chain, scores)
    assert log_partition == pytest.approx(np.log(np.exp(states).sum(axis=1)).sum(), rel=1e-12)
    marginals = inference.marginals(chain, scores)
    np.testing.assert_allclose(marginals.emissions, softmax, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        marginals.transitions, softmax[:-1, :, None] * softmax[1:, None, :], rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(inference.decode(chain, scores).output, states.argmax(axis=1))
