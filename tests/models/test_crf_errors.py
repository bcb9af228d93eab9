"""Bad parameters, training data and questions raise errors with clear messages."""

from __future__ import annotations

from typing import Any

import pytest

from crfkit import CRF, InputError
from crfkit.errors import ArgumentError, LabelError, ShapeError
from tests.models.small_corpus import Sequences, corpus


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"structure": "chain"}, "structure"),
        (
            {"optimizer": "bfgs"},
            "optimizer",
        ),
        ({"features": 3}, "features"),
        ({"l1": -1.0}, "l1"),
        ({"l2": float("nan")}, "l2"),
        ({"l2": "1"}, "l2"),
        ({"l2": {"w": -1.0}}, r"l2\['w'\] is -1.0"),
        ({"min_count": 0}, "min_count"),
        ({"min_count": 1.5}, "min_count"),
        ({"min_count": True}, "min_count"),
        ({"n_threads": 0}, "n_threads"),
        ({"all_possible_states": "yes"}, "all_possible_states"),
    ],
)
def test_parameters_are_stored_untouched_and_refused_by_fit(params: dict[str, Any], words: str) -> None:
    crf = CRF(**params)
    [(name, value)] = params.items()
    assert getattr(crf, name) is value
    with pytest.raises(ArgumentError, match=words):
        crf.fit(*corpus(5))
    assert not hasattr(crf, "weights_")


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        ([], [], "nothing to learn"),
        ([[]], [[]], "nothing to learn"),
        ([[["a"]]], [[None]], "nothing to learn"),
        ([[["a"]]], [], "X has 1 sequences but y has 0"),
        ([[["a"], ["b"]]], [["x"]], "sequence 0: 2 positions but 1 labels"),
        ([[["a"]], [["a"]]], [["x"], "x"], "y of sequence 1 is 'x', expected a list of labels"),
        ("text", [["x"]], "X is the string 'text', expected a list of sequences"),
        (3, [["x"]], "X is 3"),
        ([["word"]], [["x"]], "sequence 0, position 0"),
        ([[{"a": float("nan")}]], [["x"]], "sequence 0, position 0"),
        ([[{"a": float("inf")}]], [["x"]], "sequence 0, position 0"),
        ([[["a"]]], [[["x"]]], "sequence 0, position 0: the label"),
        ([[["a"]]], [[set()]], "sequence 0, position 0: the set of labels is empty"),
    ],
)
def test_bad_training_data_is_refused_with_a_message(X: Any, y: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        CRF().fit(X, y)


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1.0], r"shape \[1\], expected \[5\]"),
        ([1, 1, 1, 1, -1], r"sample_weight\[4\] is -1.0"),
        ([0] * 5, "all weights are zero"),
        ("x", "expected one number"),
    ],
)
def test_bad_sample_weights_are_refused_with_a_message(weight: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        CRF().fit(*corpus(5), sample_weight=weight)


def test_bad_questions_are_refused_with_a_message(trained: CRF) -> None:
    X: Sequences = [[["w=dog"]]]
    with pytest.raises(LabelError, match="sequence 0, position 0"):
        trained.log_probability(X, [["x"]])
    with pytest.raises(ShapeError):
        trained.score(X, [["D"], ["D"]])
    with pytest.raises(ShapeError, match="sequence 0"):
        trained.score(X, [["D", "D"]])
    with pytest.raises(ArgumentError, match="n"):
        trained.predict_nbest(X, 0)
    with pytest.raises(ShapeError, match="dev sequence 0"):
        CRF().fit(*corpus(5), dev=(X, [["D", "D"]]))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dev": [[["w=dog"]]] * 3}, r"dev is of type list, of length 3, expected the pair \(X, y\)"),
        ({"dev": 5}, r"dev is of type int, expected the pair \(X, y\)"),
        ({"patience": 3}, "patience was given without dev"),
        ({"metric": lambda gold, predicted: 0.5}, "metric was given without dev"),
    ],
)
def test_bad_dev_settings_are_refused_with_a_message(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        CRF().fit(*corpus(5), **settings)


def test_a_set_is_no_list_of_labels_to_score(trained: CRF) -> None:
    with pytest.raises(LabelError, match="sequence 0"):
        trained.score([[["w=the"]]], [{"D"}])
