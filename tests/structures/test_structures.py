"""Structures: allowed labels in their three forms, trellises that are shared, scores that are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.errors import ArgumentError, ShapeError, UnsupportedError
from crfkit.structures import AllowedLabels, Chain, ChainScores, Structure

MASK = np.array([[True, True, False], [True, True, True], [False, False, True]])


def test_the_three_makers_of_allowed_agree() -> None:
    from_sets = AllowedLabels.from_sets([{1, 0}, None, [2, 2]])
    assert from_sets.position_ptr.tolist() == [0, 2, 2, 3]
    assert from_sets.labels.tolist() == [0, 1, 2]
    assert from_sets.key == AllowedLabels.from_mask(MASK).key
    assert AllowedLabels.from_labels([2, -1, 0]).key == AllowedLabels.from_sets([{2}, None, {0}]).key


def test_allowed_and_mask_are_inverses() -> None:
    random = np.random.default_rng(0)
    for n_positions, n_labels in ((0, 2), (1, 1), (5, 4), (40, 7)):
        mask = random.random((n_positions, n_labels)) < 0.5
        mask[np.arange(n_positions), random.integers(n_labels, size=n_positions)] = True
        allowed = AllowedLabels.from_mask(mask)
        assert allowed.n_positions == n_positions
        np.testing.assert_array_equal(allowed.mask(n_labels), mask)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AllowedLabels.from_sets([{0}, set()]), "position 1 allows no label"),
        (lambda: AllowedLabels.from_sets([{1.5}]), "expected a list of integers, got float64"),  # type: ignore[arg-type]
        (lambda: AllowedLabels.from_sets([{-1}]), "holds -1, expected label ids from 0 on"),
        (lambda: AllowedLabels.from_sets([{2**40}]), "fit int32"),
        (lambda: AllowedLabels.from_mask([[True], [False]]), "position 1 allows no label"),
        (lambda: AllowedLabels.from_mask([[1, 0]]), "expected bools"),
        (lambda: AllowedLabels.from_mask([True]), "expected bools"),
        (lambda: AllowedLabels.from_labels([0, -2]), "got -2, expected label ids from 0 on, or −1"),
        (lambda: AllowedLabels.from_labels([[0]]), "expected a list of integers"),
        (
            lambda: AllowedLabels(np.array([0, 1]), np.array([0, 1])),
            "must rise from 0 to the number of labels",
        ),
        (lambda: AllowedLabels(np.array([0, 2, 1]), np.array([0])), "must rise from 0"),
        (
            lambda: AllowedLabels(np.array([], dtype=np.int64), np.array([], dtype=np.int32)),
            "must rise from 0",
        ),
        (
            lambda: AllowedLabels(np.array([0, 2]), np.array([1, 0])),
            "ascending and distinct within each position",
        ),
        (
            lambda: AllowedLabels(np.array([0, 2]), np.array([1, 1])),
            "ascending and distinct within each position",
        ),
        (lambda: AllowedLabels.from_labels([3]).mask(3), "allows label 3, expected ids below L = 3"),
    ],
)
def test_allowed_is_refused_with_a_message(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_chain_leaves_nothing_open() -> None:
    chain: Structure = Chain(start=False)
    assert chain.bind(["a", "b"], [[0, 1]]) is chain
    with pytest.raises(ArgumentError, match="at least one label"):
        chain.bind([], [])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Chain().possible_labels(-1, 2), "n_positions is -1, expected 0 or more"),
        (
            lambda: Chain().possible_labels(2, 2, AllowedLabels.from_labels([0])),
            "are of 1 positions, the input has 2",
        ),
    ],
)
def test_compile_refuses_with_a_message(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_scores_are_converted_and_the_callers_arrays_kept() -> None:
    states = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    arcs = np.zeros((2, 2))
    scores = ChainScores(states, arcs, start=[0, -np.inf])  # type: ignore[arg-type]
    assert (scores.n_positions, scores.n_labels) == (3, 2)
    for kept in (scores.emissions, scores.transitions, scores.start):
        assert kept is not None
        assert kept.dtype == np.float64
        assert kept.flags.c_contiguous
        assert not kept.flags.writeable
    assert arcs.flags.writeable
    np.testing.assert_array_equal(scores.emissions, [[0, 1], [2, 3], [4, 5]])


@pytest.mark.parametrize("n_positions", [0, 1, 2, 5])
def test_arcs_are_shared_or_given_pair_by_pair(n_positions: int) -> None:
    states = np.zeros((n_positions, 3))
    ChainScores(states, np.zeros((3, 3)))
    ChainScores(states, np.zeros((max(n_positions - 1, 0), 3, 3)))
    with pytest.raises(ShapeError, match=r"ChainScores\.transitions"):
        ChainScores(states, np.zeros((n_positions + 1, 3, 3)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"emissions": [0.0, 1.0]}, r"ChainScores\.emissions: expected \[T, L\] with L ≥ 1, got \[2\]"),
        ({"emissions": np.zeros((2, 0))}, r"with L ≥ 1, got \[2, 0\]"),
        ({"emissions": 1.0}, r"got \[\]"),
        ({"emissions": [[0.0], [0.0, 1.0]]}, "rows of different length"),
        ({"emissions": [["a"]]}, "expected an array of numbers"),
        ({"emissions": [[1j]]}, "expected an array of numbers, got complex128"),
        ({"emissions": [[0.0, np.nan]]}, r"ChainScores\.emissions: \[0, 1\] is NaN"),
        ({"emissions": [[0.0], [np.inf]]}, r"ChainScores\.emissions: \[1, 0\] is \+inf"),
        (
            {"emissions": [[0.0, 0.0]], "transitions": [[0.0]]},
            r"ChainScores\.transitions: expected \[L, L\] = \[2, 2\]",
        ),
        ({"emissions": [[0.0]], "transitions": [[np.nan]]}, r"ChainScores\.transitions: \[0, 0\] is NaN"),
        (
            {"emissions": [[0.0, 0.0]], "start": [0.0]},
            r"ChainScores\.start: expected \[L\] = \[2\].*got \[1\]",
        ),
        ({"emissions": [[0.0, 0.0]], "end": [[0.0, 0.0]]}, r"ChainScores\.end: .*got \[1, 2\]"),
        ({"emissions": [[0.0]], "end": [np.inf]}, r"ChainScores\.end: \[0\] is \+inf"),
    ],
)
def test_scores_are_refused_with_a_message(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ChainScores(**fields)


def test_scores_go_with_the_arcs_of_their_structure() -> None:
    scores = ChainScores(np.zeros((2, 2)), start=np.zeros(2))
    scores.check(Chain())
    scores.check(Chain(end=False))
    with pytest.raises(UnsupportedError):
        scores.check(Chain(start=False))
    with pytest.raises(UnsupportedError):
        ChainScores(np.zeros((2, 2)), end=np.zeros(2)).check(Chain(end=False))
    with pytest.raises(ArgumentError, match="go with a Chain, got str"):
        scores.check("chain")  # type: ignore[arg-type]
