"""`CRF.explain_span` against sums over all label sequences, for every kind of structure."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit.errors import ArgumentError, LabelError
from crfkit.structures import Arc, GraphStructure
from tests.oracles.conlleval import read

BIO = ["O", "B-P", "I-P", "B-Q", "I-Q"]
PLAIN = ["O", "P", "Q"]


class Triples(GraphStructure):
    """Chains of second order."""

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterator[Arc]:
        for t in range(n_positions):
            for a, b, c in product(labels if t > 1 else [None], labels if t else [None], labels):
                yield Arc(t, (a, b), (b, c), [c], [f"{a}{b}{c}"] if t > 1 else [])


def shape(x: Any, label: Hashable, i: int) -> float:
    """A feature function."""
    return float(len(x[i][0]) % 3) if label == "O" else 0.5 * (x[i][0] == "w=1")


def random_data(labels: Sequence[str], scheme: str, seed: int) -> tuple[list[Any], list[Any]]:
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(12):
        T = int(random.integers(2, 6))
        X.append([[f"w={random.integers(4)}", f"s={random.integers(2)}"] for _ in range(T)])
        found = [labels[k] for k in random.integers(len(labels), size=T)]
        for t in range(T if scheme == "bio" else 0):
            if found[t][0] == "I" and (t == 0 or found[t - 1][1:] != found[t][1:]):
                found[t] = "B" + found[t][1:]
        y.append(found)
    return X, y


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "chain": ("bio", {}),
    "plain": ("plain", {}),
    "bigrams": ("bio", {"structure": crfkit.Chain(bigrams="bio")}),
    "observed": ("bio", {"structure": crfkit.Chain(bigrams="observed")}),
    "patterns": ("bio", {"structure": crfkit.Patterns(["B-P . B-Q", "O O", "I-P I-P*"])}),
    "segments": ("bio", {"structure": crfkit.Segments(max_length=3)}),
    "segments, plain": ("plain", {"structure": crfkit.Segments(scheme="plain", max_length=3)}),
    "graph": ("plain", {"structure": Triples()}),
    "facets": ("bio", {"facets": lambda label: {"type": label[-1], "role": label[0]}}),
    "functions": ("bio", {"features": crfkit.FeatureFunctions([shape])}),
}


@pytest.mark.parametrize("name", MODELS)
def test_against_enumeration(name: str) -> None:
    scheme, settings = MODELS[name]
    X, y = random_data(BIO if scheme == "bio" else PLAIN, scheme, 7)
    crf: Any = crfkit.CRF(l2=0.1, **settings).fit(X, y)
    for x in X[:3]:
        [outputs] = crf.predict_nbest([x], 10**6)
        probs = np.array([p for p, _ in outputs])
        assert probs.sum() == pytest.approx(1.0, abs=1e-9)
        spans = [set(read(labels, scheme)) for _, labels in outputs]
        outside = [[label == "O" for label in labels] for _, labels in outputs]
        for start, end in product(range(len(x)), range(1, len(x) + 1)):
            if end <= start or end - start > 3:
                continue
            has = {kind: np.array([(start, end, kind) in some for some in spans]) for kind in "PQ"}
            sums = {kind: probs[mask].sum() for kind, mask in has.items()}
            for kind, other in (("P", "Q"), ("Q", "P")):
                if sums[kind] < 1e-9:
                    continue
                cases: list[tuple[str | None, float]] = [(None, probs[~has[kind]].sum())]
                cases.append(("O", probs[[all(row[start:end]) for row in outside]].sum()))
                cases.append((other, sums[other]))
                for against, p in cases:
                    if p == 0.0:
                        continue
                    found = crf.explain_span(x, start, end, kind, against)
                    assert found.log_odds == pytest.approx(math.log(sums[kind] / p), abs=1e-9)
                    assert found.probability == pytest.approx(sums[kind], abs=1e-9)
                    assert found.against_probability == pytest.approx(p, abs=1e-9)
                    total = math.fsum(part.value for part in found.parts)
                    assert total == pytest.approx(found.log_odds, abs=1e-9)
            best = max(sums, key=lambda kind: sums[kind])
            if sums[best] > 0:
                assert crf.explain_span(x, start, end).label == best


def test_features_are_differences_of_means() -> None:
    """(mean weight where there is the span) − (mean weight where there is none), at each position of the span."""
    X, y = random_data(BIO, "bio", 3)
    crf = crfkit.CRF(l2=0.1).fit(X, y)
    x = max(X, key=len)
    [outputs] = crf.predict_nbest([x], 10**6)
    probs = np.array([p for p, _ in outputs])
    has = np.array([(1, 3, "P") in read(labels, "bio") for _, labels in outputs])
    found = crf.explain_span(x, 1, 3, "P")
    weights = {
        (w.feature, label): w.weight
        for label in crf.classes_
        for w in crfkit.models.heaviest_features(crf, label, 999)
    }
    named = {part.name: part.value for part in found.parts if part.group == "feature"}
    for t in (1, 2):
        for feature in x[t]:
            scores = np.array([weights.get((feature, labels[t]), 0.0) for _, labels in outputs])
            means = [probs[some] @ scores[some] / probs[some].sum() for some in (has, ~has)]
            assert named[f"{feature} @ {t}"] == pytest.approx(means[0] - means[1], abs=1e-9)


def test_certain_and_impossible_spans() -> None:
    X, y = random_data(BIO, "bio", 3)
    crf = crfkit.CRF(l2=0.1).fit(X, y)
    x = X[0][:2]
    found = crf.explain_span(x, 0, 1, "P", allowed=[["B-P"], ["O"]])
    assert (found.log_odds, found.probability) == (math.inf, 1.0)
    assert found.parts[0].group == "constraint"
    found = crf.explain_span(x, 0, 1, "Q", allowed=[["B-P"], ["O"]])
    assert (found.log_odds, found.probability) == (-math.inf, 0.0)
    with pytest.raises(LabelError, match="neither"):
        crf.explain_span(x, 0, 1, "Q", "O", allowed=[["B-P"], ["O"]])


def test_spans_that_are_nearly_certain() -> None:
    """The log-odds of a probability that rounds to 1."""
    X, y = random_data(BIO, "bio", 3)
    crf = crfkit.CRF(l2=0.1).fit([*X, [["sure"]]], [*y, ["B-P"]])
    ends = {(t.before, t.after): t.weight for t in crfkit.models.transition_weights(crf)}
    scores = {
        label: 600.0
        * sum(w.weight for w in crfkit.models.heaviest_features(crf, label, 999) if w.feature == "sure")
        + ends[None, label]
        + ends[label, None]
        for label in crf.classes_
    }
    exact = np.logaddexp(scores["B-P"], scores["I-P"])
    exact -= np.logaddexp.reduce([scores[label] for label in ("O", "B-Q", "I-Q")])
    found = crf.explain_span([{"sure": 600.0}], 0, 1, "P")
    assert found.probability == 1.0
    assert exact > 100
    assert found.log_odds == pytest.approx(exact, abs=1e-9)
    assert math.fsum(part.value for part in found.parts) == pytest.approx(found.log_odds, abs=1e-9)


def test_bad_questions() -> None:
    X, y = random_data(BIO, "bio", 3)
    crf = crfkit.CRF().fit(X, y)
    with pytest.raises(ArgumentError, match="end is 0"):
        crf.explain_span(X[0], 1, 0)
    with pytest.raises(LabelError, match="no spans of type 'Z'"):
        crf.explain_span(X[0], 0, 1, "Z")
    with pytest.raises(LabelError, match="both"):
        crf.explain_span(X[0], 0, 1, "P", "P")
