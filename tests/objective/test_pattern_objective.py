"""The training objective with patterns: value, gradient and Hessian products against enumeration."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import _core
from crfkit.structures import BookWriter
from tests.oracles.patterns import core_book

Float64s = npt.NDArray[np.float64]
L, F = 3, 4  # labels, features: all pairs have weights
ARCS = F * L  # where the weights of arcs begin: L·L of them, then those from the start and to the end
PATTERNS = ARCS + L * L + 2 * L


@dataclass
class Case:
    """Random sequences with features, patterns, labels that may be partly known, and constraints."""

    seed: int
    partly: bool = False
    allowed: bool = False
    bigrams: bool = False
    lengths: list[int] = field(init=False)

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        self.lengths = random.integers(0, 5, size=9).tolist() + [4] * 20  # more than one vector has lanes
        self.positions = [
            [(f, float(random.choice([1.0, -0.5]))) for f in np.flatnonzero(random.random(F) < 0.6)]
            for _ in range(sum(self.lengths))
        ]
        self.weight = random.uniform(0.5, 2.0, size=len(self.lengths))
        ptr = np.cumsum([0, *self.lengths])
        self.n_patterns = 4
        self.patterns: list[tuple[int, int, list[set[int]], int, float]] = []
        for n, length in enumerate(self.lengths):
            shared = np.random.default_rng(length) if n >= 9 else random  # those of the last twenty are alike
            for _ in range(6 if length else 0):
                first = int(shared.integers(0, length))
                size = int(shared.integers(1, length - first + 1))
                sets = [set(np.flatnonzero(shared.random(L) < 0.7).tolist()) or {0} for _ in range(size)]
                value = float(shared.choice([1.0, 2.0, -0.5]))
                self.patterns.append((n, first, sets, int(shared.integers(self.n_patterns)), value))
        self.pairs = {(a, b) for a in range(L) for b in range(L) if not (self.bigrams and (a, b) == (0, 1))}
        self.open = [
            {0, 2} if self.allowed and random.random() < 0.3 else set(range(L))
            for _ in range(sum(self.lengths))
        ]
        self.gold: list[set[int]] = []
        for n, length in enumerate(self.lengths):
            possible = self.outputs(n)
            path = possible[int(random.integers(len(possible)))] if length else ()
            for t, label in enumerate(path):
                wide = self.partly and random.random() < 0.4
                self.gold.append({label, int(random.integers(L))} if wide else {label})
                self.gold[-1] &= self.open[int(ptr[n]) + t]
        self.ptr = ptr

    def outputs(self, n: int) -> list[tuple[int, ...]]:
        begin = sum(self.lengths[:n])
        every = itertools.product(*(sorted(self.open[begin + t]) for t in range(self.lengths[n])))
        return [y for y in every if all(pair in self.pairs for pair in itertools.pairwise(y))]

    def features(self, n: int, y: tuple[int, ...]) -> Float64s:
        """Φ of one label sequence, [D]."""
        phi = np.zeros(PATTERNS + self.n_patterns)
        for t, label in enumerate(y):
            for f, value in self.positions[int(self.ptr[n]) + t]:
                phi[f * L + label] += value
        for a, b in itertools.pairwise(y):
            phi[ARCS + a * L + b] += 1
        phi[ARCS + L * L + y[0]] += 1
        phi[ARCS + L * L + L + y[-1]] += 1
        for sequence, first, sets, weight, value in self.patterns:
            if sequence == n and all(y[first + i] in labels for i, labels in enumerate(sets)):
                phi[PATTERNS + weight] += value
        return phi

    def enumerated(self, w: Float64s, v: Float64s) -> tuple[float, Float64s, Float64s]:
        """Value, gradient and Hessian product, without penalty."""
        value, gradient, product = 0.0, np.zeros_like(w), np.zeros_like(w)
        for n, length in enumerate(self.lengths):
            if length == 0:
                continue
            every = self.outputs(n)
            gold = self.gold[int(self.ptr[n]) : int(self.ptr[n + 1])]
            admitted = [y for y in every if all(label in gold[t] for t, label in enumerate(y))]
            for sign, outputs in ((1.0, every), (-1.0, admitted)):
                phi = np.array([self.features(n, y) for y in outputs])
                scores = phi @ w
                p = np.exp(scores - scores.max())
                value += sign * self.weight[n] * (np.log(p.sum()) + scores.max())
                p /= p.sum()
                mean = p @ phi
                gradient += sign * self.weight[n] * mean
                product += sign * self.weight[n] * ((p * (phi @ v)) @ phi - (p @ phi @ v) * mean)
        return value, gradient, product

    def trellises(
        self, n_threads: int = 1, purpose: str = "patterns"
    ) -> tuple[_core.Layout, _core.Trellises]:
        before, after = (
            np.array(x, dtype=np.int32) for x in zip(*itertools.product(range(L), repeat=2), strict=True)
        )
        ends = np.arange(L, dtype=np.int32)
        outside = np.full(L, L, np.int32)
        arcs = (np.concatenate([before, outside, ends]), np.concatenate([after, ends, outside]))
        exist: tuple[npt.NDArray[np.int32] | None, npt.NDArray[np.int32] | None] = (None, None)
        if self.bigrams:
            listed = [*sorted(self.pairs), *((L, b) for b in range(L)), *((a, L) for a in range(L)), (L, L)]
            exist = np.array([a for a, _ in listed], np.int32), np.array([b for _, b in listed], np.int32)
        none = np.zeros(0, np.int32)
        layout = _core.Layout(
            L, np.arange(0, F * L + 1, L), np.tile(ends, F), np.zeros(0, np.int64), *arcs, np.zeros(1, np.int64), none,
            *exist,
        )  # fmt: skip
        position_ptr = np.cumsum([0, *map(len, self.positions)])
        ids = np.array([f for position in self.positions for f, _ in position], dtype=np.int32)
        values = np.array([value for position in self.positions for _, value in position])
        allowed: tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int32] | None] = (None, None)
        if self.allowed:
            lists = [sorted(labels) if len(labels) < L else [] for labels in self.open]
            allowed = np.cumsum([0, *map(len, lists)]), np.array([*itertools.chain(*lists)], dtype=np.int32)
        design = _core.Design(
            layout, self.ptr, position_ptr, ids, values, None, None, None, [], 1, *allowed, purpose=purpose
        )
        writer = BookWriter(L)
        starts = sorted(
            (int(self.ptr[n]) + first, writer.chain(sets, weight), value)
            for n, first, sets, weight, value in self.patterns
        )
        at = np.array([start[0] for start in starts], dtype=np.int64)
        return layout, _core.Trellises(
            layout,
            design,
            core_book(writer.book()),
            np.searchsorted(at, np.arange(len(self.positions) + 1)).astype(np.int64),
            np.array([start[1] for start in starts], dtype=np.int32),
            np.array([start[2] for start in starts]),
            PATTERNS,
            1000,
            100_000,
            n_threads,
        )

    def objective(self, *, single: bool = False, n_threads: int = 1, l2: float = 0.0) -> _core.Objective:
        known = np.array([next(iter(s)) if len(s) == 1 else -1 for s in self.gold], dtype=np.int32)
        sets = [sorted(s) if 1 < len(s) < L else [] for s in self.gold]
        partial: tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int32] | None] = (None, None)
        if self.partly:
            partial = np.cumsum([0, *map(len, sets)]), np.array([*itertools.chain(*sets)], dtype=np.int32)
        loss = _core.pattern_loss(
            self.trellises(n_threads)[1],
            known,
            *partial,
            self.weight,
            PATTERNS + self.n_patterns,
            single,
            n_threads,
        )
        return _core.Objective(loss, np.array([l2]))


CASES = [
    {"seed": seed, "partly": partly, "allowed": allowed, "bigrams": bigrams}
    for seed, (partly, allowed, bigrams) in enumerate(itertools.product((False, True), repeat=3))
]


def point(case: Case, scale: float = 1.0) -> tuple[Float64s, Float64s]:
    random = np.random.default_rng(case.seed + 100)
    return random.normal(scale=scale, size=PATTERNS + case.n_patterns), random.normal(
        size=PATTERNS + case.n_patterns
    )


@pytest.mark.parametrize("settings", CASES, ids=str)
@pytest.mark.parametrize("scale", [1.0, 60.0, 400.0])
def test_value_gradient_and_product_are_those_of_enumeration(settings: dict[str, int], scale: float) -> None:
    case = Case(**settings)  # type: ignore[arg-type]
    w, v = point(case, scale)
    value, gradient, product = case.enumerated(w, v)
    objective = case.objective(l2=0.3)
    found, slope = objective.value_and_gradient(w)
    assert found == pytest.approx(value + 0.15 * w @ w, rel=1e-11)
    np.testing.assert_allclose(slope, gradient + 0.3 * w, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(objective.hessian_vector(w, v), product + 0.3 * v, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_single_precision_is_near_and_is_refined(settings: dict[str, int]) -> None:
    case = Case(**settings)  # type: ignore[arg-type]
    for scale in (1.0, 60.0):
        w, v = point(case, scale)
        value, gradient, product = case.enumerated(w, v)
        objective = case.objective(single=True)
        found, slope = objective.value_and_gradient(w)
        assert found == pytest.approx(value, rel=1e-5, abs=1e-4)
        np.testing.assert_allclose(slope, gradient, rtol=0, atol=2e-4)
        np.testing.assert_allclose(objective.hessian_vector(w, v), product, rtol=0, atol=2e-3)
        assert objective.refine()
        assert not objective.refine()
        np.testing.assert_allclose(objective.value_and_gradient(w)[1], gradient, rtol=0, atol=1e-8)


def test_the_same_bits_for_any_number_of_threads() -> None:
    case = Case(3, partly=True, allowed=True)
    w, v = point(case)
    first = case.objective()
    for n_threads in (2, 4):
        other = case.objective(n_threads=n_threads)
        assert other.value_and_gradient(w)[0] == first.value_and_gradient(w)[0]
        np.testing.assert_array_equal(other.value_and_gradient(w)[1], first.value_and_gradient(w)[1])
        np.testing.assert_array_equal(other.hessian_vector(w, v), first.hessian_vector(w, v))


@pytest.mark.parametrize("settings", CASES, ids=str)
@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_answers_for_a_data_set_are_those_of_enumeration(settings: dict[str, int], scale: float) -> None:
    case = Case(**settings)  # type: ignore[arg-type]
    w, _ = point(case, scale)
    layout, trellises = case.trellises(purpose="questions")
    scored = _core.PatternPotentials(layout, w, PATTERNS).score(trellises, 2)
    best, marginals = scored.decode(2), scored.marginals(2)
    log_z, k_best = scored.log_partitions(None, None, None, 2), scored.k_best(3, 2)
    pinned = scored.log_partitions(best, None, None, 2)
    for n, length in enumerate(case.lengths):
        positions = slice(int(case.ptr[n]), int(case.ptr[n + 1]))
        if length == 0:
            assert log_z[n] == 0.0
            continue
        outputs = case.outputs(n)
        scores = np.array([case.features(n, y) @ w for y in outputs])
        p = np.exp(scores - scores.max())
        assert log_z[n] == pytest.approx(np.log(p.sum()) + scores.max(), abs=1e-9 * scale)
        assert pinned[n] == pytest.approx(scores.max(), abs=1e-9 * scale)
        assert scores[outputs.index(tuple(best[positions].tolist()))] == pytest.approx(scores.max())
        found = [score for score, _ in k_best[n]]
        assert found == pytest.approx(sorted(scores.tolist(), reverse=True)[:3], abs=1e-9 * scale)
        expected = np.zeros((length, L))
        for y, weight in zip(outputs, p / p.sum(), strict=True):
            expected[np.arange(length), list(y)] += weight
        np.testing.assert_allclose(marginals[positions], expected, rtol=0, atol=1e-9)


def test_samples_have_the_frequencies_of_the_model() -> None:
    case = Case(1, bigrams=True)
    w, _ = point(case)
    layout, trellises = case.trellises(purpose="questions")
    scored = _core.PatternPotentials(layout, w, PATTERNS).score(trellises, 2)
    n = 4000
    drawn = scored.sample(n, np.random.default_rng(0).random(n * int(case.ptr[-1])), 2)
    marginals = scored.marginals(1)
    for i, length in enumerate(case.lengths):
        begin = int(case.ptr[i])
        labels = drawn[n * begin : n * (begin + length)].reshape(n, length)
        for t in range(length):
            frequencies = np.bincount(labels[:, t], minlength=L) / n
            np.testing.assert_allclose(frequencies, marginals[begin + t], atol=0.05)
