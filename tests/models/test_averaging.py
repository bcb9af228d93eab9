"""The mean of several models."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, Bigrams, Chain, Patterns, Segments, TagDictionary
from crfkit.errors import ArgumentError, ShapeError, UnsupportedError
from crfkit.models import average_models
from tests.models.test_costs import corpus


def log_odds(crf: CRF, x: Any, sequences: list[Any]) -> Any:
    """log p(y) − log p of the first label sequence: the difference of their scores."""
    found = crf.log_probability([x] * len(sequences), sequences)
    return found - found[0]


@pytest.mark.parametrize("structure", [None, Patterns(["B-PER I-PER O"]), Segments()])
@pytest.mark.parametrize("weights", [None, [0.2, 0.5, 0.3]])
def test_scores_are_the_mean_of_scores(structure: Any, weights: Any) -> None:
    """Of models with the same weights, whatever these are."""
    X, y = corpus()
    settings = {} if structure is None else {"structure": structure}
    models = [CRF(**settings, l2=l2).fit(X, y) for l2 in (0.1, 1.0, 10.0)]
    mean = average_models(models, weights)
    x = X[3][:3]
    sequences = [("O", "O", "O"), ("B-PER", "O", "O"), ("B-PER", "I-PER", "O"), ("O", "B-PER", "B-PER")]
    expected = np.average([log_odds(model, x, sequences) for model in models], axis=0, weights=weights)
    np.testing.assert_allclose(log_odds(mean, x, sequences), expected, rtol=0, atol=1e-9)


def test_features_and_labels_of_one_model_only() -> None:
    """By what they score, whatever their numbers: a weight that a model does not have is 0."""
    X = [[["a", "z"], ["b"]], [["b"], ["a"]], [["c"], ["a", "z"]], [["d"], ["c"]]]
    y = [["A", "B"], ["B", "A"], ["C", "A"], ["D", "C"]]
    models = [CRF(l2=0.2).fit(X[n : n + 2], y[n : n + 2]) for n in (2, 0)]
    mean = average_models(models)
    assert mean.classes_ == ["A", "B", "C", "D"]
    known = [{**_weights(model)} for model in models]
    found = _weights(mean)
    assert found.keys() == known[0].keys() | known[1].keys()
    assert not known[0].keys() <= known[1].keys()
    for name, weight in found.items():
        assert weight == pytest.approx((known[0].get(name, 0.0) + known[1].get(name, 0.0)) / 2)


def _weights(crf: CRF) -> dict[Any, float]:
    """By name."""
    map_, names, labels = crf.feature_map_, crf.encoder_.vocabulary.names(), [*crf.classes_, None]
    found: dict[Any, float] = {}
    for f, name in enumerate(names):
        for p in range(map_.pair_ptr[f], map_.pair_ptr[f + 1]):
            found[name, labels[map_.pair_labels[p]]] = crf.weights_[p]
    for k, (a, b) in enumerate(zip(map_.arc_before, map_.arc_after, strict=True)):
        found["→", labels[a], labels[b]] = crf.weights_[map_.arcs_begin + k]
    return found


def test_features_of_transitions_and_bigrams() -> None:
    template = "U:%x[0,0]\nB:%x[0,0]\nB"
    X = [[["a"], ["b"]], [["b"], ["a"]], [["c"], ["a"]], [["a"], ["c"]]]
    y = [["A", "B"], ["B", "A"], ["C", "A"], ["A", "C"]]
    models = [
        CRF(Chain(bigrams="observed"), features=template, l2=0.2).fit(X[n : n + 2], y[n : n + 2])
        for n in (0, 2)
    ]
    mean = average_models(models)
    assert mean.predict(X) == y
    possible = [p for p in product("ABC", repeat=2) if np.isfinite(mean.log_probability(X[:1], [p]))[0]]
    assert sorted(map(list, possible)) == sorted(y)


@pytest.mark.parametrize("span_states", [None, "iobes"])
def test_a_scheme_holds_between_types_of_different_models(span_states: str | None) -> None:
    X = [[["a"], ["b"]]]
    structure = Chain(bigrams="bio")
    models = [CRF(structure, span_states=span_states).fit(X, [y]) for y in (["B-X", "I-X"], ["B-Y", "I-Y"])]
    mean = average_models(models)
    whole = CRF(structure, span_states=span_states).fit(X * 2, [["B-X", "I-X"], ["B-Y", "I-Y"]])
    assert mean.structure_ == whole.structure_
    assert mean.log_probability([X[0] * 2], [["B-X", "I-X", "B-Y", "I-Y"]])[0] > -10


def test_the_mean_is_a_model_like_any_other(tmp_path: Path) -> None:
    X, y = corpus()
    mean = average_models([CRF(l2=0.5).fit(X[:30], y[:30]), CRF(l2=0.5).fit(X[30:], y[30:])])
    assert mean.stop_message_ == "the mean of 2 models"
    mean.save(tmp_path / "m.crf")
    assert crfkit.load(tmp_path / "m.crf").predict(X) == mean.predict(X)
    again = CRF(l2=0.5).fit(X, y, start=mean)
    assert again.n_iter_ > 0
    assert np.array_equal(average_models([mean]).weights_, mean.weights_)


def test_what_has_no_mean() -> None:
    X, y = corpus()
    model = CRF().fit(X, y)
    for no_list, kind in ((model, "CRF"), (None, "NoneType")):
        with pytest.raises(ArgumentError, match=f"models is of type {kind}, expected a list of trained CRFs"):
            average_models(no_list)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="models are none, expected at least one trained CRF"):
        average_models([])
    with pytest.raises(ArgumentError, match="models are str"):
        average_models(["m.crf"])  # type: ignore[list-item]
    with pytest.raises(
        ValueError, match="is not trained: call fit"
    ):  # of scikit-learn where that is imported
        average_models([model, CRF()])
    with pytest.raises(
        ShapeError, match=r"weights has shape \[1\], expected \[2\]: one number for each model"
    ):
        average_models([model, model], [1.0])
    with pytest.raises(ArgumentError, match="expected numbers that sum up to 1"):
        average_models([model, model], [1.0, 1.0])
    for bad in (["a", "b"], [[1.0], [0.0, 1.0]], object()):
        with pytest.raises(ArgumentError, match="expected one number for each model"):
            average_models([model, model], bad)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="the models have different weights"):
        average_models([model, CRF(Segments()).fit(X, y)])


def test_templates_that_name_other_features_alike_have_no_mean() -> None:
    """The weights of both have the same names, so only the templates tell that these are about other things."""
    X, y = [[("a",), ("b",)]] * 2, [["A", "B"]] * 2
    models = [
        CRF(features=crfkit.Template.parse(f"w=%{macro}[0,0]\nB"), all_possible_states=True).fit(X, y)
        for macro in ("x", "lower")
    ]
    with pytest.raises(UnsupportedError, match="templates"):
        average_models(models)


def test_constraints_that_differ_have_no_mean() -> None:
    """With the same weights: what words may be, what labels consist of, and which labels follow each other."""
    X, y = [[("a",), ("b",)]] * 2, [["A", "B"]] * 2
    words = {"a": ["A"], "b": ["A", "B"]}
    dictionaries: list[Any] = [
        TagDictionary.from_lexicon(lexicon, ending_length=0) for lexicon in (words, words | {"a": ["B"]})
    ]
    one, other, free = (CRF(features="w=%x[0,0]", tag_dictionary=d).fit(X, y) for d in (*dictionaries, False))
    for models in ([one, other], [one, free], [free, one]):
        with pytest.raises(UnsupportedError, match="tag dictionaries"):
            average_models(models)
    assert average_models([one, one]).tag_dictionary
    facets = [{"A": {"x": "1"}, "B": {"x": "2"}}, {"A": {"x": "2"}, "B": {"x": "1"}}]
    with pytest.raises(UnsupportedError, match="facets"):
        average_models([CRF(facets=f, all_possible_states=True).fit(X, y) for f in facets])


def test_bigrams_of_one_model_do_not_bind_the_mean() -> None:
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    observed = CRF(Chain(bigrams="observed")).fit(X, y)
    every = CRF(Chain(bigrams=Bigrams.observed([*y, ["A", "A"]]))).fit(X, y)
    for models in ([observed, every], [every, observed]):
        mean = average_models(models)
        assert np.isfinite(mean.log_probability(X[:1], [["A", "A"]]))[0]
