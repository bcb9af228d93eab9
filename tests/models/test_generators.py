"""`fit` on generators: odd sequences, generators that fail, signals; errors have the numbers of the sequences."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS
from crfkit.errors import ArgumentError, EmptyDataError, FeatureError, InputError, LabelError, ShapeError
from crfkit.models import TrainingInterrupted
from crfkit.optimizers import OPTIMIZERS

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UninformativeData"
)
SHORT = LBFGS(max_iterations=3)
X = [{"w": "a"}, {"w": "b"}]
PAIR: tuple[Any, Any] = (X, ["A", "B"])
ODD: dict[str, list[tuple[Any, Any]]] = {
    "one sequence": [PAIR],
    "empty sequences": [([], []), PAIR, ([], []), ([], [])],
    "empty ones first": [*[([], [])] * 3, PAIR, PAIR],
    "a sequence longer than a shard": [PAIR, (X * 9, ["A", "B"] * 9), PAIR],
    "positions without features": [([{}, {}], ["A", "B"]), PAIR, PAIR],
    "no features at all": [([[], []], ["A", "B"])] * 3,
    "labels that the first shards do not have": [PAIR, PAIR, PAIR, ([{"w": "c"}], ["Z"])],
    "labels that are unknown at first": [*[([{"w": "c"}], [None])] * 3, PAIR],
    "sets of labels that the first shards do not have": [PAIR, PAIR, (X, [{"Y", "Z"}, "B"])],
    "labels of two types": [PAIR, PAIR, ([{"w": "c"}], [3])],
    "sequences and labels that are iterators": [PAIR, PAIR],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Temporary files are made here; none is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ODD)
def test_odd_sequences_are_learned_from_as_in_memory(folder: Path, name: str) -> None:
    pairs = ODD[name]
    known = CRF(optimizer=SHORT).fit([x for x, _ in pairs], [y for _, y in pairs], shard_size=4)
    given = ((iter(x), iter(y)) if "iterators" in name else (x, y) for x, y in pairs)
    model = CRF(optimizer=SHORT).fit(given, shard_size=4)
    assert model.classes_ == known.classes_
    assert model.weights_.tobytes() == known.weights_.tobytes()
    assert next(given, None) is None


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_generator_is_read_once_by_all_optimizers(folder: Path, name: str) -> None:
    n_read = 0

    def pairs() -> Iterator[tuple[Any, Any]]:
        nonlocal n_read
        for _ in range(9):
            n_read += 1
            yield PAIR

    model = CRF(optimizer=OPTIMIZERS[name](max_iterations=3)).fit(pairs(), shard_size=4)
    assert (model.n_iter_, n_read) == (3, 9)


BAD: dict[str, tuple[Any, type[InputError], str]] = {
    "other lengths": ((X, ["A"]), ShapeError, r"^sequence 5: 2 positions but 1 label"),
    "labels as a string": (([{}], "A"), LabelError, r"^y of sequence 5 is 'A'"),
    "a number": (([3.5], ["A"]), FeatureError, r"^sequence 5, position 0: "),
    "no sequence": ((None, ["A"]), FeatureError, r"^sequence 5 is None"),
    "a label that is none": (([{}], [["A"]]), LabelError, r"^sequence 5, position 0: the label \['A'\]"),
    "no labels": ((X, None), LabelError, r"^item 5: the labels are None"),
    "three things": ((X, ["A", "B"], 1.0), ArgumentError, r"^item 5 is of type tuple of length 3"),
    "a string": ("ab", ArgumentError, r"^item 5 is of type str"),
    "nothing": (None, ArgumentError, r"^item 5 is of type NoneType, expected a pair"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_have_the_number_of_the_sequence(folder: Path, name: str) -> None:
    """Not its number in its shard."""
    pair, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        CRF(optimizer=SHORT).fit(iter([*[PAIR] * 5, pair]), shard_size=4)


def test_shards_that_do_not_fit_together(folder: Path) -> None:
    rows = [*[([("a", "b")], ["A"])] * 3, ([("a",)], ["A"])]
    with pytest.raises(ShapeError, match="the rows from sequence 3 on have 1 column, expected 2 as before"):
        CRF(features="pos").fit(iter(rows), shard_size=1)
    blocks = [*[(np.ones((2, 2)), ["A", "B"])] * 3, (np.ones((1, 3)), ["A"])]
    with pytest.raises(
        ShapeError, match="block x has rows of 3 numbers from sequence 3 on, expected 2 as before"
    ):
        CRF().fit(iter(blocks), shard_size=2)


def test_nothing_to_learn_from(folder: Path) -> None:
    with pytest.raises(EmptyDataError, match="no sequence"):
        CRF().fit(iter([]))
    with pytest.raises(EmptyDataError, match="names no label"):
        CRF().fit(iter([([], [])] * 3))
    with pytest.raises(EmptyDataError, match="names no label"):
        CRF().fit(iter([([{"w": "c"}], [None])] * 3), shard_size=1)


def test_pairs_that_are_no_iterator(folder: Path) -> None:
    with pytest.raises(LabelError, match=r"y is None.*iter\(pairs\)"):
        CRF().fit([PAIR, PAIR])
    with pytest.raises(LabelError, match="y is None"):
        CRF(l2="auto").fit([X] * 20)
    with pytest.raises(LabelError, match="y is None"):
        CRF().partial_fit(iter([PAIR]))  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt(), RuntimeError("gone")])
@pytest.mark.parametrize("n", [0, 5])
def test_errors_of_the_generator_are_not_changed(folder: Path, n: int, error: BaseException) -> None:
    def pairs() -> Iterator[tuple[Any, Any]]:
        yield from [PAIR] * n
        raise error

    model: CRF[str] = CRF(optimizer=SHORT)
    with pytest.raises(type(error)) as found:
        model.fit(pairs(), shard_size=4)
    assert found.value is error
    assert not hasattr(model, "weights_")


def test_ctrl_c_keeps_the_weights_so_far(folder: Path) -> None:
    def interrupt(progress: Any) -> None:
        if progress.iteration == 2:
            raise KeyboardInterrupt

    with pytest.warns(TrainingInterrupted):
        model = CRF(l2=0.01, optimizer=LBFGS(max_iterations=9, tolerance=0.0)).fit(
            iter([PAIR] * 9), shard_size=4, callback=interrupt
        )
    assert model.n_iter_ == 2
    assert model.predict([X]) == [["A", "B"]]


READER = """
import sys, time, crfkit
def pairs():
    for n in range(10**6):
        yield [{"w": str(n)}], ["AB"[n % 2]]
        if n == 50:
            print("reading", flush=True)
            time.sleep(60)
crfkit.CRF().fit(pairs(), shard_size=5)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_generator_is_read_leaves_no_files(tmp_path: Path, number: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", READER],
        env={"TMPDIR": str(tmp_path), "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    assert [*tmp_path.glob("crfkit-*/data/part-*")]
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == -number
    assert not [*tmp_path.iterdir()]
