"""python-crfsuite's interface: the same names, the same answers, the same log."""

from __future__ import annotations

import inspect
import pathlib
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import InputError, compat
from crfkit.compat import pycrfsuite as ours
from crfkit.compat.pycrfsuite import _logparser
from tests.crfsuite_oracle import Model
from tests.test_crfsuite_file import random_corpus

DATA: list[tuple[list[Any], list[str], int]] = [
    ([["a", "b"], ["b", "c"], ["a"]], ["X", "Y", "X"], 0),
    ([["a", "d"]], ["Z"], 0),
    ([["b", "d"], {"d": 2.0, "q": "r", "on": True}], ["Z", "X"], 1),
]
ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")


@pytest.fixture(scope="module")
def theirs() -> Any:
    return pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")


@pytest.fixture
def model(tmp_path: Path) -> str:
    trainer = ours.Trainer(verbose=False)
    for x, y, _ in DATA:
        trainer.append(x, y)
    trainer.set_params({"c2": 0.1, "feature.possible_transitions": True})
    trainer.train(str(tmp_path / "m.crfsuite"))
    return str(tmp_path / "m.crfsuite")


@pytest.fixture
def tagger(model: str) -> Iterator[ours.Tagger]:
    tagger = ours.Tagger()
    with tagger.open(model):
        yield tagger


def logged(trainer_class: Any, algorithm: str, path: Path, holdout: int = -1, **params: Any) -> list[str]:
    """The messages of a training."""
    messages: list[str] = []

    class Listening(trainer_class):  # type: ignore[misc]
        def message(self, message: str) -> None:
            messages.append(message)

    trainer = Listening(algorithm, {name.replace("__", "."): value for name, value in params.items()})
    for x, y, group in DATA:
        trainer.append(x, y, group)
    trainer.train(str(path), holdout)
    return messages


def test_answers_are_those_of_a_plain_reader(tagger: ours.Tagger, model: str) -> None:
    x: list[Any] = [["a", "a"], [], {"b": 2.0, "q": "r"}]
    pairs = [[("a", 1.0), ("a", 1.0)], [], [("b", 2.0), ("q:r", 1.0)]]
    expected = Model(pathlib.Path(model).read_bytes()).distribution(pairs)
    best = max(expected, key=expected.__getitem__)
    assert tagger.tag(x) == list(best)
    for y, probability in expected.items():
        assert tagger.probability(y) == pytest.approx(probability, abs=1e-12)
    for label in tagger.labels():
        for i in range(3):
            total = sum(p for y, p in expected.items() if y[i] == label)
            assert tagger.marginal(label, i) == pytest.approx(total, abs=1e-12)
    assert tagger.tag(ours.ItemSequence(x)) == tagger.tag(x)
    assert tagger.tag() == tagger.tag(x)


def test_names_are_theirs(theirs: Any) -> None:
    public = {name for name in dir(theirs) if not inspect.ismodule(getattr(theirs, name)) and name[0] != "_"}
    assert public <= set(dir(ours))
    for name in ("BaseTrainer", "Trainer", "Tagger", "ItemSequence", "CRFSuiteError"):
        theirs_has = {part for part in dir(getattr(theirs, name)) if not part.startswith("_")}
        assert theirs_has <= set(dir(getattr(ours, name))), name
    assert set(vars(theirs._logparser.TrainLogParser())) == set(vars(_logparser.TrainLogParser()))
    assert theirs.CRFSUITE_VERSION == ours.CRFSUITE_VERSION
    assert theirs.CRFSuiteError._messages == ours.CRFSuiteError._messages


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_parameters_are_theirs(theirs: Any, algorithm: str) -> None:
    mine, other = ours.Trainer(algorithm), theirs.Trainer(algorithm)
    assert mine.params() == other.params()
    assert mine.get_params() == other.get_params()
    for name in mine.params():
        assert mine.help(name)
        for value in (3, "2.7", True, "x", 0.25):
            mine.set(name, value)
            other.set(name, value)
            assert mine.get(name) == other.get(name), (name, value)


CASES = """
g.labels() | g.tag([['a']]) | g.info() | g.close() | g.probability(['X']) | g.open('nope') | g.open(__file__)
g.open_inmemory(b'lCRF') | g.open_inmemory(b'') | g.open_inmemory('x') | g.dump('q.txt') | g.marginal('X', 0)
t.set('foo', 1) | t.get('foo') | t.help('foo') | t.select('xx') | t.select('lbfgs', 'crf2d')
t.append([['a']], ['x', 'y']) | t.append([['a']], [1]) | t.append([['a']], ['x'], 'q') | t.append([[1]], ['x'])
t.append([{'a': None}], ['x']) | t.append([['a'], ['b']], ('x', b'y')) | t.append([['a'], ['b']], 'xy')
t.append([['a']], [chr(0xDC80)])
t.select('AP') or t.params() | t.select('averaged-perceptron') or t.params() | t.append([[]], ['x']) | t.clear()
""".replace("\n", "|").split("|")
OPENED = """
g.tag() | g.probability([]) | g.marginal('X', 0) | g.tag([]) | g.tag([]) or g.probability([]) | g.tag([['a'], [], ['zz']])
g.tag([['a'], ['b']]) and g.probability(['X']) | g.tag([['a']]) and g.probability(['Q'])
g.tag([['a']]) and g.marginal('Q', 0) | g.tag([['a']]) and g.marginal('X', 7) | g.tag([['a']]) and g.marginal('X', -1)
g.tag('ab') | g.tag(iter([['a']])) | g.tag((('a',), {'b'}))
g.tag([{b'a': 1, 'q': b'r', 'x': {'y': [b'1', '2'], 'z': {'u'}}, 'f': False}]) | g.close() or g.tag() | g.tag([{'q': 'r'}])
""".replace("\n", "|").split("|")


def outcome(code: str, module: Any, model: str | None) -> tuple[str, Any]:
    g, t = module.Tagger(), module.Trainer(verbose=False)
    if model:
        g.open(model)
    try:
        return "gave", eval(code, {"g": g, "t": t, "__file__": __file__})
    except Exception as error:
        return "raised", type(error).__mro__[-3 if isinstance(error, OSError) else 0]


@pytest.mark.parametrize(("cases", "opened"), [(CASES, False), (OPENED, True)], ids=["closed", "opened"])
def test_every_call_does_what_theirs_does(
    theirs: Any, model: str, cases: list[str], opened: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for code in filter(None, map(str.strip, cases)):
        kind, value = outcome(code, ours, model if opened else None)
        expected_kind, expected = outcome(code, theirs, model if opened else None)
        assert kind == expected_kind, (code, value, expected)
        if kind == "gave":
            assert value == pytest.approx(expected) if isinstance(value, float) else value == expected, code
        else:
            assert issubclass(value, expected), (code, value, expected)


@pytest.mark.parametrize(
    "items",
    [
        ["abc", {b"x": b"y", "q": {"r": [b"1", "2"]}, "f": False}],
        [{"a": 1, "b": 0.5, "c": True, "d": {"e": {"f"}}}],
        [["a", "a"], ("t",), {"k": "v"}.keys(), {}],
        [{"n": np.float32(0.5), "m": np.int64(3)}],
        [],
    ],
)
def test_item_sequences_are_theirs(theirs: Any, items: list[Any]) -> None:
    mine, other = ours.ItemSequence(items), theirs.ItemSequence(items)
    assert mine.items() == other.items()
    assert len(mine) == len(other)
    assert repr(mine) == repr(other)


def test_an_attribute_that_an_item_has_twice_counts_twice(tagger: ours.Tagger) -> None:
    twice, once = {"q:r": 0.5, "q": "r", "b": {"x": 2.0}}, {"q:r": 1.5, "b:x": 2.0}
    marginals = []
    for item in (twice, ours.ItemSequence([twice]), once):
        tagger.set(item if isinstance(item, ours.ItemSequence) else [item])
        marginals.append([tagger.marginal(label, 0) for label in tagger.labels()])
    np.testing.assert_allclose(marginals[0], marginals[2], atol=1e-12)
    np.testing.assert_allclose(marginals[1], marginals[2], atol=1e-12)


@pytest.mark.parametrize("item", [5, [5], {"a": None}, {"a": (1, 2)}, {3: "x"}, [["nested"]]])
def test_items_that_are_none_are_refused(item: Any, tagger: ours.Tagger) -> None:
    with pytest.raises(TypeError):
        ours.ItemSequence([item])


def test_values_beyond_all_measure_are_refused(tagger: ours.Tagger) -> None:
    with pytest.raises(InputError, match="expected a finite number"):
        tagger.tag([{"a": float("nan")}])


def test_dumps_are_theirs(theirs: Any, tagger: ours.Tagger, model: str, tmp_path: Path, capsys: Any) -> None:
    other = theirs.Tagger()
    other.open(model)
    tagger.dump(str(tmp_path / "ours"))
    other.dump(str(tmp_path / "theirs"))
    assert (tmp_path / "ours").read_text() == (tmp_path / "theirs").read_text()
    assert vars(tagger.info()) == vars(other.info())
    tagger.dump()
    assert capsys.readouterr().out == (tmp_path / "ours").read_text()


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
    told: list[Any] = []

    class Following(ours.Trainer):
        def on_iteration(self, log: str, info: dict[str, Any]) -> None:
            told.append((info["num"], info["loss"], log.count("\n")))

        def on_featgen_progress(self, log: str, percent: int) -> None:
            told.append(percent)

        def on_end(self, log: str) -> None:
            told.append("end")

    trainer = Following(params={"max_iterations": 2})
    for x, y, _ in DATA:
        trainer.append(x, y)
    trainer.train(str(tmp_path / "m"))
    assert told[:3] == [0, 2, 4]
    assert [entry[0] for entry in told if isinstance(entry, tuple)] == [1, 2]
    assert told[-1] == "end"
    assert capsys.readouterr().out.startswith("Feature generation\n")


def test_a_trainer_need_not_call_the_init_of_its_base(theirs: Any, tmp_path: Path) -> None:
    for module in (ours, theirs):

        class Listening(module.Trainer):  # type: ignore[misc,name-defined]
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


@pytest.mark.parametrize("algorithm", ["l2sgd", "ap", "pa", "arow"])
def test_online_training_separates_what_can_be_separated(algorithm: str, tmp_path: Path) -> None:
    sequences = [[[f"w={i % 7}"] for i in range(n, n + 6)] for n in range(30)]
    labels = [[f"L{int(site[0][2:]) % 3}" for site in x] for x in sequences]
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


def test_a_training_without_a_name_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = ours.Trainer(verbose=False)
    trainer.append([["a"]], ["x"])
    trainer.train("")
    assert list(tmp_path.iterdir()) == []


def test_two_threads_tag_at_once(model: str) -> None:
    sequences = [[["a", "b"], ["c"]], [["d"]]] * 200
    alone = ours.Tagger()
    alone.open(model)
    expected = [alone.tag(x) for x in sequences]
    found: dict[int, list[list[str]]] = {}

    def work(n: int) -> None:
        tagger = ours.Tagger()
        with tagger.open(model):
            found[n] = [tagger.tag(x) for x in sequences]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {0: expected, 1: expected}


def test_threads_that_share_a_tagger_get_the_labels_of_their_own_sequences(tagger: ours.Tagger) -> None:
    short, long = [["a", "b"]], [["a"], ["b"], ["c"]]
    expected = tagger.tag(short)
    n_between = 0

    def between_lines(frame: Any, event: str, arg: Any) -> Any:
        """Before each line of a method of the tagger, somebody else tags."""
        nonlocal n_between
        if isinstance(frame.f_locals.get("self"), ours.Tagger):
            sys.settrace(None)
            tagger.tag(long)
            sys.settrace(between_lines)
            n_between += 1
        return between_lines

    traced = sys.gettrace()
    sys.settrace(between_lines)
    try:
        found = tagger.tag(short)
    finally:
        sys.settrace(traced)
    assert found == expected
    assert n_between > 10


def test_install_stands_in_for_the_originals(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: module for name, module in sys.modules.items() if "crfsuite" in name}
    try:
        compat.install()
        import pycrfsuite
        import sklearn_crfsuite
        from sklearn_crfsuite import metrics

        assert pycrfsuite is ours
        assert pycrfsuite.Trainer is ours.Trainer
        assert sklearn_crfsuite.CRF is compat.sklearn_crfsuite.CRF  # type: ignore[attr-defined]
        assert metrics.flat_accuracy_score([["a"]], [["a"]]) == 1.0
        with pytest.raises(InputError, match="expected names among"):
            compat.install(["wapiti"])
    finally:
        for name in [name for name in sys.modules if "crfsuite" in name]:
            del sys.modules[name]
        sys.modules.update(kept)
