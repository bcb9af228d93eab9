"""The simulation of passes on a cluster, against formulas for cases that are easy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.cluster_simulation import Machines, Probe, Problem, fit_network, limit, simulate
from benchmarks.corpora import find_corpus

from benchmarks import cluster_simulation, distributed

FREE = Machines(1e-6, 0.0, 1e18, 0.0, 0.0, 0.0, memory_bandwidth=1e18)


def test_without_a_network_shards_are_all_that_counts() -> None:
    for n_workers, slowest in ((1, 12), (2, 6), (3, 4), (4, 3), (5, 3), (12, 1), (20, 1)):
        took = simulate(FREE, Problem(12_000, 10, 12), n_workers)
        assert took.total == pytest.approx(slowest * 1e-3, rel=1e-9)
        assert took.compute == pytest.approx(slowest * 1e-3, rel=1e-9)


def test_two_workers_take_messages_one_after_the_other() -> None:
    # Weights to the scheduler, to the first worker, to the second; the sum of the second to the first, to the scheduler,
    # to the client: six messages of a second each, and computing in between.
    machines = replace(FREE, latency=0.25, bandwidth=8 * 1001 / 0.75, seconds_per_position=1.0)
    assert simulate(machines, Problem(4, 1000, 2), 2).total == pytest.approx(6.0 + 2.0)


def test_a_link_sends_one_message_at_a_time() -> None:
    # Two, then the first worker sends to four others in turn; five sums: 4 + the tree of additions.
    machines = replace(FREE, bandwidth=8 * 1001.0)
    took = simulate(machines, Problem(0, 1000, 5), 5).total
    assert took == pytest.approx(2 + 4 + 1 + 2)  # the fifth shard's worker is last, and is added last


def test_tasks_pass_through_the_scheduler_one_by_one() -> None:
    # Two workers: a copy, two shards, an addition.
    assert simulate(replace(FREE, per_task=1.0), Problem(0, 10, 2), 2).total == pytest.approx(4.0)


def test_more_workers_than_the_network_allows() -> None:
    machines = replace(FREE, latency=1e-3, bandwidth=1e9, per_task=1e-3)
    small, large = Problem(10**6, 10**5, 1), Problem(10**9, 10**5, 1)
    assert limit(machines, small) < limit(machines, large)


def test_parameters_of_a_network_are_found_again() -> None:
    true = replace(FREE, latency=3e-3, bandwidth=4e8, per_task=7e-4)
    probes = [
        Probe(n, d, simulate(true, Problem(0, d, n), n).total) for n in (1, 2, 4) for d in (1000, 1_000_000)
    ]
    found = fit_network(probes, replace(FREE, latency=1e-3, bandwidth=1e9, per_task=1e-3))
    for p in probes:
        took = simulate(found, Problem(0, p.n_weights, p.n_workers), p.n_workers).total
        assert took == pytest.approx(p.seconds, rel=0.05)


@pytest.mark.slow
def test_quick_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if find_corpus("conll2000", "train.txt") is None:
        pytest.skip("needs CoNLL-2000")
    distributed.main(["--quick", "--out", str(tmp_path)])
    cluster_simulation.main(
        ["--quick", "--measured", str(tmp_path / "distributed.json"), "--out", str(tmp_path)]
    )
    assert "| 1,000 |" in capsys.readouterr().out
