"""Training on a cluster has the bits of training on one machine."""

from __future__ import annotations

import logging
import pickle
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import crfkit
from crfkit import CRF, LBFGS, TRON, Chain, Checkpoint, Patterns, Segments
from crfkit.distributed import DistributedCRF, UnequalProcessors, fit
from crfkit.distributed.cluster import Cluster
from crfkit.distributed.worker import Machine
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.optimizers import SGD, Newton
from tests.distributed.data import random_data

X, y = random_data()


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": LBFGS(max_iterations=8)},
        {"optimizer": LBFGS(max_iterations=8), "l1": 0.3},
        {"optimizer": TRON(max_iterations=3)},
        {"optimizer": Newton(max_iterations=2)},
    ],
    ids=["lbfgs", "owl-qn", "tron", "newton"],
)
def test_optimizers_have_the_bits_of_one_process(client: Any, settings: dict[str, Any]) -> None:
    alone = CRF(**settings).fit(X, y, shard_size=50)
    model = CRF[str](**settings)
    together = fit(client, model, (X, y), shard_size=50)
    assert together is model
    assert together.weights_.tobytes() == alone.weights_.tobytes()
    assert [r.objective for r in together.history_] == [r.objective for r in alone.history_]
    assert together.predict(X) == alone.predict(X)


@pytest.mark.parametrize("case", ["from worker to worker", "by way of the scheduler"])
@pytest.mark.parametrize(
    "optimizer", [LBFGS(max_iterations=6), TRON(max_iterations=3)], ids=["lbfgs", "tron"]
)
def test_messages_have_the_bits_of_one_process(
    client: Any, monkeypatch: pytest.MonkeyPatch, case: str, optimizer: Any
) -> None:
    if case == "from worker to worker":
        monkeypatch.setattr("crfkit.distributed.remote_loss.FAN_OUT", 1)
    else:
        monkeypatch.setattr(Cluster, "_reach", lambda self, workers: None)
    alone = CRF(optimizer=optimizer).fit(X, y, shard_size=50)
    together = fit(client, CRF(optimizer=optimizer), (X, y), shard_size=50)
    assert together.weights_.tobytes() == alone.weights_.tobytes()


@pytest.mark.parametrize(
    "structure",
    [Chain(bigrams="observed"), Patterns(["B-X I-X O"]), Segments()],
    ids=["bigrams", "patterns", "segments"],
)
def test_structures_have_the_bits_of_one_process(client: Any, structure: Any) -> None:
    labels = y if not isinstance(structure, Segments) else [["O" if t == "I-X" else t for t in s] for s in y]
    settings: dict[str, Any] = {"structure": structure, "optimizer": LBFGS(max_iterations=3)}
    alone = CRF(**settings).fit(X, labels, shard_size=120)
    together = fit(client, CRF(**settings), (X, labels), shard_size=120)
    assert together.weights_.tobytes() == alone.weights_.tobytes()


def test_one_shard_is_the_default_for_little_data(client: Any) -> None:
    alone = CRF(optimizer=LBFGS(max_iterations=4)).fit(X, y)
    together = fit(client, CRF(optimizer=LBFGS(max_iterations=4)), (X, y))
    assert together.weights_.tobytes() == alone.weights_.tobytes()


def test_arguments_of_fit(client: Any) -> None:
    seen: list[int] = []
    weights = np.linspace(0.5, 2.0, len(X))
    options: dict[str, Any] = {
        "dev": random_data(20, seed=1),
        "patience": 2,
        "sample_weight": weights,
        "shard_size": 64,
    }
    alone = CRF(optimizer=LBFGS(max_iterations=6)).fit(X, y, **options)
    model = CRF[str](optimizer=LBFGS(max_iterations=6))
    fit(client, model, (X, y), callback=lambda step: seen.append(step.iteration), **options)
    assert model.weights_.tobytes() == alone.weights_.tobytes()
    assert [r.dev_score for r in model.history_] == [r.dev_score for r in alone.history_]
    assert seen == list(range(1, len(model.history_)))


def test_checkpoints_go_from_one_machine_to_a_cluster_and_back(client: Any, tmp_path: Path) -> None:
    def settings(n: int) -> dict[str, Any]:
        return {"optimizer": LBFGS(max_iterations=n)}

    whole = CRF(**settings(9)).fit(X, y, shard_size=50)
    keep = Checkpoint(tmp_path / "run", every=3, resume=True)
    fit(client, CRF(**settings(3)), (X, y), shard_size=50, checkpoint=keep)
    CRF(**settings(6)).fit(X, y, shard_size=50, checkpoint=keep)
    model = fit(client, CRF(**settings(9)), (X, y), shard_size=50, checkpoint=keep)
    assert model.weights_.tobytes() == whole.weights_.tobytes()


def test_the_estimator_has_the_client_as_an_argument(client: Any, tmp_path: Path) -> None:
    crf = DistributedCRF(client=client, optimizer=LBFGS(max_iterations=4), l2=0.5)
    crf.fit(X, y, shard_size=50)
    alone = CRF(optimizer=LBFGS(max_iterations=4), l2=0.5).fit(X, y, shard_size=50)
    assert crf.weights_.tobytes() == alone.weights_.tobytes()
    assert crf.get_params()["client"] is client
    crf.save(tmp_path / "model.crf")
    assert (tmp_path / "model.crf").read_bytes() != b""
    assert pickle.loads(pickle.dumps(crf)).predict(X) == alone.predict(X)


def test_workers_hold_nothing_afterwards(client: Any) -> None:
    fit(client, CRF(optimizer=LBFGS(max_iterations=2)), (X, y), shard_size=50)
    for _ in range(50):
        held = client.run(lambda dask_worker: len(dask_worker.data))
        if not any(held.values()):
            return
        time.sleep(0.1)
    raise AssertionError(held)


def test_other_optimizers_are_refused(client: Any) -> None:
    for optimizer in (SGD(), "averaged_perceptron"):
        with pytest.raises(UnsupportedError, match="LBFGS, Newton, TRON"):
            fit(client, CRF(optimizer=optimizer), (X, y))


def test_arguments_are_checked(client: Any) -> None:
    with pytest.raises(ArgumentError, match=r"expected a distributed\.Client"):
        fit("tcp://nowhere:1", CRF(), (X, y))
    with pytest.raises(ArgumentError, match="expected a CRF"):
        fit(client, "model", (X, y))  # type: ignore[type-var]


def test_messages_of_workers_reach_the_logger(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="crfkit"):
        fit(client, CRF(optimizer=LBFGS(max_iterations=2)), (X, y), shard_size=50)
        for _ in range(50):
            if "loaded shard 1 of" in caplog.text:
                break
            time.sleep(0.1)
    assert re.search(r"tcp://\S+: loaded shard 1 of \d+: \d+ sequences", caplog.text)


def test_processors_of_different_kinds_are_a_warning(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = iter(["AVX2", "AVX-512"])

    def describe(self: Cluster, function: Any, workers: Any) -> dict[str, Machine]:
        return {worker: Machine(crfkit.__version__, next(kinds)) for worker in workers}

    monkeypatch.setattr(Cluster, "run_on_workers", describe)
    with pytest.warns(UnequalProcessors, match="AVX-512, AVX2"):
        Cluster(client).workers()


def test_clones_have_the_same_client(client: Any) -> None:
    copied = clone(DistributedCRF(client=client, timeout=5.0, l2=0.3))
    assert (copied.client, copied.timeout, copied.l2) == (client, 5.0, 0.3)
