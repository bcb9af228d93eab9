"""The model file: safetensors with a type, a version, settings and arrays; reading one executes nothing.

Layout (safetensors): 8 bytes n, n bytes of JSON, then the bytes of the arrays. The `__metadata__` holds

    crfkit.type       what the file is, "CRF"
    crfkit.version    the version of the layout, "1"
    crfkit.settings   JSON: everything that is not an array

Reading is total: any bytes give a `ModelFile` or an `InputError`. What the arrays mean is checked by the
caller.
"""

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from crfkit.data import replacing
from crfkit.errors import FileFormatError, FileVersionError, UnsavableError
from crfkit.models.files.disk import read_bytes

VERSION = 1
Array = npt.NDArray[Any]

_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U16": "<u2", "U8": "u1"}
_MAX_HEADER = 100_000_000  # bytes; the format's own limit
_MAX_TEXT = 1 << 30  # bytes that one compressed array may unfold to
_MAX_RATIO = 50  # names compress by 3 : 1 to 10 : 1, a file that was made to fill the memory by 1,000 : 1
_SMALL_TEXT = 1 << 22  # bytes that are unfolded whatever the ratio
_FOREIGN = (
    (b"\x80", "a pickle"),
    (b"lCRF", "a CRFsuite model"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
)


class ModelFile(NamedTuple):
    """What a model file holds."""

    type: str
    settings: dict[str, Any]  # JSON values
    arrays: dict[str, Array]


def encode(model: ModelFile) -> bytes:
    """The bytes of a model file; the same model gives the same bytes."""
    from safetensors.numpy import save

    packed = save({name: np.ascontiguousarray(array) for name, array in model.arrays.items()})
    n_header = int.from_bytes(packed[:8], "little")
    # The library writes metadata in random order, so the header is written again with the keys in ours.
    header = {
        "__metadata__": {
            "crfkit.type": model.type,
            "crfkit.version": str(VERSION),
            "crfkit.settings": json.dumps(model.settings, ensure_ascii=False, allow_nan=False),
        },
        **json.loads(packed[8 : 8 + n_header]),
    }
    try:
        text = json.dumps(header, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        piece = error.object[error.start : error.end]
        raise UnsavableError(f"a label or setting holds {piece!r}, which is no character of a file") from None
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + packed[8 + n_header :]


def decode(data: bytes, source: str = "model file") -> ModelFile:
    """Read the bytes of a model file; `source` names it in complaints."""
    from safetensors import SafetensorError, deserialize

    n_header = int.from_bytes(data[:8], "little")
    if len(data) < 9 or data[8:9] != b"{" or n_header > _MAX_HEADER:
        _refuse_foreign(data, source)
    if 8 + n_header > len(data):
        raise FileFormatError(
            f"{source}: the model file is truncated: it has {len(data):,} bytes, its header {8 + n_header:,}"
        )
    try:
        tensors = deserialize(data)  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise FileFormatError(f"{source}: the model file is truncated or damaged ({error})") from None
    metadata = _parse_json(data[8 : 8 + n_header], source).get("__metadata__") or {}
    kind, settings = _check_metadata(metadata, source)
    arrays = {}
    for name, tensor in tensors:
        if tensor["dtype"] not in _DTYPES:
            raise FileFormatError(
                f"{source}: array {name!r} has type {tensor['dtype']}, expected one of {', '.join(_DTYPES)}"
            )
        try:
            arrays[name] = np.frombuffer(tensor["data"], _DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
        except ValueError:  # an array without entries may have any shape, also one that no array can have
            raise FileFormatError(f"{source}: array {name!r} has the shape {tensor['shape']}") from None
    return ModelFile(kind, settings, arrays)


def write_model_file(model: ModelFile, path: str | os.PathLike[str]) -> None:
    """Write a model file; an existing one is replaced in one step."""
    data = encode(model)
    with replacing(path) as stream:
        stream.write(data)


def read_model_file(path: str | os.PathLike[str]) -> ModelFile:
    """Read a model file of any type; a file that does not exist is a FileNotFoundError, any other an InputError."""
    return decode(read_bytes(path), str(path))


def _refuse_foreign(data: bytes, source: str) -> NoReturn:
    if not data:
        raise FileFormatError(f"{source}: the file is empty, expected a crfkit model file")
    likely = next((f"; it looks like {what}" for magic, what in _FOREIGN if data.startswith(magic)), "")
    raise FileFormatError(f"{source}: not a crfkit model file{likely}")


def _check_metadata(metadata: Mapping[str, str], source: str) -> tuple[str, dict[str, Any]]:
    kind, version = metadata.get("crfkit.type"), metadata.get("crfkit.version")
    if kind is None or version is None:
        raise FileFormatError(
            f"{source}: a safetensors file, but not of crfkit (it says no crfkit.type and version)"
        )
    if not (version.isascii() and version.isdigit()) or len(version) > 9 or int(version) < 1:
        raise FileFormatError(
            f"{source}: crfkit.version is {version[:40]!r}, expected a whole number from 1 on"
        )
    if int(version) > VERSION:
        raise FileVersionError(
            f"{source}: written by a newer crfkit (file version {version}; this one reads up to {VERSION})"
        )
    return kind, _parse_json(metadata.get("crfkit.settings", "{}"), source)


def _parse_json(text: str | bytes, source: str) -> dict[str, Any]:
    def refuse_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    try:
        value = json.loads(text, parse_constant=refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair can be written as \ud800
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{source}: the settings of the model file are damaged ({error})") from None
    if not isinstance(value, dict):
        raise FileFormatError(f"{source}: the settings of the model file are damaged (not an object)")
    return value


def compress(data: bytes) -> npt.NDArray[np.uint8]:
    """Bytes as a compressed array, which `decompress` takes: as they are where they would shrink too much."""
    packed = zlib.compress(data, 6)
    if len(data) > _most_unfolded(len(packed)):
        packed = zlib.compress(data, 0)
    return np.frombuffer(packed, np.uint8)


def _most_unfolded(n_compressed: int) -> int:
    """The bytes that so many compressed ones may unfold to."""
    return min(_MAX_TEXT, max(_SMALL_TEXT, _MAX_RATIO * n_compressed))


def decompress(array: Array, size: int, what: str) -> bytes:
    """The `size` bytes that were compressed into an array; never more than that is unfolded."""
    if array.dtype != np.uint8 or array.ndim != 1:
        raise FileFormatError(
            f"{what}: expected a list of bytes, got {array.dtype} of shape {list(array.shape)}"
        )
    if not 0 <= size <= _most_unfolded(len(array)):
        raise FileFormatError(f"{what}: {len(array):,} compressed bytes may not unfold to {size:,}")
    unfold = zlib.decompressobj()
    try:
        data = unfold.decompress(array.tobytes(), size + 1)
    except zlib.error as error:
        raise FileFormatError(f"{what}: damaged ({error})") from None
    if len(data) != size or not unfold.eof or unfold.unused_data:
        raise FileFormatError(
            f"{what}: damaged (the compressed bytes do not unfold to the declared {size:,})"
        )
    return data


def model_type(path: str | os.PathLike[str]) -> str:
    """What a model file holds: "CRF" or "Parser"."""
    return _read_settings(path)[0]


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The `metadata` that `save` was given."""
    return metadata_of(_read_settings(path)[1])


def metadata_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata among the settings of a file; earlier versions kept those of the command line by themselves."""
    metadata = settings.get("metadata")
    if metadata is None:
        return {name: settings[name] for name in ("label_column", "separator") if name in settings}
    if not isinstance(metadata, dict):
        raise FileFormatError(f"its setting 'metadata' is {str(metadata)[:40]!r}, expected dict")
    return metadata


def _read_settings(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Type and settings of a model file; its arrays are not read."""
    source = str(path)
    n_header = int.from_bytes(read_bytes(path, 8), "little")
    data = read_bytes(path, 8 + min(n_header, _MAX_HEADER))
    if len(data) < 9 or data[8:9] != b"{" or n_header > _MAX_HEADER:
        _refuse_foreign(data, source)
    metadata = _parse_json(data[8 : 8 + n_header], source).get("__metadata__") or {}
    return _check_metadata(metadata, source)
