"""From what users give to flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crfkit import _core
from crfkit._core import Vocabulary
from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.errors import ArgumentError, FeatureError
from crfkit.features.blocks import (
    DenseRows,
    Place,
    blocks_of,
    dense_block,
    merge_lists,
    n_positions,
    sparse_features,
    stack_matrices,
)
from crfkit.features.column_rows import ColumnRows
from crfkit.features.dataset import Dataset, FeatureList
from crfkit.features.given_sequences import check_sequences, is_sparse, list_sequences
from crfkit.features.templates import Template
from crfkit.features.vector_blocks import vector_blocks
from crfkit.features.wapiti_tokens import WapitiTokens

MOST_HASH_BITS = 30

_List = tuple[Int64s, Int32s, None]
_Extracted = tuple[Int64s, _List, _List | None, int | None]  # sequence_ptr, states, arcs, columns of a row


@dataclass
class Encoder:
    """Turns input sequences into a Dataset, and keeps what it learned of their features.

    With a template a position is a word or a tuple of columns. Without one it is

        ["a", "b"]                      features a and b
        {"w": "Rome", "len": 4.0}       features w:Rome, and len with the value 4
        {"up": True, "low": False}      feature up
        {"flags": ["a", "b"]}           features flags:a and flags:b
        {"ctx": {"w": "in"}}            feature ctx:w:in
        {"v": NumPy row}                a row of the dense block v
        {"v": SciPy sparse row}         features v:j with the values of the row
        a NumPy or SciPy sparse row     the same with the block name x

    and a sequence is a list of positions, a matrix, or a dict of such blocks (see `crfkit.features.blocks`).
    """

    template: Template | None = None
    vocabulary: Vocabulary = field(default_factory=Vocabulary)  # features on labels
    arc_vocabulary: Vocabulary = field(default_factory=Vocabulary)  # features on arcs
    dense_sizes: dict[str, int] = field(default_factory=dict)  # block → number of columns
    n_columns: int | None = None  # of the rows seen in training, with a template
    more_columns: bool = False  # rows may have more columns than these, each another number of them
    hash_bits: int | None = None  # features are known by 2^hash_bits buckets of their names, not by these
    _extractor: _core.Extractor | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.hash_bits is not None:
            self.hash_bits = int(self.hash_bits)
        for vocabulary in (self.vocabulary, self.arc_vocabulary):
            vocabulary.hash_features(self.hash_bits or 0)

    @property
    def least_columns(self) -> int | None:
        """How many columns a row must have, with a template: `n_columns`, or fewer where the template allows it."""
        if self.template is None or self.n_columns is None or not self.more_columns:
            return self.n_columns
        return self.n_columns - self.template.n_columns + self.template.least_columns

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickles: vocabularies as bytes."""
        names = self.vocabulary.to_bytes(), self.arc_vocabulary.to_bytes()
        return _unpickle, (
            self.template,
            *names,
            self.dense_sizes,
            self.n_columns,
            self.more_columns,
            self.hash_bits,
        )

    def fit_encode(self, X: Any, n_threads: int = 1) -> Dataset:
        """Learn the features of training data, and encode it. After an error the encoder is as it was.

        Ids do not depend on the number of threads, here and below.
        """
        return self._learn(Encoder(self.template, hash_bits=self.hash_bits), X, n_threads)

    def extend_encode(self, X: Any, n_threads: int = 1) -> Dataset:
        """Learn the features of more training data beside those that are known, and encode it.

        Known features keep their ids. After an error the encoder is as it was.
        """
        states, arcs = (
            Vocabulary.from_bytes(*known.to_bytes()) for known in (self.vocabulary, self.arc_vocabulary)
        )
        sizes = dict(self.dense_sizes)
        more = (sizes, self.n_columns, self.more_columns, self.hash_bits)
        fresh = Encoder(self.template, states, arcs, *more)
        return self._learn(fresh, X, n_threads)

    def _learn(self, fresh: Encoder, X: Any, n_threads: int) -> Dataset:
        """Encode training data by another encoder, and become that one."""
        dataset = fresh._encode(X, n_threads, grow=True)
        self.__dict__.update(fresh.__dict__)
        return dataset

    def encode(self, X: Any, n_threads: int = 1) -> Dataset:
        """Encode data with the features that are known; others are dropped."""
        return self._encode(X, n_threads, grow=False)

    def cut(self, dataset: Dataset, min_count: int) -> Dataset:
        """Forget the features that stand at fewer than `min_count` positions of this data set, and drop them from it."""
        states, self.vocabulary = _without_rare(dataset.states, self.vocabulary, min_count)
        arcs = dataset.arcs
        if arcs is not None:
            arcs, self.arc_vocabulary = _without_rare(arcs, self.arc_vocabulary, min_count)
        return Dataset(dataset.sequence_ptr, states, arcs, dataset.dense)

    def _encode(self, X: Any, n_threads: int, *, grow: bool) -> Dataset:
        if grow:
            X = self._count(X)
        template = self.template
        plain = not (template is None or isinstance(template, WapitiTokens) or self.more_columns)
        if isinstance(X, ColumnRows) and len(X) and plain:
            assert template is not None
            return self._extract_columns(template, X, n_threads, grow=grow)
        sequences = list_sequences(X)
        check_sequences(sequences, rows=self.template is not None)
        try:
            if isinstance(self.template, WapitiTokens):
                return self._take_tokens(self.template, sequences, grow=grow)
            if self.template is not None:
                return self._extract(self.template, sequences, n_threads, grow=grow)
            if all(type(sequence) in (list, tuple) for sequence in sequences):
                return self._encode_positions(sequences, n_threads, grow=grow)
            return self._encode_blocks(sequences, grow=grow)
        except _core.InvalidInput as complaint:
            raise FeatureError(str(complaint)) from None

    def _count(self, X: Any) -> Any:
        """X, in a form that can be read again where the template asks for the counts of words: these are counted now."""
        template = self.template
        if template is None or template.counts is not None or not template.asked_counts:
            return X
        if not isinstance(X, ColumnRows):
            X = list_sequences(X)
            check_sequences(X, rows=True)
            X = [list(sequence) if isinstance(sequence, Iterator) else sequence for sequence in X]
        self.template = template.count(X)
        return X

    @property
    def extractor(self) -> _core.Extractor:
        """The template as the core runs it; kept, with the transforms of values that it has met."""
        if self.template is None:
            raise FeatureError("the encoder has no template")
        if self._extractor is None:
            self.template.check_resources()
            self._extractor = _core.Extractor(self.template, computed=type(self.template) is Template)
        return self._extractor

    def _extract(
        self, template: Template, sequences: Sequence[Any], n_threads: int, *, grow: bool
    ) -> Dataset:
        """Sequences of rows, by the template; plain `B` lines are no features, they ask for plain arcs."""
        if self.more_columns:
            sequences = template.pad(sequences)
        if template.program().vectors:
            sequences = [list(sequence) for sequence in sequences]
        return self._keep_columns(
            template,
            sequences,
            self.extractor.extract(
                sequences,
                self.vocabulary,
                self.arc_vocabulary,
                grow,
                self.n_columns,
                self.more_columns,
                n_threads,
            ),
            grow=grow,
        )

    def _extract_columns(
        self, template: Template, rows: ColumnRows, n_threads: int, *, grow: bool
    ) -> Dataset:
        """The same of a column file."""
        n, expected = rows.n_columns, self.n_columns
        if expected is not None and n != expected:
            raise FeatureError(
                f"{rows.place(0)}: the row has {n} column{'s' * (n != 1)}, expected {expected} as in training"
            )
        if expected is None:
            template.check_columns(n)
        states, arcs = self.vocabulary, self.arc_vocabulary
        extracted = rows.extract(self.extractor, states, arcs, grow=grow, n_threads=n_threads)
        return self._keep_columns(template, rows, extracted, grow=grow)

    def _keep_columns(
        self, template: Template, sequences: Sequence[Any], extracted: _Extracted, *, grow: bool
    ) -> Dataset:
        """What an extractor found, with word vectors; training fixes the number of columns."""
        sequence_ptr, states, arcs, n_columns = extracted
        if grow:
            self.n_columns = n_columns
        dense: dict[str, Float64s] = {}
        if template.program().vectors:
            pieces = vector_blocks(template, sequences, sequence_ptr)
            dense = self._dense(pieces, sequence_ptr, grow=grow)
        return Dataset(
            sequence_ptr, FeatureList(*states), None if arcs is None else FeatureList(*arcs), dense
        )

    def _take_tokens(self, template: WapitiTokens, sequences: Sequence[Any], *, grow: bool) -> Dataset:
        """Sequences whose rows are features as they stand."""
        states, arcs = template.split(sequences)
        sequence_ptr, *_ = on_labels = _core.encode_positions(states, self.vocabulary, grow)
        on_arcs = _core.encode_positions(arcs, self.arc_vocabulary, grow)
        if grow:
            self.n_columns, self.more_columns = 1, True
        return Dataset(sequence_ptr, FeatureList(*on_labels[1:4]), FeatureList(*on_arcs[1:4]))

    def _encode_positions(self, sequences: Sequence[Any], n_threads: int, *, grow: bool) -> Dataset:
        """Sequences that are all lists of positions: one call."""
        sequence_ptr, position_ptr, ids, values, rows = _core.encode_positions(
            sequences, self.vocabulary, grow, n_threads
        )
        pieces = {name: _pieces(*block) for name, block in rows.items()}
        dense = self._dense(pieces, sequence_ptr, grow=grow)
        return Dataset(sequence_ptr, FeatureList(position_ptr, ids, values), None, dense)

    def _encode_blocks(self, sequences: Sequence[Any], *, grow: bool) -> Dataset:
        """The general form: block after block over all sequences, then merged position by position."""
        all_blocks = [blocks_of(n, sequence) for n, sequence in enumerate(sequences)]
        lengths = [n_positions(n, blocks) for n, blocks in enumerate(all_blocks)]
        sequence_ptr = offsets(np.array(lengths, dtype=np.int64))
        lists: list[FeatureList] = []
        pieces: dict[str, list[DenseRows]] = {}
        for name in dict.fromkeys(name for blocks in all_blocks for name in blocks):
            column = [blocks.get(name) for blocks in all_blocks]  # [N] the block of each sequence, or None
            if any(isinstance(block, list | tuple) for block in column):
                positions = [
                    block if isinstance(block, list | tuple) else [()] * length
                    for block, length in zip(column, lengths, strict=True)
                ]
                _, position_ptr, ids, values, rows = _core.encode_positions(positions, self.vocabulary, grow)
                lists.append(FeatureList(position_ptr, ids, values))
                for key, found in rows.items():
                    pieces.setdefault(key, []).extend(_pieces(*found))
            if any(map(is_sparse, column)):
                matrices = [block if is_sparse(block) else None for block in column]
                stack = stack_matrices(name, matrices, lengths, Place(sequence_ptr))
                lists.append(sparse_features(name, stack, self.vocabulary, grow=grow))
            arrays = [
                (int(start), block)
                for start, block in zip(sequence_ptr, column, strict=False)
                if isinstance(block, np.ndarray)
            ]
            if arrays:
                pieces.setdefault(name, []).extend(arrays)
        dense = self._dense(pieces, sequence_ptr, grow=grow)
        if not lists:
            lists = [FeatureList(np.zeros(sequence_ptr[-1] + 1, np.int64), np.zeros(0, np.int32), None)]
        return Dataset(sequence_ptr, merge_lists(lists), None, dense)

    def _dense(
        self, pieces: dict[str, list[DenseRows]], sequence_ptr: Int64s, *, grow: bool
    ) -> dict[str, Float64s]:
        """All dense blocks; those of training are there even where this data has no row of them."""
        place = Place(sequence_ptr)
        if grow and not self.dense_sizes:
            dense = {name: dense_block(name, rows, None, place) for name, rows in pieces.items()}
            self.dense_sizes = {name: block.shape[1] for name, block in dense.items()}
            return dense
        for name, rows in pieces.items():
            if name not in self.dense_sizes:
                known = ", ".join(map(repr, self.dense_sizes)) or "none"
                raise FeatureError(
                    f"{place(rows[0][0])}: dense block {name!r} did not occur in training; known: {known}"
                )
        return {
            name: dense_block(name, pieces.get(name, []), size, place)
            for name, size in self.dense_sizes.items()
        }


def _unpickle(template: Template | None, states: Any, arcs: Any, *others: Any) -> Encoder:
    return Encoder(template, Vocabulary.from_bytes(*states), Vocabulary.from_bytes(*arcs), *others)


def _pieces(positions: list[int], rows: list[Any]) -> list[DenseRows]:
    return [(position, row[None, :]) for position, row in zip(positions, rows, strict=True)]


def _without_rare(
    features: FeatureList, vocabulary: Vocabulary, min_count: int
) -> tuple[FeatureList, Vocabulary]:
    counts = _core.position_counts(features.position_ptr, features.ids, len(vocabulary))  # [F]
    if len(counts) == 0 or counts.min() >= min_count:
        return features, vocabulary
    kept, remap = vocabulary.keep(counts >= min_count)
    return FeatureList(*_core.renamed_features(*features, remap)), kept


def check_hash_bits(hash_bits: object) -> None:
    """Refuse what is neither None nor a number of bits."""
    whole = isinstance(hash_bits, int | np.integer) and not isinstance(hash_bits, bool)
    if hash_bits is not None and not (whole and 1 <= int(hash_bits) <= MOST_HASH_BITS):  # type: ignore[call-overload]
        raise ArgumentError(
            f"hash_bits is {hash_bits!r}, expected None or a whole number from 1 to {MOST_HASH_BITS}"
        )
