"""Feature functions from the outside: `CRF(features=FeatureFunctions([…]))`, its files and its complaints."""

from __future__ import annotations

import json
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import crfkit
from crfkit import CRF, END, START, Chain, FeatureFunction, FeatureFunctions, InputError
from crfkit.cli.inspect import as_text
from crfkit.errors import ArgumentError, FileFormatError, FunctionError, NotLoadedError, UnsavableError
from crfkit.features import function_data
from crfkit.models import UnsavableModel, describe, heaviest_outputs
from crfkit.models.files.loading import from_bytes
from crfkit.models.files.model_file import decode, encode

X = [["the", "dog", "runs"], ["a", "cat"], ["dogs", "run"], ["the", "cat", "runs"], []]
Y = [["D", "N", "V"], ["D", "N"], ["N", "V"], ["D", "N", "V"], []]


def word(x: Any, label: Any, i: int) -> dict[str, float]:
    return {f"{x[i]}|{label}": 1.0}


def length_of_noun(x: Any, label: Any, i: int) -> float:
    return float(len(x[i]) * (label == "N"))


def vector(x: Any, label: Any, i: int) -> list[float]:
    return [len(x[i]) / 4, float(label == "D"), float(label == "V" and x[i].endswith("s"))]


def repeated(x: Any, before: Any, label: Any, i: int) -> float:
    return float(before == label)


def ending(x: Any, before: Any, label: Any, i: int) -> list[float]:
    return [before is START, label is END]


def positions_of(x: dict[str, Any]) -> int:
    return int(x["n"])


def graph_label(x: dict[str, Any], label: Any, i: int) -> float:
    return float(x["colours"].get(i, "") == label[0])


def fitted(functions: list[Any], **params: Any) -> CRF:
    return CRF(features=FeatureFunctions(functions), **params).fit(X, Y)


def test_it_is_the_model_that_plain_features_give() -> None:
    plain = CRF(all_possible_states=True, optimizer=crfkit.LBFGS(tolerance=1e-9)).fit(
        [[[w] for w in x] for x in X], Y
    )
    ours = fitted([word], optimizer=crfkit.LBFGS(tolerance=1e-9))
    assert len(ours.weights_) == len(plain.weights_)
    assert ours.history_[-1].objective == pytest.approx(plain.history_[-1].objective, rel=1e-9)
    for one, other in zip(
        ours.predict_marginals(X), plain.predict_marginals([[[w] for w in x] for x in X]), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)
    new = [["the", "bird"]]  # a name that training has not seen is dropped
    np.testing.assert_allclose(
        ours.predict_marginals(new)[0],
        plain.predict_marginals([[["the"], ["bird"]]])[0],
        atol=1e-6,
    )


def test_any_input_and_any_labels() -> None:
    inputs = [
        {"n": 2, "colours": {0: "red", 1: "blue"}},
        {"n": 3, "colours": {1: "red"}},
        {"n": 1, "colours": {}},
    ]
    labels: list[list[Any]] = [[("red", 1), ("blue", 2)], [("none",), ("red", 1), ("none",)], [("none",)]]
    functions = FeatureFunctions([graph_label, repeated], length=positions_of)
    crf = CRF(features=functions, l2=0.01).fit(inputs, labels)
    assert crf.predict(inputs)[:2] == labels[:2]
    assert crf.predict_nbest(inputs, 2)[0][0][1] == labels[0]
    assert crf.log_probability(inputs, labels).shape == (3,)
    assert [len(draw) for draw in crf.sample(inputs, 1, random_state=1)[1]] == [3]
    assert crf.score(inputs, labels) >= 5 / 6
    assert crf.predict([]) == crf.predict_marginals([]) == []


def test_functions_are_called_only_for_what_exists() -> None:
    calls: Counter[tuple[Any, ...]] = Counter()

    def seen(x: Any, before: Any, label: Any, i: int) -> float:
        calls[before, label, i] += 1
        return 1.0

    bigrams = crfkit.Bigrams([(START, "D"), ("D", "N"), ("N", "V"), ("N", END), ("V", END), (START, "N")])
    features = FeatureFunctions([FeatureFunction(seen, end=True)], transitions=False)
    with pytest.warns(UnsavableModel, match="'seen' has no import path"):
        crf = CRF(structure=Chain(bigrams=bigrams), features=features).fit(X[:1], Y[:1])
    assert set(calls) == {(START, "D", 0), ("D", "N", 1), ("N", "V", 2), ("V", END, 3)}
    calls.clear()
    assert crf.predict(X[:1], allowed=[[None, ["N"], None]]) == [["D", "N", "V"]]
    assert max(calls.values()) <= 2  # once to see what it gives, once for its values


def test_values_are_kept_within_the_bound() -> None:
    def counted(x: Any, label: Any, i: int) -> float:
        n_calls[0] += 1
        return float(len(x[i]))

    for memory, many in ((1 << 20, False), (0, True)):
        n_calls = [0]
        with pytest.warns(UnsavableModel):
            CRF(features=FeatureFunctions([counted], memory=memory)).fit(X, Y)
        assert (n_calls[0] > 3 * 11 * 3) == many


@pytest.mark.parametrize("end", [False, True])
def test_same_bits_whatever_threads_and_memory(monkeypatch: pytest.MonkeyPatch, end: bool) -> None:
    monkeypatch.setattr(function_data, "_SLICE", 4000)
    inputs, labels = X * 30, Y * 30
    functions: list[Any] = [word, vector, repeated, FeatureFunction(ending, end=end)]
    fits = [
        CRF(
            features=FeatureFunctions(functions, memory=memory),
            n_threads=n,
            optimizer=crfkit.LBFGS(max_iterations=5),
        )
        for n, memory in ((1, 1 << 30), (2, 1 << 30), (3, 0), (1, 20_000))
    ]
    weights = [crf.fit(inputs, labels).weights_ for crf in fits]
    assert all(np.array_equal(one, weights[0]) for one in weights[1:])
    probs = [np.concatenate(crf.predict_marginals(inputs)) for crf in fits]
    assert all(np.array_equal(one, probs[0]) for one in probs[1:])


def test_start_and_end() -> None:
    ends = FeatureFunction(ending, end=True)
    crf = fitted([ends], optimizer=crfkit.LBFGS(max_iterations=3))
    assert crf.output_names_ == ["ending[0]", "ending[1]"]
    np.testing.assert_allclose(crf.weights_[-2:], 0, atol=1e-12)  # the same for every label sequence
    without = CRF(structure=Chain(start=False, end=False), features=FeatureFunctions([ends, word])).fit(X, Y)
    assert np.all(without.weights_[without.feature_map_.n_weights :][:2] == 0)


def test_names_penalties_and_inspection() -> None:
    crf = fitted(
        [word, vector, FeatureFunction(length_of_noun, name="noun")],
        l2={"word": 1e6, "noun": 0.0, "default": 1.0},
    )
    names = crf.output_names_
    assert names[-4:] == ["vector[0]", "vector[1]", "vector[2]", "noun"]
    assert "word:dog|N" in names
    weights = dict(zip(names, crf.weights_[-len(names) :], strict=True))
    assert abs(weights["word:dog|N"]) < 1e-5 < abs(weights["vector[2]"])
    heaviest = heaviest_outputs(crf, 2)
    assert len(heaviest) == 2
    assert abs(heaviest[0].weight) == max(map(abs, weights.values()))
    assert heaviest[0].feature in as_text(describe(crf, 3))
    assert crf.n_features_ == len(names)
    with pytest.raises(ArgumentError, match="l1"):
        fitted([word], l1={"ward": 1.0})


def raises(x: Any, label: Any, i: int) -> float:
    return {"D": 1.0, "N": 2.0}[label]


def gives_nan(x: Any, label: Any, i: int) -> float:
    return float("nan") if x[i] == "cat" and label == "N" else 0.0


def gives_inf_in_a_dict(x: Any, before: Any, label: Any, i: int) -> dict[str, float]:
    return {"a": 1.0, "b": float("inf") if i == 1 and label == "V" else 1.0}


def changes_its_size(x: Any, label: Any, i: int) -> list[float]:
    return [1.0] * (1 + i)


def gives_text(x: Any, label: Any, i: int) -> Any:
    return 1.0 if i == 0 else "one"


def gives_numbered_outputs(x: Any, label: Any, i: int) -> dict[int, float]:
    return {i + 1: 1.0}


def gives_odd_keys(x: Any, label: Any, i: int) -> Any:
    return {(1, 2): 1.0}


def gives_text_in_a_dict(x: Any, label: Any, i: int) -> Any:
    return {"a": "b"}


def gives_a_matrix(x: Any, label: Any, i: int) -> Any:
    return sparse.csr_matrix(np.ones((2, 2)))


def gives_few_rows(x: Any, labels: Any, positions: Any) -> Any:
    return np.ones(len(positions) - 1)


def gives_few_sparse_rows(x: Any, labels: Any, positions: Any) -> Any:
    return sparse.csr_matrix(np.ones((2, 2)))


def gives_few_items(x: Any, labels: Any, positions: Any) -> Any:
    return [1.0]


def gives_nothing(x: Any, labels: Any, positions: Any) -> Any:
    return None


def raises_for_all(x: Any, labels: Any, positions: Any) -> Any:
    raise RuntimeError("no luck")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            raises,
            "sequence 0, position 0, label 'V'",
        ),
        (
            gives_nan,
            "sequence 1, position 1, label 'N'",
        ),
        (
            gives_inf_in_a_dict,
            "sequence 0, position 1, label 'V'",
        ),
        (changes_its_size, "sequence 0, position 1, label 'D'"),
        (
            gives_text,
            "sequence 0, position 1, label 'D'",
        ),
        (
            gives_numbered_outputs,
            "position 0",
        ),
        (
            FeatureFunction(gives_numbered_outputs, 3),
            "position 2",
        ),
        (
            FeatureFunction(gives_numbered_outputs, ["a", "b"]),
            "gave the output 2, expected numbers from 0 to 1",
        ),
        (FeatureFunction(word, 3), r"gave the output 'the\|D', expected numbers from 0 to 2"),
        (FeatureFunction(word, ["a"]), r"gave the output 'the\|D', which is none of the declared ones"),
        (
            FeatureFunction(vector, 2),
            "sequence 0, position 0, label 'D'",
        ),
        (gives_odd_keys, r"gave a dict with the key \(1, 2\), expected numbers or names of outputs"),
        (gives_text_in_a_dict, "gave 'b' for 'a', expected a number"),
        (gives_a_matrix, r"gave a sparse matrix of shape \[2, 2\], expected a sparse row"),
        (
            FeatureFunction(gives_few_rows, vectorised=True),
            "sequence 0",
        ),
        (
            FeatureFunction(gives_few_sparse_rows, vectorised=True),
            "sequence 0",
        ),
        (
            FeatureFunction(gives_few_items, 1, vectorised=True),
            "sequence 0",
        ),
        (
            FeatureFunction(gives_nothing, vectorised=True),
            "sequence 0",
        ),
        (
            FeatureFunction(raises_for_all, vectorised=True),
            "sequence 0",
        ),
    ],
)
def test_bad_values_are_named(function: Any, message: str) -> None:
    with pytest.raises(FunctionError, match=message):
        fitted([function])


def test_bad_values_are_named_when_predicting() -> None:
    crf = fitted([vector])
    with pytest.raises(FunctionError, match="sequence 1, position 0, label 'D'"):
        crf.predict([["the"], [3]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FeatureFunctions([]), "the list is empty"),
        (lambda: FeatureFunctions("word"), "got 'word', expected a list of functions"),  # type: ignore[arg-type]
        (lambda: FeatureFunctions([3]), "got 3, expected a function"),  # type: ignore[list-item]
        (lambda: FeatureFunctions([len]), "'len' takes 1 arguments, expected f"),
        (lambda: FeatureFunctions([max]), "'max' takes 0 arguments"),
        (lambda: FeatureFunctions([word, word]), "two feature functions have the name 'word'"),
        (lambda: FeatureFunctions([word], length=3), "length is 3, expected a function"),  # type: ignore[arg-type]
        (lambda: FeatureFunctions([word], memory=-1), "memory is -1, expected a number of bytes"),
        (lambda: FeatureFunction(word, 0), "outputs is 0, expected how many"),
        (lambda: FeatureFunction(word, ["a", "a"]), "expected how many there are, or their distinct names"),
        (
            lambda: FeatureFunction(word, on="positions"),
            "on is 'positions', expected 'labels' or 'transitions'",
        ),
        (lambda: FeatureFunction(word, end=True), "end is for functions of pairs"),
        (
            lambda: CRF(features=FeatureFunctions([word]), min_count=2).fit(X, Y),
            "all_possible_states and min_count",
        ),
        (
            lambda: CRF(features=FeatureFunctions([word])).fit({"a": 1}, Y),  # type: ignore[arg-type]
            "X is .*expected a list of sequences",
        ),
        (
            lambda: CRF(features=FeatureFunctions([word])).fit([1, 2], Y),
            r"sequence 0: length\(x\) failed for 1",
        ),
        (
            lambda: CRF(features=FeatureFunctions([word], length=str)).fit(X, Y),  # type: ignore[arg-type]
            r"sequence 0: length\(x\) is .*, expected a whole number",
        ),
    ],
)
def test_bad_specifications_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


# ---- files


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of feature functions, as a user would have one."""
    (tmp_path / "my_features.py").write_text(
        "def word(x, label, i):\n    return {f'{x[i]}|{label}': 1.0}\n\n\n"
        "def same(x, before, label, i):\n    return [before == label, 1.0]\n\n\n"
        "def size(x):\n    return len(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import my_features  # type: ignore[import-not-found]

    yield my_features
    sys.modules.pop("my_features", None)


def test_a_file_names_functions_and_loading_runs_none_of_them(module: Any, tmp_path: Path) -> None:
    functions = FeatureFunctions([module.word, FeatureFunction(module.same, 2, end=True)], length=module.size)
    crf = CRF(structure=Chain(bigrams="observed"), features=functions, l2=0.1).fit(X[:4], Y[:4])
    path = tmp_path / "model.crf"
    crf.save(path)
    marginals = np.concatenate(crf.predict_marginals(X[:4]))
    del sys.modules["my_features"]
    bare = crfkit.load(path)
    assert "my_features" not in sys.modules
    assert bare.output_names_ == crf.output_names_
    assert "word:dog|N" in as_text(describe(bare, 100))
    with pytest.raises(NotLoadedError):
        bare.predict(X)
    bare.save(tmp_path / "again.crf")
    assert path.read_bytes() == (tmp_path / "again.crf").read_bytes()
    trusting = crfkit.load(path, trust_functions=True)
    assert "my_features" in sys.modules
    given = crfkit.load(path, functions)
    for loaded in (trusting, given):
        assert np.array_equal(np.concatenate(loaded.predict_marginals(X[:4])), marginals)
    with pytest.raises(NotLoadedError):
        crfkit.load(path, [module.word, module.same]).predict(X)
    with pytest.raises(ArgumentError, match="functions"):
        crfkit.load(path, [module.word])
    with pytest.raises(ArgumentError, match="functions"):
        crfkit.load(path, "word")


def test_pickle_and_clone(module: Any) -> None:
    crf = CRF(features=FeatureFunctions([module.word])).fit(X, Y)
    copied = pickle.loads(pickle.dumps(crf))
    assert copied.predict(X) == crf.predict(X)
    assert clone(crf).fit(X, Y).predict(X) == crf.predict(X)
    assert clone(crf).set_params(features__memory=0).features.memory == 0


def test_a_function_without_a_path_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.warns(
        UnsavableModel, match="'<lambda>' has no import path; expected a function that stands in a module"
    ):
        crf = fitted([lambda x, label, i: len(x[i])])
    with pytest.raises(UnsavableError):
        crf.save(tmp_path / "model.crf")
    with pytest.warns(UnsavableModel, match="'length' has no import path"):
        CRF(features=FeatureFunctions([word], length=lambda x: len(x))).fit(X, Y)


def test_functions_for_a_model_without_any(tmp_path: Path) -> None:
    CRF().fit([[["a"], ["b"]]], [["x", "y"]]).save(tmp_path / "plain.crf")
    with pytest.raises(ArgumentError, match="functions"):
        crfkit.load(tmp_path / "plain.crf", [word])


def changed(crf: CRF, **changes: Any) -> bytes:
    """The model's file with another list of functions."""
    file = decode(crf.__getstate__()["model"])
    settings = json.loads(json.dumps(file.settings))
    for name, value in changes.items():
        if name in settings["functions"]:
            settings["functions"][name] = value
        else:
            settings["functions"]["functions"][0][name] = value
    return encode(file._replace(settings=settings))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "os.system"}, "'os.system' is no import path"),
        ({"path": "a:b();c"}, "no import path"),
        ({"path": 3}, "its setting 'path' is '3'"),
        ({"outputs": 7}, "its features need"),
        ({"outputs": -1}, "its list of feature functions is damaged"),
        ({"functions": [1]}, "its list of feature functions is damaged"),
        ({"functions": "word"}, "its setting 'functions'"),
        ({"functions": []}, "its features need"),
        ({"named": False, "declared": True, "on": "nothing"}, "on is 'nothing'"),
        ({"end": True}, "end is for functions of pairs"),
        ({"memory": -1}, "its setting 'memory' is -1"),
        ({"length": ""}, "no import path"),
    ],
)
def test_damaged_files_are_refused(changes: dict[str, Any], message: str) -> None:
    crf = fitted([word])
    with pytest.raises(FileFormatError, match=f"f.crf: not a usable model: .*{message}"):
        from_bytes(changed(crf, **changes), "f.crf")


def test_a_path_that_cannot_be_imported() -> None:
    crf = fitted([word])
    for path in ("no_such_module:f", "math:nothing"):
        with pytest.raises(NotLoadedError, match=f"the feature function {path} cannot be imported"):
            from_bytes(changed(crf, path=path), "f.crf", trust_functions=True)
    with pytest.raises(ArgumentError, match="math"):
        from_bytes(changed(crf, path="math:pi"), "f.crf", trust_functions=True)
