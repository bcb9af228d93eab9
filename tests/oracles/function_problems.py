"""Random problems with feature functions, with everything about them by calling the functions one by one."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
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
)
from crfkit.features.dataset import FeatureList
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
FUNCTIONS: dict[str, list[Any]] = {
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


class FunctionProblem:
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

    def paths(self, n: int) -> list[tuple[int, ...]]:
        """Every label sequence of input n that exists."""
        positions = range(self.ptr[n], self.ptr[n + 1])
        return [
            y
            for y in product(*(self.sets[t] for t in positions))
            if all(self.exists[a, b] for a, b in pairwise((-1, *y, -1)))
        ]

    def admits(self, n: int, y: tuple[int, ...]) -> bool:
        """Whether the annotation of sequence n admits these labels."""
        return all(b in self.gold[self.ptr[n] + i] for i, b in enumerate(y))

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


FUNCTION_KINDS: list[dict[str, Any]] = [
    {},
    {"bigrams": "some"},
    {"bigrams": "soft", "partial": True},
    {"bigrams": "some", "restrict": True, "partial": True},
    {"restrict": True, "arcs": False},
    {"bigrams": "some", "arcs": False, "structure": Chain(start=False)},
    {"structure": Chain(end=False), "memory": 0},
]
