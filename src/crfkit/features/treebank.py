"""Sentences for a parser as numbers: their words for the native core, and what is known about their trees.

A head that is None and a label that is `_` are unknown: every tree that agrees with the rest is then right.
Letters: T words of all sentences together, N sentences.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from crfkit._core import Treebank
from crfkit.arrays import Float64s, Int32s
from crfkit.data import Sentence, Word, check_tree
from crfkit.errors import ArgumentError, TreeError, reword
from crfkit.features.knowledge import Clusters, WordVectors

UNKNOWN = "_"  # a label that is not given
COLUMNS = ("form", "lemma", "upos", "xpos", "feats")
"""The columns of a treebank that features of arcs may read."""


class KnownTrees(NamedTuple):
    """What is known of the trees of all sentences, −1 where nothing is."""

    heads: Int32s  # [T] 0 is the root
    labels: Int32s  # [T]


def check_sentences(sentences: Any, what: str = "sentences") -> list[Sentence]:
    """A list of sentences, from any iterable of them."""
    if isinstance(sentences, str | bytes | Sentence) or not isinstance(sentences, Iterable):
        advice = ": write [sentence] for a single one" if isinstance(sentences, Sentence) else ""
        raise ArgumentError(
            f"{what}: got {type(sentences).__name__}, expected sentences as read_conllu gives them{advice}"
        )
    found = list(sentences)
    for n, sentence in enumerate(found):
        if not isinstance(sentence, Sentence):
            raise ArgumentError(
                f"{what}[{n}] is of type {type(sentence).__name__}, expected a Sentence; of words it is made by "
                "crfkit.data: Sentence([Word(form, upos=tag), …])"
            )
        for word in sentence.words:
            if not isinstance(word, Word):
                raise ArgumentError(f"{what}[{n}] has {word!r} among its words, expected a Word")
    return found


def encode_sentences(
    sentences: Sequence[Sentence],
    columns: Collection[str] | None = None,
    clusters: Clusters | None = None,
    vectors: WordVectors | None = None,
) -> Treebank:
    """Form, lemma, tags and morphology of each word, as the native core reads them; or only some of these columns.

    With `clusters` and `vectors`, the paths and the vectors of the forms of words too, whatever the columns.
    """
    paths = None
    if clusters is not None:
        paths = [clusters.get(word.form) or "" for sentence in sentences for word in sentence.words]
    rows, ids = (None, None) if vectors is None else _vector_rows(sentences, vectors)
    blank: dict[str, Any] = {} if columns is None else {name: "_" for name in COLUMNS if name not in columns}
    try:
        if blank:
            return Treebank(
                [[word._replace(**blank) for word in one.words] for one in sentences], paths, rows, ids
            )
        return Treebank([list(sentence.words) for sentence in sentences], paths, rows, ids)
    except ValueError as error:
        raise reword(error, str(error)) from None


def _vector_rows(sentences: Sequence[Sentence], vectors: WordVectors) -> tuple[Float64s, Int32s]:
    """The vectors of the different forms, [·, K], and the row of each word, [T]: −1 for one without a vector."""
    number: dict[str, int] = {}
    ids = [number.setdefault(word.form, len(number)) for sentence in sentences for word in sentence.words]
    rows = vectors.rows(list(number))
    found = np.array(ids, dtype=np.int32)
    known = (rows != 0).any(axis=1)  # [·]
    return rows, np.where(known[found], found, -1).astype(np.int32)


def labels_of(sentences: Sequence[Sentence]) -> list[str]:
    """The labels that occur, sorted."""
    found = {word.deprel for sentence in sentences for word in sentence.words}
    return sorted(found - {UNKNOWN})


def known_trees(sentences: Sequence[Sentence], labels: Sequence[str]) -> KnownTrees:
    """Heads, and labels by their numbers; a label that is not among `labels` is −2, which no tree has."""
    number = {label: i for i, label in enumerate(labels)} | {UNKNOWN: -1}
    words = [word for sentence in sentences for word in sentence.words]
    return KnownTrees(
        np.array([-1 if word.head is None else word.head for word in words], dtype=np.int32),
        np.array([number.get(word.deprel, -2) for word in words], dtype=np.int32),
    )


def check_trees(sentences: Sequence[Sentence], *, single_root: bool) -> None:
    """Refuse heads that no tree has, with file and line; words may have none."""
    for sentence in sentences:
        _check_types(sentence)
        if sentence.words:
            check_tree(sentence, single_root, partial=True)


def _check_types(sentence: Sentence) -> None:
    """Refuse heads that are no whole numbers, and labels that are no texts."""
    for number, word in enumerate(sentence.words, 1):
        head = word.head
        if head is not None and (isinstance(head, bool) or not isinstance(head, int | np.integer)):
            raise TreeError(
                f"{sentence.place(number)}: the HEAD is {head!r}, expected a whole number or None"
            )
        if not isinstance(word.deprel, str):
            raise ArgumentError(
                f"{sentence.place(number)}: the DEPREL is {word.deprel!r}, expected a string, _ where it is unknown"
            )
