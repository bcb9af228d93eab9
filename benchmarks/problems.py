"""The training problems of the optimizers' benchmark: four corpora, each with features, penalty and a test part.

As in `benchmarks.tasks`, a toolkit is given Python lists: X[sequence][position] is a list of feature strings, y the labels.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from benchmarks import letters
from benchmarks.corpora import corpus_path
from benchmarks.tasks import TASKS, Features, Labels, load, tag_features
from crfkit.data import read_columns, read_conllu

GREEK_SENTENCES = 400  # CRFsuite's cost grows with the square of the labels


class Data(NamedTuple):
    """The training part and the test part."""

    X: Features
    y: Labels
    X_test: Features
    y_test: Labels

    def first(self, part: float) -> Data:
        """The first `part` of each."""
        n, m = max(1, round(part * len(self.X))), max(1, round(part * len(self.X_test)))
        return Data(self.X[:n], self.y[:n], self.X_test[:m], self.y_test[:m])


class Problem(NamedTuple):
    """f(w) = NLL + ½·l2·|w|² of a chain without start and end arcs, with weights for the arcs seen in training."""

    title: str
    read: Callable[[], Data]
    l2: float


def chunking() -> Data:
    """CoNLL-2000, with the features of CRFsuite's example."""
    task = TASKS["chunk"]
    return Data(*load(task, "train"), *load(task, "test"))


def names() -> Data:
    """Spanish names of CoNLL-2002: words, shapes and affixes of a word and its neighbours."""
    parts: list[list[list[list[str]]] | list[list[str]]] = []
    for split in ("esp.train", "esp.testb"):
        rows = [sequence.rows for sequence in read_columns(corpus_path("conll2002", split), comment=None)]
        parts += [[tag_features(sentence) for sentence in rows], [[row[2] for row in r] for r in rows]]
    return Data(*parts)  # type: ignore[arg-type]


def ocr() -> Data:
    """OCR letters: the pixels that are black; folds 1 to 9 against fold 0."""
    X: list[Features] = [[], []]
    y: list[Labels] = [[], []]
    for word in letters.words():
        side = int(word.fold == 0)
        X[side].append([["bias", *(f"p{i}" for i in row.nonzero()[0].tolist())] for row in word.pixels])
        y[side].append(list(word.letters))
    return Data(X[0], y[0], X[1], y[1])


def greek() -> Data:
    """The first sentences of the Ancient Greek treebank with their whole morphological tags."""
    path = corpus_path("ancient_greek_perseus", "agdt-train.conllu")
    sentences = list(islice(read_conllu(path), GREEK_SENTENCES + GREEK_SENTENCES // 4))
    X = [tag_features([(word.form,) for word in sentence.words]) for sentence in sentences]
    y = [[word.xpos for word in sentence.words] for sentence in sentences]
    n = GREEK_SENTENCES
    return Data(X[:n], y[:n], X[n:], y[n:])


PROBLEMS = {
    "chunking": Problem("CoNLL-2000 chunking, 22 labels", chunking, 2.0),
    "names": Problem("CoNLL-2002 Spanish names, 9 labels", names, 2.0),
    "letters": Problem("OCR letters, 26 labels", ocr, 2.0),
    "greek": Problem(f"Ancient Greek, {GREEK_SENTENCES} sentences, whole tags", greek, 2.0),
}
