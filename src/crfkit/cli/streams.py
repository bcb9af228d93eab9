"""Standard streams as the commands use them: safe where one is closed or full, input as it arrives, output as UTF-8.

Data (`crfkit tag`, `parse`, JSON) are always UTF-8. What people read (reports, help) has the encoding of standard output;
characters that it does not have are escaped, as Python escapes them on the error stream.
"""

import errno
import hashlib
import io
import os
import select
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn, TypeVar

import click

from crfkit.data import make_read_error
from crfkit.errors import InputError

BAD_INPUT = 2  # exit status
BROKEN_PIPE = 141  # exit status of a tool that the signal of a broken pipe ends: 128 + SIGPIPE

T = TypeVar("T")
Stream = TypeVar("Stream", bound=IO[bytes])

_PIECE = 1 << 16  # bytes asked for at once
_OPPOSITE = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}


def prepare_streams() -> None:
    """Replace closed standard streams, and let standard output escape characters that its encoding does not have.

    A descriptor that is closed would be taken by the next file that is opened, such as the model, and written to by
    whoever means standard output. It is opened on the null device, in the mode that makes every use of it fail.
    """
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.fstat(descriptor)
                continue
            opened = os.open(os.devnull, _OPPOSITE[descriptor])
            if opened != descriptor:
                os.dup2(opened, descriptor)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def complain(text: str) -> None:
    """Write a line to the error stream; where that is impossible, nobody is there to read it."""
    with suppress(OSError, ValueError):
        click.echo(text, err=True)


@contextmanager
def output_failures() -> Iterator[None]:
    """End the command with a status where standard output fails; files that are read have errors of their own."""
    try:
        yield
    except InputError:  # of which some are OSErrors too
        raise
    except OSError as error:
        _end(error)


def flush_streams() -> None:
    """Write what standard output and error still hold, so that no failure is left for the end of the interpreter.

    Python would end with a status of its own (120) there. An error stream that cannot be written changes no status.
    """
    try:
        with output_failures(), suppress(ValueError):  # a stream that the command has closed
            sys.stdout.flush()
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):
            _discard(sys.stderr)


def _end(error: OSError) -> NoReturn:
    broken = error.errno == errno.EPIPE  # whoever read it, such as `head`, has enough
    if not broken:
        complain(
            f"crfkit: {error.filename or 'standard output'}: cannot be written ({error.strerror or error})"
        )
    _discard(sys.stdout)
    sys.exit(BROKEN_PIPE if broken else BAD_INPUT)


def _discard(stream: IO[str]) -> None:
    """What is left in the buffer has nowhere to go."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def open_output(path: str | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears under its name when it is complete."""
    if path is None or path == "-":
        text = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
        try:
            yield text
        finally:
            text.detach()  # standard output is not ours to close
        return
    from crfkit.models import replacing

    with replacing(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        yield text
        text.detach()


def writes_to_terminal(path: str | None) -> bool:
    """Whether output goes to a terminal, where it shows by itself how far a command is."""
    return path in (None, "-") and sys.stdout.isatty()


class ArrivingLines:
    """The lines of a stream, taken as they arrive; it knows whether another whole sequence has arrived already."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self._stream = stream
        self._lines: list[bytes] = []  # whole lines that have arrived
        self._next = 0  # the first of them that nobody has read

    def __iter__(self) -> Iterator[bytes]:
        begun: list[bytes] = []  # the pieces of a line whose end has not arrived
        while piece := self._stream.read1(_PIECE):  # type: ignore[attr-defined]
            first, *others = piece.split(b"\n")
            begun.append(first)
            if not others:
                continue
            lines = [b"".join(begun), *others[:-1]]
            begun = others[-1:]
            self._lines, self._next = [line + b"\n" for line in lines], 0
            while self._next < len(self._lines):
                self._next += 1
                yield self._lines[self._next - 1]
        if any(begun):
            yield b"".join(begun)

    def pieces(self) -> Iterator[bytes]:
        """The bytes as they arrive, in place of the lines."""
        try:
            while piece := self._stream.read1(_PIECE):  # type: ignore[attr-defined]
                yield piece
        except OSError as error:
            raise make_read_error(self.name, error) from error

    def has_arrived(self) -> bool:
        """Whether more of the stream, or its end, can be read without waiting; False where that is not known."""
        try:
            return bool(select.select([self._stream], [], [], 0)[0])
        except (
            OSError,
            ValueError,
            io.UnsupportedOperation,
        ):  # no pipe, or a system that knows it of sockets alone
            return False

    def has_sequence(self) -> bool:
        """Whether a whole sequence can be read without waiting for the stream.

        A line that does not begin with `#` surely belongs to a sequence, and a blank line after it ends this.
        """
        begun = False
        for n in range(self._next, len(self._lines)):
            line = self._lines[n]
            if not line.strip(b" \t\r\n"):
                if begun:
                    return True
            elif not line.startswith(b"#"):
                begun = True
        return False


def open_input(path: str) -> Path | ArrivingLines:
    """What a file is to be read from: `-` is standard input, and pipes and terminals are read as lines arrive."""
    if path == "-":
        return ArrivingLines(sys.stdin.buffer, "<stdin>")
    file = Path(path)
    try:
        if file.is_fifo() or file.is_char_device():
            return ArrivingLines(_close_at_end(file.open("rb")), path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    return file


class KeptStream:
    """What a stream has brought, in a temporary file without a name: it can be read more than once."""

    def __init__(self, stream: ArrivingLines) -> None:
        digest, self.size = hashlib.sha256(), 0
        self.name = stream.name
        self._file = _close_at_end(tempfile.TemporaryFile(buffering=0))  # noqa: SIM115
        for piece in stream.pieces():
            digest.update(piece)
            self.size += len(piece)
            left = memoryview(piece)
            try:
                while left:  # a disk that is nearly full takes a part
                    left = left[self._file.write(left) :]
            except OSError as error:
                where = f"in {tempfile.gettempdir()} ({error.strerror or error})"
                raise InputError(
                    f"{self.name}: cannot be kept {where}, expected space for all of it"
                ) from None
        self.digest = digest.hexdigest()  # tells whether another stream brings the same

    def rewound(self) -> IO[bytes]:
        """Its bytes from the first one on; who reads them names it in messages."""
        self._file.seek(0)
        self._file.name = self.name
        return self._file


def _close_at_end(stream: Stream) -> Stream:
    """The stream, which is closed as the command ends."""
    if context := click.get_current_context(silent=True):
        context.call_on_close(stream.close)
    return stream


def batches(items: Iterable[T], size: int, source: Path | ArrivingLines) -> Iterator[list[T]]:
    """Lists of up to `size` items; what a stream has brought is not held back while it is waited for."""
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == size or (isinstance(source, ArrivingLines) and not source.has_sequence()):
            yield batch
            batch = []
    if batch:
        yield batch


def make_folder(path: Path) -> None:
    """A folder to write to, if it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: no folder can be made there ({error.strerror or error})") from None


def check_output(output: str | Path | None, sources: Iterable[str | Path | None], what: str) -> None:
    """Refuse, before any work, to write over a file that is read: under its name, another path, or a link to it."""
    target = _identity("-" if output is None else output, writing=True)
    if target is not None and target in [_identity(source) for source in sources if source is not None]:
        where = "standard output" if output in (None, "-") else output
        raise InputError(f"{where}: {what} would replace the file it is made of, expected another path")


def _identity(path: str | Path, *, writing: bool = False) -> tuple[int, int] | None:
    """Device and number of a regular file; None for what does not exist, or may be read and written at once."""
    stream = sys.stdout if writing else sys.stdin
    try:
        found = os.fstat(stream.fileno()) if str(path) == "-" else os.stat(path)
    except (OSError, ValueError, AttributeError):  # a stream without a descriptor is no file
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
