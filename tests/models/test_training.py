"""Training from checkpoints, from other models and on more data; what is refused; the history."""

from __future__ import annotations

import csv
import pickle
import signal
import subprocess
import sys
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import CRF, LBFGS, TRON, Bigrams, Chain, Checkpoint, FeatureFunctions, Newton
from crfkit.errors import ArgumentError, FeatureError, UnwritableFileError
from crfkit.models import CheckpointError, CheckpointMismatchError, Progress
from crfkit.optimizers import History, Record, StopReason

OPTIMIZERS: dict[str, Any] = {
    "lbfgs": LBFGS(tolerance=1e-6, change=0.0),
    "newton": Newton(tolerance=1e-6, change=0.0),
    "tron": TRON(tolerance=1e-6),
}


def data(seed: int = 0, n: int = 30, labels: str = "DNV") -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 7))
        gold = rng.choice(list(labels), size=length)
        X.append([[f"w={label}{rng.integers(4)}", f"s={rng.integers(5)}"] for label in gold])
        y.append([str(label) if rng.random() < 0.9 else labels[0] for label in gold])
    return X, y


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_from_a_checkpoint_with_the_same_bits(name: str, tmp_path: Path) -> None:
    X, y = data()
    dev = data(1, 10)
    path = tmp_path / "half.ckpt"
    model = CRF(optimizer=OPTIMIZERS[name], l2=0.1)
    whole = model.fit(X, y, dev=dev)
    weights, history = whole.weights_.copy(), whole.history_
    model.fit(
        X, y, dev=dev, checkpoint=Checkpoint(path, every=2), callback=lambda progress: progress.iteration == 5
    )
    assert len(model.history_) == 6
    model.fit(X, y, dev=dev, checkpoint=Checkpoint(path, resume=True))
    assert model.weights_.tobytes() == weights.tobytes()
    assert [r._replace(seconds=0.0) for r in model.history_] == [r._replace(seconds=0.0) for r in history]


KILLED = """
import os, signal, sys
from crfkit import CRF, Checkpoint
from tests.models.test_training import OPTIMIZERS, data

def stop(progress):
    if progress.iteration == 5:
        os.kill(os.getpid(), signal.SIGKILL)

CRF(optimizer=OPTIMIZERS[sys.argv[1]], l2=0.1).fit(*data(), checkpoint=Checkpoint(sys.argv[2], every=2), callback=stop)
"""


@pytest.mark.parametrize("name", ["lbfgs", "tron"])
def test_a_training_run_that_was_killed_goes_on_with_the_same_bits(name: str, tmp_path: Path) -> None:
    path = tmp_path / "killed.ckpt"
    command = [sys.executable, "-c", KILLED, name, str(path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    undisturbed = CRF(optimizer=OPTIMIZERS[name], l2=0.1).fit(*data())
    again = CRF(optimizer=OPTIMIZERS[name], l2=0.1).fit(*data(), checkpoint=Checkpoint(path, resume=True))
    assert again.history_[4].seconds > 0
    assert again.weights_.tobytes() == undisturbed.weights_.tobytes()
    assert again.stop_reason_ == undisturbed.stop_reason_
    assert list(tmp_path.iterdir()) == [path]  # nothing half written is left


def test_more_iterations_than_before_go_on(tmp_path: Path) -> None:
    X, y = data()
    path = tmp_path / "c"
    CRF(optimizer=LBFGS(max_iterations=4), l2=0.1).fit(X, y, checkpoint=Checkpoint(path, every=1))
    longer = CRF(optimizer=LBFGS(max_iterations=9), l2=0.1).fit(
        X, y, checkpoint=Checkpoint(path, resume=True)
    )
    direct = CRF(optimizer=LBFGS(max_iterations=9), l2=0.1).fit(X, y)
    assert longer.weights_.tobytes() == direct.weights_.tobytes()


def test_without_a_checkpoint_it_begins_at_the_start(tmp_path: Path) -> None:
    X, y = data()
    crf = CRF(optimizer=LBFGS(max_iterations=3)).fit(
        X, y, checkpoint=Checkpoint(tmp_path / "c", every=1, resume=True)
    )
    assert len(crf.history_) == 4
    assert (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"l2": 0.7}, r"the checkpoint was written with l2 0\.1, but it is 0\.7 now"),
        (
            {"optimizer": LBFGS(memory=3)},
            r"with optimizer LBFGS \{'memory': None\}, but it is LBFGS \{'memory': 3\} now",
        ),
        ({"optimizer": TRON()}, r"with optimizer LBFGS .* but it is TRON"),
        ({"all_possible_states": True}, "with all_possible_states False, but it is True now"),
        ({"structure": Chain(end=False)}, "with structure Chain"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_before_the_data_is_read(
    change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    X, y = data()
    params: dict[str, Any] = {"optimizer": LBFGS(max_iterations=3), "l2": 0.1}
    CRF(**params).fit(X, y, checkpoint=Checkpoint(tmp_path / "c", every=1))
    with pytest.raises(CheckpointMismatchError, match=words):
        CRF(**{**params, **change}).fit(None, None, checkpoint=Checkpoint(tmp_path / "c", resume=True))  # type: ignore[arg-type]


def test_a_checkpoint_of_other_data_is_refused(tmp_path: Path) -> None:
    X, y = data()
    path = tmp_path / "c"
    model = CRF(optimizer=LBFGS(max_iterations=3))
    model.fit(X, y, checkpoint=Checkpoint(path, every=1))
    other = [["V" if label == "N" else label for label in labels] for labels in y]
    renamed = [[[f"x{feature}" for feature in position] for position in positions] for positions in X]
    for again in ((X, other), (renamed, y), (X[1:], y[1:])):
        with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "data"):
            model.fit(*again, checkpoint=Checkpoint(path, resume=True))
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "data"):
        model.fit(X, y, np.full(len(X), 2.0), checkpoint=Checkpoint(path, resume=True))
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "dev"):
        model.fit(X, y, dev=(X[:3], y[:3]), checkpoint=Checkpoint(path, resume=True))


def test_a_checkpoint_of_another_dev_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    X, y = data()
    dev_X, dev_y = data(1, 10)
    CRF().fit(X, y, dev=(dev_X, dev_y), checkpoint=Checkpoint(path, every=1))
    words = "the checkpoint is of other dev data, .* or another version of crfkit wrote it"
    for other in (data(2, 10), (dev_X, [*dev_y[:-1], ["D"] * len(dev_y[-1])])):
        with pytest.raises(CheckpointMismatchError, match=words):
            CRF().fit(X, y, dev=other, checkpoint=Checkpoint(path, resume=True))
    CRF().fit(X, y, dev=(list(dev_X), tuple(dev_y)), checkpoint=Checkpoint(path, resume=True))


def test_what_is_wrong_with_a_dev_set_is_said_of_it() -> None:
    X, y = [[["the", "D"], ["dog", "N"]]], [["O", "B"]]
    with pytest.raises(FeatureError, match=r"^dev sequence 0, position 0"):
        CRF(features="U:%x[0,0]\nU1:%x[0,1]\nB").fit(X, y, dev=([[["the"], ["dog"]]], y))


def test_the_class_of_an_optimizer_is_none() -> None:
    with pytest.raises(ArgumentError, match="optimizer"):
        CRF(optimizer=LBFGS).fit(*data())  # type: ignore[arg-type]


def test_other_files_are_no_checkpoints(tmp_path: Path) -> None:
    X, y = data()
    model = CRF(optimizer=LBFGS(max_iterations=2)).fit(X, y)
    model.save(tmp_path / "m.crf")
    with pytest.raises(CheckpointError):
        model.fit(X, y, checkpoint=Checkpoint(tmp_path / "m.crf", resume=True))
    (tmp_path / "junk").write_bytes(b"\x80junk and more")
    with pytest.raises(CheckpointError):
        model.fit(X, y, checkpoint=Checkpoint(tmp_path / "junk", resume=True))
    with pytest.raises(UnwritableFileError):
        model.fit(X, y, checkpoint=Checkpoint(tmp_path / "no" / "folder"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time_budget": 0}, "time_budget"),
        ({"time_budget": "long"}, "time_budget"),
        ({"checkpoint": Checkpoint("c", every=0)}, "every"),
        ({"checkpoint": "c"}, "checkpoint"),
        ({"start": 3}, "start"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        CRF().fit(None, None, **options)  # type: ignore[arg-type]


def test_a_time_budget() -> None:
    crf = CRF().fit(*data(), time_budget=1e-9)
    assert crf.stop_reason_ == StopReason.TIME_BUDGET
    assert crf.n_iter_ == 0


def test_a_warm_start_is_where_the_other_model_ended(tmp_path: Path) -> None:
    X, y = data()
    first = CRF(optimizer=OPTIMIZERS["lbfgs"]).fit(X, y)
    first.save(tmp_path / "m.crf")
    for start in (first, tmp_path / "m.crf", str(tmp_path / "m.crf")):
        crf = CRF(optimizer=LBFGS(max_iterations=0)).fit(X, y, start=start)
        assert crf.weights_.tobytes() == first.weights_.tobytes()


def weights_by_name(crf: CRF) -> dict[Any, float]:
    """Each weight under what it scores."""
    classes, map_, w = crf.classes_, crf.feature_map_, crf.weights_
    named: dict[Any, float] = {}
    for f, name in enumerate(crf.encoder_.vocabulary.names()):
        for p in range(map_.pair_ptr[f], map_.pair_ptr[f + 1]):
            named[name, classes[map_.pair_labels[p]]] = float(w[p])
    for g, name in enumerate(crf.encoder_.arc_vocabulary.names()):
        for p in range(map_.arc_ptr[g], map_.arc_ptr[g + 1]):
            a, b = divmod(int(map_.arc_triples[p]), len(classes))
            named[name, classes[a], classes[b]] = float(w[map_.triples_begin + p])
    ends = [*classes, "edge"]
    for i, (a, b) in enumerate(zip(map_.arc_before, map_.arc_after, strict=True)):
        named["arc", ends[a], ends[b]] = float(w[map_.arcs_begin + i])
    for block, columns in map_.dense.items():
        table = w[map_.dense_begin(block) :][: columns * len(classes)].reshape(columns, -1)
        named.update(
            ((block, c, label), float(table[c, i])) for c in range(columns) for i, label in enumerate(classes)
        )
    return named


TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]\nB\nB1:%x[0,0]\n"


@pytest.mark.parametrize("kind", ["lists", "template", "dense"])
def test_weights_are_transferred_by_name(kind: str) -> None:
    """The other model has other features and labels, and both in another order."""
    first, second = data(0, labels="NDV"), data(5, labels="AVNX")
    features = None
    if kind == "template":
        features = TEMPLATE
        first, second = (
            ([[position[0] for position in positions] for positions in X], y) for X, y in (first, second)
        )
    if kind == "dense":
        rng = np.random.default_rng(0)
        first, second = (([rng.normal(size=(len(labels), 3)) for labels in y], y) for _, y in (first, second))
    old = CRF(features=features, optimizer=LBFGS(max_iterations=5)).fit(*first)
    new = CRF(features=features, optimizer=LBFGS(max_iterations=0), all_possible_states=True).fit(
        *second, start=old
    )
    known, transferred = weights_by_name(old), weights_by_name(new)
    shared = set(known) & set(transferred)
    assert len(shared) > 10
    assert {name: transferred[name] for name in shared} == {name: known[name] for name in shared}
    assert not any(transferred[name] for name in set(transferred) - shared)


def test_a_warm_start_needs_fewer_iterations() -> None:
    X, y = data(n=60)
    cold = CRF(optimizer=OPTIMIZERS["tron"]).fit(X, y)
    nearly = CRF(optimizer=OPTIMIZERS["tron"]).fit(X[:-1], y[:-1])
    warm = CRF(optimizer=TRON(tolerance=1e-3)).fit(X, y, start=nearly)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.history_[-1].objective == pytest.approx(cold.history_[-1].objective, rel=1e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_partial_fit_keeps_what_the_data_do_not_touch(name: str) -> None:
    X, y = data(0, labels="DNV")
    crf = CRF(optimizer=OPTIMIZERS[name]).fit(X, y)
    before = weights_by_name(crf)
    more_X, more_y = data(3, n=20, labels="NA")
    crf.partial_fit(more_X, more_y)
    after = weights_by_name(crf)
    seen = {feature for positions in more_X for position in positions for feature in position}
    assert set(before) <= set(after)
    assert crf.classes_ == ["A", "D", "N", "V"]
    untouched = [name for name in before if name[0] not in seen and name[0] != "arc"]
    assert len(untouched) > 5
    assert all(after[name] == before[name] for name in untouched)
    assert any(after[name] != before[name] for name in before if name[0] in seen)
    assert crf.score(more_X, more_y) > 0.8
    assert crf.predict(X)  # questions about the old data are still answered


def test_partial_fit_first_is_fit() -> None:
    X, y = data()
    assert CRF().partial_fit(X, y).weights_.tobytes() == CRF().fit(X, y).weights_.tobytes()


def test_partial_fit_on_the_same_data_goes_on() -> None:
    X, y = data()
    crf = CRF(optimizer=LBFGS(max_iterations=3)).fit(X, y)
    for _ in range(30):
        crf.partial_fit(X, y)
    whole = CRF(optimizer=OPTIMIZERS["lbfgs"]).fit(X, y)
    assert crf.history_[-1].objective == pytest.approx(whole.history_[-1].objective, rel=1e-5)


def test_partial_fit_widens_the_bigrams() -> None:
    X = [[["a"], ["b"]], [["b"], ["a"]]]
    crf = CRF(structure=Chain(bigrams="observed")).fit(X[:1], [["A", "B"]])
    crf.partial_fit(X[1:], [["B", "A"]])
    bigrams = crf.structure_.bigrams
    assert isinstance(bigrams, Bigrams)
    assert ("A", "B") in bigrams
    assert ("B", "A") in bigrams
    assert ("A", "A") not in bigrams


def test_names_and_auto() -> None:
    X, y = data()
    auto = CRF(optimizer="auto").fit(X, y)
    assert auto.optimizer == "auto"
    assert auto.optimizer_ == LBFGS()
    assert auto.optimizer_reason_.startswith("LBFGS: a smooth objective of ")
    sparse = CRF(optimizer="auto", l1=0.5).fit(X, y)
    assert sparse.optimizer_reason_.startswith("LBFGS: with an l1 penalty")
    named = CRF(optimizer="tron").fit(X, y)
    assert named.optimizer_ == TRON()
    assert named.optimizer_reason_ == "TRON was asked for by name"
    assert CRF().fit(X, y).optimizer_reason_ == "LBFGS was given"


@pytest.mark.parametrize(
    "scores", [[-np.inf, np.nan, 0.5, 0.25], [np.inf, 0.5, np.nan, np.nan], [np.nan, np.nan, 0.5, -np.inf]]
)
def test_any_dev_score_is_saved(scores: list[float], tmp_path: Path) -> None:
    X, y = data()
    left = iter(scores)
    crf = CRF(optimizer=LBFGS(max_iterations=len(scores))).fit(
        X, y, dev=(X, y), metric=lambda gold, predicted: next(left)
    )
    crf.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    assert loaded.history_[0].dev_score is None
    np.testing.assert_array_equal([record.dev_score for record in loaded.history_[1:]], scores)


@pytest.mark.parametrize("optimizer", ["auto", "newton", TRON(tolerance=0.5), Newton(), LBFGS(memory=3)])
def test_optimizer_and_history_are_saved(optimizer: Any, tmp_path: Path) -> None:
    X, y = data()
    crf = CRF(optimizer=optimizer).fit(X, y, dev=(X[:5], y[:5]))
    crf.save(tmp_path / "m.crf")
    loaded = crfkit.load(tmp_path / "m.crf")
    assert loaded.optimizer == optimizer
    assert [r._replace(seconds=0.0) for r in loaded.history_] == [
        r._replace(seconds=0.0) for r in crf.history_
    ]
    assert all(isnan(record.seconds) for record in loaded.history_)
    assert pickle.loads(pickle.dumps(crf)).history_ == crf.history_
    assert loaded.history_[-1].dev_score is not None
    assert loaded.history_[0].dev_score is None
    assert loaded.history_[-1].passes == crf.history_[-1].passes > 1


def test_a_callback_sees_passes() -> None:
    seen: list[Progress] = []
    CRF(optimizer=OPTIMIZERS["tron"]).fit(*data(), callback=seen.append)
    assert [p.iteration for p in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].passes > 2 * len(seen)


HISTORY = History([Record(0, 0.0, 5.0, 2.0, 1.0), Record(1, 0.5, 4.0, 1.0, 3.0, 0.75)])


def test_a_history_prints_and_exports(tmp_path: Path) -> None:
    assert str(HISTORY).splitlines() == [
        "iteration  passes   seconds       objective  gradient norm  dev score",
        "        0       1      0.00          5.0000              2",
        "        1       3      0.50          4.0000              1     0.7500",
    ]
    assert HISTORY.to_dicts()[1] == {
        "iteration": 1,
        "seconds": 0.5,
        "objective": 4.0,
        "gradient_norm": 1.0,
        "passes": 3.0,
        "dev_score": 0.75,
    }
    HISTORY.to_csv(tmp_path / "h.csv")
    with (tmp_path / "h.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == list(Record._fields)
    assert rows[1][-1] == ""
    assert rows[2] == ["1", "0.5", "4.0", "1.0", "3.0", "0.75"]
    assert History.from_array(HISTORY.to_array()) == HISTORY
    untimed = History.from_array(HISTORY.to_array(seconds=False))
    assert all(isnan(record.seconds) for record in untimed)
    assert [r._replace(seconds=0.0) for r in untimed] == [r._replace(seconds=0.0) for r in HISTORY]
    line = "        1       3                    4.0000              1     0.7500"
    assert str(untimed).splitlines()[2] == line
    untimed.to_csv(tmp_path / "h.csv")
    assert (tmp_path / "h.csv").read_text(encoding="utf-8").splitlines()[2] == "1,,4.0,1.0,3.0,0.75"
    assert isinstance(HISTORY[:1], History)
    assert HISTORY[-1].objective == 4.0


def test_a_history_plots() -> None:
    class Axes:
        """Stands in for matplotlib's."""

        def __init__(self) -> None:
            self.lines: list[Any] = []
            self.beside: Axes | None = None

        def plot(self, x: Any, y: Any, **_: Any) -> None:
            self.lines.append((list(x), list(y)))

        def twinx(self) -> Axes:
            self.beside = Axes()
            return self.beside

        def set_xlabel(self, text: str) -> None:
            self.label = text

        def set_ylabel(self, text: str) -> None:
            pass

    axes = Axes()
    assert HISTORY.plot("passes", ax=axes) is axes
    assert axes.label == "passes over the data"
    assert axes.lines == [([1.0, 3.0], [5.0, 4.0])]
    assert axes.beside is not None
    assert axes.beside.lines == [([3.0], [0.75])]
    untimed = Axes()
    History(record._replace(seconds=nan) for record in HISTORY).plot(ax=untimed)
    assert untimed.lines == axes.lines
    with pytest.raises(ArgumentError, match="against"):
        HISTORY.plot("time", ax=axes)


def _tags() -> tuple[list[Any], list[Any]]:
    X = [[["w=a"], ["w=b"]], [["w=b"], ["w=a"], ["w=c"]], [["w=c"], ["w=a"]]]
    return X, [["n-s", "v-p"], ["v-s", "n-p", "v-p"], ["v-p", "n-s"]]


def test_the_weights_of_facets_are_transferred_by_name() -> None:
    X, y = _tags()
    first = CRF(facets="characters", optimizer=LBFGS(tolerance=1e-9)).fit(X, y)
    again = CRF(facets="characters", optimizer=LBFGS(max_iterations=1)).fit(X, y, start=first)
    assert again.history_[0].objective == pytest.approx(first.history_[-1].objective, rel=1e-6)
    more_X, more_y = [[["w=d"], ["w=a"]], *X], [["x-p", "n-s"], *y]
    other = CRF(facets="characters", optimizer=LBFGS(max_iterations=1)).fit(more_X, more_y, start=first)
    before = CRF(facets="characters", optimizer=LBFGS(max_iterations=1)).fit(more_X, more_y)
    assert other.history_[0].objective < before.history_[0].objective
    plain = CRF(optimizer=LBFGS(max_iterations=1)).fit(X, y, start=first)  # labels share no weights here
    assert (
        plain.history_[0].objective < CRF(optimizer=LBFGS(max_iterations=1)).fit(X, y).history_[0].objective
    )


def test_partial_fit_adds_facets() -> None:
    X, y = _tags()
    crf = CRF(facets="characters").fit(X[:2], y[:2])
    crf.partial_fit([[["w=c"], ["w=d"]]], [["v-p", "x-p"]])
    assert crf.classes_ == ["n-p", "n-s", "v-p", "v-s", "x-p"]
    assert crf.predict([[["w=c"], ["w=d"]]]) == [["v-p", "x-p"]]


def test_partial_fit_widens_the_tag_dictionary() -> None:
    X, y = [[["a"], ["b"]]] * 12, [["A", "B"]] * 12
    template = "U:%x[0,0]\nB\n"
    crf = CRF(features=template, tag_dictionary=True).fit(X, y)
    crf.partial_fit([[["a"], ["c"]]] * 12, [["C", "C"]] * 12)
    dictionary = crf._model.dictionary
    assert dictionary is not None
    assert [dictionary.allowed_labels(word) for word in "abc"] == [("A", "C"), ("B",), ("C",)]
    assert crf.predict([[["b"], ["c"]]]) == [["B", "C"]]


def word_and_label(x: Any, label: str, i: int) -> dict[str, float]:
    return {f"{x[i]}/{label}": 1.0}


def _outputs(crf: CRF[Any]) -> dict[str, float]:
    names = crf.output_names_
    return dict(zip(names, crf.weights_[len(crf.weights_) - len(names) :].tolist(), strict=True))


def test_partial_fit_adds_outputs_of_functions() -> None:
    functions = FeatureFunctions([word_and_label])
    crf = CRF(features=functions).fit([["a", "b"]], [["A", "B"]])
    before = _outputs(crf)
    crf.partial_fit([["a", "c"]], [["A", "C"]])
    after = _outputs(crf)
    assert set(before) < set(after)
    assert after["word_and_label:b/B"] == before["word_and_label:b/B"]  # b does not occur in the new data
    assert after["word_and_label:a/A"] != before["word_and_label:a/A"]
    assert crf.predict([["a", "c"]]) == [["A", "C"]]
