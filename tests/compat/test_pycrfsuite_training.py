"""Training through python-crfsuite's interface: the same log, the same optimum, and the same end."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit.compat import pycrfsuite as ours
from crfkit.compat import read_crfsuite
from crfkit.compat.pycrfsuite import _logparser
from crfkit.errors import FileFormatError
from tests.compat.test_crfsuite_file import random_corpus
from tests.compat.test_pycrfsuite import ALGORITHMS, DATA


@pytest.fixture(scope="module")
def theirs() -> Any:
    return pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")


def logged(trainer_class: Any, algorithm: str, path: Path, holdout: int = -1, **params: Any) -> list[str]:
    """The log of a training run."""
    messages: list[str] = []

    class Listening(trainer_class):
        def message(self, message: str) -> None:
            messages.append(message)

    trainer = Listening(algorithm, {name.replace("__", "."): value for name, value in params.items()})
    for x, y, group in DATA:
        trainer.append(x, y, group)
    trainer.train(str(path), holdout)
    return messages


def comparable(messages: list[str]) -> str:
    """A log without what a clock or a line search says, and with four digits."""
    text = re.sub(r"(required[^:]*|Line search \w+): [\d.]+", r"\1", "".join(messages))
    return re.sub(r"\d+\.\d{6}", lambda number: f"{float(number[0]):.4f}", text)


@pytest.mark.parametrize("holdout", [-1, 1])
def test_the_log_of_lbfgs_is_theirs(theirs: Any, tmp_path: Path, holdout: int) -> None:
    settings = {"max_iterations": 3, "feature__possible_states": True, "c2": 0.7}
    mine = logged(ours.BaseTrainer, "lbfgs", tmp_path / "a", holdout, **settings)
    other = logged(theirs.BaseTrainer, "lbfgs", tmp_path / "b", holdout, **settings)
    assert comparable(mine) == comparable(other)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_logs_are_read_as_theirs_are(theirs: Any, tmp_path: Path, algorithm: str) -> None:
    for trainer in (ours.BaseTrainer, theirs.BaseTrainer):
        mine, other = _logparser.TrainLogParser(), theirs._logparser.TrainLogParser()
        for message in logged(trainer, algorithm, tmp_path / "m", 1, max_iterations=3):
            assert mine.feed(message) == other.feed(message)
            assert mine.last_log == other.last_log
        for name, value in vars(other).items():
            if name not in ("iterations", "last_iteration"):
                assert (getattr(mine, name) or None) == (value or None), name  # no time and 0.000 s
        assert mine.last_iteration is not None
        assert len(mine.iterations) == len(other.iterations) == 3
        assert {**mine.last_iteration, "scores": 0} == {**other.last_iteration, "scores": 0}
        for label, score in other.last_iteration["scores"].items():
            assert tuple(mine.last_iteration["scores"][label]) == tuple(score)


def test_events_reach_the_methods(tmp_path: Path, capsys: Any) -> None:
    events: list[Any] = []

    class Following(ours.Trainer):
        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            events.append((info["num"], info["loss"], log.count("\n")))

        def on_featgen_progress(self, log: str, percent: int) -> None:
            events.append(percent)

        def on_end(self, log: str) -> None:
            events.append("end")

    trainer = Following(params={"max_iterations": 2})
    for x, y, _ in DATA:
        trainer.append(x, y)
    trainer.train(str(tmp_path / "m"))
    assert events[:3] == [0, 2, 4]
    assert [entry[0] for entry in events if isinstance(entry, tuple)] == [1, 2]
    assert events[-1] == "end"
    assert capsys.readouterr().out.startswith("Feature generation\n")


def test_a_trainer_need_not_call_the_init_of_its_base(theirs: Any, tmp_path: Path) -> None:
    for module in (ours, theirs):

        class Listening(module.Trainer):  # type: ignore[name-defined]
            def __init__(self, heard: list[str]) -> None:
                self.heard = heard

            def message(self, message: str) -> None:
                self.heard.append(message)

        trainer = Listening([])
        assert not trainer.verbose
        trainer.append([["a"], ["b"]], ["x", "y"])
        trainer.select("ap")
        trainer.train(str(tmp_path / "m"))
        assert "type: CRF1d\n" in trainer.heard


def test_an_error_in_a_method_ends_the_training(tmp_path: Path) -> None:
    class Failing(ours.Trainer):
        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            raise RuntimeError("enough")

    trainer = Failing()
    trainer.append([["a"], ["b"]], ["x", "y"])
    with pytest.raises(RuntimeError, match="enough"):
        trainer.train(str(tmp_path / "m"))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"c1": 0.3, "c2": 0.05},
        {"feature.possible_states": True},
        {"feature.possible_transitions": True, "feature.minfreq": 2},
        {"feature.minfreq": 1.6},
    ],
)
def test_the_optimum_is_theirs(theirs: Any, tmp_path: Path, params: dict[str, Any]) -> None:
    sequences, labels = random_corpus(7, 40, 60)
    taggers = []
    for module in (ours, theirs):
        trainer = module.Trainer("lbfgs", {"epsilon": 1e-9, "delta": 1e-12, **params}, verbose=False)
        for x, y in zip(sequences, labels, strict=True):
            trainer.append(x, y)
        path = str(tmp_path / module.__name__)
        trainer.train(path)
        tagger = theirs.Tagger()
        tagger.open(path)
        taggers.append(tagger)
    mine, other = (tagger.info() for tagger in taggers)
    assert taggers[0].labels() == taggers[1].labels()
    for part in ("transitions", "state_features"):
        names = getattr(mine, part).keys() | getattr(other, part).keys()
        a, b = ([getattr(info, part).get(name, 0.0) for name in names] for info in (mine, other))
        np.testing.assert_allclose(a, b, atol=2e-4)


def signed_corpus(seed: int) -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    """Items in which attributes are False, 0, or have values that add up to less than 0."""
    r = random.Random(seed)
    values: list[Any] = [
        False,
        True,
        np.bool_(False),
        0.0,
        1.0,
        -1.0,
        -0.5,
        0.25,
        "a",
        {"in": False, "on": -1.0},
    ]
    sequences = [
        [
            {f"f{i}": r.choice(values) for i in r.sample(range(25), r.randrange(6))}
            for _ in range(r.randrange(1, 7))
        ]
        for _ in range(40)
    ]
    return sequences, [[f"L{r.randrange(4)}" for _ in x] for x in sequences]


@pytest.mark.parametrize("as_items", [False, True])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"c1": 0.2, "c2": 0.1},
        {"feature.possible_states": True, "feature.possible_transitions": True},
        {"feature.minfreq": 0.5},
        {"feature.minfreq": -0.5},
    ],
)
def test_values_that_are_false_or_negative_make_their_features(
    theirs: Any, tmp_path: Path, params: dict[str, Any], as_items: bool
) -> None:
    sequences, labels = signed_corpus(5)
    trainers, infos = [], []
    for module in (ours, theirs):
        trainer = module.Trainer("lbfgs", {"epsilon": 1e-9, "delta": 1e-12, **params}, verbose=False)
        for x, y in zip(sequences, labels, strict=True):
            trainer.append(module.ItemSequence(x) if as_items else x, y)
        path = str(tmp_path / module.__name__)
        trainer.train(path)
        tagger = theirs.Tagger()
        tagger.open(path)
        trainers.append(trainer)
        infos.append(tagger.info())
    assert trainers[0].logparser.featgen_num_features == trainers[1].logparser.featgen_num_features
    loss, expected = (trainer.logparser.last_iteration["loss"] for trainer in trainers)
    assert loss == pytest.approx(expected, abs=1e-4)
    for part in ("transitions", "state_features"):
        mine, other = (getattr(info, part) for info in infos)
        a, b = ([each.get(name, 0.0) for name in mine.keys() | other.keys()] for each in (mine, other))
        np.testing.assert_allclose(a, b, atol=2e-4)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("instances", [[], [([], [], 0)]], ids=["none", "empty"])
def test_training_without_data_gives_a_model_without_labels(
    theirs: Any, tmp_path: Path, algorithm: str, instances: list[Any]
) -> None:
    for module in (ours, theirs):
        trainer = module.Trainer(algorithm, {"max_iterations": 2}, verbose=False)
        for instance in instances:
            trainer.append(*instance)
        trainer.train(str(tmp_path / module.__name__))
        assert trainer.logparser.featgen_num_features == 0
    path = str(tmp_path / ours.__name__)
    assert Path(path).read_bytes() == (tmp_path / theirs.__name__).read_bytes()
    tagger = ours.Tagger()
    tagger.open(path)
    assert tagger.labels() == tagger.tag([]) == tagger.tag() == []
    assert tagger.probability([]) == tagger.marginal("x", 0) == 0.0
    assert tagger.info().labels == tagger.info().attributes == {}
    with pytest.raises(ValueError, match="has no labels"):
        tagger.tag([["a"]])
    with pytest.raises(FileFormatError, match="it has no labels"):
        read_crfsuite(path)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_with_held_out_data_alone_keeps_the_labels(algorithm: str, tmp_path: Path) -> None:
    trainer = ours.Trainer(algorithm, {"max_iterations": 2}, verbose=False)
    trainer.append([["a"], ["b"]], ["x", "y"], 1)
    trainer.train(str(tmp_path / "m"), holdout=1)
    tagger = ours.Tagger()
    tagger.open(str(tmp_path / "m"))
    assert tagger.labels() == ["x", "y"]
    assert len(tagger.tag([["a"]])) == 1


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_online_training_separates_what_can_be_separated(algorithm: str, tmp_path: Path) -> None:
    sequences = [[[f"w={i % 7}"] for i in range(n, n + 6)] for n in range(30)]
    labels = [[f"L{int(position[0][2:]) % 3}" for position in x] for x in sequences]
    trainer = ours.Trainer(algorithm, {"max_iterations": 10}, verbose=False)
    if algorithm == "l2sgd":
        trainer.set("c2", 0.01)
    for x, y in zip(sequences, labels, strict=True):
        trainer.append(x, y)
    trainer.train(str(tmp_path / "m"))
    tagger = ours.Tagger()
    tagger.open(str(tmp_path / "m"))
    assert [tagger.tag(x) for x in sequences] == labels


@pytest.mark.parametrize(
    ("algorithm", "params", "n_iterations"),
    [
        ("lbfgs", {"max_iterations": 0}, range(5, 100)),  # no limit
        ("lbfgs", {"max_iterations": -1}, [1]),
        ("arow", {}, range(2, 10)),  # nothing is left to be learned
        ("ap", {"max_iterations": 20}, [20]),
        ("pa", {"max_iterations": 20}, [20]),
    ],
)
def test_trainings_end_when_theirs_do(
    theirs: Any, tmp_path: Path, algorithm: str, params: dict[str, Any], n_iterations: Any
) -> None:
    for module in (ours, theirs):
        trainer = module.Trainer(algorithm, params, verbose=False)
        for n in range(30):
            trainer.append(
                [[f"w={i % 7}"] for i in range(n, n + 6)], [f"L{i % 7 % 3}" for i in range(n, n + 6)]
            )
        trainer.train(str(tmp_path / "m"))
        assert len(trainer.logparser.iterations) in n_iterations


@pytest.mark.parametrize(
    ("label", "attribute", "params", "name", "complaint"),
    [
        ("X", "a\0b", {}, "m", "NUL character"),
        ("X\0Y", "a", {}, "m", "NUL character"),
        ("X", "a", {}, "no/m", "cannot be written"),
        ("X", "a", {"c1": -1.0}, "m", r"c1 is -1\.0, expected a number that is not negative"),
        ("X", "a", {"c2": -0.5}, "m", r"c2 is -0\.5, expected a number that is not negative"),
    ],
)
def test_what_cannot_end_well_is_refused_before_the_training(
    tmp_path: Path, label: str, attribute: str, params: dict[str, Any], name: str, complaint: str
) -> None:
    trainer = ours.Trainer(params=params)
    trainer.append([[attribute], ["b"]], [label, "Z"])
    with pytest.raises(ValueError, match=complaint):
        trainer.train(str(tmp_path / name))
    assert trainer.logparser is None
    assert list(tmp_path.iterdir()) == []


def test_training_without_a_name_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = ours.Trainer(verbose=False)
    trainer.append([["a"]], ["x"])
    trainer.train("")
    assert list(tmp_path.iterdir()) == []
