"""What inference says about questions that have no answer: one sentence, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crfkit import inference
from crfkit.errors import ArgumentError, LabelError, ShapeError, UnsupportedError
from crfkit.structures import (
    AllowedLabels,
    Chain,
    ChainScores,
    PatternChain,
    PatternMatcher,
    PatternScores,
    PatternStarts,
)

CHAIN = Chain()
SCORES = ChainScores(np.zeros((3, 2)), np.zeros((2, 2)))
SCORES_OF_TWO = ChainScores(np.zeros((2, 2)))
DEAD_END = ChainScores(np.zeros((3, 2)), np.full((2, 2), -np.inf))  # two neighbours are never allowed

QUESTIONS: dict[str, Callable[..., Any]] = {
    "log_partition": inference.log_partition,
    "marginals": inference.marginals,
    "hessian_vector": lambda structure, scores, **allowed: inference.hessian_vector(
        structure, scores, SCORES, **allowed
    ),
    "decode": inference.decode,
    "k_best": lambda structure, scores, **allowed: inference.k_best(structure, scores, 3, **allowed),
    "sample": lambda structure, scores, **allowed: inference.sample(structure, scores, 3, 0, **allowed),
    "entropy": inference.entropy,
    "log_probability": lambda structure, scores, **allowed: inference.log_probability(
        structure, scores, [0, 1, 0], **allowed
    ),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
class TestEveryQuestion:
    """What all questions refuse in the same words."""

    def test_start_scores_without_start_arcs(self, ask: Callable[..., Any]) -> None:
        scores = ChainScores(np.zeros((3, 2)), start=np.zeros(2))
        with pytest.raises(UnsupportedError):
            ask(Chain(start=False), scores)

    def test_end_scores_without_end_arcs(self, ask: Callable[..., Any]) -> None:
        scores = ChainScores(np.zeros((3, 2)), end=np.zeros(2))
        with pytest.raises(UnsupportedError):
            ask(Chain(end=False), scores)

    def test_something_else_than_scores(self, ask: Callable[..., Any]) -> None:
        with pytest.raises(ArgumentError, match="ChainScores"):
            ask(CHAIN, np.zeros((3, 2)))

    def test_something_else_than_a_structure(self, ask: Callable[..., Any]) -> None:
        with pytest.raises(ArgumentError, match=r"Chain.*str"):
            ask("chain", SCORES)

    def test_allowed_of_another_shape(self, ask: Callable[..., Any]) -> None:
        with pytest.raises(ShapeError):
            ask(CHAIN, SCORES, allowed=np.ones((2, 2), dtype=np.bool_))

    def test_allowed_for_other_labels(self, ask: Callable[..., Any]) -> None:
        with pytest.raises(ShapeError):
            ask(CHAIN, SCORES, allowed=np.ones((3, 3), dtype=np.bool_))
        with pytest.raises(LabelError):
            ask(CHAIN, SCORES, allowed=AllowedLabels.from_labels([0, 1, 2]))

    def test_allowed_that_is_not_bool(self, ask: Callable[..., Any]) -> None:
        with pytest.raises(ShapeError):
            ask(CHAIN, SCORES, allowed=np.ones((3, 2)))

    def test_allowed_that_allows_nothing(self, ask: Callable[..., Any]) -> None:
        mask = np.ones((3, 2), dtype=np.bool_)
        mask[1] = False
        with pytest.raises(ArgumentError, match="position 1"):
            ask(CHAIN, SCORES, allowed=mask)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name not in {"log_partition", "k_best"}])
def test_nothing_can_be_said_when_no_output_exists(name: str) -> None:
    with pytest.raises(ValueError, match="no label sequence is possible"):
        QUESTIONS[name](CHAIN, DEAD_END)


@pytest.mark.parametrize(
    "name", [name for name in QUESTIONS if name not in {"log_partition", "k_best", "hessian_vector"}]
)
def test_nothing_can_be_said_with_patterns_when_no_output_exists(name: str) -> None:
    matcher, starts = PatternMatcher.linear(2, [([{0}, {1}], 0)])
    structure = PatternChain(
        CHAIN, matcher, PatternStarts.at(DEAD_END.n_positions, [(0, int(starts[0]), 1.0)])
    )
    scores = PatternScores(DEAD_END.emissions, DEAD_END.transitions, DEAD_END.start, DEAD_END.end, np.ones(1))
    with pytest.raises(ValueError, match="no label sequence is possible"):
        QUESTIONS[name](structure, scores)
    with pytest.raises(ValueError, match="no label sequence is possible"):
        inference.hessian_vector(
            structure, scores, PatternScores(np.zeros_like(DEAD_END.emissions), weights=np.ones(1))
        )


def test_log_partition_and_k_best_when_no_output_exists() -> None:
    assert inference.k_best(CHAIN, DEAD_END, 3) == []
    assert inference.log_partition(CHAIN, DEAD_END) == -np.inf
    states = np.array([[0.0, 0.0], [-np.inf, -np.inf]])
    assert inference.log_partition(CHAIN, ChainScores(states)) == -np.inf
    crossed = np.array([[True, False], [False, True]])
    kept = ChainScores(np.zeros((2, 2)), np.where(np.eye(2), 0.0, -np.inf))
    assert inference.log_partition(CHAIN, kept, allowed=crossed) == -np.inf


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: inference.k_best(CHAIN, SCORES, 0), "k is 0, expected 1 or more"),
        (lambda: inference.sample(CHAIN, SCORES, -1, 0), "n is -1, expected 0 or more"),
        (lambda: inference.score(CHAIN, SCORES, [0, 1]), "has 2 labels, the scores have 3 positions"),
        (
            lambda: inference.score(CHAIN, SCORES, [0, 1, 2]),
            "Position 2 has label 2, expected label ids from 0 to 1",
        ),
        (lambda: inference.score(CHAIN, SCORES, [0, -1, 1]), "Position 1 has label -1"),
        (lambda: inference.score(CHAIN, SCORES, [0.0, 1.0, 1.0]), "list of label ids, got float64"),
        (lambda: inference.score(CHAIN, SCORES, [[0, 1, 1]]), r"\[1, 3\]"),
        (
            lambda: inference.log_probability(CHAIN, SCORES, [0, 1]),
            "has 2 labels, the scores have 3 positions",
        ),
        (lambda: inference.parts(CHAIN, [0, 2], 2), "Position 1 has label 2, expected"),
        (
            lambda: inference.hessian_vector(CHAIN, SCORES, ChainScores(np.zeros((2, 2)))),
            r"\[2, 2\], expected .*\[3, 2\]",
        ),
        (
            lambda: inference.hessian_vector(CHAIN, SCORES, ChainScores(np.full((3, 2), -np.inf))),
            "direction.*finite",
        ),
        (
            lambda: inference.hessian_vector(
                Chain(end=False), SCORES, ChainScores(np.zeros((3, 2)), end=np.zeros(2))
            ),
            r"Chain\(end=False\) has no end transitions",
        ),
    ],
)
def test_what_only_one_question_refuses(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ask()


def test_an_output_that_is_forbidden_has_probability_zero() -> None:
    scores = ChainScores(np.array([[0.0, -np.inf], [0.0, 0.0]]))
    assert inference.score(CHAIN, scores, [1, 0]) == -np.inf
    assert inference.log_probability(CHAIN, scores, [1, 0]) == -np.inf
    mask = np.array([[True, True], [True, False]])
    assert inference.log_probability(CHAIN, SCORES_OF_TWO, [0, 1], allowed=mask) == -np.inf
