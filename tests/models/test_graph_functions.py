"""A structure of the user's own with feature functions: files, copies, more data, threads, and what is impossible."""

import pickle
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, Chain, FeatureFunctions, load
from crfkit.errors import NoOutputError, NotLoadedError
from crfkit.models import heaviest_outputs
from tests.models.small_corpus import corpus
from tests.models.test_new_structure import SecondOrder

X, Y = corpus(16)
NEW = X[:4]


def word(x: Any, label: str, i: int) -> dict[str, float]:
    return {f"{max(x[i])} {label}": 1.0}


def repeats(x: Any, before: Any, label: str, i: int) -> float:
    return float(before == label)


@dataclass(frozen=True)
class Constrained(SecondOrder):
    chain: Chain = field(default_factory=lambda: Chain(bigrams="observed"))


FUNCTIONS = FeatureFunctions([word, repeats])


def trained(**settings: Any) -> CRF[Any]:
    return CRF(SecondOrder(), features=FUNCTIONS, **settings).fit(X, Y)


def test_files_and_copies(tmp_path: Path) -> None:
    crf = trained()
    assert crf.score(X, Y) > 0.8
    crf.save(tmp_path / "m")
    with pytest.raises(NotLoadedError):
        load(tmp_path / "m").predict(NEW)
    for copy in (
        load(tmp_path / "m", [word, repeats, SecondOrder]),
        load(tmp_path / "m", trust_functions=True),
        pickle.loads(pickle.dumps(crf)),
    ):
        assert copy.structure == SecondOrder()
        assert copy.output_names_ == crf.output_names_
        assert copy.structure_names_ == crf.structure_names_
        assert copy.predict_nbest(NEW, 3) == crf.predict_nbest(NEW, 3)
        assert copy.fit(X, Y).weights_.tobytes() == crf.weights_.tobytes()
    assert CRF(SecondOrder(), features=FUNCTIONS).fit(X, Y, start=crf).n_iter_ < crf.n_iter_


def test_more_data_joins() -> None:
    crf = CRF(SecondOrder(), features=FUNCTIONS).partial_fit(X[:2], Y[:2])
    before = set(crf.output_names_)
    crf.partial_fit(X[2:], Y[2:])
    assert set(crf.output_names_) > before
    assert crf.score(X, Y) > 0.8
    assert {name for name, _ in heaviest_outputs(crf, 3)} <= set(crf.output_names_)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    one, two = (trained(n_threads=n) for n in (1, 3))
    assert one.weights_.tobytes() == two.weights_.tobytes()
    for found, expected in zip(two.predict_marginals(X), one.predict_marginals(X), strict=True):
        assert np.array(found).tobytes() == np.array(expected).tobytes()


def test_an_impossible_sequence_is_named() -> None:
    crf = CRF(Constrained(), features=FUNCTIONS).fit(X, Y)
    pairs = {(a, b) for y in Y for a, b in pairwise(y)}
    a, b = next((a, b) for a in crf.classes_ for b in crf.classes_ if (a, b) not in pairs)
    x = next(x for x in X if len(x) > 1)
    with pytest.raises(NoOutputError, match="sequence 1"):
        crf.predict([x, x[:2]], allowed=[None, [{a}, {b}]])
