"""Text files as numbered lines, compressed or not, always UTF-8."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import IO

from crfkit.data.errors import InputError

Source = str | PathLike[str] | IO[str] | IO[bytes]

_DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


def source_name(source: Source) -> str:
    """What messages call a source: its path, or the name of the stream."""
    if isinstance(source, str | PathLike):
        return fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines of a file or stream without their ends, numbered from 1.

    A path that ends in .gz, .xz or .bz2 is decompressed. A byte order mark at the start and carriage returns
    before line feeds are dropped. Bytes that are not UTF-8, damaged archives and files that cannot be
    opened are InputErrors.
    """
    name = source_name(source)
    number = 0
    try:
        if isinstance(source, str | PathLike):
            with _open(Path(source)) as stream:
                for number, line in _decoded(stream, name):
                    yield number, line
        else:
            for number, line in _decoded(source, name):
                yield number, line
    except _DAMAGE as error:
        raise InputError(f"{name}: the compressed file is damaged after line {number} ({error})") from error
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:  # a text stream that decodes by itself, in larger pieces than lines
        raise InputError(f"{name}: the text after line {number} is not UTF-8 ({error.reason})") from error


def read_text(path: str | PathLike[str]) -> str:
    """The whole text of a small file, such as a template, with line feeds as line ends."""
    return "\n".join(line for _, line in numbered_lines(path))


def _open(path: Path) -> IO[bytes]:
    match path.suffix:
        case ".gz":
            return gzip.open(path, "rb")  # type: ignore[return-value]
        case ".xz":
            return lzma.open(path, "rb")
        case ".bz2":
            return bz2.open(path, "rb")
        case _:
            return path.open("rb")


def _decoded(lines: Iterable[str | bytes], name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        if isinstance(line, bytes):
            try:
                line = line.decode("utf-8")
            except UnicodeDecodeError as error:
                found = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1} of the line"
                raise InputError(f"{name}:{number}: expected UTF-8, found {found}") from error
        if number == 1:
            line = line.removeprefix("\ufeff")
        yield number, line.removesuffix("\n").removesuffix("\r")
