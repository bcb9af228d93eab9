"""What a model file holds about its labels beyond their names: the tag dictionary, and the facets."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crfkit.data import InputError
from crfkit.features import Facets, TagDictionary, Vocabulary

MAX_FACETS = 65_535


class Names(NamedTuple):
    """A vocabulary as bytes."""

    blob: npt.NDArray[np.uint8]  # UTF-8, one name after the other
    lengths: npt.NDArray[np.uint32]  # [F] in bytes


class Lists(NamedTuple):
    """The labels, facets, or arcs (as before · L + after) that each feature, word or ending has."""

    ptr: npt.NDArray[np.int64]  # [F + 1]
    items: npt.NDArray[np.int32]  # [P] ascending within a list


class StoredDictionary(NamedTuple):
    """A tag dictionary as the file holds it."""

    words: Names
    word_lists: Lists
    endings: Names
    ending_lists: Lists
    column: int | str

    @classmethod
    def of(cls, dictionary: TagDictionary) -> Self:
        """What the file is to hold of a dictionary."""
        n_words = len(dictionary.words)
        middle = int(dictionary.ptr[n_words])
        return cls(
            _names(dictionary.words),
            Lists(dictionary.ptr[: n_words + 1], dictionary.labels[:middle]),
            _names(dictionary.endings),
            Lists(dictionary.ptr[n_words:] - middle, dictionary.labels[middle:]),
            dictionary.column,
        )

    def opened(self, classes: Sequence[Hashable]) -> TagDictionary:
        """The dictionary itself; InputError where it is damaged."""
        try:
            words, endings = (Vocabulary.from_bytes(*names).names() for names in (self.words, self.endings))
        except ValueError as error:
            raise InputError(f"its tag dictionary is damaged ({error})") from None
        words_end = self.word_lists.ptr[-1]
        return TagDictionary(
            tuple(classes),
            tuple(words),
            tuple(endings),
            np.concatenate([self.word_lists.ptr, words_end + self.ending_lists.ptr[1:]]),
            np.concatenate([self.word_lists.items, self.ending_lists.items]),
            self.column,
        )


def _names(texts: Sequence[str]) -> Names:
    vocabulary = Vocabulary()
    for text in texts:
        vocabulary.add(text)
    return Names(*vocabulary.to_bytes())


def facets_to_json(facets: Facets | None) -> Any:
    """The names of facets, as a setting of the file; the table is an array of its own."""
    return None if facets is None else list(facets.names)


def read_facets(names: object, table: npt.NDArray[np.int64] | None, n_labels: int) -> Facets | None:
    """Facets from their setting and their table [L · K], in which 0 says that a label has none of a kind."""
    if names is None and table is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or table is None:
        raise InputError("its facets are damaged")
    if not 0 < len(names) <= MAX_FACETS or len(table) == 0 or len(table) % n_labels:
        raise InputError("its facets are damaged")
    return Facets(tuple(names), (table.reshape(n_labels, -1) - 1).astype(np.int32))
