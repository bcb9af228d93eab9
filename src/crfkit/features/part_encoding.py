"""How sequences are encoded, and one shard of them as a part: with ids of its own, on any machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit.data import ArrayFile
from crfkit.errors import EmptyDataError, UnsupportedError
from crfkit.features.column_rows import ColumnRows
from crfkit.features.dataset import Annotation
from crfkit.features.encoding import Encoder
from crfkit.features.frequent_words import FrequentWords
from crfkit.features.joint_parts import make_part
from crfkit.features.knowledge import MissingResource, Resource
from crfkit.features.labels import Labels, check_lists
from crfkit.features.pair_sources import Pair
from crfkit.features.position_words import Column, number_words
from crfkit.features.presets import bind_resources, count_columns, preset, recommend_encoding
from crfkit.features.templates import Template

ENCODED_SHARD_SIZE = 1 << 18
"""Positions of a shard of an encoded data set, where nothing else is asked for."""


@dataclass(frozen=True)
class EncodingSettings:
    """How sequences are encoded."""

    features: Template | str | None = (
        None  # a template, or the name of a preset; None: positions list their features
    )
    min_count: int | str = 1  # "auto": by the number of positions
    shard_size: int = ENCODED_SHARD_SIZE
    reading: dict[str, Any] | None = None  # how files are read, for those who read more of them
    hash_bits: int | None = None  # features are known by 2^hash_bits buckets of their names
    resources: Mapping[str, Resource | MissingResource] | None = None  # which macros of the template name
    word_column: Column | None = None  # of the words that are kept for a tag dictionary
    counts: FrequentWords | None = (
        None  # of words in all sequences, where macros of the template ask for them
    )

    def complete(self, min_count: int | str | None, word_column: Column | None) -> EncodingSettings:
        """The same with these two, or where they are None with what the preset has."""
        usual = recommend_encoding(self.features)
        least = usual.min_count if min_count is None else min_count
        words = usual.word_column if word_column is None else word_column
        return replace(self, min_count=least, word_column=words)

    def template_for(self, n_columns: int | None) -> Template | None:
        """The template; a preset fits itself to the columns."""
        of_preset = isinstance(self.features, str)
        template = preset(self.features, n_columns) if isinstance(self.features, str) else self.features
        if template is None:
            return None
        bound = bind_resources(template, self.resources, of_preset=of_preset)
        return bound if self.counts is None else replace(bound, counts=self.counts)

    @property
    def asked_counts(self) -> dict[int, set[int]]:
        """The counts of words that macros ask for, by column, and that are not known yet."""
        is_open = isinstance(self.features, Template) and self.counts is None
        return self.features.asked_counts if is_open else {}  # type: ignore[union-attr]

    def to_json(self, template: Template | None) -> dict[str, Any]:
        """As a model file has them."""
        used = template.used_resources() if template is not None else self.resources or {}
        resources = {name: resource.digest for name, resource in sorted(used.items())}
        return {
            "features": None if template is None else template.text,
            "language": None if template is None else template.LANGUAGE,
            "preset": self.features if isinstance(self.features, str) else None,
            "min_count": self.min_count,
            "reading": self.reading or {},
            **({} if self.hash_bits is None else {"hash_bits": self.hash_bits}),
            **({"resources": resources} if resources else {}),
            **({} if self.word_column is None else {"word_column": self.word_column}),
        }


def encode_part(shard: list[Pair] | ColumnRows, settings: EncodingSettings, n_threads: int = 1) -> ArrayFile:
    """The sequences of a shard, with a vocabulary and labels of their own: step 1, on any machine."""
    if settings.asked_counts:
        raise UnsupportedError(
            "%rare counts the words of all sequences, which no single part of a data set has"
        )
    if isinstance(shard, ColumnRows):
        encoder = Encoder(settings.template_for(shard.n_columns), hash_bits=settings.hash_bits)
        dataset = encoder.fit_encode(shard, n_threads)
        values, ids = shard.label_ids
        labels = Labels.learn([values])
        annotation = Annotation(labels.encode([values], [len(values)]).labels[ids])
    else:
        X, y = [x for x, _ in shard], [labels for _, labels in shard]
        n_columns = None if settings.features is None else count_columns(X)[1]
        encoder = Encoder(settings.template_for(n_columns), hash_bits=settings.hash_bits)
        dataset = encoder.fit_encode(X, n_threads)
        gold = check_lists(y, dataset.sequence_ptr)
        try:
            labels = Labels.learn(gold)
        except EmptyDataError:  # of this part
            labels = Labels(())
        annotation = labels.encode(gold, np.diff(dataset.sequence_ptr))
    vocabularies, words = {"": encoder.vocabulary, "arc_": encoder.arc_vocabulary}, None
    if settings.word_column is not None:
        given = shard if isinstance(shard, ColumnRows) else X
        vocabularies["word_"], words = number_words(given, settings.word_column)
    facts = {"n_columns": encoder.n_columns, "more_columns": encoder.more_columns}
    return make_part(dataset, annotation, labels, vocabularies, facts, words)
