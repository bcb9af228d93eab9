"""`crfkit infer`."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from crfkit import FactorGraph
from crfkit.cli.infer import METHODS, TASKS
from crfkit.data import UAIResult, read_uai_result, write_uai
from tests.cli.commands import complaint, run
from tests.oracles.factor_graphs import Graph, GraphOracle, draw_graph

GRAPH: Graph = draw_graph(np.random.default_rng(5), "grid")
OBSERVED = {0: 1, 4: 0}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    counts, factors = GRAPH
    graph = FactorGraph.from_arrays(counts, [scope for scope, _ in factors], [table for _, table in factors])
    write_uai(graph, "grid.uai")
    Path("grid.evid").write_text("2 0 1 4 0\n")


def oracle(observed: dict[int, int] | None = None) -> GraphOracle:
    masks = [np.ones(count, dtype=bool) for count in GRAPH[0]]
    for v, value in (observed or {}).items():
        masks[v][:] = np.arange(len(masks[v])) == value
    return GraphOracle(GRAPH, masks)


def result(text: str) -> UAIResult:
    return read_uai_result(io.BytesIO(text.encode()))


@pytest.mark.parametrize("observed", [None, OBSERVED])
def test_exact_answers(observed: dict[int, int] | None) -> None:
    given = ["--evidence", "grid.evid"] if observed else []
    expected = oracle(observed)
    answer = run("infer", "grid.uai", "--task", "pr", *given)
    assert result(answer.stdout).log_partition == pytest.approx(expected.log_partition, abs=1e-10)
    assert answer.stderr == ""
    marginals = result(run("infer", "grid.uai", *given).stdout).marginals
    assert marginals is not None
    for found, numbers in zip(marginals, expected.of_variables, strict=True):
        assert found == pytest.approx(numbers, abs=1e-10)
    values = result(run("infer", "grid.uai", "--task", "map", *given).stdout).values
    assert values is not None
    best = max(zip(expected.outputs, expected.probabilities, strict=True), key=lambda pair: pair[1])[0]
    assert values.tolist() == list(best)


def test_standard_input_and_output_files() -> None:
    text = Path("grid.uai").read_bytes()
    answer = run("infer", "-", "--task", "pr", "-o", "grid.PR", text=text)
    assert answer.stdout == ""
    assert Path("grid.PR").read_text() == run("infer", "grid.uai", "--task", "pr").stdout
    assert "would replace the file" in complaint("infer", "grid.uai", "-o", "grid.uai")


def test_json() -> None:
    found = json.loads(run("infer", "grid.uai", "--task", "pr", "--json").stdout)
    assert found["method"] == "exact"
    assert found["log_partition"] == pytest.approx(oracle().log_partition)
    assert found["log10_z"] == pytest.approx(oracle().log_partition / math.log(10))
    found = json.loads(run("infer", "grid.uai", "--json").stdout)
    assert found["marginals"]["3"] == pytest.approx(oracle().of_variables[3].tolist())
    found = json.loads(run("infer", "grid.uai", "--task", "map", "--json").stdout)
    assert list(found["values"]) == [str(v) for v in range(9)]
    assert found["score"] == pytest.approx(max(oracle().scores))


def test_approximate_methods_say_how_they_ended() -> None:
    answer = run("infer", "grid.uai", "--method", "bp")
    assert answer.stderr == ""
    marginals = result(answer.stdout).marginals
    assert marginals is not None
    assert marginals[0] == pytest.approx(oracle().of_variables[0], abs=0.1)
    answer = run("infer", "grid.uai", "--method", "bp", "--set", "max_iterations=1", "--quiet")
    assert answer.stderr.startswith("crfkit: bp: not converged")
    assert result(answer.stdout).marginals is not None
    found = json.loads(run("infer", "grid.uai", "--task", "pr", "--method", "trw", "--json").stdout)
    assert found["bound"] == "upper"
    assert found["log_partition"] >= oracle().log_partition


def test_a_lower_bound_samples_and_a_proof() -> None:
    found = json.loads(run("infer", "grid.uai", "--task", "pr", "--method", "mean-field", "--json").stdout)
    assert found["bound"] == "lower"
    assert found["log_partition"] <= oracle().log_partition
    seeded = ("--method", "gibbs", "--set", "random_state=1")
    answer = run("infer", "grid.uai", *seeded)
    assert answer.stdout == run("infer", "grid.uai", *seeded).stdout
    marginals = result(answer.stdout).marginals
    assert marginals is not None
    assert marginals[0] == pytest.approx(oracle().of_variables[0], abs=0.05)
    found = json.loads(run("infer", "grid.uai", "--task", "map", "--method", "dual", "--json").stdout)
    assert found["score"] <= max(oracle().scores) + 1e-9
    assert found["bound"] >= max(oracle().scores) - 1e-9
    Path("xor.uai").write_text(
        "MARKOV 3 2 2 2 3 2 0 1 2 1 2 2 0 2 4 1 2 2 1 4 1 2 2 1 4 1 2 2 1"
    )  # a frustrated cycle
    loose = ("--set", "cluster_size=1")  # the linear relaxation, which is not tight on it
    answer = run("infer", "xor.uai", "--task", "map", "--method", "dual", *loose)
    assert "none is above" in answer.stderr
    assert not run("infer", "xor.uai", "--task", "map", "--method", "dual").stderr


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("task", TASKS)
def test_every_method_answers_or_says_that_it_cannot(method: str, task: str) -> None:
    if METHODS[method].function(task) is None:
        assert f"--method {method} has no --task {task}" in complaint(
            "infer", "grid.uai", "--method", method, "--task", task
        )
    else:
        header = {"mar": "MAR", "pr": "PR", "map": "MPE"}[task]
        assert run("infer", "grid.uai", "--method", method, "--task", task).stdout.startswith(header)


def test_too_large_for_the_limit() -> None:
    n = 40
    pairs = [(i, j) for i in range(n) for j in range(i)]
    write_uai(FactorGraph.from_arrays([2] * n, pairs, [np.zeros((2, 2))] * len(pairs)), "clique.uai")
    said = complaint("infer", "clique.uai", "--memory-limit", "1G")
    assert said.startswith("crfkit: clique.uai: Exact inference: width 39")
    assert "expected at most 1 GB" in said
    assert said.endswith("An approximate answer: --method bp")


def test_impossible_evidence() -> None:
    Path("m.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 1 0 0 1")
    Path("m.evid").write_text("2 0 0 1 1")
    assert (
        result(run("infer", "m.uai", "--evidence", "m.evid", "--task", "pr").stdout).log_partition
        == -math.inf
    )
    for task in ("mar", "map"):
        said = complaint("infer", "m.uai", "--evidence", "m.evid", "--task", task)
        assert "m.uai: Factor graph: no assignment is possible" in said


def test_bad_input() -> None:
    assert "nosuch.uai: cannot be read" in complaint("infer", "nosuch.uai")
    assert "nosuch.evid: cannot be read" in complaint("infer", "grid.uai", "--evidence", "nosuch.evid")
    Path("bad.evid").write_text("1 0 7")
    assert "bad.evid: variable 0 has the value 7, expected 0 … 1" in complaint(
        "infer", "grid.uai", "--evidence", "bad.evid"
    )
    Path("bad.uai").write_text("MARKOV 1 2 1 1 0 2 1 -1")
    assert "bad.uai:1: factor 0 has '-1' in its table" in complaint("infer", "bad.uai")
    assert "expected a positive number of bytes" in complaint("infer", "grid.uai", "--memory-limit", "much")
    assert "--memory-limit is for --method exact" in complaint(
        "infer", "grid.uai", "--method", "bp", "--memory-limit", "1G"
    )
    assert "no setting dampin, expected one of" in complaint(
        "infer", "grid.uai", "--method", "bp", "--set", "dampin=1"
    )
    assert "--method gibbs has no --task pr, expected one of exact, bp, trw, mean-field" in complaint(
        "infer", "grid.uai", "--method", "gibbs", "--task", "pr"
    )
    assert "damping is 2, expected" in complaint("infer", "grid.uai", "--method", "bp", "--set", "damping=2")


@pytest.mark.parametrize("text", ["", "G", "-1", "1X", "1 2", "inf"])
def test_wrong_sizes(text: str) -> None:
    assert "memory_limit is" in complaint("infer", "grid.uai", f"--memory-limit={text}")
