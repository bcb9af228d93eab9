"""Patterns beside feature functions, facets and features of transitions: files, copies, growth, more data, inspection."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, FeatureFunctions, Growth, Ngrams, Pattern, Patterns
from crfkit.errors import ArgumentError, NotLoadedError
from crfkit.features import Template
from crfkit.models import heaviest_outputs, heaviest_patterns, trellis_sizes

LABELS = ("A", "B", "C")
Row = Sequence[tuple[str]]


def same(x: Row, label: str, i: int) -> float:
    return float(x[i][0] == label.lower())


def pair(x: Row, before: Any, label: Any, i: int) -> dict[str, float]:
    return {f"{before} {label}": 1.0}


def twice(x: Row) -> Iterator[tuple[Any, ...]]:
    if len(x) > 2 and x[0] == x[2]:
        yield 0, ["A", None, {"A", "B"}], "twice"


def late(x: Row, t: int) -> bool:
    return t > 1


def data(n: int, seed: int = 0) -> tuple[list[list[tuple[str]]], list[list[str]]]:
    random = np.random.default_rng(seed)
    Y = [[str(label) for label in random.choice(LABELS, 2 + k % 3)] for k in range(n)]
    return [[(y.lower() if random.random() < 0.7 else "c",) for y in labels] for labels in Y], Y


X, Y = data(20)
NEW = data(8, seed=1)[0]
STRUCTURE = Patterns(["A . B", "B B* A", Pattern("C", when=late), Ngrams([3]), twice])
WORDS = Template.parse("U:%x[0,0]\nB", "words")
PAIRS = Template.parse("U:%x[0,0]\nB\nB:%x[0,0]", "pairs")
FACETS = {label: {"kind": "x" if label == "A" else "y"} for label in LABELS}
KINDS: dict[str, dict[str, Any]] = {
    "functions": {"features": FeatureFunctions([same, pair])},
    "functions without transitions": {"features": FeatureFunctions([same], transitions=False)},
    "facets": {"features": WORDS, "facets": FACETS},
    "transition features": {"features": PAIRS},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def fitted(kind: str, structure: Patterns = STRUCTURE, **settings: Any) -> CRF:
    return CRF(**{"structure": structure, "l2": 0.3, "n_threads": 1, **KINDS[kind], **settings}).fit(X, Y)


def functions_of(kind: str) -> list[Callable[..., Any]]:
    features = KINDS[kind]["features"]
    own = [f.function for f in features] if isinstance(features, FeatureFunctions) else []
    return [*own, late, twice]


@each_kind
def test_files_and_copies(kind: str, tmp_path: Path) -> None:
    model, path = fitted(kind), tmp_path / "m.crf"
    model.save(path)
    expected = model.predict_marginals(NEW)
    for copy in (
        crfkit.load(path, functions=functions_of(kind)),
        crfkit.load(path, trust_functions=True),
        pickle.loads(pickle.dumps(model)),
    ):
        assert copy.weights_.tobytes() == model.weights_.tobytes()
        assert copy.pattern_names_ == model.pattern_names_
        assert copy.output_names_ == model.output_names_
        for one, other in zip(copy.predict_marginals(NEW), expected, strict=True):
            assert one.tobytes() == other.tobytes()
        assert copy.fit(X, Y).weights_.tobytes() == model.weights_.tobytes()
    with pytest.raises(NotLoadedError):
        crfkit.load(path).predict(NEW)
    with pytest.raises(ArgumentError, match=r"functions has \d"):
        crfkit.load(path, functions=[*functions_of(kind), late])


@each_kind
def test_probabilities_of_all_label_sequences_sum_to_one(kind: str) -> None:
    model = fitted(kind)
    for x, marginals in zip(NEW, model.predict_marginals(NEW), strict=True):
        every = [list(y) for y in product(model.classes_, repeat=len(x))]
        probs = np.exp(model.log_probability([x] * len(every), every))
        assert probs.sum() == pytest.approx(1, abs=1e-12)
        assert every[int(probs.argmax())] == model.predict([x])[0]
        best = model.predict_nbest([x], 3)[0]
        assert [p for p, _ in best] == pytest.approx(sorted(probs, reverse=True)[:3])
        first = [probs[[y[0] == label for y in every]].sum() for label in model.classes_]
        assert marginals[0] == pytest.approx(first, abs=1e-12)


@each_kind
def test_any_number_of_threads_gives_the_same_bits(kind: str) -> None:
    for optimizer in (crfkit.LBFGS(max_iterations=3), crfkit.SGD(max_iterations=2, batch=5)):
        one, other = (fitted(kind, optimizer=optimizer, n_threads=n) for n in (1, 3))
        assert one.weights_.tobytes() == other.weights_.tobytes()


@each_kind
def test_more_data_joins(kind: str) -> None:
    """Weights that the new data say nothing about stay as they were."""
    model = fitted(kind)
    before = dict(zip(model.pattern_names_, model.weights_[-len(model.pattern_names_) :], strict=True))
    model.partial_fit([[("a",), ("b",)]], [["A", "B"]])
    after = dict(zip(model.pattern_names_, model.weights_[-len(model.pattern_names_) :], strict=True))
    assert set(before) <= set(after)
    assert after["C when late"] == before["C when late"]


@each_kind
def test_patterns_grow_beside_them(kind: str) -> None:
    growing = Patterns(grow=Growth(min_count=1, min_gain=0.0, held_out=0.3))
    model = fitted(kind, growing)
    assert model.growth_
    assert len(model.predict(NEW)) == len(NEW)


@each_kind
def test_inspection_and_penalties(kind: str) -> None:
    model = fitted(kind, l2={"patterns": 1e6, "default": 0.3})
    assert all(abs(weight) < 1e-3 for _, weight in heaviest_patterns(model, 100))
    assert len(heaviest_patterns(model, 100)) == len(model.pattern_names_)
    assert {found.feature for found in heaviest_outputs(model, 100)} == set(model.output_names_)
    assert len(trellis_sizes(model, NEW)) == len(NEW)
    sparse = fitted(kind, l1={"patterns": 1e6})
    assert len(sparse.pattern_names_) < len(model.pattern_names_)
    assert sparse.output_names_ == model.output_names_
    assert len(sparse.weights_) == sparse._model.n_weights
