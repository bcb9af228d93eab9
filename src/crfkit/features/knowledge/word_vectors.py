"""Word vectors: rows of numbers for words, as word2vec, GloVe and fastText learn them from text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.errors import ArgumentError, ShapeError
from crfkit.features.knowledge import mapped_file
from crfkit.features.knowledge.mapped_file import MappedFile
from crfkit.features.knowledge.resource import Resource, index_words, open_words
from crfkit.features.knowledge.vector_files import Float32s, Subwords, read_vectors
from crfkit.features.wording import describe_value


class WordVectors(Resource):
    """Vectors of words, for dense blocks of features beside a template, or for features of your own.

    `WordVectors.read` converts the files of word2vec, GloVe and fastText; `WordVectors.build` takes words and a matrix.

    >>> vectors = WordVectors.build({"Rome": [0.5, 1.0], "runs": [0.0, -1.0]})
    >>> vectors.rows(["Rome", "Oslo"])
    array([[0.5, 1. ],
           [0. , 0. ]])
    """

    KIND = "word vectors"

    @classmethod
    def build(
        cls,
        vectors: Mapping[str, npt.ArrayLike],
        path: str | os.PathLike[str] | None = None,
        *,
        fold_case: bool = False,
    ) -> Self:
        """Vectors by word, all of one size; with `path`, in a file that is mapped."""
        if not isinstance(vectors, Mapping):
            raise ArgumentError(f"vectors is {describe_value(vectors)}, expected a dict of vectors by word")
        rows: list[Float32s] = []
        for word, row in vectors.items():
            try:
                if not isinstance(word, str):
                    raise ValueError
                rows.append(np.asarray(row, dtype=np.float32))
            except (TypeError, ValueError):
                raise ArgumentError(
                    f"vectors has {describe_value(word)} with {describe_value(row)}, expected a word with numbers"
                ) from None
        if not rows or not rows[0].size or any(row.ndim != 1 or row.shape != rows[0].shape for row in rows):
            raise ShapeError("vectors needs at least one word, and rows of numbers that are all of one size")
        return cls._build(vectors, np.stack(rows), None, path, fold_case=fold_case)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        to: str | os.PathLike[str] | None = None,
        *,
        fold_case: bool = False,
        limit: int | None = None,
    ) -> Self:
        """Vectors of a file of word2vec (text or binary), GloVe (text) or fastText (.vec or .bin); the first `limit` words.

        With `to`, in a file that is mapped, which `WordVectors.load` opens later. A .bin file of fastText has vectors of
        subwords as well: words that are not in it have the mean of those, as in fastText.
        """
        if limit is not None:
            limit = check_count("limit", limit, most=float("inf"))
        words, matrix, subwords = read_vectors(path, limit)
        return cls._build(words, matrix, subwords, to, fold_case=fold_case)

    @classmethod
    def _build(
        cls,
        words: Iterable[str],
        matrix: Float32s,
        subwords: Subwords | None,
        path: str | os.PathLike[str] | None,
        *,
        fold_case: bool,
    ) -> Self:
        names = _core.Vocabulary()
        kept: list[int] = []  # of words that are equal, the first, which is the most frequent in all files
        for row, word in enumerate(words):
            if names.add(word.casefold() if fold_case else word) == len(kept):
                kept.append(row)
        if len(kept) < len(matrix):
            matrix = matrix[kept]
        if not np.isfinite(matrix).all():
            raise ArgumentError("a vector has a number that is not finite")
        arrays = {**index_words(names), "matrix": matrix}
        settings: dict[str, Any] = {"fold_case": bool(fold_case), "subwords": None}
        if subwords is not None:
            arrays["buckets"] = subwords.matrix
            settings["subwords"] = [subwords.shortest, subwords.longest]
        return cls._keep(mapped_file.make(cls.KIND, settings, arrays), path)

    def _open(self, file: MappedFile) -> None:
        self._words = open_words(file)
        self._matrix = file.arrays["matrix"]
        if self._matrix.ndim != 2 or len(self._matrix) != len(self._words):
            raise ValueError("the sizes of its arrays do not fit together")
        self.fold_case = file.settings["fold_case"]
        if not isinstance(self.fold_case, bool):
            raise ValueError("its settings are damaged")
        self._subwords: Subwords | None = None
        if file.settings["subwords"] is not None:
            shortest, longest = file.settings["subwords"]
            self._subwords = Subwords(file.arrays["buckets"], shortest, longest)
            if self._subwords.matrix.ndim != 2 or self._subwords.matrix.shape[1] != self.size:
                raise ValueError("the sizes of its arrays do not fit together")

    @property
    def size(self) -> int:
        """K, how many numbers a vector has."""
        return int(self._matrix.shape[1])

    @property
    def has_subwords(self) -> bool:
        """Whether words that are not in it have a vector, by the vectors of their subwords."""
        return self._subwords is not None

    def __len__(self) -> int:
        """How many words have a vector."""
        return len(self._words)

    def __repr__(self) -> str:
        also = " and of subwords" if self.has_subwords else ""
        return f"<WordVectors of {len(self):,} words{also}, {self.size} numbers each>"

    def __contains__(self, word: str) -> bool:
        return self._words.get(self._fold(word)) >= 0

    def __getitem__(self, word: str) -> Float32s:
        """The vector [K] of a word; KeyError where it has none."""
        row: Float32s | None = None
        id = self._words.get(self._fold(word))
        if id >= 0:
            row = self._matrix[id]
        elif self._subwords is not None:
            row = self._subwords.vector(self._fold(word))
        if row is None:
            raise KeyError(word)
        return row

    def rows(self, words: Sequence[str]) -> Float64s:
        """The vectors of words, [T, K]: 0 for words without one. A dense block of features."""
        folded = [self._fold(word) for word in words]
        ids = self._words.get_all(folded)
        out = np.zeros((len(folded), self.size))
        known = ids >= 0
        out[known] = self._matrix[ids[known]]
        if self._subwords is not None:
            for i in np.flatnonzero(~known).tolist():
                row = self._subwords.vector(folded[i])
                if row is not None:
                    out[i] = row
        return out

    def _fold(self, word: str) -> str:
        return word.casefold() if self.fold_case else word
