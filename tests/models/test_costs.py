"""`CRF.fit(costs=…)`: softmax-margin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import (
    CRF,
    LBFGS,
    SAG,
    SGD,
    TRON,
    AdaGrad,
    AveragedPerceptron,
    Checkpoint,
    Patterns,
    Segments,
    load,
)
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import FeatureFunctions, read_costs
from crfkit.models import CheckpointMismatchError
from crfkit.structures import Lattice

LABELS = ["B-PER", "I-PER", "O"]


def corpus(n: int = 60) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Words that are names in some sentences only, with a second feature that is always equal to the first."""
    random = np.random.default_rng(1)
    X, Y = [], []
    for _ in range(n):
        words = random.choice(["a", "b", "c", "Ann", "May"], random.integers(1, 7)).tolist()
        y = ["B-PER" if word in ("Ann", "May") and random.random() < 0.6 else "O" for word in words]
        y = ["I-PER" if i and label == "O" and y[i - 1] != "O" and random.random() < 0.3 else label
             for i, label in enumerate(y)]  # fmt: skip
        X.append([[word, f"same {word}"] for word in words])
        Y.append(y)
    return X, Y


def place(x: Any, label: str, i: int) -> float:
    return float(i)


def n_inside(crf: CRF, X: Any) -> int:
    return sum(label != "O" for y in crf.predict(X) for label in y)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        (1.5, [[0, 0, 1.5], [0, 0, 1.5], [0, 0, 0]]),
        (-2, [[0, 0, 0], [0, 0, 0], [2, 2, 0]]),
        ({"missed": 3}, [[0, 0, 3], [0, 0, 3], [0, 0, 0]]),
        ({"missed": 1, "invented": 2, "confused": 0.5}, [[0, 0.5, 1], [0.5, 0, 1], [2, 2, 0]]),
        ({("O", "I-PER"): 4, ("B-PER", "O"): 1}, [[0, 0, 1], [0, 0, 0], [0, 4, 0]]),
        ([[0, 1, 2], [3, 0, 4], [5, 6, 0]], [[0, 1, 2], [3, 0, 4], [5, 6, 0]]),
    ],
)
def test_forms_of_costs(costs: Any, expected: Any) -> None:
    np.testing.assert_array_equal(read_costs(costs, LABELS), expected)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ({("O", "B-LOC"): 1}, "the label 'B-LOC', which y does not have"),
        ({("O", "O"): 1}, "for the right label 'O', expected 0"),
        ({("O", "B-PER"): -1}, r"costs\[\('O', 'B-PER'\)\] is -1, expected a finite number of 0 or more"),
        ({"missed": "2"}, r"costs\['missed'\] is '2'"),
        ({"miss": 2}, "the key 'miss', expected pairs"),
        ({"missed": 2, ("O", "B-PER"): 1}, "pairs of labels beside 'missed'"),
        (float("nan"), "costs is nan, expected a finite number"),
        (True, "expected a number, a dict"),
        ("recall", "expected a number, a dict"),
        ([[0, 1], [1, 0]], r"the shape \(2, 2\), expected \(3, 3\)"),
        ([0, 1, 2], "expected a number, a dict"),
        ([[0, -1, 0], [0, 0, 0], [0, 0, 0]], "a number of costs is -1"),
    ],
)
def test_what_are_no_costs(costs: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        CRF().fit(*corpus(), costs=costs)


def test_costs_of_spans_need_a_label_outside() -> None:
    with pytest.raises(ArgumentError, match="need the label 'O'"):
        CRF().fit([[["a"], ["b"]]], [["NOUN", "VERB"]], costs=1.0)


@pytest.mark.parametrize(
    ("crf", "message"),
    [
        (CRF(optimizer=AveragedPerceptron()), "steps after mistakes"),
        (CRF(optimizer="averaged_perceptron"), "steps after mistakes"),
        (CRF(features=FeatureFunctions([place])), "feature functions have none"),
        (CRF(Lattice()), "Lattice"),
    ],
)
def test_what_has_no_costs(crf: CRF, message: str) -> None:
    with pytest.raises(UnsupportedError, match=f"costs were given, but .*{message}"):
        crf.fit(*corpus(), costs=1.0)


@pytest.mark.parametrize("structure", [None, Patterns(["B-PER I-PER O"]), Segments()])
def test_one_number_moves_from_precision_to_recall(structure: Any) -> None:
    X, y = corpus()
    settings = {} if structure is None else {"structure": structure}
    found = [n_inside(CRF(**settings).fit(X, y, costs=cost), X) for cost in (-4.0, 0.0, 4.0)]
    assert found[0] < found[1] < found[2]
    plain = CRF(**settings).fit(X, y)
    assert n_inside(plain, X) == found[1]


def test_no_costs_are_no_change() -> None:
    X, y = corpus()
    plain, none = CRF().fit(X, y), CRF().fit(X, y, costs=0.0)
    np.testing.assert_allclose(none.weights_, plain.weights_, rtol=0, atol=1e-9)


def test_every_optimizer_finds_the_same_minimum() -> None:
    """L-BFGS and TRON in the coordinates of merged features, SAG sequence by sequence."""
    X, y = corpus()
    costs = {"missed": 2.0, "invented": 1.0, "confused": 0.5}
    expected = CRF(optimizer=LBFGS(tolerance=1e-7, change=0.0)).fit(X, y, costs=costs)
    assert expected.history_[-1].objective > CRF().fit(X, y).history_[-1].objective + 1
    for optimizer in (TRON(), SAG(max_iterations=100), SAG(max_iterations=100, random_state=1)):
        found = CRF(optimizer=optimizer).fit(X, y, costs=costs)
        np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=5e-3)
    for near in (SGD(max_iterations=60), AdaGrad(max_iterations=60), SGD(max_iterations=60, batch=7)):
        found = CRF(optimizer=near).fit(X, y, costs=costs)
        np.testing.assert_allclose(found.weights_, expected.weights_, rtol=0, atol=0.3)


@pytest.mark.parametrize("optimizer", [TRON(), SGD(max_iterations=3, batch=4), SAG(max_iterations=3)])
def test_the_same_bits_for_any_number_of_threads(optimizer: Any) -> None:
    X, y = corpus()
    one, four = (CRF(optimizer=optimizer, n_threads=n).fit(X, y, costs=2.0).weights_ for n in (1, 4))
    assert np.array_equal(one, four)


def test_labels_that_the_annotation_allows_cost_nothing() -> None:
    """None is the set of all labels. tests/laws/test_losses.py has sets of some of them."""
    X, crf = [[["a"], ["b"]], [["a"]], [["b"]]], CRF(all_possible_states=True)
    unknown, every = (
        crf.fit(X, [[first, "B-PER"], ["O"], ["I-PER"]], costs={"missed": 2}).weights_
        for first in (None, {"B-PER", "I-PER", "O"})
    )
    np.testing.assert_allclose(unknown, every, rtol=0, atol=1e-12)


def test_a_checkpoint_of_other_costs_is_refused(tmp_path: Path) -> None:
    X, y = corpus()
    long, path = CRF(optimizer=TRON()), tmp_path / "run"
    begun = Checkpoint(path, every=1)
    long.fit(X, y, costs=2.0, checkpoint=begun, callback=lambda step: step.iteration == 2)
    for costs in (1.0, None):
        with pytest.raises(CheckpointMismatchError):
            long.fit(X, y, costs=costs, checkpoint=Checkpoint(path, resume=True))
    resumed = long.fit(X, y, costs={"missed": 2.0}, checkpoint=Checkpoint(path, resume=True))
    assert np.array_equal(resumed.weights_, CRF(optimizer=TRON()).fit(X, y, costs=2.0).weights_)


def test_partial_fit_takes_costs() -> None:
    X, y = corpus()
    crf = CRF().fit(X, y)
    before = n_inside(crf, X)
    assert n_inside(crf.partial_fit(X, y, costs=5.0), X) > before


@pytest.mark.parametrize("structure", [None, Patterns(["B-PER I-PER O"]), Segments()])
@pytest.mark.parametrize("partial", [False, True])
def test_a_margin_is_what_every_wrong_label_costs(structure: Any, partial: bool) -> None:
    X, given = corpus()
    y: list[Any] = list(given)
    if partial:
        y = [[{"B-PER", "I-PER"} if label == "I-PER" else None if i == 3 else label
              for i, label in enumerate(labels)] for labels in given]  # fmt: skip
    options = {} if structure is None else {"structure": structure}
    every = 1.5 * (np.ones((3, 3)) - np.eye(3))
    expected = CRF(**options, optimizer=LBFGS(60)).fit(X, y, costs=every)
    crf = CRF(**options, optimizer=LBFGS(60), margin=1.5).fit(X, y)
    assert crf.history_[-1].objective == pytest.approx(expected.history_[-1].objective, rel=1e-6)
    np.testing.assert_allclose(crf.weights_, expected.weights_, atol=2e-2)
    assert not np.allclose(crf.weights_, CRF(**options, optimizer=LBFGS(60)).fit(X, y).weights_, atol=0.05)


def test_costs_take_the_place_of_a_margin() -> None:
    X, y = corpus()
    given = CRF(margin=1.5).fit(X, y, costs=2.0).weights_
    assert np.array_equal(given, CRF().fit(X, y, costs=2.0).weights_)
    perceptron = AveragedPerceptron(3)
    expected = CRF(optimizer=perceptron).fit(X, y).weights_
    assert np.array_equal(CRF(optimizer=perceptron, margin=1.5).fit(X, y).weights_, expected)


def test_a_model_file_has_the_margin(tmp_path: Path) -> None:
    X, y = corpus()
    for margin in (0.0, 1.5):
        CRF(margin=margin, l2=0.1).fit(X, y).save(tmp_path / "m.crf")
        assert load(tmp_path / "m.crf").margin == margin


@pytest.mark.parametrize(
    ("crf", "error", "message"),
    [
        (CRF(margin=-1), ArgumentError, "margin is -1, expected a number from 0 on"),
        (CRF(features=FeatureFunctions([place]), margin=1), UnsupportedError, "margin is not 0, but feature"),
        (CRF(Lattice(), margin=1), UnsupportedError, "margin is not 0, but .*Lattice"),
    ],
)
def test_what_has_no_margin(crf: CRF, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        crf.fit(*corpus())
