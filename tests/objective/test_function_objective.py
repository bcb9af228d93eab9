"""Feature functions in training and tagging, against the enumeration of all label sequences with the functions called."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from crfkit.features import (
    Annotation,
    Dataset,
    FeatureFunction,
    FeatureFunctions,
    FeatureMap,
    FunctionData,
    FunctionMap,
    Outputs,
    function_data,
)
from crfkit.features.dataset import FeatureList
from crfkit.inference import Answerer, FunctionPotentials
from crfkit.objective import Objective
from crfkit.structures import END, START, AllowedLabels, Chain

Float64s = npt.NDArray[np.float64]
Label = Hashable
LABELS: tuple[Label, ...] = (("noun", "sg"), ("noun", "pl"), "verb", 3)


class Word:
    """An input that is no sequence: a graph of positions, with a number at each."""

    def __init__(self, numbers: Float64s) -> None:
        self.numbers = dict(enumerate(numbers.tolist()))
        self.links = {i: {i - 1, i + 1} & set(self.numbers) for i in self.numbers}


def n_positions(x: Word) -> int:
    return len(x.numbers)


def code(label: Any) -> int:
    return 7 if label is START else 11 if label is END else LABELS.index(label)


def number(x: Word, label: Label, i: int) -> float:
    return float(x.numbers[i] * (1 + code(label)))


def vector(x: Word, label: Label, i: int) -> list[float]:
    return [
        1.0 if label == ("noun", "sg") else 0.5,
        np.sin(x.numbers[i] + code(label)),
        float(len(x.links[i])),
    ]


def numbered(x: Word, label: Label, i: int) -> dict[int, float]:
    return {} if code(label) == 2 else {(code(label) + i) % 5: x.numbers[i], 4: -0.5}


def named(x: Word, label: Label, i: int) -> dict[str, float]:
    return {f"label {label}": 1.0} if i % 2 == 0 else {f"label {label}": 0.3, "odd": x.numbers[i]}


def pair(x: Word, before: Any, label: Any, i: int) -> float:
    return float(np.cos(3 * code(before) + code(label) + i))


def pair_vector(x: Word, before: Any, label: Any, i: int) -> Float64s:
    return np.array(
        [before == label, x.numbers.get(i, 2.0) * code(before), before is START, label is END], float
    )


def pair_row(x: Word, before: Any, label: Any, i: int) -> Any:
    row = np.zeros((1, 6))
    row[0, (code(before) + 2 * code(label)) % 6] = 1.0 + i
    return sparse.csr_array(row)


def all_numbers(x: Word, labels: npt.NDArray[Any], positions: npt.NDArray[np.int32]) -> Float64s:
    return np.array([number(x, label, i) for label, i in zip(labels, positions, strict=True)])


def all_pairs(
    x: Word, befores: npt.NDArray[Any], labels: npt.NDArray[Any], positions: npt.NDArray[np.int32]
) -> Any:
    rows = [pair_vector(x, *part) for part in zip(befores, labels, positions.tolist(), strict=True)]
    return sparse.csr_matrix(np.array(rows))


# The functions as they are given, and each as a plain function with END calls or not, for the enumeration.
SETS: dict[str, list[Any]] = {
    "one number": [number],
    "labels only": [number, vector, FeatureFunction(numbered, outputs=5), named],
    "pairs only": [FeatureFunction(pair, end=True)],
    "mixed": [
        vector,
        pair,
        FeatureFunction(pair_vector, outputs=("same", "product", "start", "end"), end=True),
        pair_row,
        named,
    ],
    "vectorised": [
        FeatureFunction(all_numbers, vectorised=True),
        FeatureFunction(all_pairs, vectorised=True, end=True),
        pair_row,
    ],
}
PLAIN: dict[Any, Any] = {all_numbers: number, all_pairs: pair_vector}


class Problem:
    """A random data set, and everything about it by enumeration."""

    def __init__(
        self,
        seed: int,
        functions: list[Any],
        *,
        bigrams: str = "all",
        restrict: bool = False,
        partial: bool = False,
        arcs: bool = True,
        structure: Chain | None = None,
        memory: int = 1 << 20,
    ) -> None:
        rng = np.random.default_rng(seed)
        L = len(LABELS)
        self.structure = structure or Chain()
        self.lengths = np.array([1, 3, 0, 4 if restrict else 2])
        self.ptr = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        self.inputs = [Word(rng.normal(size=length).round(2)) for length in self.lengths]
        T = int(self.ptr[-1])
        self.sets = [
            sorted(rng.choice(L, rng.integers(2, L + 1), replace=False).tolist())
            if restrict
            else list(range(L))
            for _ in range(T)
        ]
        self.listed = rng.random((L + 1, L + 1)) < 0.75 if bigrams != "all" else np.ones((L + 1, L + 1), bool)
        self.listed[L, L] = True
        self.exists = self.listed if bigrams != "soft" else np.ones_like(self.listed)
        self.gold: list[set[int]] = [set() for _ in range(T)]
        for n in range(len(self.lengths)):
            while not self.paths(n):
                self.listed[tuple(rng.integers(0, L + 1, 2))] = True
            paths = self.paths(n)
            for t, label in enumerate(paths[rng.integers(len(paths))], self.ptr[n]):
                self.gold[t] = {label}
                if partial and rng.random() < 0.6:
                    self.gold[t] |= set(rng.choice(self.sets[t], 2).tolist())
        ids = [min(g) if len(g) == 1 else -1 for g in self.gold]
        sets = AllowedLabels.from_sets([None if len(g) == 1 else g for g in self.gold]) if partial else None
        self.annotation = Annotation(np.array(ids, np.int32), sets)
        empty = FeatureList(np.zeros(T + 1, np.int64), np.zeros(0, np.int32), None)
        allowed = AllowedLabels.from_sets(self.sets) if restrict else None
        self.dataset = Dataset(self.ptr, empty, allowed=allowed, inputs=self.inputs)
        before, after = np.nonzero(self.listed)
        given = None if bigrams == "all" else (before.astype(np.int32), after.astype(np.int32))
        self.feature_map = FeatureMap.build(
            self.dataset,
            self.annotation,
            self.structure,
            n_labels=L,
            n_features=0,
            all_possible_transitions=True,
            bigrams=given,
            soft=bigrams == "soft",
        )
        if not arcs:
            none = np.zeros(0, np.int32)
            self.feature_map = FeatureMap(
                **{
                    **{k: v for k, v in self.feature_map.__dict__.items() if k != "layout"},
                    "arc_before": none,
                    "arc_after": none,
                }
            )
        self.functions = FeatureFunctions(functions, length=n_positions, memory=memory)
        self.map = FunctionMap(
            self.functions,
            tuple(map(Outputs, self.functions)),
            LABELS,
            self.structure,
            self.feature_map,
        )
        self.data = FunctionData(self.map, self.dataset, 1, learn=True)
        self.sample_weight = rng.random(len(self.lengths)) + 0.5
        self.w = rng.normal(size=self.map.n_weights)
        self.v = rng.normal(size=self.map.n_weights)

    def paths(self, n: int) -> list[tuple[int, ...]]:
        """Every label sequence of input n that exists."""
        positions = range(self.ptr[n], self.ptr[n + 1])
        return [
            y
            for y in product(*(self.sets[t] for t in positions))
            if all(self.exists[a, b] for a, b in pairwise((-1, *y, -1)))
        ]

    def counts(self, n: int, y: tuple[int, ...]) -> Float64s:
        """What the labels y of input n add to the score for each weight, [D]: the functions are called one by one."""
        x, L = self.inputs[n], len(LABELS)
        phi = np.zeros(self.map.n_weights)
        plain = {
            pair: i
            for i, pair in enumerate(
                zip(self.feature_map.arc_before.tolist(), self.feature_map.arc_after.tolist(), strict=True)
            )
        }
        ends = [(L if i == 0 else y[i - 1], L if i == len(y) else y[i], i) for i in range(len(y) + 1)]
        for a, b, _ in ends if y else []:
            if (a, b) in plain:
                phi[plain[a, b]] += 1
        for k, function in enumerate(self.functions):
            f: Any = PLAIN.get(function.function, function.function)
            if not function.on_arcs:
                for i, label in enumerate(y):
                    self.add(phi, k, f(x, LABELS[label], i))
                continue
            for a, b, i in ends if y else []:
                if not self.listed[a, b] or (i == 0 and not self.structure.start):
                    continue
                if i == len(y) and not (function.end and self.structure.end):
                    continue
                self.add(phi, k, f(x, START if i == 0 else LABELS[a], END if i == len(y) else LABELS[b], i))
        return phi

    def add(self, phi: Float64s, k: int, value: Any) -> None:
        first = self.map.first_weight(k)
        if hasattr(value, "toarray"):
            value = value.toarray()[0]
        if not isinstance(value, dict):
            value = dict(enumerate(np.atleast_1d(value).tolist()))
        vocabulary = self.map.outputs[k].vocabulary
        for key, number in value.items():
            phi[first + (vocabulary.get(key) if isinstance(key, str) and vocabulary else key)] += number

    def moments(self, n: int, *, gold: bool) -> tuple[float, Float64s, Float64s]:
        """log Z, E[counts] and Cov[counts]·v over the label sequences that exist (and fit the annotation)."""
        paths = self.paths(n)
        if gold:
            paths = [y for y in paths if all(b in self.gold[self.ptr[n] + i] for i, b in enumerate(y))]
        phi = np.array([self.counts(n, y) for y in paths])
        scores = phi @ self.w
        log_z = np.logaddexp.reduce(scores)
        p = np.exp(scores - log_z)
        mean = p @ phi
        return float(log_z), mean, (p * (phi @ self.v)) @ phi - (mean @ self.v) * mean

    def objective(self, n_threads: int = 1) -> Objective:
        """The one to be tested."""
        return Objective(
            self.data.loss(self.annotation, sample_weight=self.sample_weight, n_threads=n_threads), l2=0.3
        )


KINDS: list[dict[str, Any]] = [
    {},
    {"bigrams": "some"},
    {"bigrams": "soft", "partial": True},
    {"bigrams": "some", "restrict": True, "partial": True},
    {"restrict": True, "arcs": False},
    {"bigrams": "some", "arcs": False, "structure": Chain(start=False)},
    {"structure": Chain(end=False), "memory": 0},
]


@pytest.fixture(autouse=True, params=[300, 1 << 26], ids=["many slices", "one slice"])
def slice_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_data, "_SLICE", request.param)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("functions", SETS)
def test_objective_is_that_of_the_enumeration(functions: str, kind: dict[str, Any]) -> None:
    problem = Problem(3, SETS[functions], **kind)
    value, gradient, product_ = 0.15 * problem.w @ problem.w, 0.3 * problem.w, 0.3 * problem.v
    for n, weight in enumerate(problem.sample_weight):
        for sign, gold in ((1, False), (-1, True)):
            log_z, mean, moved = problem.moments(n, gold=gold)
            value += sign * weight * log_z
            gradient = gradient + sign * weight * mean
            product_ = product_ + sign * weight * moved
    objective = problem.objective()
    assert objective.n_weights == len(problem.w)
    found, slope = objective.value_and_gradient(problem.w)
    assert found == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(slope, gradient, atol=1e-9)
    np.testing.assert_allclose(objective.hessian_vector(problem.w, problem.v), product_, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("functions", SETS)
def test_tagging_is_that_of_the_enumeration(functions: str, kind: dict[str, Any]) -> None:
    problem = Problem(8, SETS[functions], **kind)
    answerer, data, T = Answerer(FunctionPotentials(problem.w)), problem.data, int(problem.ptr[-1])
    best, marginals, log_z = answerer.decode(data), answerer.marginals(data), answerer.log_partitions(data)
    log_gold = answerer.log_partitions(data, problem.annotation.labels, problem.annotation.sets)
    k_best = answerer.k_best(data, 3)
    samples = answerer.sample(data, 4, np.random.default_rng(0).random(4 * T))
    for n, length in enumerate(problem.lengths):
        positions = slice(problem.ptr[n], problem.ptr[n + 1])
        scores = {y: float(problem.counts(n, y) @ problem.w) for y in problem.paths(n)}
        ranked = sorted(scores.values(), reverse=True)
        assert scores[tuple(best[positions].tolist())] == pytest.approx(ranked[0], abs=1e-9)
        assert log_z[n] == pytest.approx(problem.moments(n, gold=False)[0], rel=1e-12, abs=1e-12)
        assert log_gold[n] == pytest.approx(problem.moments(n, gold=True)[0], rel=1e-12, abs=1e-12)
        assert [s for s, _ in k_best[n]] == pytest.approx(ranked[:3], abs=1e-9)
        assert all(scores[tuple(y.tolist())] == pytest.approx(s, abs=1e-9) for s, y in k_best[n])
        probs = np.zeros((length, len(LABELS)))
        for y, score in scores.items():
            probs[range(length), list(y)] += np.exp(score - log_z[n])
        np.testing.assert_allclose(marginals[positions], probs, atol=1e-9)
        drawn = samples[4 * problem.ptr[n] : 4 * problem.ptr[n + 1]].reshape(4, length)
        assert all(tuple(y) in scores for y in drawn.tolist())
