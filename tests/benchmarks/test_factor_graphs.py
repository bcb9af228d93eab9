"""The benchmark of exact inference: its parts, one run on a small model, and the other toolkits where they are installed."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks import factor_graphs, graph_contenders
from crfkit import FactorGraph
from crfkit.data import write_uai
from tests.oracles.factor_graphs import Graph, GraphOracle, draw_graph

SEED = 33
OBSERVED = {2: 1}


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Graph]:
    """A model with its evidence; the scopes of its factors are not sorted, and two are equal."""
    random = np.random.default_rng(SEED)
    counts, factors = draw_graph(random, "random")
    factors += [
        (scope, random.normal(size=[counts[v] for v in scope])) for scope in ((2, 0), (0, 2), (3, 1, 2))
    ]
    scopes, tables = [scope for scope, _ in factors], [table for _, table in factors]
    path = tmp_path / "small_1.uai"
    write_uai(FactorGraph.from_arrays(counts, scopes, tables), path)
    path.with_name("small_1.uai.evid").write_text("1 2 1")
    return path, (counts, factors)


def oracle(graph: Graph) -> GraphOracle:
    masks = [
        np.ones(n, dtype=bool) if v != 2 else np.arange(n) == OBSERVED[2] for v, n in enumerate(graph[0])
    ]
    return GraphOracle(graph, masks)


@pytest.mark.parametrize("toolkit", graph_contenders.TOOLKITS)
def test_every_toolkit_gives_the_right_answers(toolkit: str, small: tuple[Path, Graph]) -> None:
    package = graph_contenders.TOOLKITS[toolkit].package
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed (pip install {package})")
    path, graph = small
    row = factor_graphs.measure(toolkit, path, 60, 6)
    assert "error" not in row, row
    assert row["instance"] == "small_1"
    assert row["cpu"] > 0
    expected = oracle(graph)
    with np.load(row["marginals"]) as found:
        for name, numbers in zip(found.files, expected.of_variables, strict=True):
            assert found[name] == pytest.approx(numbers, abs=1e-10)
    if toolkit != "pgmpy":
        assert row["log10_z"] == pytest.approx(expected.log_partition / math.log(10), abs=1e-10)


def test_what_fails_is_a_row(tmp_path: Path) -> None:
    broken = tmp_path / "broken_1.uai"
    broken.write_text("MARKOV 1")
    assert "FileFormatError" in factor_graphs.measure("crfkit", broken, 60, 6)["error"]


def test_the_table(tmp_path: Path) -> None:
    for name, numbers in (("a", [0.25, 0.75]), ("b", [0.25, 0.75 + 1e-6])):
        np.savez(tmp_path / f"{name}.npz", np.array(numbers))
    ours = {
        "instance": "X_1",
        "toolkit": "crfkit",
        "cpu": 0.5,
        "peak_mb": 80.0,
        "predicted_mb": 76.0,
        "width": 7,
    }
    ours |= {"log10_z": -3.0, "marginals": str(tmp_path / "a.npz")}
    other = ours | {"toolkit": "pyagrum", "cpu": 2.0, "marginals": str(tmp_path / "b.npz")}
    second = ours | {"instance": "X_2", "marginals": str(tmp_path / "a.npz")}
    exact = second | {"toolkit": "pyagrum", "cpu": 8.0}
    failed = {"instance": "X_3", "toolkit": "pyagrum", "error": "more than 90 s"}
    text = factor_graphs.table([ours, other, second, exact, failed])
    assert "crfkit: 2 of 2 finished" in text
    assert "pyagrum: 2 of 3 finished" in text
    assert (
        "pyagrum: 8.0 times the seconds of crfkit (geometric mean of 2; least 4.00); answers differ on: X_1"
        in text
    )
    assert "0.95 … 0.95 (2)" in text
    assert "pyagrum X_3: more than 90 s" in text
    assert "1e-06" in text


def test_instances_are_sorted_by_their_numbers() -> None:
    names = sorted((Path(f"{name}.uai") for name in ("b_2", "a_10", "a_9")), key=factor_graphs._natural)
    assert [name.stem for name in names] == ["a_9", "a_10", "b_2"]
