"""Curvature pairs of the active weights alone: against pairs of all weights, and in snapshots."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from crfkit import LBFGS
from crfkit.optimizers import Snapshot, Watch
from crfkit.optimizers.active_pairs import ActivePairs
from crfkit.optimizers.lbfgs_memory import Pairs
from crfkit.optimizers.protocols import Vector
from crfkit.optimizers.snapshot import SnapshotError
from tests.oracles.problems import Problem, logistic

Step = tuple[Vector, Vector, Vector, Vector, Vector]


def steps(n_weights: int, n: int, seed: int, share: float = 1.0) -> list[Step]:
    """x, x before, g, g before and v of `n` steps on a random quadratic; all but a share of the weights stay 0."""
    r = np.random.default_rng(seed)
    root = r.normal(size=(n_weights, n_weights))
    hessian = root @ root.T + np.eye(n_weights)
    found = []
    x = np.zeros(n_weights)
    for _ in range(n):
        moves = r.random(n_weights) < share
        after = np.where(moves, r.normal(size=n_weights), x)
        g_before, g = hessian @ x, hessian @ after
        v = np.where((after != 0) | (r.random(n_weights) < 0.05), r.normal(size=n_weights), 0.0)
        found.append((after, x, g, g_before, v))
        x = after
    return found


@pytest.mark.parametrize("memory", [1, 3, 40])
def test_directions_are_those_of_all_weights_where_all_are_active(memory: int) -> None:
    active, dense = ActivePairs(memory, 30, 1), Pairs(memory, 30, 1)
    for step in steps(30, 50, seed=memory):
        assert active.add(*step) == dense.add(*step)
        assert len(active) == len(dense)
        for v in (step[-1], np.arange(30.0)):
            (found, slope), (expected, expected_slope) = active.direction(v), dense.direction(v)
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * np.abs(expected).max())
            assert slope == pytest.approx(expected_slope, rel=1e-8)
            assert slope == pytest.approx(float(found @ v), rel=1e-8)


def test_weights_that_are_dropped_leave_a_matrix_that_leads_downhill() -> None:
    active = ActivePairs(10, 200, 1)
    widths = []
    for n, (x, before, g, g_before, v) in enumerate(steps(200, 60, seed=1, share=0.3)):
        if n % 15 == 14:  # all but a few weights are 0
            x, before, v = (np.where(np.arange(200) % 10 == 0, array, 0.0) for array in (x, before, v))
        active.add(x, before, g, g_before, v)
        d, slope = active.direction(v)
        widths.append(len(active._ids))
        assert slope < 0.0
        assert slope == pytest.approx(float(d @ v), rel=1e-8)
        assert not d[(v == 0) & (x == 0) & (before == 0) & ~active._is_active].any()
        assert len(np.unique(active._ids)) == len(active._ids) == active._is_active.sum()
    assert any(after < before for before, after in pairwise(widths))
    assert any(after > before for before, after in pairwise(widths))


def sparse_problem() -> Problem:
    """Many weights of which most are active in the first iterations only, some without penalty."""
    l1 = np.full(400, 4.0)
    l1[::17] = 0.0
    l1[1::5] = 0.5
    return Problem(logistic(200, 400, 1e-3, seed=5), 400, l1)


def snapshots(problem: Problem, settings: LBFGS, start: Vector) -> tuple[Any, list[Snapshot]]:
    taken: list[Snapshot] = []
    outcome = settings.minimize(problem, start, watch=Watch(save=taken.append, every=1))
    return outcome, taken


@pytest.mark.parametrize("warm", [False, True])
def test_a_run_goes_on_with_the_same_bits_from_every_iteration(warm: bool) -> None:
    problem, settings = sparse_problem(), LBFGS(max_iterations=60, tolerance=1e-10, change=0.0, memory=7)
    start = np.random.default_rng(0).normal(size=400) * warm
    expected, taken = snapshots(problem, settings, start)
    ids = [len(snapshot.arrays["pairs.ids"]) for snapshot in taken]
    assert any(after > before for before, after in pairwise(ids)), "no weight joined"
    assert any(after < before for before, after in pairwise(ids)), "no weight was dropped"
    for snapshot in taken[:-1]:
        kept = Snapshot(snapshot.numbers, {name: array.copy() for name, array in snapshot.arrays.items()})
        found = settings.minimize(problem, start, watch=Watch(resume=kept), n_threads=2)
        assert found.weights.tobytes() == expected.weights.tobytes()
        assert [record.objective for record in found.history] == [
            record.objective for record in expected.history
        ]


DAMAGE: dict[str, tuple[str, Callable[[Any, Any], tuple[Any, Any]]]] = {
    "short": ("lacks weights that are active", lambda ids, rows: (ids[:0], rows)),
    "twice": ("does not number 400 weights", lambda ids, rows: (np.append(ids[:-1], ids[0]), rows)),
    "outside": ("does not number 400 weights", lambda ids, rows: (np.append(ids[:-1], 400), rows)),
    "below": ("does not number 400 weights", lambda ids, rows: (np.append(ids[:-1], -1), rows)),
    "table": ("pairs of", lambda ids, rows: (ids[None], rows)),
    "real": ("'pairs.ids' is float64", lambda ids, rows: (ids.astype(np.float64), rows)),
    "narrow": ("pairs of", lambda ids, rows: (ids, rows[:, :20].copy())),
    "wide": ("pairs of", lambda ids, rows: (ids, np.zeros((len(rows), 600), np.float32))),
    "flat": ("pairs of", lambda ids, rows: (ids, rows.ravel())),
    "odd": ("pairs in 32 slots", lambda ids, rows: (ids, rows[:-1])),
    "infinite": ("not finite", lambda ids, rows: (ids, rows + np.float32(np.inf))),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_lists_of_active_weights_are_errors(kind: str) -> None:
    problem, settings = sparse_problem(), LBFGS(max_iterations=12)
    _, taken = snapshots(problem, settings, np.zeros(400))
    numbers, arrays = taken[5]
    message, damage = DAMAGE[kind]
    ids, rows = damage(arrays["pairs.ids"], arrays["pairs.rows"])
    damaged = Snapshot(numbers, {**arrays, "pairs.ids": ids, "pairs.rows": rows})
    with pytest.raises(SnapshotError, match=message):
        settings.minimize(problem, np.zeros(400), watch=Watch(resume=damaged))
