"""Feature functions in tagging, against the enumeration of all label sequences with the functions called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.features import function_data
from crfkit.inference import Answerer, FunctionPotentials
from tests.oracles.function_problems import FUNCTION_KINDS, FUNCTIONS, LABELS, FunctionProblem


@pytest.fixture(autouse=True, params=[300, 1 << 26], ids=["many slices", "one slice"])
def slice_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_data, "_SLICE", request.param)


@pytest.mark.parametrize("kind", FUNCTION_KINDS, ids=str)
@pytest.mark.parametrize("functions", FUNCTIONS)
def test_tagging_is_that_of_the_enumeration(functions: str, kind: dict[str, Any]) -> None:
    problem = FunctionProblem(8, FUNCTIONS[functions], **kind)
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
        right = [score for y, score in scores.items() if problem.admits(n, y)]
        assert log_z[n] == pytest.approx(np.logaddexp.reduce(ranked), rel=1e-12, abs=1e-12)
        assert log_gold[n] == pytest.approx(np.logaddexp.reduce(right), rel=1e-12, abs=1e-12)
        assert [s for s, _ in k_best[n]] == pytest.approx(ranked[:3], abs=1e-9)
        assert all(scores[tuple(y.tolist())] == pytest.approx(s, abs=1e-9) for s, y in k_best[n])
        probs = np.zeros((length, len(LABELS)))
        for y, score in scores.items():
            probs[range(length), list(y)] += np.exp(score - log_z[n])
        np.testing.assert_allclose(marginals[positions], probs, atol=1e-9)
        drawn = samples[4 * problem.ptr[n] : 4 * problem.ptr[n + 1]].reshape(4, length)
        assert all(tuple(y) in scores for y in drawn.tolist())
