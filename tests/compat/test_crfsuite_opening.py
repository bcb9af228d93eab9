"""Model files of CRFsuite that are read bit by bit: the same answers as when they are read at once."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain
from crfkit.compat import crfsuite_bytes, pycrfsuite, write_crfsuite
from crfkit.compat.crfsuite_file import CrfsuiteModel
from crfkit.compat.crfsuite_opening import OpenedModel
from crfkit.compat.pycrfsuite.items import read_items
from crfkit.errors import FileFormatError
from tests.compat.test_crfsuite_file import random_corpus
from tests.oracles.crfsuite_oracle import Model

X, Y = random_corpus(2, 60, 80)


@pytest.fixture(scope="module")
def crf() -> CRF:
    return CRF(Chain(start=False, end=False), optimizer=LBFGS(max_iterations=15)).fit(X, Y)


def unseen_corpus(seed: int) -> list[Any]:
    """Sequences with known and unknown attributes, empty items, repeated attributes, and none at all."""
    r = random.Random(seed)
    sequences, _ = random_corpus(seed, 20, 160)
    return [*sequences, [], [[]], [["w=1", "w=1"], [], {"w=2": 0.25, "nothing": 3.0}], r.choice(X) * 30]


@pytest.mark.parametrize("seed", range(3))
def test_the_part_that_a_sequence_needs_gives_the_answers_of_the_whole(crf: CRF, seed: int) -> None:
    opened, whole = (OpenedModel.from_bytes(crfsuite_bytes(crf)) for _ in range(2))
    opened._budget, whole._budget = 10**9, -1
    for x in unseen_corpus(seed):
        positions = read_items(x)
        potentials, design, best = opened.tag(positions)
        other, expected, labels = whole.tag(positions)
        assert best == labels
        np.testing.assert_allclose(
            potentials.score(design, 1).marginals(1),
            other.score(expected, 1).marginals(1),
            atol=1e-12,
            rtol=0,
            strict=True,
        )
        np.testing.assert_allclose(
            potentials.score(design, 1).log_partitions(None, None, None, 1),
            other.score(expected, 1).log_partitions(None, None, None, 1),
            rtol=1e-12,
        )
        again, same = opened.ask(positions)
        assert [opened.labels[i] for i in again.score(same, 1).decode(1)] == best
    assert "whole" not in vars(opened)
    assert "whole" in vars(whole)


def test_the_part_agrees_with_a_plain_reader(crf: CRF) -> None:
    data = crfsuite_bytes(crf)
    plain, opened = Model(data), OpenedModel.from_bytes(data)
    for x in ([["w=1", "w=ø2"], {"w=3": 2.5}], [["w=7", "nothing"], [], ["w=7"]]):
        pairs = [
            list(position.items()) if isinstance(position, dict) else [(n, 1.0) for n in position]
            for position in x
        ]
        expected = plain.distribution(pairs)
        potentials, design, best = opened.tag(read_items(x))
        assert tuple(best) == max(expected, key=expected.__getitem__)
        for i, row in enumerate(potentials.score(design, 1).marginals(1)):
            for label, found in zip(opened.labels, row, strict=True):
                total = sum(p for y, p in expected.items() if y[i] == label)
                assert found == pytest.approx(total, abs=1e-12)


def test_the_whole_model_is_read_once_it_pays(crf: CRF) -> None:
    tagger = pycrfsuite.Tagger()
    tagger.open_inmemory(crfsuite_bytes(crf))
    opened = tagger._model
    assert opened is not None
    expected = crf.predict(X * 10)
    was_read = []
    for x, labels in zip(X * 10, expected, strict=True):
        assert tagger.tag(x) == labels
        was_read.append("whole" in vars(opened))
        assert tagger.tag() == labels
        assert sum(tagger.marginal(label, 0) for label in tagger.labels()) == pytest.approx(1.0)
    assert not was_read[0]
    assert was_read[-1]
    assert was_read == sorted(was_read)


def test_an_instance_is_answered_by_the_model_that_it_was_set_for(crf: CRF) -> None:
    tagger = pycrfsuite.Tagger()
    tagger.open_inmemory(crfsuite_bytes(crf))
    tagger.set(X[0])
    marginals = [tagger.marginal(label, 0) for label in tagger.labels()]
    assert tagger._model is not None
    tagger._model._budget = -1
    assert tagger.tag() == crf.predict(X[:1])[0]
    tagger.set(X[0])
    assert [tagger.marginal(label, 0) for label in tagger.labels()] == pytest.approx(marginals, abs=1e-12)


def test_damage_is_reported_where_it_is_met(crf: CRF) -> None:
    data = bytearray(crfsuite_bytes(crf))
    model = Model(bytes(data))
    attribute = model.attributes.find("w=3")
    assert attribute is not None
    features = struct.unpack_from("<I", data, 28)[0]
    struct.pack_into("<d", data, features + 12 + 20 * model.attribute_lists[attribute][0] + 12, float("nan"))
    opened = OpenedModel.from_bytes(bytes(data), "m")
    assert opened.tag(read_items([["w=1"]]))[2] == crf.predict([[["w=1"]]])[0]
    for ask in (
        lambda: opened.tag(read_items([["w=3"]])),
        lambda: opened.ask(read_items([["w=3"]])),
        lambda: opened.whole,
    ):
        with pytest.raises(
            FileFormatError, match=f"^m: not a model of CRFsuite: .*attribute {attribute} .*not a number"
        ):
            ask()
    with pytest.raises(FileFormatError, match="not a number"):
        CrfsuiteModel.from_bytes(bytes(data))


def test_a_full_hash_table_ends_a_search(crf: CRF) -> None:
    data = bytearray(crfsuite_bytes(crf))
    table = struct.unpack_from("<I", data, 36)[0]
    first = struct.unpack_from("<I", data, table + 20)[0]  # the index, as a hash table without a free place
    for i in range(256):
        struct.pack_into("<II", data, table + 24 + 8 * i, first, 4)
    assert OpenedModel.from_bytes(bytes(data)).tag(read_items([["w=1"]]))[2] == crf.predict([[[]]])[0]
    struct.pack_into("<II", data, table + 24, 2**32 - 8, 1)
    struct.pack_into("<" + "II" * 256, data, table + 24, *(2**32 - 8, 1) * 256)
    with pytest.raises(FileFormatError, match="attributes has a hash table outside of it"):
        OpenedModel.from_bytes(bytes(data)).tag(read_items([["w=1"]]))


def test_files_of_every_kind_are_opened(crf: CRF, tmp_path: Path) -> None:
    path = tmp_path / "größe.crfsuite"
    write_crfsuite(crf, path)
    for name in (path, str(path), os.fsencode(path)):
        assert OpenedModel.open(name).labels == crf.classes_
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    assert OpenedModel.open(pipe).labels == crf.classes_
    writer.join()
    tagger = pycrfsuite.Tagger()
    with pytest.raises(FileNotFoundError) as missing:
        tagger.open(str(tmp_path / "none"))
    assert missing.value.filename == str(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        tagger.open(tmp_path)
    (tmp_path / "text").write_text("no model")
    with pytest.raises(FileFormatError, match="text: not a model of CRFsuite: it does not begin with lCRF"):
        tagger.open(tmp_path / "text")


def test_a_pipe_that_nobody_writes_to_can_be_interrupted(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[int] = []

    def wake(*_: Any) -> None:
        heard.append(1)
        if len(heard) == 2:  # the first signal does not end the wait
            raise InterruptedError("enough")

    before = signal.signal(signal.SIGALRM, wake)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(InterruptedError, match="enough"):
            pycrfsuite.Tagger().open(pipe)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(heard) == 2


def test_a_file_that_is_replaced_or_cut_short_does_no_harm(crf: CRF, tmp_path: Path) -> None:
    path = tmp_path / "m"
    write_crfsuite(crf, path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    os.truncate(path, 0)
    assert [tagger.tag(x) for x in X] == crf.predict(X)


ONE_SEQUENCE = """
import sys
from crfkit.compat import pycrfsuite
tagger = pycrfsuite.Tagger()
tagger.open(sys.argv[1])
print(*tagger.tag([["w=1"], {"w=2": 2.0}]))
print(*sorted({name.partition(".")[0] for name in sys.modules} & {"numpy", "scipy"}))
print(*sorted({name for name in sys.modules if name.startswith("crfkit.") and name.count(".") == 1}))
"""


def test_a_program_that_tags_one_sequence_imports_little(crf: CRF, tmp_path: Path) -> None:
    """Such programs are started once per call: NumPy and what trains models would take most of their time."""
    path = tmp_path / "m"
    write_crfsuite(crf, path)
    command = [sys.executable, "-c", ONE_SEQUENCE, str(path)]
    labels, heavy, own = subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert labels.split() == crf.predict([[["w=1"], {"w=2": 2.0}]])[0]
    assert heavy == ""
    assert own.split() == ["crfkit._core", "crfkit.compat", "crfkit.data", "crfkit.errors", "crfkit.lazy"]


def test_names_that_are_imported_when_they_are_used() -> None:
    from crfkit import compat
    from crfkit.compat.pycrfsuite import _pycrfsuite

    for module in (compat, pycrfsuite, _pycrfsuite):
        for name in module.__all__:
            assert getattr(module, name) is getattr(module, name)
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
            _ = module.nothing
    assert pycrfsuite.Trainer is _pycrfsuite.Trainer
