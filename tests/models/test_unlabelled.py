"""Self-training and tri-training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Segments
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.evaluation import spans as read_spans
from crfkit.models import agreed_labels, average_models, self_train, sure_labels, tri_train
from tests.models.test_costs import corpus


def data() -> tuple[Any, Any, Any]:
    X, y = corpus(90)
    return X[:20], y[:20], X[20:]


def test_labels_that_a_model_is_sure_of() -> None:
    X, y, new = data()
    crf = CRF(l2=0.3).fit(X, y)
    found = sure_labels(crf, new, 0.9, unsaid=())
    for labels, marginals, best in zip(
        found, crf.predict_marginals(new), crf.predict(new, decode="marginal"), strict=True
    ):
        assert labels == [
            label if row.max() >= 0.9 else None for label, row in zip(best, marginals, strict=True)
        ]
    flat = [label for labels in found for label in labels]
    assert None in flat
    assert "O" in flat
    without = sure_labels(crf, new, 0.6)
    every = sure_labels(crf, new, 0.6, unsaid=())
    assert without == [[None if label == "O" else label for label in labels] for labels in every]
    assert any(label is not None for labels in without for label in labels)


def test_labels_that_two_models_agree_on() -> None:
    X, y, new = data()
    one, other = CRF(l2=0.3).fit(X[:10], y[:10]), CRF(l2=0.3).fit(X[10:], y[10:])
    ours, theirs = (sure_labels(model, new, 0.7, unsaid=()) for model in (one, other))
    found = agreed_labels(one, other, new, 0.7, unsaid=())
    triples = [t for rows in zip(found, ours, theirs, strict=True) for t in zip(*rows, strict=True)]
    assert all(label == (a if a == b else None) for label, a, b in triples)
    assert any(a != b and None not in (a, b) for _, a, b in triples) or any(None in t for t in triples)
    assert any(label is not None for label, _, _ in triples)


def test_self_training_is_training_on_what_is_sure() -> None:
    X, y, new = data()
    crf = CRF(l2=0.5)
    settings: Any = {"threshold": 0.6, "weight": 0.4}
    found = self_train(crf, X, y, new, **settings)
    first = CRF(l2=0.5).fit(X, y)
    labels = sure_labels(first, new, 0.6)
    some = [n for n, of in enumerate(labels) if any(label is not None for label in of)]
    assert 0 < len(some) < len(new)
    expected = CRF(l2=0.5).fit(
        [*X, *(new[n] for n in some)],
        [*y, *(labels[n] for n in some)],
        sample_weight=[1.0] * len(y) + [0.4] * len(some),
        start=first,
    )
    assert np.array_equal(found.weights_, expected.weights_)
    assert not hasattr(crf, "history_")
    for other in ({"rounds": 2}, {"unsaid": ()}, {"threshold": 0.9}):
        assert not np.array_equal(found.weights_, self_train(crf, X, y, new, **settings | other).weights_)


def test_tri_training_is_the_same_for_the_same_seed() -> None:
    X, y, new = data()
    crf = CRF(l2=0.5)
    one, same, other = (tri_train(crf, X, y, new, threshold=0.6, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.weights_, same.weights_)
    assert not np.array_equal(one.weights_, other.weights_)
    assert one.score(X, y, metric="accuracy") > 0.7


def test_tri_training_teaches_each_model_by_the_others() -> None:
    X, y, new = data()
    random = np.random.default_rng(4)
    models = []
    for _ in range(3):
        drawn = random.integers(len(y), size=len(y))
        models.append(CRF(l2=0.5).fit([X[i] for i in drawn], [y[i] for i in drawn]))
    taught = []
    for i in range(3):
        labels = agreed_labels(models[(i + 1) % 3], models[(i + 2) % 3], new, 0.6)
        some = [n for n, of in enumerate(labels) if any(label is not None for label in of)]
        more = [*X, *(new[n] for n in some)], [*y, *(labels[n] for n in some)]
        weights = [1.0] * len(y) + [0.3] * len(some)
        taught.append(CRF(l2=0.5).fit(*more, sample_weight=weights, start=models[i]))
    found = tri_train(CRF(l2=0.5), X, y, new, threshold=0.6, random_state=4)
    np.testing.assert_allclose(found.weights_, average_models(taught).weights_, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.5}, "threshold is 0.5, expected a number above 0.5, up to 1"),
        ({"threshold": "0.9"}, "threshold is '0.9'"),
        ({"rounds": 0}, "rounds is 0"),
        ({"weight": 0}, "weight is 0, expected a number above 0"),
    ],
)
@pytest.mark.parametrize("train", [self_train, tri_train])
def test_what_is_no_setting(train: Any, options: Any, message: str) -> None:
    X, y, new = data()
    with pytest.raises(ArgumentError, match=message):
        train(CRF(), X, y, new, **options)


def test_what_is_no_model() -> None:
    X, y, new = data()
    with pytest.raises(ArgumentError, match="crf is of type str, expected a CRF"):
        self_train("names", X, y, new)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="model is of type int, expected a CRF"):
        sure_labels(5, new)  # type: ignore[arg-type]


def test_labelled_sentences_may_have_sets_of_labels() -> None:
    X, y, new = data()
    expected = self_train(CRF(l2=0.3), X, y, new, rounds=1)
    sets = [[{label} for label in labels] for labels in y]
    assert np.array_equal(self_train(CRF(l2=0.3), X, sets, new, rounds=1).weights_, expected.weights_)


def test_labelled_sentences_may_have_spans() -> None:
    X, y, new = data()
    crf = CRF(Segments(), l2=0.3)
    spans = [[(span.start, span.end, span.label) for span in read_spans(labels)] for labels in y]
    expected = self_train(crf, X, y, new, rounds=1, threshold=0.7)
    found = self_train(crf, X, spans, new, rounds=1, threshold=0.7)
    assert np.array_equal(found.weights_, expected.weights_)
    assert not np.array_equal(found.weights_, CRF(Segments(), l2=0.3).fit(X, spans).weights_)


@pytest.mark.parametrize("train", [self_train, tri_train])
def test_sentences_without_labels_beside_them(train: Any) -> None:
    X, y, new = data()
    with pytest.raises(ValueError, match="X has 19 sequences but y has 20"):
        train(CRF(), X[:-1], y, new)


@pytest.mark.parametrize("train", [self_train, tri_train])
def test_sentences_may_be_read_only_once(train: Any) -> None:
    X, y, new = data()
    expected = train(CRF(l2=0.5), X, y, new, threshold=0.6)
    once = (iter(x) for x in X), iter(y), (iter(x) for x in new)
    assert np.array_equal(train(CRF(l2=0.5), *once, threshold=0.6).weights_, expected.weights_)
    for at, name in enumerate(("X", "y", "unlabelled")):
        bad = [X, y, new]
        bad[at] = None
        with pytest.raises(ArgumentError, match=f"{name} is of type NoneType, expected a list of sequences"):
            train(CRF(), *bad)


def test_agreed_labels_of_sentences_that_are_read_once() -> None:
    X, y, new = data()
    one, other = CRF(l2=0.5).fit(X, y), CRF(l2=2.0).fit(X, y)
    assert agreed_labels(one, other, iter(new), 0.6) == agreed_labels(one, other, new, 0.6)


@pytest.mark.parametrize("unsaid", ["B-ORG", None, 3])
def test_unsaid_labels_are_a_list(unsaid: Any) -> None:
    """Of a string they would be its parts: the O of B-ORG."""
    X, y, new = data()
    model = CRF().fit(X, y)
    for ask in (
        lambda: sure_labels(model, new, unsaid=unsaid),
        lambda: agreed_labels(model, model, new, unsaid=unsaid),
        lambda: self_train(CRF(), X, y, new, unsaid=unsaid),
        lambda: tri_train(CRF(), X, y, new, unsaid=unsaid),
    ):
        with pytest.raises(ArgumentError, match=f"unsaid is {unsaid!r}, expected a list of labels"):
            ask()


def test_numbers_of_numpy_are_numbers() -> None:
    X, y, new = data()
    expected = self_train(CRF(), X, y, new, threshold=0.75, weight=0.5)
    found = self_train(CRF(), X, y, new, threshold=np.float32(0.75), weight=np.float32(0.5))  # type: ignore[arg-type]
    assert np.array_equal(found.weights_, expected.weights_)


@pytest.mark.parametrize("seed", [-1, 1.5, "a"])
def test_what_is_no_seed(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=f"random_state is {seed!r}"):
        tri_train(CRF(), *data(), random_state=seed)


def test_models_without_a_mean_are_refused_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, new = data()
    monkeypatch.setattr(CRF, "fit", lambda *_, **__: pytest.fail("it is trained"))
    for crf in (CRF(features="morphology"), CRF(tag_dictionary=True), CRF(facets="auto")):
        with pytest.raises(UnsupportedError, match="have no mean"):
            tri_train(crf, X, y, new)
