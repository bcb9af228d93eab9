"""Answers of trained models with patterns against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import _core
from tests.oracles.pattern_cases import PATTERNS, L, PatternCase

Float64s = npt.NDArray[np.float64]
CASES = [{"seed": seed, **kind} for seed, kind in enumerate(PatternCase.KINDS)]


def point(case: PatternCase, scale: float = 1.0) -> Float64s:
    random = np.random.default_rng(case.seed + 100)
    return random.normal(scale=scale, size=PATTERNS + case.n_patterns)


@pytest.mark.parametrize("settings", CASES, ids=str)
@pytest.mark.parametrize("scale", [1.0, 60.0])
def test_answers_for_a_data_set_are_those_of_enumeration(settings: dict[str, Any], scale: float) -> None:
    case = PatternCase(**settings)
    w = point(case, scale)
    layout, trellises = case.trellises(purpose="questions")
    scored = _core.PatternPotentials(layout, w, PATTERNS).score(trellises, None)
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
    case = PatternCase(1, bigrams=True)
    w = point(case)
    layout, trellises = case.trellises(purpose="questions")
    scored = _core.PatternPotentials(layout, w, PATTERNS).score(trellises, None)
    n = 4000
    drawn = scored.sample(n, np.random.default_rng(0).random(n * int(case.ptr[-1])), 2)
    marginals = scored.marginals(1)
    for i, length in enumerate(case.lengths):
        begin = int(case.ptr[i])
        labels = drawn[n * begin : n * (begin + length)].reshape(n, length)
        for t in range(length):
            frequencies = np.bincount(labels[:, t], minlength=L) / n
            np.testing.assert_allclose(frequencies, marginals[begin + t], atol=0.05)
