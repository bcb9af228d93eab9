"""On whole corpora: models of python-crfsuite here, and ours there, give the same labels and probabilities."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.corpora import find_corpus
from benchmarks.tasks import chunk_features, tag_features

from crfkit import CRF, LBFGS, Chain
from crfkit.compat import pycrfsuite as ours
from crfkit.compat import write_crfsuite
from crfkit.data import read_columns

CORPORA = {
    "chunking": ("conll2000", "train.txt", "test.txt", chunk_features, 2),
    "Dutch names": ("conll2002", "ned.train", "ned.testb", tag_features, 2),
    "Spanish names": ("conll2002", "esp.train", "esp.testb", tag_features, -1),
}
N_TRAIN = 4000  # sequences


def examples(corpus: str, file: str, extract: Any, column: int, n: int | None = None) -> tuple[Any, Any]:
    path = find_corpus(corpus, file)
    if path is None:
        pytest.skip(f"the corpus {corpus} is not on this machine")
    rows = [sequence.rows for sequence in islice(read_columns(path, comment=None), n)]
    return [extract(position) for position in rows], [[row[column] for row in position] for position in rows]


@pytest.fixture(scope="module")
def theirs() -> Any:
    return pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")


def compare(theirs: Any, path: Path, X: Any) -> None:
    mine, other = ours.Tagger(), theirs.Tagger()
    mine.open(str(path))
    other.open(str(path))
    names = other.labels()
    for x in X:
        labels = other.tag(x)
        assert mine.tag(x) == labels
        assert mine.probability(labels) == pytest.approx(other.probability(labels), abs=1e-9)
        found, expected = (
            [[tagger.marginal(label, i) for label in names] for i in range(len(x))]
            for tagger in (mine, other)
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_models_mean_the_same_on_both_sides(theirs: Any, name: str, tmp_path: Path) -> None:
    corpus, train, test, extract, column = CORPORA[name]
    X, y = examples(corpus, train, extract, column, N_TRAIN)
    X_test, _ = examples(corpus, test, extract, column)
    trainer = theirs.Trainer("lbfgs", {"max_iterations": 15, "c2": 0.5}, verbose=False)
    for positions, labels in zip(X, y, strict=True):
        trainer.append(positions, labels)
    trainer.train(str(tmp_path / "theirs"))
    compare(theirs, tmp_path / "theirs", X_test)
    few = LBFGS(max_iterations=15)
    write_crfsuite(CRF(Chain(start=False, end=False), optimizer=few).fit(X, y), tmp_path / "ours")
    compare(theirs, tmp_path / "ours", X_test)
