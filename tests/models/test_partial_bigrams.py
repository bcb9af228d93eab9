"""Bigrams of training data whose labels are partly known: which pairs are seen, which sequences are left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, END, LBFGS, START, Bigrams, Chain
from crfkit.errors import EmptyDataError, ImpossibleLabelsError
from crfkit.models import SequencesSkipped

NONE = LBFGS(max_iterations=0)
LABELS = "abc"


def choices(entry: Any, allowed: Any) -> list[str]:
    """The labels that a position may have."""
    named = LABELS if entry is None else entry if isinstance(entry, set) else [entry]
    return [label for label in named if allowed is None or label in allowed]


def completions(labels: Any, allowed: Any) -> Iterable[tuple[Any, ...]]:
    """All label sequences that agree with what is known, START and END around them."""
    open_to = [choices(entry, some) for entry, some in zip(labels, allowed, strict=True)]
    return ((START, *path, END) for path in product(*open_to))


def seen_pairs(y: list[Any], allowed: list[Any]) -> set[Any]:
    """Pairs of labels that y names; next to None no pair is seen."""
    pairs: set[Any] = set()
    for labels, restricted in zip(y, allowed, strict=True):
        named: list[list[Any]] = [
            [] if entry is None else choices(entry, some)
            for entry, some in zip(labels, restricted, strict=True)
        ]
        for before, after in pairwise([[START], *named, [END]]):
            pairs.update(product(before, after))
    return pairs


def is_inside(labels: Any, allowed: Any, pairs: set[Any]) -> bool:
    return any(pairs.issuperset(pairwise(path)) for path in completions(labels, allowed))


def kept_sequences(y: list[Any], allowed: list[Any], listed: set[Any], *, observed: bool) -> list[int]:
    """Which sequences lie within the listed pairs and, if these count, those of the sequences that are kept."""
    kept = list(range(len(y)))
    while True:
        pairs = listed | (seen_pairs([y[n] for n in kept], [allowed[n] for n in kept]) if observed else set())
        inside = [n for n in kept if is_inside(y[n], allowed[n], pairs)]
        if inside == kept:
            return kept
        kept = inside


def instance(seed: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Sequences with labels, sets of them (some with all) and unknown ones, and labels allowed at some positions."""
    random = np.random.default_rng(seed)
    y: list[Any] = [list(LABELS)]
    allowed: list[Any] = [[None] * 3]
    for _ in range(int(random.integers(2, 5))):
        labels, restricted = [], []
        for _ in range(int(random.integers(1, 4))):
            kind = random.integers(4)
            some = {LABELS[i] for i in random.choice(3, random.integers(2, 4), replace=False)}
            entry = None if kind == 0 else some if kind == 1 else str(random.choice(list(LABELS)))
            free = random.random() < 0.6
            names = {*random.choice(list(LABELS), 2)} | {min(choices(entry, None))}
            labels.append(entry)
            restricted.append(None if free else {str(name) for name in names})
        y.append(labels)
        allowed.append(restricted)
    X = [[["f"]] * len(labels) for labels in y]
    return X, y, allowed


@pytest.mark.parametrize("seed", range(40))
def test_pairs_and_skipped_sequences_are_those_of_brute_force(seed: int) -> None:
    X, y, allowed = instance(seed)
    listed = {(START, "a"), ("a", "b"), ("b", "c"), ("c", END), ("a", END)}
    seen = seen_pairs(y, allowed)
    for structure, pairs in (
        (Chain(bigrams="observed"), seen),
        (Chain(bigrams=Bigrams(listed), unseen="extend"), listed | seen),
    ):
        inside = [is_inside(*pair, pairs) for pair in zip(y, allowed, strict=True)]
        if all(inside):
            model = CRF(structure, optimizer=NONE).fit(X, y, allowed=allowed)
            assert set(model.structure_.bigrams or ()) == pairs
        else:
            with pytest.raises(
                ImpossibleLabelsError, match=f"{inside.count(False)} of {len(y)} training sequences"
            ):
                CRF(structure, optimizer=NONE).fit(X, y, allowed=allowed)
    for bigrams in ("observed", Bigrams(listed)):
        observed = bigrams == "observed"
        kept = kept_sequences(y, allowed, set() if observed else listed, observed=observed)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", SequencesSkipped)
            model = CRF(Chain(bigrams=bigrams, unseen="skip"), optimizer=NONE).fit(X, y, allowed=allowed)
        n_skipped = [str(w.message).split(" ")[0] for w in said if w.category is SequencesSkipped]
        assert n_skipped == [str(len(y) - len(kept))] * (len(kept) < len(y))
        if observed:
            rest = [y[n] for n in kept], [allowed[n] for n in kept]
            assert set(model.structure_.bigrams or ()) == seen_pairs(*rest)


def test_a_set_with_all_labels_is_no_unknown_label() -> None:
    X = [[["f"], ["g"]]] * 2
    y: list[Any] = [[{"a", "b"}, "a"], ["a", "a"]]
    assert CRF(Chain(bigrams="observed"), optimizer=NONE).fit(X, y).structure_.bigrams == Bigrams.observed(y)
    unknown: list[Any] = [[None, "b"], ["a", "b"]]
    allowed = [[{"a", "b"}, None], None]
    found = CRF(Chain(bigrams="observed"), optimizer=NONE).fit(X, unknown, allowed=allowed)
    assert found.structure_.bigrams == Bigrams.observed(unknown)


@pytest.mark.parametrize("seed", range(20))
def test_partial_fit_has_the_bigrams_of_the_model_beside_those_of_the_data(seed: int) -> None:
    X, y, allowed = instance(seed)
    first = CRF(Chain(bigrams="observed", unseen="skip"), optimizer=NONE).fit([X[0]], [y[0]])
    known = seen_pairs(y[:1], allowed[:1])
    kept = kept_sequences(y[1:], allowed[1:], known, observed=True)
    if not kept:
        with pytest.raises(EmptyDataError):
            first.partial_fit(X[1:], y[1:], allowed=allowed[1:])
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", SequencesSkipped)
        first.partial_fit(X[1:], y[1:], allowed=allowed[1:])
    assert len(said) == (len(kept) < len(y) - 1)
    rest = [y[n + 1] for n in kept], [allowed[n + 1] for n in kept]
    assert set(first.structure_.bigrams or ()) == known | seen_pairs(*rest)


def test_partial_fit_takes_what_the_bigrams_of_the_model_allow() -> None:
    X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["A", "B"], ["B", "A"]]
    for unseen in ("error", "skip"):
        model = CRF(Chain(bigrams="observed", unseen=unseen)).fit(X, y)
        model.partial_fit([[["a"], ["c"]]], [["A", None]])
        assert model.structure_.bigrams == Bigrams.observed(y)


B_ONLY = Chain(bigrams=Bigrams([(START, "b"), ("b", "b"), ("b", END)]), unseen="skip")


@pytest.mark.filterwarnings(
    "ignore::crfkit.models.SequencesSkipped", "ignore::crfkit.models.UninformativeData"
)
def test_allowed_labels_that_only_skipped_sequences_have_are_ignored() -> None:
    X, y = [[["f"], ["g"]]] * 2, [["a", "b"], ["b", "b"]]
    model = CRF(B_ONLY, optimizer=LBFGS(max_iterations=2))
    model.fit(X, y, allowed=[None, [{"a", "b"}, None]], dev=(X[1:], y[1:], [[{"a", "b"}, ["b"]]]))
    assert model.classes_ == ["b"]
    plain = CRF(B_ONLY, optimizer=LBFGS(max_iterations=2)).fit(X[1:], y[1:])
    assert model.weights_.tobytes() == plain.weights_.tobytes()


@pytest.mark.filterwarnings("ignore::crfkit.models.UninformativeData")
def test_sequences_that_allow_only_such_labels_are_left_out_too() -> None:
    X = [[["f"], ["g"]]] * 3
    y: list[Any] = [["a", "c"], ["b", "b"], ["b", None]]
    pairs = [(START, "b"), ("b", "b"), ("b", END), ("b", "c"), ("c", END)]
    chain = Chain(bigrams=Bigrams(pairs), unseen="skip")
    with pytest.warns(SequencesSkipped, match="2 of 3 training sequences"):
        model = CRF(chain, optimizer=NONE).fit(X, y, allowed=[None, None, [None, {"c"}]])
    assert model.classes_ == ["b"]
