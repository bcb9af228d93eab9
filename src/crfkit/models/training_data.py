"""The data that `CRF.fit` takes: X and y, frames, encoded data sets, column files, iterators of pairs (x, y)."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from crfkit.counts import check_count
from crfkit.data import EncodedDataset, open_dataset, read_pairs
from crfkit.errors import ArgumentError, EmptyDataError, UnsupportedError
from crfkit.features import (
    ENCODED_SHARD_SIZE,
    PRESETS,
    SHARD_SIZE,
    EncodingSettings,
    PairSource,
    Template,
    check_min_count,
    encode_files,
    encode_pairs,
    encode_sources,
)
from crfkit.models.constraints import check_some_left, warn_of_skipped
from crfkit.models.frame_input import read_examples
from crfkit.models.kinds import kind_of
from crfkit.models.settings import CRFSettings, find_template
from crfkit.models.training.bigram_filter import BigramFilter
from crfkit.models.training.crf_task import CRFTask, MakeLoss
from crfkit.models.training.interruption import terminable
from crfkit.models.training.progress import LOGGER
from crfkit.models.training.stored_task import StoredTask, find_obstacle, find_word_column
from crfkit.models.training.training_set import Examples
from crfkit.structures import SequenceStructure


@contextmanager
def open_task(
    X: Any, y: Any, beside: dict[str, Any], settings: CRFSettings, shard_size: int | None, make_loss: MakeLoss
) -> Iterator[CRFTask | StoredTask]:
    """What is to be trained on: X and y, or data that are read shard by shard.

    Files and pairs are encoded as they are read, into a folder that is removed afterwards. Where the model looks at the
    sequences themselves, they are read into lists. `beside` are arguments that go with X and y alone: "sample_weight",
    "allowed" and "costs".
    """
    if isinstance(X, str | os.PathLike) and os.path.isdir(X):
        X = open_dataset(X)
    files = _as_files(X, y)
    has_labels = isinstance(X, EncodedDataset) or bool(files) or (y is None and isinstance(X, Iterator))
    given = [name for name, value in {"y": y, **beside}.items() if value is not None]
    if has_labels and given:
        what = "files" if files else "an encoded data set or pairs"
        raise UnsupportedError(
            f"{given[0]} was given beside {what}, which have the labels; expected X and y, or no {given[0]}"
        )
    if isinstance(X, EncodedDataset):
        if shard_size not in (None, X.shard_size):
            raise ArgumentError(f"shard_size is {shard_size}, but {X.path} has shards of {X.shard_size}")
        yield StoredTask(settings, X, make_loss)
    elif has_labels and find_obstacle(settings) is None:
        with terminable(), tempfile.TemporaryDirectory(prefix="crfkit-") as folder:
            kept = BigramFilter.find(settings)
            dataset = _encode(files, X, Path(folder), settings, shard_size, kept)
            if kept is not None and kept.n_skipped:
                warn_of_skipped(kept.n_skipped, kept.n_read, stacklevel=4)
            yield StoredTask(settings, dataset, make_loss)
    else:
        if has_labels:
            LOGGER.info("reading all sequences into memory, as %s", find_obstacle(settings))
            pairs = list(_all_pairs(files) if files else X)
            X, y = [x for x, _ in pairs], [labels for _, labels in pairs]
        weights, allowed, costs = (beside[name] for name in ("sample_weight", "allowed", "costs"))
        examples = read_training_set(X, y, weights, allowed, settings, settings.structure)
        size = SHARD_SIZE if shard_size is None else shard_size
        yield CRFTask(settings, examples, shard_size=size, costs=costs, make_loss=make_loss)


def read_training_set(
    X: Any, y: Any, sample_weight: Any, allowed: Any, settings: CRFSettings, structure: SequenceStructure
) -> Examples:
    """X, y and weights, those of frames and column files too, with y as lists of labels."""
    X, y, sample_weight = read_examples(X, y, sample_weight, as_text=settings.reads_text)
    return Examples(*kind_of(structure).read_labels(X, y, structure), sample_weight, allowed)


def _encode(
    files: Sequence[str | os.PathLike[str]],
    pairs: Any,
    folder: Path,
    settings: CRFSettings,
    shard_size: int | None,
    kept: BigramFilter | None,
) -> EncodedDataset:
    """The files, or else the pairs, as an encoded data set in a folder; `kept` says which sequences."""
    own = encoding_of(settings, shard_size)
    out = folder / "data"
    if kept is not None:
        reading: list[tuple[str, Any]] = [
            (os.fspath(path), partial(_read_kept, kept, path)) for path in files
        ]
        sources = [PairSource(name, read) for name, read in reading or [("sequences", partial(kept, pairs))]]
        try:
            return encode_sources(sources, out, own)
        except EmptyDataError:
            check_some_left(kept.n_read - kept.n_skipped, kept.n_read)
            raise
    options: dict[str, Any] = {
        "features": own.features,
        "min_count": own.min_count,
        "shard_size": own.shard_size,
        "hash_bits": own.hash_bits,
        "resources": own.resources,
        "word_column": own.word_column,
    }
    return encode_files(files, out, **options) if files else encode_pairs(pairs, out, **options)


def encoding_of(settings: CRFSettings, shard_size: int | None) -> EncodingSettings:
    """How sequences are encoded that a model with these settings is to be trained on."""
    size = ENCODED_SHARD_SIZE if shard_size is None else check_count("shard_size", shard_size)
    settings.check()
    features: Any = settings.features
    if not isinstance(features, str) or features not in PRESETS:
        features = find_template(features)
    return EncodingSettings(
        features,
        check_min_count(settings.min_count),
        size,
        None,
        settings.hash_bits,
        settings.resources,
        find_word_column(settings),
    )


def is_encodable(settings: CRFSettings) -> bool:
    """Whether any machine can encode the sequences, and training needs numbers alone; resources are on this one.

    Words are counted here, too, where the template asks for their counts.
    """
    template = settings.features if isinstance(settings.features, Template) else None
    if isinstance(settings.features, str) and settings.features not in PRESETS:
        template = find_template(settings.features)
    counts_words = template is not None and bool(template.asked_counts)
    reads_all = counts_words or BigramFilter.find(settings) is not None
    return find_obstacle(settings) is None and not settings.resources and not reads_all


def _as_files(X: Any, y: Any) -> Sequence[str | os.PathLike[str]]:
    """The paths of files, where X is such a path or a list of them; none where it is something else.

    Beside y, strings are paths if there are such files; alone they can be nothing else.
    """
    paths = [X] if isinstance(X, str | os.PathLike) else X
    if not isinstance(paths, list | tuple) or not paths:
        return ()
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        return ()
    return paths if y is None or all(map(os.path.isfile, paths)) else ()


def _read_kept(kept: BigramFilter, path: str | os.PathLike[str]) -> Iterator[tuple[Any, Any]]:
    return kept(read_pairs(path))


def _all_pairs(files: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[Any, Any]]:
    for path in files:
        yield from read_pairs(path)
