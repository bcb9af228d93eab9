"""Arrays in files: safetensors with a checksum, read through a memory map, and written in a single step.

Layout: 8 bytes n, n bytes of JSON (names, types, shapes and places of the arrays; `__metadata__`), then the arrays. What is
read is checked: any bytes give arrays or a `FileFormatError`, and nothing in a file is executed.
"""

import json
import mmap
import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data.errors import make_read_error
from crfkit.errors import FileFormatError, UnwritableFileError

Array = npt.NDArray[Any]

_TYPES = {"F64": "<f8", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "|u1"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_LONGEST_HEADER = 1 << 24
_ALIGNMENT = 64


class ArrayFile(NamedTuple):
    """What a file holds; the arrays are parts of its memory map and cannot be changed."""

    metadata: dict[str, Any]  # JSON values
    arrays: dict[str, Array]


def write_arrays(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, Any]) -> int:
    """Write a file, which takes the place of an older one in a single step; returns the checksum of the arrays."""
    pieces, checksum = pack_arrays(arrays, metadata)
    write_file(path, pieces)
    return checksum


def pack_arrays(
    arrays: Mapping[str, Array], metadata: Mapping[str, Any]
) -> tuple[list[bytes | memoryview], int]:
    """The pieces of a file, and the checksum of the arrays."""
    header: dict[str, Any] = {}
    pieces: list[memoryview] = []
    place = checksum = 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array)
        n_bytes = data.nbytes
        piece = data.reshape(-1).view(np.uint8).data if n_bytes else memoryview(b"")
        padding = -n_bytes % _ALIGNMENT
        header[name] = {
            "dtype": _NAMES[data.dtype],
            "shape": list(data.shape),
            "data_offsets": [place, place + n_bytes],
        }
        if padding:  # so that every array begins at a full line of the cache
            header[f"{name}.padding"] = {
                "dtype": "U8",
                "shape": [padding],
                "data_offsets": [place + n_bytes, place + n_bytes + padding],
            }
        pieces += [piece, memoryview(bytes(padding))]
        for part in pieces[-2:]:
            checksum = zlib.crc32(part, checksum)
        place += n_bytes + padding
    text = {name: json.dumps(value) for name, value in {**metadata, "checksum": checksum}.items()}
    packed = json.dumps({"__metadata__": text, **header}).encode()
    packed += b" " * (-(8 + len(packed)) % _ALIGNMENT)
    return [len(packed).to_bytes(8, "little"), packed, *pieces], checksum


def write_file(path: Path, pieces: Sequence[bytes | memoryview]) -> None:
    """Write a file from pieces; it takes the place of an older one in a single step."""
    draft = path.with_name(f".{path.name}.part")
    try:
        with draft.open("wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UnwritableFileError(f"{path}: cannot be written ({error.strerror or error})") from None


def read_arrays(path: Path, *, check: bool) -> ArrayFile:
    """Open a file; `check` compares its checksum, which reads all of it."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size < 10:
                raise FileFormatError(f"{path}: the file is truncated: it has {size} bytes")
            memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise make_read_error(path, error) from None
    n_header = int.from_bytes(memory[:8], "little")
    if n_header > min(_LONGEST_HEADER, size - 8):
        raise FileFormatError(f"{path}: the file is truncated or damaged: no header of arrays")
    try:
        header = json.loads(memory[8 : 8 + n_header])
        metadata = {name: json.loads(text) for name, text in header.pop("__metadata__").items()}
        body = memoryview(memory)[8 + n_header :]
        arrays = {name: _array(body, **entry) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"{path}: the file is truncated or damaged ({error})") from None
    if check and zlib.crc32(body) != metadata.get("checksum"):
        raise FileFormatError(f"{path}: the file is damaged: its checksum differs")
    return ArrayFile(metadata, {name: a for name, a in arrays.items() if not name.endswith(".padding")})


def _array(body: memoryview, *, dtype: str, shape: list[int], data_offsets: list[int]) -> Array:
    begin, end = data_offsets
    if not (isinstance(begin, int) and isinstance(end, int) and 0 <= begin <= end <= len(body)):
        raise ValueError("an array that lies outside of the file")
    return np.frombuffer(body[begin:end], _TYPES[dtype]).reshape(shape)
