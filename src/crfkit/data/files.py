"""Text files as numbered lines, compressed or not, always UTF-8."""

import bz2
import codecs
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

from crfkit.data.errors import make_read_error
from crfkit.errors import FileFormatError, InputError, UnwritableFileError

Source = str | PathLike[str] | Iterable[str] | Iterable[bytes]  # a path, or a stream of lines
Target = str | PathLike[str] | IO[str]
ByteSource = str | PathLike[str] | IO[bytes]

_PIECE = 1 << 16  # bytes read at once
_DAMAGE = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)


def source_name(source: Source | ByteSource) -> str:
    """What messages call a source: its path, or the name of the stream."""
    if isinstance(source, str | PathLike):
        return fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<stream>"


@contextmanager
def _explain_damage(name: str, place: Callable[[], str]) -> Iterator[None]:
    """Errors of reading, and of archives that are damaged, as InputErrors; `place` says how far reading came."""
    try:
        yield
    except _DAMAGE as error:
        raise FileFormatError(f"{name}: the compressed file is damaged{place()} ({error})") from error
    except OSError as error:
        raise make_read_error(name, error) from error


def number_lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines of a file or stream without their ends, numbered from 1.

    A path that ends in .gz, .xz or .bz2 is decompressed. A byte order mark at the start and carriage returns
    before line feeds are dropped. Bytes that are not UTF-8, damaged archives and files that cannot be
    opened are InputErrors.
    """
    name = source_name(source)
    number = 0
    try:
        with _explain_damage(name, lambda: f" after line {number}"), _opened(source) as stream:
            for number, line in decode_lines(stream, name):
                yield number, line
    except UnicodeDecodeError as error:  # a text stream that decodes by itself, in larger pieces than lines
        raise FileFormatError(
            f"{name}: the text after line {number} is not UTF-8 ({error.reason})"
        ) from error


def read_pieces(source: Source) -> Iterator[str]:
    """The text of a file or stream as it is, line ends included, in pieces of bounded length.

    Files are opened as `number_lines` does it, and errors are the same. A byte order mark at the start is dropped.
    """
    name = source_name(source)
    decoder = codecs.getincrementaldecoder("utf-8")()
    n_bytes, line = 0, 1
    first = True
    try:
        with _explain_damage(name, lambda: f" after byte {n_bytes:,}"):
            for piece in _pieces(source):
                if isinstance(piece, bytes):
                    text = decoder.decode(piece)
                    n_bytes += len(piece)
                else:
                    text = piece
                line += text.count("\n")
                if text:
                    yield text.removeprefix("\ufeff") if first else text
                    first = False
            decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].count(b"\n")
        found = f"byte 0x{error.object[error.start]:02x}"
        raise FileFormatError(f"{name}:{line}: expected UTF-8, found {found}") from error


def _pieces(source: Source) -> Iterator[str | bytes]:
    if isinstance(source, str | PathLike):
        with _opened(source) as stream:
            while piece := stream.read(_PIECE):
                yield piece
    else:
        yield from source


def read_byte_pieces(source: ByteSource, size: int = 1 << 22) -> Iterator[bytes]:
    """The bytes of a file or stream in pieces of at most `size`; files are opened, and errors are, as by `number_lines`."""
    name = source_name(source)
    n_lines = 0
    with _explain_damage(name, lambda: f" after line {n_lines}"), _opened(source) as stream:
        while piece := stream.read(size):
            yield piece
            n_lines += piece.count(b"\n")


def _opened(source: Source | ByteSource) -> AbstractContextManager[Any]:
    """A stream of bytes of a path, decompressed; any other source as it is."""
    if isinstance(source, str | PathLike):
        return _opener(Path(source))(source, "rb")  # type: ignore[no-any-return]
    return nullcontext(source)


def read_text(path: str | PathLike[str]) -> str:
    """The whole text of a small file, such as a template, with line feeds as line ends."""
    return "\n".join(line for _, line in number_lines(path))


def read_bytes(path: str | PathLike[str], n: int = -1) -> bytes:
    """The bytes of a file, or its first `n`; InputError where it cannot be read."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(n)
    except OSError as error:
        raise make_read_error(path, error) from None


def read_all(source: ByteSource) -> bytes:
    """The bytes of a stream or of a file, which is decompressed if its path ends in .gz, .xz or .bz2."""
    with _explain_damage(source_name(source), str), _opened(source) as stream:
        found: bytes = stream.read()
        return found


@contextmanager
def open_target(target: Target) -> Iterator[IO[str]]:
    """A stream to write to: that of a path (packed if it ends in .gz, .xz or .bz2) as UTF-8, or the one given."""
    if not isinstance(target, str | PathLike):
        yield target
        return
    try:
        with _opener(Path(target))(target, "wt", encoding="utf-8", newline="\n") as stream:
            yield stream
    except InputError:  # of a file that the block reads
        raise
    except OSError as error:
        raise UnwritableFileError(
            f"{fspath(target)}: cannot be written ({error.strerror or error})"
        ) from error


def _opener(path: Path) -> Any:
    """What opens a file of this name, packed or not."""
    return {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix, open)


def decode_lines(lines: Iterable[str | bytes], name: str, first: int = 1) -> Iterator[tuple[int, str]]:
    """The lines of the file `name`, the first of which has this number, as `number_lines` gives them."""
    for number, line in enumerate(lines, first):
        if isinstance(line, bytes):
            try:
                line = line.decode("utf-8")
            except UnicodeDecodeError as error:
                found = f"byte 0x{error.object[error.start]:02x} at position {error.start + 1} of the line"
                raise FileFormatError(f"{name}:{number}: expected UTF-8, found {found}") from error
        if number == 1:
            line = line.removeprefix("\ufeff")
        yield number, line.removesuffix("\n").removesuffix("\r")
