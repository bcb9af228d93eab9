"""Encoded data sets from column files, and from sequences as they come."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from crfkit import _core
from crfkit.counts import check_count
from crfkit.data import EncodedDataset, find_separator
from crfkit.errors import ArgumentError
from crfkit.features.dataset_writer import Counted, DatasetWriter
from crfkit.features.encoding import check_hash_bits
from crfkit.features.knowledge import MissingResource, Resource, check_resources
from crfkit.features.pair_sources import Pair, PairSource, file_source, read_row_shards
from crfkit.features.part_encoding import ENCODED_SHARD_SIZE, EncodingSettings
from crfkit.features.position_words import Column, check_word_column
from crfkit.features.presets import PRESETS, bind_resources
from crfkit.features.rare_features import check_min_count
from crfkit.features.templates import Template


def encode_sources(
    sources: list[PairSource],
    out: str | os.PathLike[str],
    settings: EncodingSettings,
    *,
    stage: Callable[[str], None] = lambda _: None,
    counted: Counted = lambda items, _: items,
    n_threads: int | None = None,
) -> EncodedDataset:
    """Encode sequences into the folder `out`, or finish what a killed run has begun there.

    `stage` gets what is being done as text, and what is read passes through `counted`: sequences one by one, or shards, with
    a function that says how many sequences each has.
    """
    if isinstance(settings.features, str) and settings.features not in PRESETS:
        raise ArgumentError(
            f"features is {settings.features!r}, expected a template or one of {', '.join(PRESETS)}"
        )
    check_hash_bits(settings.hash_bits)
    check_resources(settings.resources)
    features = settings.features
    if isinstance(features, Template):  # whose resources are part of the plan, and are there before any work
        features = bind_resources(features, settings.resources, of_preset=False)
        features.check_resources()
    settings = replace(
        settings,
        features=features,
        min_count=check_min_count(settings.min_count),
        word_column=check_word_column(settings.word_column),
        shard_size=check_count("shard_size", settings.shard_size),
        hash_bits=None if settings.hash_bits is None else int(settings.hash_bits),  # one of NumPy is no JSON
    )
    writer = DatasetWriter(
        Path(out), sources, settings, stage, counted, n_threads or _core.available_threads()
    )
    with writer.begin() as complete:
        return complete or writer.finish()


def encode_files(
    files: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    features: Template | str | None = "names",
    min_count: int | str | None = None,
    shard_size: int = ENCODED_SHARD_SIZE,
    hash_bits: int | None = None,
    resources: Mapping[str, Resource | MissingResource] | None = None,
    word_column: Column | None = None,
    label_column: int = -1,
    separator: str | None = None,
    n_threads: int | None = None,
) -> EncodedDataset:
    """Encode column files, of any size, into the folder `out`, which `CRF.fit` takes; a killed run goes on when repeated.

    `files` are paths, or one path. `features` is a template, or the name of a preset. Features that stand at fewer than
    `min_count` positions are left out; "auto": 1, and 2 where the files have 100,000 positions or more. With
    `hash_bits`, features are known by 2^hash_bits buckets of their names, and share weights there (see `crfkit.CRF`).
    `resources` as for `crfkit.CRF`. The words of `word_column` are kept, for models with a tag dictionary. Where they are
    None, `min_count` and `word_column` are those of the preset ("auto" and 0 for morphology), else 1 and none. A shard
    has at most `shard_size` positions of one file. `label_column` and `separator` as in `crfkit.data.read_pairs`. Files
    are read, and features made, by the core, on `n_threads` threads; ids do not depend on their number.
    """
    reading: dict[str, Any] = {"label_column": label_column, "separator": separator}
    paths = [files] if isinstance(files, str | os.PathLike) else files
    sources = [file_source(path, partial(read_row_shards, path, **reading)) for path in paths]
    if sources and separator is None:  # what a model of this data is to read files with
        reading = {**reading, "separator": find_separator(sources[0].name)}
    settings = EncodingSettings(features, 1, shard_size, reading, hash_bits, resources)
    return encode_sources(
        sources,
        out,
        settings.complete(min_count, word_column),
        n_threads=n_threads,
    )


def encode_pairs(
    pairs: Iterable[Pair],
    out: str | os.PathLike[str],
    *,
    features: Template | str | None = None,
    min_count: int | str | None = None,
    shard_size: int = ENCODED_SHARD_SIZE,
    hash_bits: int | None = None,
    resources: Mapping[str, Resource | MissingResource] | None = None,
    word_column: Column | None = None,
    n_threads: int | None = None,
) -> EncodedDataset:
    """Encode pairs (x, y) of a sequence and its labels, as they come; never are more than those of a shard in memory.

    Arguments as for `encode_files`; without `features`, positions are in any form that `CRF.fit` takes. The source cannot
    be read again, so a run that was killed cannot go on.
    """
    settings = EncodingSettings(features, 1, shard_size, None, hash_bits, resources)
    source = PairSource("sequences", lambda: pairs)
    return encode_sources([source], out, settings.complete(min_count, word_column), n_threads=n_threads)
