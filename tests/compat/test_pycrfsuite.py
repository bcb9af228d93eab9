"""python-crfsuite's interface: the same names and the same answers."""

from __future__ import annotations

import inspect
import pathlib
import pickle
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from crfkit import InputError
from crfkit.compat import pycrfsuite as ours
from crfkit.compat.pycrfsuite import _logparser
from tests.oracles.crfsuite_oracle import Model

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
        [OrderedDict(b=False, a=2.5), MappingProxyType({"k": 2.0, "q": "r"}), {"é": "ß"}, [""]],
        [],
    ],
)
def test_item_sequences_are_theirs(theirs: Any, items: list[Any]) -> None:
    mine, other = ours.ItemSequence(items), theirs.ItemSequence(items)
    again = pickle.loads(pickle.dumps(mine))
    for sequence in (mine, ours.ItemSequence(mine), again):
        assert sequence.items() == other.items()
        assert len(sequence) == len(other)
        assert repr(sequence) == repr(other)
    one_pass = ours.ItemSequence(iter(item) if isinstance(item, list) else item for item in items)
    assert one_pass.items() == other.items()


def test_mappings_that_are_no_dicts_are_read_as_theirs(theirs: Any, tagger: ours.Tagger, model: str) -> None:
    other = theirs.Tagger()
    other.open(model)
    x = [MappingProxyType({"b": 3.0, "d": 0.0}), {"d": False}]
    for each in (x, ours.ItemSequence(x)):
        assert tagger.tag(each) == other.tag(x)
        for label in tagger.labels():
            assert tagger.marginal(label, 0) == pytest.approx(other.marginal(label, 0), abs=1e-9)


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


def test_items_that_are_read_only_once_are_not_lost(tagger: ours.Tagger) -> None:
    assert tagger.tag([iter(["a"]), (name for name in ["b"])]) == tagger.tag([["a"], ["b"]])
    trainer = ours.Trainer(verbose=False)
    asking: list[Callable[[Any], Any]] = [tagger.tag, tagger.set, lambda x: trainer.append(x, ["A", "B"])]
    for item in (iter(["a"]), (name for name in [b"a"])):
        for ask in asking:
            with pytest.raises(TypeError, match="read only once; expected a list or a dict"):
                ask([item, [b"b"]])


def test_labels_are_those_of_the_model_that_was_asked(tagger: ours.Tagger, tmp_path: Path) -> None:
    expected = tagger.tag([["a"], ["b"]])
    other = ours.Trainer(verbose=False)
    other.append([["a"], ["b"]], [label + "?" for label in tagger.labels()[:2]])
    other.train(str(tmp_path / "other"))

    def items() -> Iterator[list[str]]:
        yield ["a"]
        tagger.open(str(tmp_path / "other"))
        yield ["b"]

    assert tagger.tag(items()) == expected


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


def test_an_item_sequence_serves_several_taggers(tagger: ours.Tagger, tmp_path: Path) -> None:
    other = ours.Trainer("lbfgs", {"c2": 0.1}, verbose=False)
    other.append([{"z": 1.0}, {"w": "a", "z": 2.0}], ["p", "q"])
    other.train(str(tmp_path / "other"))
    second = ours.Tagger()
    second.open(str(tmp_path / "other"))
    for x in ([{"z": 1.0}, {"w": "a", "unknown": 1.0}], [["w=a"], ["nothing", "z"]]):
        items = ours.ItemSequence(x)
        for each in (tagger, second, tagger):
            assert each.tag(items) == each.tag(x)
            label = each.labels()[0]
            found = each.marginal(label, 1)
            each.set(items)
            assert each.marginal(label, 1) == pytest.approx(found, abs=1e-12)
