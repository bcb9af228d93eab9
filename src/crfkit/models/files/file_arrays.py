"""Arrays and settings of a model file, read with care: what is not as it should be is an InputError."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit.arrays import Float64s, Int64s, offsets
from crfkit.data import MAX_WEIGHT
from crfkit.errors import ArgumentError, FileFormatError, InputError, reword
from crfkit.features import check_hash_bits
from crfkit.models.files.model_file import Array, ModelFile, compress, decompress

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_RENAMED = {"all_pairs": "all_possible_states", "all_arcs": "all_possible_transitions"}


def compact(numbers: Array) -> Array:
    """Numbers from 0 on in the smallest unsigned type that holds them."""
    largest = int(numbers.max()) if numbers.size else 0
    return numbers.astype(np.min_scalar_type(largest), copy=False)


def array(file: ModelFile, name: str) -> Array:
    """An array of the file, which must be there."""
    if name not in file.arrays:
        raise FileFormatError(f"array {name!r} is missing")
    return file.arrays[name]


def integers(file: ModelFile, name: str, limit: int) -> Int64s:
    """An array [·] of numbers from 0 to limit − 1."""
    found = array(file, name)
    if found.dtype.kind != "u" or found.ndim != 1:
        raise FileFormatError(f"array {name!r} is {_kind(found)}, expected a list of unsigned integers")
    if found.size and int(found.max()) >= limit:
        raise FileFormatError(f"array {name!r} holds {int(found.max())}, expected numbers below {limit}")
    return found.astype(np.int64)


def floats(
    file: ModelFile, name: str, n_axes: int, *, may_be_any: bool = False, may_be_single: bool = False
) -> Float64s:
    """An array of finite numbers, or of any."""
    found = array(file, name)
    kinds = (np.float64, np.float32) if may_be_single else (np.float64,)
    if found.dtype not in kinds or found.ndim != n_axes:
        raise FileFormatError(f"array {name!r} is {_kind(found)}, expected float64 with {n_axes} axes")
    if not may_be_any and not np.isfinite(found).all():
        raise FileFormatError(f"array {name!r} holds a number that is not finite")
    return found.astype(np.float64, copy=False)


def read_weights(file: ModelFile, n_expected: int, name: str = "weights") -> Float64s:
    """The weights [D], of which there must be so many."""
    weights = floats(file, name, 1, may_be_single=True)
    if weights.size and float(np.abs(weights).max()) > MAX_WEIGHT:
        raise FileFormatError(f"it has a weight beyond ±{MAX_WEIGHT:g}: sums of such numbers are not finite")
    if len(weights) != n_expected:
        raise FileFormatError(f"it has {len(weights):,} weights, its features need {n_expected:,}")
    return weights


class GivenFunctionsError(ArgumentError):
    """Functions that were given do not fit a file, which is not damaged."""


@contextmanager
def name_damage(source: str, what: str = "model") -> Iterator[None]:
    """Names the file whose contents the block finds damaged, or which functions that were given do not fit."""
    try:
        yield
    except GivenFunctionsError as error:
        raise reword(error, f"{source}: {error}") from None
    except (InputError, RecursionError) as error:
        raise FileFormatError(f"{source}: not a usable {what}: {error}") from None


def read_history(file: ModelFile) -> Float64s:
    """The history of a training run, as `History.from_array` takes it; files of older versions have seconds too."""
    history = floats(file, "history", 2, may_be_any=True)  # a metric may give any number as dev score
    if history.shape[1] not in (4, 5, 6):
        raise FileFormatError(f"'history' has {history.shape[1]} columns, expected 5")
    if not np.isfinite(history[:, 0]).all():
        raise FileFormatError("'history' has an iteration that is unknown")
    return history


def pack_texts(arrays: dict[str, Array], what: str, texts: Sequence[str]) -> int:
    """Adds texts as two arrays; how many bytes they have."""
    encoded = [text.encode() for text in texts]
    arrays[f"{what}.names"] = compress(b"".join(encoded))
    arrays[f"{what}.lengths"] = compact(np.array([len(text) for text in encoded], dtype=np.int64))
    return sum(map(len, encoded))


def unpack_texts(file: ModelFile, what: str, n_bytes: dict[str, Any], n_texts: int) -> list[str]:
    """The inverse of `pack_texts`, where so many texts are expected; none: there need be no arrays."""
    if not n_texts:
        return []
    lengths = integers(file, f"{what}.lengths", 2**32)
    size = n_bytes.get(what)
    if len(lengths) != n_texts or not is_int(size) or size != int(lengths.sum(dtype=np.uint64)):
        raise FileFormatError(f"the names of its {what} do not add up")
    blob = decompress(array(file, f"{what}.names"), size, f"the names of its {what}")
    ptr = offsets(lengths)
    try:
        return [blob[begin:end].decode() for begin, end in pairwise(ptr.tolist())]
    except UnicodeDecodeError:
        raise FileFormatError(f"the names of its {what} are damaged") from None


def is_int(value: object) -> bool:
    """Whether this is a whole number, which True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def current_names(settings: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a file, of which earlier versions called some by other names."""
    return {_RENAMED.get(name, name): value for name, value in settings.items()}


def setting(settings: dict[str, Any], name: str, kinds: type | tuple[type, ...]) -> Any:
    """A setting of the file, of one of these types (bool is not an int here)."""
    value = settings.get(name)
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise FileFormatError(f"its setting {name!r} is {str(value)[:40]!r}, expected {expected}")
    return value


def hash_bits_of(settings: dict[str, Any]) -> int | None:
    """The bits that features are hashed to; files of models without hashing do not have them."""
    try:
        check_hash_bits(settings.get("hash_bits"))
    except ArgumentError as error:
        raise FileFormatError(f"its setting {error}") from None
    return settings.get("hash_bits")


def flag(settings: dict[str, Any], name: str) -> bool:
    """A setting that older files do not have, where it is false."""
    return bool(setting(settings, name, bool)) if name in settings else False


def path_setting(settings: dict[str, Any], name: str) -> str:
    """A setting that is the import path of a function."""
    path: str = setting(settings, name, str)
    if not _PATH.fullmatch(path) or len(path) > 1000:
        raise FileFormatError(f"its function {path[:40]!r} is no import path, expected package.module:name")
    return path


def count_setting(settings: dict[str, Any], name: str, most: int = 2**31 - 1) -> int:
    """A setting that is a whole number from 0 to `most`."""
    count: int = setting(settings, name, int)
    if not 0 <= count <= most:
        raise FileFormatError(f"its setting {name!r} is {count}, expected a number from 0 to {most}")
    return count


def _kind(found: Array) -> str:
    return f"{found.dtype} of shape {list(found.shape)}"
