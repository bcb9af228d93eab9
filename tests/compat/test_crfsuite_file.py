"""CRFsuite's model files: read, written, and the same answers on both sides."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Bigrams, Chain, InputError, Patterns
from crfkit.compat import crfsuite_bytes, read_crfsuite, write_crfsuite
from crfkit.compat.crfsuite_file import CrfsuiteModel
from crfkit.errors import FileFormatError, MissingFileError
from tests.oracles.crfsuite_oracle import Model, lookup3
from tests.structures.test_graph_structure import FirstOrder

OPEN_CHAIN = Chain(start=False, end=False)
X = [[["a", "b"], ["b", "c"], ["a"]], [["a", "dö"]], [["dö"], {"n": 2.5, "w": "x"}], [["a"], [], ["zz"]]]
Y = [["X", "Y", "X"], ["Z"], ["Z", "X"], ["X", "Y", "Ü"]]


def as_pairs(position: Any) -> list[tuple[str, float]]:
    if isinstance(position, dict):
        return [(k, v) if isinstance(v, float) else (f"{k}:{v}", 1.0) for k, v in position.items()]
    return [(name, 1.0) for name in position]


def trained(**params: Any) -> CRF:
    return CRF(OPEN_CHAIN, optimizer=LBFGS(max_iterations=8), l2=0.3, **params).fit(X, Y)


def random_corpus(seed: int, n: int = 60, n_words: int = 400) -> tuple[list[Any], list[Any]]:
    r = random.Random(seed)
    sequences, labels = [], []
    for _ in range(n):
        positions: list[Any] = []
        for _ in range(r.randrange(1, 9)):
            words = [f"w={'ø' * r.randrange(2)}{r.randrange(n_words)}" for _ in range(r.randrange(1, 6))]
            positions.append(
                words if r.random() < 0.7 else {word: r.choice([0.5, 1.0, 2.0]) for word in words}
            )
        sequences.append(positions)
        labels.append([f"L{r.randrange(5)}" for _ in positions])
    return sequences, labels


@pytest.fixture(scope="module")
def theirs() -> Any:
    return pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")


@pytest.fixture
def their_models(theirs: Any, tmp_path: Path) -> Iterator[tuple[Path, list[Any]]]:
    """Models that python-crfsuite trains, and inputs."""
    settings: list[tuple[str, dict[str, Any]]] = [
        ("lbfgs", {}),
        ("lbfgs", {"c1": 0.5, "feature.possible_states": True, "feature.possible_transitions": True}),
        ("ap", {}),
        ("arow", {}),
    ]
    found = []
    for i, (algorithm, params) in enumerate(settings):
        sequences, labels = random_corpus(i)
        trainer = theirs.Trainer(algorithm, {"max_iterations": 10, **params}, verbose=False)
        for x, y in zip(sequences, labels, strict=True):
            trainer.append(x, y)
        path = tmp_path / f"{i}.crfsuite"
        trainer.train(str(path))
        found.append((path, random_corpus(i + 100, 25)[0] + sequences[:10]))
    return iter(found)


def test_the_hash_is_that_of_the_format() -> None:
    assert lookup3(b"") == 0xDEADBEEF  # from the published test of lookup3
    assert lookup3(b"Four score and seven years ago") == 0x17770551


@pytest.mark.parametrize("params", [{}, {"all_possible_states": True}, {"all_possible_transitions": False}])
def test_a_written_file_means_the_same_to_a_plain_reader(params: Any) -> None:
    crf = trained(**params)
    model = Model(crfsuite_bytes(crf))
    assert model.labels.names == crf.classes_
    for name in model.attributes.names:
        assert model.attributes.names[model.attributes.find(name) or 0] == name
    assert model.attributes.find("never seen") is None
    x: Any
    for x in X:
        expected = model.distribution([as_pairs(position) for position in x])
        best = max(expected, key=expected.__getitem__)
        assert crf.predict([x]) == [list(best)]
        for y, probability in expected.items():
            assert np.exp(crf.log_probability([x], [list(y)])[0]) == pytest.approx(probability, abs=1e-9)


def test_a_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    crf = trained()
    path = tmp_path / "m.crfsuite"
    write_crfsuite(crf, path)
    again = read_crfsuite(path)
    assert crfsuite_bytes(again) == path.read_bytes()
    assert again.predict(X) == crf.predict(X)
    for ours, back in zip(crf.predict_marginals(X), again.predict_marginals(X), strict=True):
        np.testing.assert_allclose(ours, back, atol=1e-12)
    assert again.classes_ == crf.classes_
    assert again.structure == OPEN_CHAIN
    native = tmp_path / "m.crfkit"
    again.save(native)
    import crfkit

    assert crfkit.load(native).predict(X) == crf.predict(X)


def test_weights_that_are_zero_are_left_out() -> None:
    crf = CRF(OPEN_CHAIN, l1=0.4, l2=0.1).fit(X, Y)
    kept = np.count_nonzero(crf.weights_)
    assert 0 < kept < len(crf.weights_)
    model = CrfsuiteModel.from_bytes(crfsuite_bytes(crf))
    assert len(model.weights) == kept
    assert model.to_crf().predict(X) == crf.predict(X)


def test_lists_that_are_out_of_order_are_sorted() -> None:
    data = bytearray(crfsuite_bytes(trained(all_possible_states=True)))
    model = Model(bytes(data))
    a, b = model.attribute_lists[0][:2]
    at = data.index(struct.pack("<III", len(model.attribute_lists[0]), a, b)) + 4
    data[at : at + 8] = struct.pack("<II", b, a)
    swapped = CrfsuiteModel.from_bytes(bytes(data))
    np.testing.assert_array_equal(
        swapped.weights, CrfsuiteModel.from_bytes(crfsuite_bytes(trained(all_possible_states=True))).weights
    )


@pytest.mark.parametrize(
    ("crf", "complaint"),
    [
        (lambda: CRF(optimizer=LBFGS(max_iterations=2)).fit(X, Y), "start or end arcs"),
        (lambda: CRF(OPEN_CHAIN).fit([[["a"], ["b"]]], [[1, 2]]), "labels that are not strings"),
        (lambda: CRF(OPEN_CHAIN, features="U00:%x[0,0]\nB\n").fit([["a", "b"]], [["x", "y"]]), "a template"),
        (
            lambda: CRF(Chain(start=False, end=False, bigrams=Bigrams([("x", "y")]))).fit(
                [[["a"], ["b"]]], [["x", "y"]]
            ),
            "bigrams",
        ),
        (
            lambda: CRF(Patterns(["X Y"], start=False, end=False)).fit(X, Y),
            "the model has patterns, which a file of CRFsuite cannot hold",
        ),
        (lambda: CRF(FirstOrder(OPEN_CHAIN)).fit(X, Y), "the model has a structure of its own"),
        (lambda: CRF(OPEN_CHAIN).fit([np.eye(2)], [["x", "y"]]), "dense blocks"),
        (lambda: CRF(OPEN_CHAIN).fit([[["a\0b"], ["c"]]], [["x", "y"]]), "NUL character"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(crf: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        crfsuite_bytes(crf())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: b"", "does not begin with lCRF"),
        (lambda d: b"xCRF" + d[4:], "does not begin with lCRF"),
        (lambda d: d[:8] + b"SOMC" + d[12:], "first-order model"),
        (lambda d: d[:100], "should have"),
        (lambda d: d[:20] + struct.pack("<I", 10**6) + d[24:], "has 1000000 labels"),
        (lambda d: d[:24] + struct.pack("<I", 10**6) + d[28:], "fewer lists|entries, the file says"),
        (lambda d: d[:28] + struct.pack("<I", 10**9) + d[32:], "FEAT is not where"),
        (lambda d: d[:56] + struct.pack("<I", 10**9) + d[60:], "more than the file"),
        (lambda d: d[:72] + struct.pack("<d", float("nan")) + d[80:], "too large or not a number"),
        (lambda d: d.replace(b"CQDB", b"CQDC", 1), "does not begin with CQDB"),
        (lambda d: d.replace("dö".encode(), b"d\xff\xff"), "not UTF-8"),
        (lambda d: d.replace(b"Z\0", b"Y\0", 1), "labels are not distinct"),
        (lambda d: d.replace(b"w:x\0", b"w\0x\0", 1), "with a NUL"),
        (lambda d: d.replace(b"Z\0", b"\0\0", 1), "with a NUL"),
        (lambda d: d.replace(b"w:x\0", b"w:xy", 1), "damaged entry"),
    ],
)
def test_damaged_files_are_refused_with_a_message(change: Any, complaint: str) -> None:
    with pytest.raises(FileFormatError, match=f"^m: not a model of CRFsuite: .*({complaint})"):
        CrfsuiteModel.from_bytes(change(crfsuite_bytes(trained())), "m")


def test_an_attribute_that_is_there_twice_is_refused_when_it_is_asked_for() -> None:
    data = crfsuite_bytes(trained()).replace(b"b\0", b"a\0", 1)
    model = CrfsuiteModel.from_bytes(data)
    with pytest.raises(FileFormatError, match="is the same as name"):
        model.to_crf()


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_crfsuite(tmp_path / "none")


def test_their_models_mean_the_same_here(theirs: Any, their_models: Iterator[tuple[Path, list[Any]]]) -> None:
    for path, inputs in their_models:
        tagger = theirs.Tagger()
        tagger.open(str(path))
        crf = read_crfsuite(path)
        assert crf.classes_ == tagger.labels()
        marginals = crf.predict_marginals(inputs)
        for x, labels, table in zip(inputs, crf.predict(inputs), marginals, strict=True):
            assert labels == tagger.tag(x)
            expected = [[tagger.marginal(label, i) for label in crf.classes_] for i in range(len(x))]
            np.testing.assert_allclose(table, expected, atol=1e-9)
            probability = np.exp(crf.log_probability([x], [labels])[0])
            assert probability == pytest.approx(tagger.probability(labels), abs=1e-9)
        assert crfsuite_bytes(crf) == path.read_bytes()


def test_our_models_mean_the_same_there(theirs: Any, tmp_path: Path) -> None:
    for seed, params in enumerate([{}, {"all_possible_states": True}, {"all_possible_transitions": False}]):
        sequences, labels = random_corpus(seed)
        crf = CRF(OPEN_CHAIN, optimizer=LBFGS(max_iterations=10), **params).fit(sequences, labels)  # type: ignore[arg-type]
        path = tmp_path / f"{seed}.crfsuite"
        write_crfsuite(crf, path)
        tagger = theirs.Tagger()
        tagger.open(str(path))
        inputs = random_corpus(seed + 50, 25)[0]
        for x, label_sequence, table in zip(
            inputs, crf.predict(inputs), crf.predict_marginals(inputs), strict=True
        ):
            assert tagger.tag(x) == label_sequence
            expected = [[tagger.marginal(label, i) for label in crf.classes_] for i in range(len(x))]
            np.testing.assert_allclose(table, expected, atol=1e-9)
