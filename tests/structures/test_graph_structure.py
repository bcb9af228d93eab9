"""Structures of one's own: arcs over one or more positions make the graph they should, and a chain as a graph is a chain."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain, InputError
from crfkit.errors import ArgumentError
from crfkit.structures import Arc, GraphStructure
from tests.models.small_corpus import corpus


@dataclass(frozen=True)
class FirstOrder(GraphStructure):
    chain: Chain = GraphStructure.chain

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterator[Arc]:
        for t in range(n_positions):
            for a in labels if t else labels[:1]:
                yield from (Arc(t, a, b, [b]) for b in labels)


@dataclass(frozen=True)
class Segments(GraphStructure):
    """Runs of one to three equal labels; two neighbouring runs differ."""

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterator[Arc]:
        for t in range(n_positions):
            for n in range(1, min(3, n_positions - t) + 1):
                for a in labels if t else [None]:
                    yield from (Arc(t, a, b, [b] * n, [f"{b} {n}"]) for b in labels if b != a)


class Short(FirstOrder):
    """Of three positions at most."""

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterator[Arc]:
        yield from super().arcs(n_positions, labels) if n_positions < 4 else ()


class Listed(GraphStructure):
    def __init__(self, *arcs: Arc) -> None:
        self.listed = arcs

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Sequence[Arc]:
        return self.listed


X, Y = corpus(25)
WORDS = [[position[0] for position in x] for x in X]
EXACT = LBFGS(max_iterations=500, tolerance=1e-10, change=0.0)


@pytest.mark.parametrize(
    ("inputs", "settings", "chain"),
    [
        (X, {}, Chain()),
        (X, {}, Chain(start=False, end=False)),
        (X, {}, Chain(bigrams="observed")),
        (X, {}, Chain(bigrams="observed", unseen="soft")),
        (X, {"facets": {b: {"open": str(b != "D"), "name": b} for b in "DNV"}}, Chain()),
        (WORDS, {"features": "U:%x[0,0]\nB:%x[0,0]\nB"}, Chain()),
        ([np.random.default_rng(n).normal(size=(len(x), 2)) for n, x in enumerate(X)], {}, Chain()),
    ],
    ids=["plain", "no ends", "bigrams", "soft", "facets", "features of transitions", "dense"],
)
def test_a_chain_as_a_graph_is_a_chain(inputs: Any, settings: dict[str, Any], chain: Chain) -> None:
    allowed = [None if n % 2 else [{"D", "N"}, *[None] * (len(x) - 1)] for n, x in enumerate(X)]
    allowed = [None if a is None or y[0] == "V" or not y else a for a, y in zip(allowed, Y, strict=True)]
    one, other = (
        CRF(structure, optimizer=EXACT, **settings).fit(inputs, Y, allowed=allowed)
        for structure in (chain, FirstOrder(chain))
    )
    assert other.history_[-1].objective == pytest.approx(one.history_[-1].objective, rel=1e-9)
    np.testing.assert_allclose(other.weights_, one.weights_, rtol=0, atol=1e-4)
    for here, there in zip(other.predict_marginals(inputs), one.predict_marginals(inputs), strict=True):
        np.testing.assert_allclose(here, there, rtol=0, atol=1e-5)
    assert other.structure_.bigrams == one.structure_.bigrams


def test_arcs_over_several_positions() -> None:
    y = [list("AAB"), list("ABB"), list("BAAAB")]
    crf = CRF(Segments(), l2=0.1).fit([[["x"]] * len(labels) for labels in y], y)
    assert set(crf.structure_names_) == {f"{b} {n}" for b in "AB" for n in (1, 2, 3)}
    found = {"".join(labels): p for p, labels in crf.predict_nbest([[["x"]] * 4], 99)[0]}
    expected = {
        bits for bits in map("".join, np.array(list("AB"))[_binary(4)]) if bits not in ("AAAA", "BBBB")
    }
    assert set(found) == expected
    assert sum(found.values()) == pytest.approx(1.0)
    with pytest.raises(InputError, match="sequence 0: the structure has no label sequence"):
        CRF(Segments()).fit([[["x"]] * 5], [["A"] * 4 + ["B"]])


def _binary(n: int) -> Any:
    return [[i >> k & 1 for k in range(n)] for i in range(2**n)]


@pytest.mark.parametrize(
    ("arcs", "what"),
    [
        ([Arc(0, 0, 0, [])], "expected labels of the model for positions from 0 to 1"),
        ([Arc(1, 0, 0, ["a", "a"])], "expected labels of the model for positions from 0 to 1"),
        ([Arc(-1, 0, 0, ["a"])], "expected labels of the model for positions from 0 to 1"),
        ([Arc(0, 0, 0, ["c"])], "expected labels of the model for positions from 0 to 1"),
        ([Arc(0, 0, 0, ["a"]), Arc(0, 0, 0, ["b"])], "the state 0 has one label only"),
        ([Arc(0, 0, 0, ["a"]), Arc(0, 1, 0, ["a"], ["x"])], "no two arcs have the same states and labels"),
        ([Arc(0, 0, 0, ["a"]), *[Arc(1, 0, 0, ["a"])] * 2], "no two arcs have the same states and labels"),
        ([Arc(0, 0, 0, ["a"], "again")], "expected a list of names as its weights"),
        ([Arc(0, 0, 0, ["a"], [3])], "expected a list of names as its weights"),  # type: ignore[list-item]
    ],
)
def test_arcs_that_make_no_graph(arcs: list[Arc], what: str) -> None:
    with pytest.raises(ArgumentError, match=what):
        Listed(*arcs).compile(2, ["a", "b"])


def test_sequences_without_label_sequences_are_refused_by_every_question() -> None:
    y = [list("AAB"), list("AB")]
    x = [[["x"]] * len(labels) for labels in y]
    crf = CRF(Short()).fit(x, y)
    long = [*x, [["x"]] * 4]
    questions: list[Any] = [
        lambda: crf.predict(long),
        lambda: crf.predict_marginals(long),
        lambda: crf.predict_nbest(long, 2),
        lambda: crf.sample(long),
        lambda: crf.log_probability(long, [*y, ["A"] * 4]),
        lambda: crf.fit(x, y, dev=(long, [*y, ["A"] * 4])),
    ]
    for question in questions:
        with pytest.raises(InputError, match="sequence 2: the structure has no label"):
            question()
