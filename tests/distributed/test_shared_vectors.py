"""Vectors in memory that a client shares with workers of its machine."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit.distributed.cluster import Cluster
from crfkit.distributed.remote_loss import RemoteLoss
from crfkit.distributed.shared_vectors import MOST_OPEN, OpenVectors, SharedVectors, can_open
from tests.distributed.slow_shards import Source

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd_create of Linux")

OTHER_PROCESS = """
from crfkit.distributed.shared_vectors import OpenVectors, Place, can_open
place = {place!r}
vector = OpenVectors().open(place)
assert vector.tolist() == [1.0, 2.0, 3.0]
vector[:] = 7.0
assert not can_open(place._replace(token=bytes(16)))
assert not can_open(place._replace(descriptor=0))
assert not can_open(place._replace(process=2**30))
"""


def test_another_process_sees_a_vector() -> None:
    shared = SharedVectors(3)
    vector = shared["w"]
    assert shared["w"] is vector
    vector.numbers[:] = [1.0, 2.0, 3.0]
    subprocess.run([sys.executable, "-c", OTHER_PROCESS.format(place=vector.place)], check=True)
    assert vector.numbers.tolist() == [7.0] * 3
    shared.discard()
    assert shared["w"].place.token != vector.place.token
    assert can_open(vector.place)  # as long as somebody has it
    place = vector.place
    del vector
    assert not can_open(place)


def test_systems_without_such_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)
    monkeypatch.delattr(os, "memfd_create")
    assert SharedVectors(3).try_out() is None
    gc.collect()
    assert not ignored


def test_a_reader_has_few_vectors_open() -> None:
    shared, reader = SharedVectors(2), OpenVectors()
    n_before = len(Path("/proc/self/maps").read_text().splitlines())
    for i in range(5 * MOST_OPEN):
        shared[i].numbers[:] = i
        assert reader.open(shared[i].place).tolist() == [i, i]
        shared.discard()
    assert len(Path("/proc/self/maps").read_text().splitlines()) < n_before + 3 * MOST_OPEN


def ask(loss: RemoteLoss, w: Any, v: Any) -> list[bytes]:
    value, gradient = loss.evaluate(w)
    found = [np.float64(value).tobytes(), gradient.tobytes()]
    found += [loss.hessian_vector(w, v).tobytes(), loss.hessian_vector(w, -v).tobytes()]
    return [*found, loss.evaluate(v)[1].tobytes()]


def test_the_bits_are_those_of_messages(client: Any) -> None:
    source = Source(n=6)
    w, v = np.random.default_rng(3).standard_normal((2, source.n_weights))
    cluster = Cluster(client)
    plain = RemoteLoss(cluster, source, share_memory=False)
    expected = ask(plain, w, v)
    assert expected[1] == source.expect(w)[1].tobytes()
    assert plain._nearby is not None
    assert not plain._nearby.workers
    shared = RemoteLoss(cluster, source)
    assert ask(shared, w, v) == expected
    assert shared._nearby is not None
    assert shared._nearby.workers == set(cluster.workers())
    # One of the workers is elsewhere.
    shared._nearby = shared._nearby._replace(workers=frozenset(list(cluster.workers())[:1]))
    assert ask(shared, -w, v) == ask(plain, -w, v)
    assert shared.refine()
    assert ask(shared, -v, w) == ask(plain, -v, w)
