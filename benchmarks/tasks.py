"""The tasks of the chain benchmark: which columns of which corpus, which features, which penalty.

Every task turns sentences (rows ``(word, part of speech, chunk or name)``) into what a user hands to a toolkit:
``X[sentence][position]`` is a list of feature strings, ``y[sentence][position]`` is a label. Strings are made afresh
at each position, as the code of a user makes them, so no toolkit gains from objects that happen to be shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from benchmarks.corpora import corpus_path
from crfkit.data import read_columns

Row = tuple[str, ...]
Features = list[list[list[str]]]  # [N][T] lists of feature strings
Labels = list[list[str]]  # [N][T]

WORD, TAG, CHUNK = 0, 1, 2
NAME = CHUNK  # of CoNLL-2002


class Corpus(NamedTuple):
    """Two column files, to train on and to tag: "test" may be a validation set."""

    folder: str
    files: dict[str, str]  # by split
    n_sentences: dict[str, int]


CONLL2000 = Corpus("conll2000", {"train": "train.txt", "test": "test.txt"}, {"train": 8936, "test": 2012})
SPANISH_NAMES = Corpus(
    "conll2002", {"train": "esp.train", "test": "esp.testa"}, {"train": 8323, "test": 1915}
)

# Each template is a conjunction of (column, offset), as in CRFsuite's and CRF++'s examples of chunking.
CHUNK_TEMPLATES: tuple[tuple[tuple[int, int], ...], ...] = (
    *(((WORD, offset),) for offset in range(-2, 3)),
    *(((WORD, offset), (WORD, offset + 1)) for offset in (-1, 0)),
    *(((TAG, offset),) for offset in range(-2, 3)),
    *(((TAG, offset), (TAG, offset + 1)) for offset in range(-2, 2)),
    *(((TAG, offset), (TAG, offset + 1), (TAG, offset + 2)) for offset in range(-2, 1)),
)
CHUNK_NAMES = tuple(
    "|".join(f"{'wp'[column]}[{offset}]" for column, offset in template) + "=" for template in CHUNK_TEMPLATES
)
CRFPP_NAMES = tuple(
    f"U{number:02d}:" for number in (*range(7), *range(10, 19), *range(20, 23))
)  # U00-U06 words, U10-U18 tags and their pairs, U20-U22 triples of tags


def chunk_features(rows: list[Row]) -> list[list[str]]:
    """CRFsuite's example: a template that reaches outside the sentence gives nothing; the ends are marked."""
    T = len(rows)
    positions = []
    for i in range(T):
        features = [
            name + "|".join([rows[i + offset][column] for column, offset in template])
            for name, template in zip(CHUNK_NAMES, CHUNK_TEMPLATES, strict=True)
            if i + template[0][1] >= 0 and i + template[-1][1] < T
        ]
        positions.append(features)
    if positions:
        positions[0].append("__BOS__")
        positions[-1].append("__EOS__")
    return positions


def crfpp_features(rows: list[Row]) -> list[list[str]]:
    """CRF++'s example template, U00 to U22: rows outside the sentence read ``_B-1``, ``_B+1`` and so on."""
    T = len(rows)

    def cell(i: int, column: int) -> str:
        if i < 0:
            return f"_B{i}"
        return rows[i][column] if i < T else f"_B+{i - T + 1}"

    return [
        [
            name + "/".join([cell(i + offset, column) for column, offset in template])
            for name, template in zip(CRFPP_NAMES, CHUNK_TEMPLATES, strict=True)
        ]
        for i in range(T)
    ]


def shape(word: str) -> str:
    """``Xx-0`` for ``Boeing-747``: a run of capitals, small letters or digits becomes one character."""
    return re.sub("[0-9]+", "0", re.sub("[a-z]+", "x", re.sub("[A-Z]+", "X", word)))


def tag_features(rows: list[Row]) -> list[list[str]]:
    """Word, lower case, shape and proper affixes of 1 to 4 letters, of the word and its two neighbours."""
    T = len(rows)
    positions = []
    for i in range(T):
        features = []
        for offset in range(max(-1, -i), min(1, T - 1 - i) + 1):
            word = rows[i + offset][WORD]
            features += [
                f"w[{offset}]={word}",
                f"lower[{offset}]={word.lower()}",
                f"shape[{offset}]={shape(word)}",
            ]
            for n in range(1, min(len(word) - 1, 4) + 1):
                features += [f"prefix[{offset}]={word[:n]}", f"suffix[{offset}]={word[-n:]}"]
        positions.append(features)
    return positions


@dataclass(frozen=True)
class Task:
    """A column of a corpus to be predicted from a feature set, and the objective f(w) = NLL + ½·l2·|w|²."""

    name: str
    title: str
    extract: Callable[[list[Row]], list[list[str]]]
    label_column: int
    l2: float
    all_possible_transitions: bool  # every pair of labels has a weight (else only the pairs seen in training)
    gap_iterations: int  # enough for every toolkit to come within a relative 1e-4 of the optimum
    corpus: Corpus = CONLL2000

    @property
    def has_spans(self) -> bool:
        """Whether labels are B-…, I-… and O."""
        return self.label_column != TAG


TASKS = {
    task.name: task
    for task in (
        Task(
            "chunk", "chunking, CRFsuite's example features, 22 labels", chunk_features, CHUNK, 2.0, True, 180
        ),
        Task("tag", "part-of-speech tagging, 44 labels", tag_features, TAG, 2.0, True, 180),
        Task(
            "names",
            "Spanish names, words and affixes, 9 labels",
            tag_features,
            NAME,
            2.0,
            False,
            180,
            SPANISH_NAMES,
        ),
        Task("crfpp", "chunking, CRF++'s example template, 22 labels", crfpp_features, CHUNK, 1.0, False, 0),
    )
}


def sentences(split: str, part: float = 1.0, corpus: Corpus = CONLL2000) -> list[list[Row]]:
    """The first `part` of a split, "train" or "test"."""
    sequences = read_columns(corpus_path(corpus.folder, corpus.files[split]), comment=None)
    return [sequence.rows for sequence in islice(sequences, round(part * corpus.n_sentences[split]))]


def load(task: Task, split: str, part: float = 1.0) -> tuple[Features, Labels]:
    """The first `part` of a split as the Python lists that every toolkit is given."""
    rows_of_sentences = sentences(split, part, task.corpus)
    X = [task.extract(rows) for rows in rows_of_sentences]
    y = [[row[task.label_column] for row in rows] for rows in rows_of_sentences]
    return X, y
