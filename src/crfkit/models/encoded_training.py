"""What `CRF.fit` takes in place of X and y: an encoded data set, column files, or an iterator of pairs (x, y)."""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crfkit.data import EncodedDataset, open_dataset, read_pairs
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import ENCODED_SHARD_SIZE, PRESETS, EncodingSettings, encode_files, encode_pairs
from crfkit.models.checks import check_count
from crfkit.models.settings import CRFSettings, find_template


@contextmanager
def open_training_data(
    X: Any, y: Any, settings: CRFSettings, shard_size: int | None, others: dict[str, Any]
) -> Iterator[EncodedDataset | tuple[Any, Any]]:
    """An encoded data set, or X and y.

    Files and pairs are encoded as they are read, into a folder that is removed afterwards. Where the model looks at the
    sequences themselves, they are read into lists. `others` are arguments that go with X and y alone.
    """
    if isinstance(X, str | os.PathLike) and os.path.isdir(X):
        X = open_dataset(X)
    files = _as_files(X, y)
    if not (isinstance(X, EncodedDataset) or files or (y is None and isinstance(X, Iterator))):
        yield X, y
        return
    given = [name for name, value in {"y": y, **others}.items() if value is not None]
    if given:
        what = "files" if files else "an encoded data set or pairs"
        raise UnsupportedError(
            f"{given[0]} was given beside {what}, which have the labels; expected X and y, or no {given[0]}"
        )
    if isinstance(X, EncodedDataset):
        if shard_size not in (None, X.shard_size):
            raise ArgumentError(f"shard_size is {shard_size}, but {X.path} has shards of {X.shard_size}")
        yield X
        return
    if not is_encodable(settings):
        pairs = list(_all_pairs(files) if files else X)
        yield [x for x, _ in pairs], [labels for _, labels in pairs]
        return
    own = encoding_of(settings, shard_size)
    options: dict[str, Any] = {
        "features": own.features,
        "min_count": own.min_count,
        "shard_size": own.shard_size,
    }
    with tempfile.TemporaryDirectory(prefix="crfkit-") as folder:
        out = Path(folder) / "data"
        yield encode_files(files, out, **options) if files else encode_pairs(X, out, **options)


def encoding_of(settings: CRFSettings, shard_size: int | None) -> EncodingSettings:
    """How sequences are encoded that a model with these settings is to be trained on."""
    size = ENCODED_SHARD_SIZE if shard_size is None else check_count("shard_size", shard_size)
    settings.check()
    features: Any = settings.features
    if not isinstance(features, str) or features not in PRESETS:
        features = find_template(features)
    return EncodingSettings(features, settings.min_count, size)


def is_encodable(settings: CRFSettings) -> bool:
    """Whether training needs numbers alone, and not the sequences themselves."""
    others = (settings.functions, settings.facets, settings.tag_dictionary, settings.resources)
    return settings.kind.trains_on_encoded and not any(others) and not isinstance(settings.l2, str)


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


def _all_pairs(files: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[Any, Any]]:
    for path in files:
        yield from read_pairs(path)
