"""Belief propagation on a device: the same marginals as the core's, alone and in a batch."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from benchmarks.belief_propagation import lattice

from benchmarks import device_messages
from crfkit.inference import belief_propagation

NEEDS = {"crfkit.nn": "torch", "pgmax": "pgmax"}


@pytest.mark.parametrize("package", NEEDS)
def test_marginals_of_a_batch(package: str) -> None:
    if importlib.util.find_spec(NEEDS[package]) is None:
        pytest.skip(f"{NEEDS[package]} is not installed (pip install {NEEDS[package]})")
    graph = lattice(4, 2, 0.5, 0.5)
    own = device_messages.fields(graph, 3)
    assert own.shape == (3, 16, 2)
    run = device_messages.CONTENDERS[package]
    batch = run(graph, own, 60, 0.0, "cpu")
    assert batch["s"] > 0
    alone = run(graph, own[:1], 60, 0.0, "cpu")
    exact = belief_propagation(graph, tolerance=1e-10).marginals
    for v, variable in enumerate(graph.variables):
        assert alone["marginals"][0, v] == pytest.approx(exact[variable.name], abs=1e-5)
    assert batch["marginals"][0] == pytest.approx(alone["marginals"][0], abs=1e-5)
    assert np.abs(batch["marginals"][1] - batch["marginals"][0]).max() > 0.01
