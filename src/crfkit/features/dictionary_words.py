"""Tag dictionaries for words that are known by ids, as those of encoded data sets are.

Shapes: V words, T positions of a shard.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from crfkit.arrays import Int32s, Int64s
from crfkit.features.dataset import Annotation
from crfkit.features.labels import Labels
from crfkit.features.position_words import Column
from crfkit.features.tag_dictionary import TagDictionary
from crfkit.structures import AllowedLabels

_MERGED_AT_ONCE = 1 << 22  # pairs of words and labels that are collected before equal ones are added up


class WordCounts(NamedTuple):
    """At how many positions words have labels."""

    keys: Int64s  # word · L + label, ascending
    counts: Int64s

    @classmethod
    def of_shard(cls, n_labels: int, words: Int32s, annotation: Annotation) -> "WordCounts":
        """Those of positions with the words [T] and the labels of an annotation, where exactly one is known."""
        known = annotation.labels >= 0
        keys = words[known].astype(np.int64) * n_labels + annotation.labels[known]
        return cls(*np.unique(keys, return_counts=True))

    @classmethod
    def join(cls, parts: Iterable["WordCounts"]) -> "WordCounts":
        """The sum of those of all shards; memory holds each pair of a word and a label a few times."""
        pieces: list[WordCounts] = []
        for part in parts:
            pieces.append(part)
            if sum(len(piece.keys) for piece in pieces) > _MERGED_AT_ONCE and len(pieces) > 1:
                pieces = [_add(pieces)]
        return _add(pieces)

    def to_dictionary(
        self, words: list[str], labels: Labels, column: Column, **options: int
    ) -> TagDictionary:
        """The dictionary that `TagDictionary.from_data` makes of the same positions, with the same options."""
        word, label = np.divmod(self.keys, max(len(labels), 1))
        seen = [
            (words[v], labels.classes[b], n)
            for v, b, n in zip(word.tolist(), label.tolist(), self.counts.tolist(), strict=True)
        ]
        return TagDictionary.from_counts(seen, column, **options)


class DictionaryWords(NamedTuple):
    """A tag dictionary, and which of its lists of labels each word of a data set has."""

    dictionary: TagDictionary  # with the ids of the labels of the data set
    entries: Int64s  # [V]

    @classmethod
    def find(cls, dictionary: TagDictionary, words: Iterable[str]) -> "DictionaryWords":
        """For these words."""
        return cls(dictionary, dictionary.find_entries(words))

    def allowed(self, words: Int32s, gold: Annotation | None = None) -> AllowedLabels:
        """The labels that positions with these words [T] may have; those that `gold` names are added."""
        return self.dictionary.allowed_entries(self.entries[words], gold)


def _add(pieces: list[WordCounts]) -> WordCounts:
    """Their sum."""
    if not pieces:
        return WordCounts(np.zeros(0, np.int64), np.zeros(0, np.int64))
    keys, inverse = np.unique(np.concatenate([piece.keys for piece in pieces]), return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, inverse, np.concatenate([piece.counts for piece in pieces]))
    return WordCounts(keys, counts)
