"""What a trained estimator answers, and what it tells of its weights."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from crfkit import CRF
from crfkit.errors import ArgumentError, LabelError
from crfkit.models import heaviest_features, heaviest_transition_features, transition_weights
from tests.models.small_corpus import Sequences


def all_label_sequences(crf: CRF, x: list[Any]) -> dict[tuple[Any, ...], float]:
    """The probability of every label sequence of a short sequence."""
    outputs = list(itertools.product(crf.classes_, repeat=len(x)))
    return dict(zip(outputs, np.exp(crf.log_probability([x] * len(outputs), outputs)).tolist(), strict=True))


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint64])
def test_numbers_of_numpy_ask_as_others(trained: CRF, kind: Any) -> None:
    """`n` times the number of positions may be more than their type holds."""
    x: list[Any] = [["w=dog"], ["w=sees"]] * 3
    assert trained.sample([x], kind(100), random_state=1) == trained.sample([x], 100, random_state=1)
    assert trained.predict_nbest([x], kind(3)) == trained.predict_nbest([x], 3)


def test_the_answers_agree_with_the_probability_of_every_label_sequence(trained: CRF) -> None:
    x: list[Any] = [["w=dog"], ["w=new", "bias"], ["w=sees"], []]
    probability = all_label_sequences(trained, x)
    assert sum(probability.values()) == pytest.approx(1.0, abs=1e-12)
    ranked = sorted(probability.items(), key=lambda item: -item[1])
    assert trained.predict([x]) == [list(ranked[0][0])]
    [nbest] = trained.predict_nbest([x], 5)
    assert [labels for _, labels in nbest] == [list(labels) for labels, _ in ranked[:5]]
    np.testing.assert_allclose([p for p, _ in nbest], [p for _, p in ranked[:5]], rtol=1e-9)
    assert len(trained.predict_nbest([x], 1000)[0]) == 3**4
    [marginals] = trained.predict_marginals([x])
    for position, k in itertools.product(range(4), range(3)):
        expected = sum(p for labels, p in probability.items() if labels[position] == trained.classes_[k])
        assert marginals[position, k] == pytest.approx(expected, abs=1e-12)
    known: list[Any] = ["N", None, {"V", "D"}, None]
    expected = sum(p for labels, p in probability.items() if labels[0] == "N" and labels[2] in "VD")
    assert trained.log_probability([x], [known])[0] == pytest.approx(math.log(expected), abs=1e-10)


def test_samples_follow_the_distribution_and_the_seed(trained: CRF) -> None:
    x: list[Any] = [["w=dog"], ["w=new"]]
    [drawn] = trained.sample([x], 4000, random_state=1)
    counts = Counter(map(tuple, drawn))
    for labels, p in all_label_sequences(trained, x).items():
        assert counts[labels] / 4000 == pytest.approx(p, abs=0.03)
    assert trained.sample([x], 5, random_state=3) == trained.sample([x], 5, random_state=3)
    assert trained.sample([x], 5) == trained.sample([x], 5)  # random_state=0 of the estimator
    assert trained.sample([x], 50, random_state=3) != trained.sample([x], 50, random_state=4)
    for source in (np.random.default_rng(0), np.random.RandomState(0), np.int64(3)):
        assert len(trained.sample([x], 2, random_state=source)[0]) == 2
    with pytest.raises(ArgumentError, match="random_state"):
        trained.sample([x], 1, random_state="x")  # type: ignore[arg-type]


def test_score_counts_positions_with_known_labels_by_weight(trained: CRF) -> None:
    X: Sequences = [[["w=the"], ["w=dog"]], [["w=the"]]]
    assert trained.predict(X) == [["D", "N"], ["D"]]
    assert trained.score(X, [["D", "N"], ["V"]]) == pytest.approx(2 / 3)
    assert trained.score(X, [["D", "N"], ["V"]], sample_weight=[1, 3]) == pytest.approx(2 / 5)
    assert trained.score(X, [["D", None], [{"V", "D"}]]) == 1.0
    assert trained.score(X, [["D", "unseen"], ["D"]]) == pytest.approx(2 / 3)


def test_heaviest_features_and_arcs_have_names(trained: CRF) -> None:
    names = [name for name, _ in heaviest_features(trained, "D", 2)]
    assert set(names) == {"w=the", "w=a"}
    arcs = {(before, after): weight for before, after, weight in transition_weights(trained)}
    assert len(arcs) == 3 * 3 + 3 + 3
    assert arcs["D", "N"] > arcs["D", "D"]
    assert arcs[None, "D"] > arcs[None, "V"]
    with pytest.raises(LabelError):
        heaviest_features(trained, "x")


def test_features_of_presets_are_readable() -> None:
    X, y = [["the", "dog"], ["a", "cat"], ["the", "cat"]], [["D", "N"]] * 3
    names = {name for name, _ in heaviest_features(CRF(features="names").fit(X, y), "N", 1000)}
    assert {"word=cat", "suffix2=at", "word[-1]|word=the|cat"} <= names
    assert all("=" in name and "U" not in name for name in names)
    weaker = CRF(features="names", l2={"suffix2": 100.0, "default": 1.0}).fit(X, y)
    assert "suffix2=at" not in {name for name, _ in heaviest_features(weaker, "N", 3)}


def test_features_on_arcs_have_names() -> None:
    X = [["the", "dog", "runs"], ["a", "cat", "runs"], ["dogs", "run"]]
    y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]
    crf = CRF(features="U00:%x[0,0]\nB01:%x[0,0]\nB").fit(X, y)
    found = heaviest_transition_features(crf, 10)
    assert {(feature, before, after) for feature, before, after, _ in found} == {
        ("B01:dog", "D", "N"),
        ("B01:cat", "D", "N"),
        ("B01:runs", "N", "V"),
        ("B01:run", "N", "V"),
    }
    assert [abs(arc.weight) for arc in found] == sorted((abs(arc.weight) for arc in found), reverse=True)
    assert found[0].feature == "B01:runs"
    assert heaviest_transition_features(crf, 2) == found[:2]
