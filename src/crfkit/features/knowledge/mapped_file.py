"""Files of arrays that are mapped into memory: opening one reads its header alone, whatever its size.

Layout: 16 bytes that say what it is, 8 bytes n (little endian), n bytes of JSON, then the arrays, each at a multiple of 64.

    {"version": 1, "kind": "lexicon", "digest": 32 hex digits, "settings": {…}, "arrays": {name: [type, shape, place]}}

Reading executes nothing. Any bytes give a `MappedFile` or a FileFormatError; what the arrays mean is checked by its user,
and the core reads nothing outside of them. The digest is that of kind, settings and arrays, taken when these are written.
"""

import hashlib
import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data import make_read_error, replacing
from crfkit.errors import FileFormatError, FileVersionError

Array = npt.NDArray[Any]
MAGIC = b"crfkit resource\n"
VERSION = 1
_TYPES = {"u1": "u1", "u4": "<u4", "u8": "<u8", "f4": "<f4"}
_ALIGNED = 64
_MAX_HEADER = 100_000_000


class MappedFile(NamedTuple):
    """What a file of arrays holds."""

    kind: str
    settings: dict[str, Any]  # JSON values
    arrays: dict[str, Array]
    digest: str


def make(kind: str, settings: dict[str, Any], arrays: Mapping[str, Array]) -> MappedFile:
    """A file's contents in memory, with their digest."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([kind, settings], sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return MappedFile(kind, settings, dict(arrays), digest.hexdigest())


def write(file: MappedFile, stream: IO[bytes]) -> None:
    """Write the bytes of a file."""
    places: dict[str, list[Any]] = {}
    end = 0
    for name, array in file.arrays.items():
        kind = array.dtype.str.lstrip("<|")
        places[name] = [kind, list(array.shape), end]
        end += -(-array.nbytes // _ALIGNED) * _ALIGNED
    header = json.dumps(
        {
            "version": VERSION,
            "kind": file.kind,
            "digest": file.digest,
            "settings": file.settings,
            "arrays": places,
        }
    ).encode()
    header += b" " * (-(len(MAGIC) + 8 + len(header)) % _ALIGNED)
    stream.write(MAGIC + len(header).to_bytes(8, "little") + header)
    for array in file.arrays.values():
        stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        stream.write(b"\0" * (-array.nbytes % _ALIGNED))


def save(file: MappedFile, path: str | os.PathLike[str]) -> None:
    """Write a file, which replaces an existing one in a single step: processes that have mapped that one keep it."""
    with replacing(path) as stream:
        write(file, stream)


def is_mapped_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as those do that `save` writes."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise make_read_error(path, error) from None


def load(path: str | os.PathLike[str]) -> MappedFile:
    """Map a file; its arrays are read where and when they are used."""
    try:
        with Path(path).open("rb") as stream:
            if os.fstat(stream.fileno()).st_size == 0:
                raise FileFormatError(f"{path}: the file is empty, expected a resource of crfkit")
            data = np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except OSError as error:
        raise make_read_error(path, error) from None
    return parse(data, str(path))


def parse(data: npt.NDArray[np.uint8], source: str) -> MappedFile:
    """The contents of a file in its bytes; `source` names it in messages."""
    begin = len(MAGIC) + 8
    if bytes(data[: len(MAGIC)]) != MAGIC:
        raise FileFormatError(
            f"{source}: not a resource of crfkit (a lexicon, clusters or word vectors that were built or saved)"
        )
    n_header = int.from_bytes(bytes(data[len(MAGIC) : begin]), "little")
    if n_header > min(_MAX_HEADER, len(data) - begin):
        raise FileFormatError(f"{source}: the file is truncated: its header has {n_header:,} bytes")
    try:
        header = json.loads(bytes(data[begin : begin + n_header]))
        version, kind, digest = header["version"], header["kind"], header["digest"]
        if isinstance(version, int) and version > VERSION:
            raise FileVersionError(f"{source}: written by a newer crfkit (file version {version})")
        settings = header["settings"]
        arrays = {
            str(name): _array(data[begin + n_header :], *place) for name, place in header["arrays"].items()
        }
    except FileVersionError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise FileFormatError(f"{source}: the file is truncated or damaged ({error})") from None
    if not isinstance(kind, str) or not isinstance(digest, str) or not isinstance(settings, dict):
        raise FileFormatError(f"{source}: the header of the file is damaged")
    return MappedFile(kind, settings, arrays, digest)


def _array(data: npt.NDArray[np.uint8], kind: str, shape: list[int], place: int) -> Array:
    """An array at a place of the data; ValueError where it does not lie in it."""
    if kind not in _TYPES or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError("an array has an unknown type or shape")
    dtype = np.dtype(_TYPES[kind])
    size = dtype.itemsize
    for n in shape:
        size *= n
    if not isinstance(place, int) or place < 0 or place % _ALIGNED or place + size > len(data):
        raise ValueError("an array lies outside of the file")
    return data[place : place + size].view(dtype).reshape(shape)
