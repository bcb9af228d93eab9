"""The paired bootstrap, against a slow reference that measures every sample anew."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, EmptyDataError, ShapeError
from crfkit.evaluation import METRICS, TREE_METRICS, Comparison, accuracy, evaluate_trees, paired_bootstrap
from crfkit.evaluation import bootstrap as module

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def labels_of(rng: random.Random, gold: list[list[str]], errors: float) -> list[list[str]]:
    return [[rng.choice(TAGS) if rng.random() < errors else label for label in one] for one in gold]


def corpus(seed: int, n: int = 12) -> tuple[Any, Any, Any]:
    rng = random.Random(seed)
    gold = [[rng.choice(TAGS) for _ in range(rng.randrange(1, 9))] for _ in range(n)]
    return gold, labels_of(rng, gold, 0.4), labels_of(rng, gold, 0.2)


def trees(seed: int, n: int = 8) -> tuple[Any, Any, Any]:
    rng = random.Random(seed)

    def sentence(length: int) -> Sentence:
        words = [
            Word(
                f"w{i}",
                upos=rng.choice("AB"),
                head=rng.randrange(i),
                deprel=rng.choice(["nsubj", "det", "obj"]),
            )
            for i in range(1, length + 1)
        ]
        return Sentence(words)

    sizes = [rng.randrange(1, 7) for _ in range(n)]
    first, second, third = ([sentence(size) for size in sizes] for _ in range(3))
    return first, second, third


def reference(
    measure: Any, gold: Any, first: Any, second: Any, n_samples: int, seed: int, confidence: float
) -> tuple[float, tuple[float, float], float]:
    """Difference, interval and p value by their definitions, a sample at a time."""

    def difference(some: Any) -> float:
        def pick(of: Any) -> Any:
            return [of[n] for n in some]

        return float(measure(pick(gold), pick(second)) - measure(pick(gold), pick(first)))

    rng = np.random.default_rng(seed)
    whole = difference(range(len(gold)))
    found = sorted(difference(rng.integers(len(gold), size=len(gold))) for _ in range(n_samples))
    extreme = sum(abs(d - whole) >= abs(whole) - 1e-12 for d in found)

    def quantile(share: float) -> float:
        at = share * (n_samples - 1)
        low, high = math.floor(at), math.ceil(at)
        return found[low] + (at - low) * (found[high] - found[low])

    ends = (quantile((1 - confidence) / 2), quantile((1 + confidence) / 2))
    return whole, ends, (1 + extreme) / (1 + n_samples)


def assert_same(found: Comparison, expected: tuple[float, tuple[float, float], float]) -> None:
    difference, interval, p_value = expected
    assert found.difference == pytest.approx(difference, abs=1e-12)
    assert found.interval == pytest.approx(interval, abs=1e-12)
    assert found.p_value == p_value


@pytest.mark.parametrize("metric", list(METRICS))
@pytest.mark.parametrize("seed", range(4))
def test_metrics_of_labels(metric: str, seed: int) -> None:
    data = corpus(seed)
    found = paired_bootstrap(*data, metric, n_samples=150, seed=seed, confidence=0.9)
    assert_same(found, reference(METRICS[metric], *data, 150, seed, 0.9))
    assert found.first == pytest.approx(METRICS[metric](data[0], data[1]))


@pytest.mark.parametrize("metric", TREE_METRICS)
def test_metrics_of_trees(metric: str) -> None:
    data = trees(3)
    found = paired_bootstrap(*data, metric, n_samples=100, seed=5)
    assert_same(found, reference(lambda *some: getattr(evaluate_trees(*some), metric), *data, 100, 5, 0.95))


def test_a_function_gives_what_its_name_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    data = corpus(1)
    named = paired_bootstrap(*data, "accuracy", n_samples=60)
    by_function = paired_bootstrap(*data, accuracy, n_samples=60)
    assert by_function.metric == named.metric == "accuracy"
    assert by_function.p_value == named.p_value
    assert by_function.interval == pytest.approx(named.interval)
    monkeypatch.setattr(module, "_AT_ONCE", 24)  # two samples at a time
    assert paired_bootstrap(*data, "accuracy", n_samples=60) == named


def test_default_metrics() -> None:
    assert paired_bootstrap(*corpus(0), n_samples=5).metric == "f1"
    assert paired_bootstrap([["A"]], [["A"]], [["B"]], n_samples=5).metric == "accuracy"
    assert paired_bootstrap(*trees(0), n_samples=5).metric == "las"


def test_unknown_gold_labels_do_not_count() -> None:
    found = paired_bootstrap([["A", None], [None]], [["A", "A"], ["B"]], [["B", "A"], ["B"]], n_samples=5)
    assert (found.first, found.second) == (1.0, 0.0)


def test_p_values() -> None:
    gold = [["A"] * 4 for _ in range(50)]
    worse = [["B", "A", "A", "A"] for _ in range(50)]
    same = paired_bootstrap(gold, worse, worse, n_samples=99)
    assert (same.difference, same.p_value, same.interval) == (0.0, 1.0, (0.0, 0.0))
    sure = paired_bootstrap(gold, worse, gold, n_samples=99)
    assert (sure.difference, sure.p_value) == (0.25, 0.01)
    assert paired_bootstrap(gold, gold, worse, n_samples=99).difference == -0.25
    assert "difference +25.00 (95% interval +25.00 to +25.00), p = 0.01" in str(sure)


def test_p_values_of_equal_models_are_spread_evenly() -> None:
    small = []
    for seed in range(200):
        rng = random.Random(seed)
        gold = [["A"] * 5 for _ in range(60)]
        both = [[["A" if rng.random() < 0.8 else "B" for _ in one] for one in gold] for _ in range(2)]
        small.append(paired_bootstrap(gold, both[0], both[1], n_samples=200, seed=seed).p_value <= 0.2)
    assert 0.1 <= sum(small) / len(small) <= 0.3  # 0.2, with a standard deviation of 0.03


def test_bad_input() -> None:
    with pytest.raises(ShapeError):
        paired_bootstrap([["A"]], [], [["A"]])
    with pytest.raises(EmptyDataError):
        paired_bootstrap([], [], [])
    for wrong in ({"n_samples": 0}, {"confidence": 1.0}, {"metric": "las"}, {"metric": "nonsense"}):
        with pytest.raises(ArgumentError):
            paired_bootstrap([["A"]], [["A"]], [["A"]], **wrong)
    with pytest.raises(ArgumentError):
        paired_bootstrap(*trees(0), "f1")
