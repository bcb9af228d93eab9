"""`CRF.explain`: every part against brute force, for chains whose weights are read by name."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit.errors import ArgumentError, LabelError, UnsupportedError
from crfkit.models import UninformativeData, heaviest_features, transition_weights

LABELS = ["B", "I", "O"]


def random_data(seed: int, n: int = 12) -> tuple[list[list[list[str]]], list[list[str]]]:
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        T = int(random.integers(1, 6))
        X.append([["bias", f"w={random.integers(4)}", f"s={random.integers(3)}"] for _ in range(T)])
        y.append([LABELS[k] for k in random.integers(3, size=T)])
    return X, y


class Enumerated:
    """All label sequences of one input with their scores, from the weights by name."""

    def __init__(self, crf: Any, x: Sequence[Sequence[str]], allowed: Any = None) -> None:
        self.x = x
        self.emission = {
            (weight.feature, label): weight.weight
            for label in crf.classes_
            for weight in heaviest_features(crf, label, 10**6)
        }
        self.transition = {(t.before, t.after): t.weight for t in transition_weights(crf)}
        self.outputs = [
            y
            for y in product(crf.classes_, repeat=len(x))
            if allowed is None or all(some is None or b in some for b, some in zip(y, allowed, strict=True))
        ]
        bigrams = getattr(crf.structure_, "bigrams", None)
        if bigrams is not None:
            pairs = set(bigrams)
            full = [(crfkit.START, *y, crfkit.END) for y in self.outputs]
            self.outputs = [
                y for y, all_ in zip(self.outputs, full, strict=True) if set(pairwise(all_)) <= pairs
            ]
        self.scores = np.array([self.score(y) for y in self.outputs])

    def own(self, i: int, label: Hashable) -> float:
        total = math.fsum(self.emission.get((f, label), 0.0) for f in self.x[i])
        total += self.transition.get((None, label), 0.0) if i == 0 else 0.0
        return total + (self.transition.get((label, None), 0.0) if i + 1 == len(self.x) else 0.0)

    def score(self, y: Sequence[Hashable]) -> float:
        """Of a label sequence, or of its beginning."""
        own = math.fsum(self.own(i, label) for i, label in enumerate(y))
        return own + math.fsum(self.transition.get(pair, 0.0) for pair in pairwise(y))

    def context(self, i: int, label: Hashable) -> dict[str, float]:
        """log Z(label), and its parts by the definitions."""
        some = [k for k, y in enumerate(self.outputs) if y[i] == label]
        if not some:
            return {"total": -math.inf}
        scores = self.scores[some]
        total = float(np.logaddexp.reduce(scores))
        p = np.exp(scores - total)
        arcs = [
            [
                self.transition.get(self.outputs[k][j : j + 2], 0.0) if 0 <= j < len(self.x) - 1 else 0.0
                for k in some
            ]
            for j in (i - 1, i)
        ]
        before, after = (float(p @ np.array(scores_)) for scores_ in arcs)
        beginnings = {self.outputs[k][: i + 1] for k in some}
        log_f = float(np.logaddexp.reduce([self.score(y) for y in sorted(beginnings)]))
        return {
            "total": total,
            "before": before,
            "after": after,
            "left": log_f - self.own(i, label) - before,
            "right": total - log_f - after,
        }


STRUCTURES = {
    "chain": crfkit.Chain(),
    "bigrams": crfkit.Chain(bigrams="observed"),
    "no ends": crfkit.Chain(start=False, end=False),
}


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("restrict", [False, True])
def test_parts_are_those_of_the_definition(structure: str, restrict: bool) -> None:
    X, y = random_data(1)
    crf = crfkit.CRF(STRUCTURES[structure], l2=0.05).fit(X, y)
    for x in X[:8]:
        allowed = [None, ["B", "O"], *[None] * (len(x) - 2)][: len(x)] if restrict else None
        oracle = Enumerated(crf, x, allowed)
        if not oracle.outputs:
            continue
        for i, (a, b) in product(range(len(x)), [("B", "I"), ("O", "B"), ("I", "O")]):
            first, second = oracle.context(i, a), oracle.context(i, b)
            if math.isinf(first["total"]) or math.isinf(second["total"]):
                continue
            found = crf.explain(x, i, a, b, allowed=allowed)
            assert found.log_odds == pytest.approx(first["total"] - second["total"], abs=1e-9)
            assert math.fsum(part.value for part in found.parts) == pytest.approx(found.log_odds, abs=1e-9)
            features = {f: oracle.emission.get((f, a), 0.0) - oracle.emission.get((f, b), 0.0) for f in x[i]}
            named = {part.name: part.value for part in found.parts if part.group == "feature"}
            assert named == pytest.approx({f: v for f, v in features.items() if v}, abs=1e-12)
            groups = found.by_group
            transitions = first["before"] + first["after"] - second["before"] - second["after"]
            assert groups.get("transition", 0.0) == pytest.approx(transitions, abs=1e-9)
            for group in ("left", "right"):
                assert groups.get(group, 0.0) == pytest.approx(first[group] - second[group], abs=1e-9)
            start = oracle.transition.get((None, a), 0.0) - oracle.transition.get((None, b), 0.0)
            assert groups.get("start", 0.0) == pytest.approx(start if i == 0 else 0.0, abs=1e-12)
            end = oracle.transition.get((a, None), 0.0) - oracle.transition.get((b, None), 0.0)
            assert groups.get("end", 0.0) == pytest.approx(end if i + 1 == len(x) else 0.0, abs=1e-12)
            assert set(groups) <= {"feature", "transition", "left", "right", "start", "end"}


def test_defaults_are_the_likeliest_labels() -> None:
    X, y = random_data(2)
    crf = crfkit.CRF(l2=0.1).fit(X, y)
    x = max(X, key=len)
    for i, row in enumerate(crf.predict_marginals([x])[0]):
        first, second = (crf.classes_[k] for k in np.argsort(-row)[:2])
        found = crf.explain(x, i)
        assert (found.label, found.against, found.position) == (first, second, i)
        assert found.probability == pytest.approx(row.max(), abs=1e-12)
        assert crf.explain(x, i - len(x)) == found  # counted from the end
        assert crf.explain(x, i, second).against == first
        assert crf.explain(x, i, against=first).label == second
        assert crf.explain(x, i, second, first).log_odds == pytest.approx(-found.log_odds, abs=1e-12)


def test_scores_of_any_size() -> None:
    """Probabilities that underflow have exact log-odds all the same."""
    X, y = random_data(3)
    crf = crfkit.CRF(l2=0.1).fit(X, y)
    x = [{"bias": 1.0, "w=1": 1.0}, {"bias": 1.0, "w=2": 5000.0}, {"bias": 1.0, "w=0": 1.0}]
    plain = [list(position) for position in x]
    oracle = Enumerated(crf, plain)
    far = {b: 4999.0 * oracle.emission.get(("w=2", b), 0.0) for b in LABELS}
    for a, b in [("B", "I"), ("O", "B"), ("I", "O")]:
        found = crf.explain(x, 1, a, b)
        exact = oracle.context(1, a)["total"] - oracle.context(1, b)["total"] + far[a] - far[b]
        assert abs(exact) > 750
        assert found.log_odds == pytest.approx(exact, rel=1e-12)
        assert math.fsum(part.value for part in found.parts) == pytest.approx(found.log_odds, abs=1e-9)
        assert found.by_group["left"] == pytest.approx(
            oracle.context(1, a)["left"] - oracle.context(1, b)["left"], abs=1e-9
        )


def length(x: Sequence[Sequence[str]], label: Hashable, i: int) -> dict[str, float]:
    """A feature function with named outputs."""
    return {f"{label}:{x[i][1]}": 1.0, f"long {label}": float(len(x))}


@pytest.mark.parametrize("structure", [crfkit.Chain(), crfkit.Patterns(["B I", "O . O"])])
def test_outputs_of_feature_functions_are_features(structure: Any) -> None:
    X, y = random_data(6)
    crf: Any = crfkit.CRF(structure, features=crfkit.FeatureFunctions([length]), l2=0.1).fit(X, y)
    weights = dict(zip(crf.output_names_, crf.weights_[crf.feature_map_.n_weights :], strict=False))
    x = max(X, key=len)
    for i in range(len(x)):
        found = crf.explain(x, i, "B", "O")
        named = {part.name: part.value for part in found.parts if part.group == "feature"}
        expected = {}
        for label, sign in (("B", 1.0), ("O", -1.0)):
            for name, value in length(x, label, i).items():
                expected[f"length:{name}"] = sign * value * weights.get(f"length:{name}", 0.0)
        assert named == pytest.approx({name: value for name, value in expected.items() if value}, abs=1e-12)
        assert math.fsum(part.value for part in found.parts) == pytest.approx(found.log_odds, abs=1e-9)
        assert "rest" not in found.by_group


def test_impossible_labels_name_the_constraint() -> None:
    X, y = random_data(2)
    crf = crfkit.CRF(l2=0.1).fit(X, y)
    x = max(X, key=len)
    allowed = [None, ["B"], *[None] * (len(x) - 2)]
    found = crf.explain(x, 1, allowed=allowed)
    assert (found.label, found.probability, found.log_odds) == ("B", 1.0, math.inf)
    assert found.parts[0].group == "constraint"
    assert found.parts[0].value == math.inf
    assert "not among the labels allowed" in found.parts[0].name
    found = crf.explain(x, 1, "O", "B", allowed=allowed)
    assert (found.log_odds, found.probability) == (-math.inf, 0.0)
    assert found.to_dict()["log_odds"] == "-inf"
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(LabelError, match="neither"):
        crf.explain(x, 1, "O", "I", allowed=allowed)
    chained = crfkit.CRF(crfkit.Chain(bigrams="observed"))
    chained.fit([[["a"], ["b"]]], [["B", "I"]])
    found = chained.explain([["a"], ["b"]], 0)
    assert found.parts[0].name == "no allowed label sequence has I here"


def test_forms() -> None:
    X, y = random_data(4)
    x = [["bias", "w=<b>&"], ["bias", "w=1"]]
    crf = crfkit.CRF(l2=0.1).fit([*X, x], [*y, ["B", "I"]])
    found = crf.explain(x, 0)
    assert "<b>" not in found.to_html()
    assert "&lt;b&gt;" in found.to_html()
    assert found._repr_html_() == found.to_html()
    assert str(found).startswith(found.title)
    assert "log-odds" in str(found)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert math.fsum(part["value"] for part in data["parts"]) == pytest.approx(data["log_odds"], abs=1e-9)
    assert "2 smaller parts" in found.to_text(len(found.parts) - 2)
    assert len(found.to_text(None).splitlines()) == 3 + len(found.parts)


def test_bad_questions() -> None:
    X, y = random_data(5)
    crf = crfkit.CRF().fit(X, y)
    with pytest.raises(ArgumentError, match="i is 99"):
        crf.explain(X[0], 99)
    with pytest.raises(ArgumentError, match="i is True"):
        crf.explain(X[0], True)
    with pytest.raises(LabelError, match="unknown label 'X'"):
        crf.explain(X[0], 0, "X")
    with pytest.raises(LabelError, match="both"):
        crf.explain(X[0], 0, "B", "B")
    with pytest.warns(UninformativeData):
        single = crfkit.CRF().fit([[["a"]]], [["A"]])
    with pytest.raises(UnsupportedError, match="one label"):
        single.explain([["a"]], 0)
