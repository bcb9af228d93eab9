"""The simulation of passes on a cluster, against formulas for cases that are easy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.cluster_calibration import Machines, message_line, optimizer_seconds
from benchmarks.cluster_simulation import Problem, alone, limit, share_cores, simulate
from benchmarks.corpora import find_corpus

from benchmarks import cluster_simulation

FREE = Machines(1e-6, 0.0, 0.0, 1e18, 0.0, 0.0, 0.0)


def test_without_a_network_shards_are_all_that_counts() -> None:
    for n_workers, slowest in ((1, 12), (2, 6), (3, 4), (4, 3), (5, 3), (12, 1), (20, 1)):
        took = simulate(FREE, Problem(12_000, 10, 12), n_workers)
        assert took.total == pytest.approx(slowest * 1e-3, rel=1e-9)
        assert took.compute == pytest.approx(slowest * 1e-3, rel=1e-9)
    assert alone(FREE, Problem(12_000, 10, 12)) == pytest.approx(12e-3)


def test_the_last_shard_is_smaller() -> None:
    problem = Problem(11_500, 10, 12, shard_size=1000)
    assert problem.costs == [1000.0] * 11 + [500.0]
    for n_workers, slowest in ((1, 11.5), (2, 6), (4, 3), (12, 1)):
        assert simulate(FREE, problem, n_workers).total == pytest.approx(slowest * 1e-3, rel=1e-9)


def test_work_for_each_weight() -> None:
    machines = replace(FREE, per_shard=1e-3, optimizer=2e-3, optimizer_alone=4e-3, addition=1e-4)
    problem = Problem(12_000, 10, 12)
    assert simulate(machines, problem, 2).total == pytest.approx(6e-3 + 6 * 1e-2 + 2e-2 + 1e-3)
    assert alone(machines, problem) == pytest.approx(12e-3 + 12 * 1e-2 + 4e-2)


def test_two_workers_are_asked_by_the_client() -> None:
    # A message takes ¾ seconds of both machines and ¼ of the network: weights arrive at 1 and 1¾, sums are ready 2 later,
    # and the client receives the second one when it has received the first.
    machines = replace(FREE, latency=0.25, bandwidth=8 * 1000 / 0.75, seconds_per_position=1.0)
    assert simulate(machines, Problem(4, 1000, 2), 2).total == pytest.approx(1.75 + 2 + 1)


def test_workers_of_one_machine_share_vectors() -> None:
    # The client copies the weights until 0.01, and needs 0.1 for each message, which takes 0.25: they arrive at 0.26 and
    # 0.36. The client has the first sum at 0.26 + 0.25, and needs from 0.36 until 0.46 for the second.
    near = replace(FREE, cores=2, handling=0.1, near_latency=0.25, near_copy=1e-3, latency=9.0, bandwidth=1.0)
    assert simulate(near, Problem(0, 10, 2), 2).total == pytest.approx(0.46 + 0.15)


def test_eight_workers_ask_each_other() -> None:
    # The client sends to four in turn (until 4), each of these to another one; eight sums come back the same way: the
    # last worker has the weights at 5, its sum is with the fourth one at 6, and the client has received the others by then.
    machines = replace(FREE, bandwidth=8 * 1000.0, seconds_per_position=0.0)
    assert simulate(machines, Problem(8, 1000, 8), 8).total == pytest.approx(5 + 1 + 1)


def test_processes_share_cores() -> None:
    begins = {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0}
    work = dict.fromkeys(begins, 3.0)

    def share(begins: dict[str, float], work: dict[str, float], cores: int | None, **others: float) -> Any:
        return share_cores(begins, work, replace(FREE, cores=cores, **others))

    assert share(begins, work, None, contention=2.0) == dict.fromkeys(begins, 3.0)
    assert share(begins, work, 4) == dict.fromkeys(begins, 3.0)
    assert share(begins, work, 2) == dict.fromkeys(begins, 6.0)
    assert share(begins, work, 4, contention=1.5) == dict.fromkeys(begins, 4.5)
    assert share(begins, work, 2, contention=1.5, crowding=1.25) == dict.fromkeys(begins, 7.5)
    # What runs in the background, here 0.2 + 4 · 0.1 of the time of two cores, leaves 0.7 of it.
    idle = {"idle_client": 0.2, "idle_worker": 0.1}
    assert share(begins, work, 2, **idle) == pytest.approx(dict.fromkeys(begins, 6.0 / 0.7))
    assert share(begins, work, 8, **idle) == dict.fromkeys(begins, 3.0)
    # One core: a alone until 1, then two at half the speed until both have 2 left … b ends last, alone.
    assert share({"a": 0.0, "b": 1.0}, {"a": 3.0, "b": 3.0}, 1) == pytest.approx({"a": 5.0, "b": 6.0})
    found = share({"a": 0.0, "b": 9.0}, {"a": 3.0, "b": 1.0}, 1, contention=2.0, crowding=2.0)
    assert found == pytest.approx({"a": 3.0, "b": 10.0})


def test_more_workers_than_the_network_allows() -> None:
    machines = replace(FREE, latency=1e-3, bandwidth=1e9)
    small, large = Problem(10**6, 10**5, 1), Problem(10**9, 10**5, 1)
    assert limit(machines, small) < limit(machines, large)


def test_messages_are_a_line() -> None:
    seconds = [2 * (3e-3 + 8 * n / 4e8) for n in (1000, 100_000, 1_000_000)]
    assert message_line((1000, 100_000, 1_000_000), seconds) == pytest.approx((3e-3, 4e8))


def test_the_optimizer_is_measured_without_the_function() -> None:
    ticks = iter(range(10**6))
    # Each look at the clock is a tick: two for each of n evaluations, which are left out, and two around all of them.
    seconds = optimizer_seconds(10, 3, 1, lambda: float(next(ticks)))
    n = round(1 / (seconds * 10 - 1)) if seconds * 10 > 1 else 0
    assert n >= 3
    assert seconds * 10 == pytest.approx((n + 1) / n)


@pytest.mark.slow
def test_quick_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if find_corpus("conll2000", "train.txt") is None:
        pytest.skip("needs CoNLL-2000")
    cluster_simulation.main(["--quick", "--out", str(tmp_path)])
    text = capsys.readouterr().out
    assert "| 2 | " in text
    assert "1,000 workers" in text
    files = [
        "--measured",
        str(tmp_path / "distributed.json"),
        "--machines",
        str(tmp_path / "cluster_machines.json"),
    ]
    cluster_simulation.main([*files, "--out", str(tmp_path)])
    assert capsys.readouterr().out == text
