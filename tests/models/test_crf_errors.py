"""Bad parameters, training data and questions raise errors with clear messages."""

from __future__ import annotations

from typing import Any

import pytest

from crfkit import CRF, InputError
from tests.models.small_corpus import Sequences, corpus


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"structure": "chain"}, "structure is 'chain', expected crfkit.Chain"),
        (
            {"optimizer": "bfgs"},
            "optimizer is 'bfgs', expected adagrad, arow, averaged_perceptron, lbfgs, newton, ",
        ),
        ({"features": 3}, "features is 3, expected None"),
        ({"l1": -1.0}, "l1 is -1.0, expected a finite number"),
        ({"l2": float("nan")}, "l2 is nan, expected a finite number"),
        ({"l2": "1"}, "l2 is '1', expected a number"),
        ({"l2": {"w": -1.0}}, r"l2\['w'\] is -1.0"),
        ({"min_count": 0}, "min_count is 0, expected a whole number of at least 1"),
        ({"min_count": 1.5}, "min_count is 1.5"),
        ({"min_count": True}, "min_count is True"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"all_possible_states": "yes"}, "all_possible_states is 'yes', expected True or False"),
    ],
)
def test_parameters_are_stored_untouched_and_refused_by_fit(params: dict[str, Any], words: str) -> None:
    crf = CRF(**params)
    [(name, value)] = params.items()
    assert getattr(crf, name) is value
    with pytest.raises(InputError, match=words):
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
    with pytest.raises(InputError, match="sequence 0, position 0: unknown label 'x'; the labels are D, N, V"):
        trained.log_probability(X, [["x"]])
    with pytest.raises(InputError, match="1 sequences but y has 2"):
        trained.score(X, [["D"], ["D"]])
    with pytest.raises(InputError, match="sequence 0: 1 positions but 2 labels"):
        trained.score(X, [["D", "D"]])
    with pytest.raises(InputError, match="n is 0"):
        trained.predict_nbest(X, 0)
    with pytest.raises(InputError, match="dev sequence 0: 1 positions but 2 labels"):
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
    with pytest.raises(InputError, match=r"y of sequence 0 is \{'D'\}, expected a list of labels"):
        trained.score([[["w=the"]]], [{"D"}])
