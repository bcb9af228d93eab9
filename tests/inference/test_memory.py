"""Limits on memory, what exact inference predicts, and what it takes."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from crfkit import FactorGraph, inference
from crfkit.errors import ArgumentError, SizeLimitError
from crfkit.inference import read_memory_limit


@pytest.mark.parametrize(
    ("limit", "size"),
    [
        ("100", 100.0),
        ("1.5G", 1.5e9),
        ("2 MB", 2e6),
        ("1e9", 1e9),
        ("3kb", 3000.0),
        (7, 7.0),
        (math.inf, math.inf),
    ],
)
def test_limits(limit: str | float, size: float) -> None:
    assert read_memory_limit(limit) == size


def test_the_default_is_half_of_what_there_is() -> None:
    assert read_memory_limit(None) == inference.default_memory_limit() > 2**20


@pytest.mark.parametrize("limit", ["", "G", "-1", "1X", "1 2", "inf", "0", 0, -1, math.nan, True, [1], {}])
def test_wrong_limits(limit: object) -> None:
    with pytest.raises(ArgumentError, match=r"memory_limit is .*, expected a positive number of bytes"):
        read_memory_limit(limit)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="memory_limit is"):
        inference.log_partition(FactorGraph(), memory_limit=limit)  # type: ignore[arg-type]


PROGRAM = """
import json, sys
import numpy as np
from benchmarks.memory import peak_mb, restart_peak_mb
from crfkit import FactorGraph, inference

def chain(n, c):
    tables = [*np.random.default_rng(0).normal(size=(n - 1, c, c)), *np.zeros((n, c))]
    return FactorGraph.from_arrays([c] * n, [*((v, v + 1) for v in range(n - 1)), *((v,) for v in range(n))], tables)

inference.marginals(chain(3, 2))
graph = {"wide": lambda: chain(500, 120), "long": lambda: chain(40000, 3), "best": lambda: chain(200, 10)}[sys.argv[1]]()
graph.tables
before = restart_peak_mb()
extra = {"k": 30000} if sys.argv[2] == "k_best" else {}
answer = getattr(inference, sys.argv[2])(graph, **extra)
used = peak_mb() - before
plan = inference.plan(graph)
problem = inference.factor_graph.FactorGraphProblem(graph)
predicted = {"log_partition": plan.log_partition_memory, "k_best": problem.tree.bytes_of_k_best(30000)}
print(json.dumps([used, predicted.get(sys.argv[2], plan.memory) / 1e6]))
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the highest use of memory is known on Linux alone"
)
@pytest.mark.parametrize(
    ("graph", "question"),
    [("wide", "log_partition"), ("wide", "marginals"), ("long", "marginals"), ("best", "k_best")],
)
def test_predicted_memory_is_what_is_used(graph: str, question: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, graph, question], capture_output=True, text=True, check=True
    )
    used, predicted = json.loads(done.stdout)
    assert used <= 1.2 * predicted + 5
    if question != "k_best":  # an upper bound
        assert used >= 0.8 * predicted - 5


def test_answers_beyond_the_limit_are_refused() -> None:
    graph = FactorGraph.from_arrays([3] * 20, [(v, v + 1) for v in range(19)], np.zeros((19, 3, 3)))
    assert len(inference.k_best(graph, k=10, memory_limit=1e6)) == 10
    with pytest.raises(SizeLimitError, match="k_best: 100,000 assignments of 20 variables need"):
        inference.k_best(graph, k=100_000, memory_limit=1e6)
    with pytest.raises(SizeLimitError, match="sample: 1,000,000 samples of 20 variables need"):
        inference.sample(graph, n=1_000_000, memory_limit=1e6)
    with pytest.raises(SizeLimitError, match="gibbs: 1,000,000,000,000 samples"):
        inference.gibbs(graph, n=10**12)
    # no more memory than for the assignments that exist
    small = FactorGraph.from_arrays([2, 2], [(0, 1)], [[[0.0, 1.0], [2.0, 3.0]]])
    assert [found.score for found in inference.k_best(small, k=10**30, memory_limit=1e6)] == [
        3.0,
        2.0,
        1.0,
        0.0,
    ]


def test_variables_with_very_many_values() -> None:
    graph = FactorGraph()
    for name in "abc":
        graph.variable(name, 1 << 24)
    with pytest.raises(SizeLimitError, match=r"the variables have 5.03e.07 values"):
        inference.log_partition(graph, memory_limit="100M")
