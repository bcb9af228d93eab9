"""`crfkit.inference.SegmentBatch` against brute force over all segmentations, and on several threads."""

from typing import Any

import numpy as np
import pytest

from crfkit.inference import SegmentBatch
from tests.oracles import segment_batches
from tests.oracles.segment_batches import KINDS, segment_batch

SCORES = ("emissions", "durations", "transitions", "start", "end", "first", "last", "segments")


def batch_of(given: segment_batches.SegmentBatch, lengths: Any, n_threads: int = 2) -> SegmentBatch:
    scores: list[Any] = [given.scores.get(name) for name in SCORES]
    return SegmentBatch(*scores, lengths=lengths, n_threads=n_threads)


@pytest.mark.parametrize("kind", KINDS)
def test_answers(kind: str) -> None:
    """All sequences that are not left out, of every length; those beyond exp space are."""
    given = segment_batch(3, **KINDS[kind])
    B, T, _ = given.scores["emissions"].shape
    lengths = np.maximum(T - np.arange(B), 0)
    given = segment_batches.SegmentBatch(given.scores, np.arange(T) < lengths[:, None])
    chains = batch_of(given, lengths)
    found, best = chains.expectations(), chains.decode()
    for b, n in enumerate(lengths.tolist()):
        oracle = given.oracle(b)
        assert (best[b, n:] == -1).all()
        if oracle.outputs:
            assert tuple(best[b, :n].tolist()) in oracle.best_outputs(1e-9)
        if found.left_out[b]:
            assert kind == "far apart" or not oracle.outputs
            continue
        np.testing.assert_allclose(found.log_partition[b], oracle.log_partition, rtol=1e-12, atol=1e-12)
        for name, part in given.split(oracle.marginals, b).items():
            value = getattr(found, name)[b]
            whole = value[:n] if name in ("emissions", "first", "last", "segments") else value
            np.testing.assert_allclose(whole, part, rtol=1e-9, atol=1e-9, err_msg=name)
            assert (whole[part == 0] == 0).all()
        assert not found.emissions[b, n:].any()


@pytest.mark.parametrize("kind", ["plain", "whole segments", "own transitions"])
def test_the_number_of_threads_changes_no_bit(kind: str) -> None:
    given = segment_batch(5, **{**KINDS[kind], "shape": (9, 60, 7, 5), "masked": False})
    one, three = (batch_of(given, None, n_threads) for n_threads in (1, 3))
    assert np.array_equal(one.decode(), three.decode())
    assert all(map(np.array_equal, one.expectations(), three.expectations()))


def test_what_exp_space_could_lose_is_left_out() -> None:
    """Label 1 covers all positions or none. It falls far behind, and what follows makes up for it."""
    T = 100
    emissions = np.zeros((1, T, 2))
    emissions[0, :50, 1], emissions[0, 50:, 0] = -14.2, -14.1
    durations = np.full((T, 2), -np.inf)
    durations[0, 0] = durations[T - 1, 1] = 0.0
    transitions = np.array([[0.0, -np.inf], [0.0, 0.0]])
    found = SegmentBatch(emissions, durations, transitions).expectations()
    exact = np.logaddexp(-710.0, -705.0)
    assert found.left_out[0] or abs(found.log_partition[0] - exact) < 1e-9


def test_segments_that_do_not_exist() -> None:
    given = segment_batch(6, shape=(4, 6, 4, 2), whole=True)
    given.scores["segments"][np.random.default_rng(0).random((4, 6, 4, 2)) < 0.3] = -np.inf
    found = batch_of(given, None).expectations()
    for b in range(4):
        assert not found.left_out[b]
        right = given.split(given.oracle(b).marginals, b)["segments"]
        np.testing.assert_allclose(found.segments[b], right, rtol=1e-9, atol=1e-9)


def test_what_cannot_be_summed_is_left_out() -> None:
    emissions = np.zeros((4, 3, 2))
    emissions[0, 1, 1], emissions[1, 1], emissions[2, 0, 0] = np.nan, -np.inf, np.inf
    found = SegmentBatch(emissions, np.zeros((2, 2)), np.zeros((2, 2))).expectations()
    assert found.left_out.tolist() == [True, True, True, False]
    wrong = SegmentBatch(emissions, np.zeros((2, 3)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="lengths has 6 numbers, expected 4"):
        wrong.decode()
