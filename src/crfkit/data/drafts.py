"""Files that are replaced in a single step.

A new file is written as a draft beside the one it replaces, `.NAME.<12 hex digits>.part`, and renamed when it is complete.
The writer holds a lock on its draft, so a draft without a lock was left by a process that was killed: the next save of the
same file removes it.
"""

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from crfkit.errors import InputError, UnwritableFileError

if sys.platform != "win32":  # where a file that is open cannot be removed or renamed anyway
    import fcntl

_LONGEST = 200  # bytes of the file's name that its drafts have too; names have 255 at most


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done, a path at which no file can be written."""
    draft = _Draft(path)
    if draft.is_pipe():  # who reads it would take it for complete when it is closed
        if not os.access(path, os.W_OK):
            raise UnwritableFileError(f"{path}: cannot be written (the pipe is read-only)")
        return
    try:
        draft.open()
    finally:
        draft.discard()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A stream that becomes the file at `path` when the block ends well, and else leaves no trace."""
    draft = _Draft(path)
    try:  # Ctrl-C may come at any time
        yield draft.open()
        draft.accept()
    except BaseException as error:
        draft.discard()
        if isinstance(error, OSError) and not isinstance(error, InputError):
            raise _unwritable(path, error) from None
        raise


class _Draft:
    """A new file beside the one it is going to replace in a single step.

    A device or a pipe, such as /dev/stdout, has no such step and is written directly.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.given, self.target = path, Path(os.path.realpath(path))
        self.path: Path | None = None
        self.stream: IO[bytes] = io.BytesIO()

    def is_pipe(self) -> bool:
        """Whether it is a pipe, or a link of the system to one, such as /dev/stdout."""
        with suppress(OSError):  # no path; `open` says why
            return Path(self.given).is_fifo()
        return False

    def open(self) -> IO[bytes]:
        """Its stream; UnwritableFileError where no file can be written."""
        try:
            given = Path(self.given)  # a link to a pipe without a name leads nowhere by its text
            if given.is_dir():
                raise UnwritableFileError(f"{self.given}: cannot be written (it is a folder)")
            if given.exists() and not given.is_file():
                self.stream = given.open("wb")
                return self.stream
            if self.target.exists() and not os.access(self.target, os.W_OK):
                raise UnwritableFileError(f"{self.given}: cannot be written (the file is read-only)")
            _remove_abandoned(self.target)
            self._make()
        except OSError as error:
            raise _unwritable(self.given, error) from None
        return self.stream

    def _make(self) -> None:
        """An empty file, locked by this process."""
        while True:
            path = self.target.with_name(f".{_shorten(self.target.name)}.{os.urandom(6).hex()}.part")
            self.path = path
            self.stream = path.open("xb")
            _lock(self.stream)
            if os.fstat(
                self.stream.fileno()
            ).st_nlink:  # another save may have removed it before it was locked
                return
            self.stream.close()

    def accept(self) -> None:
        """Puts the draft, complete and on disk, in the place of the file."""
        self.stream.flush()
        if self.path is None:
            self.stream.close()
            return
        os.fsync(self.stream.fileno())  # a full disk may show only here
        if sys.platform == "win32":
            self.stream.close()
        self.path.replace(self.target)
        self.stream.close()

    def discard(self) -> None:
        """Leaves nothing behind."""
        with suppress(OSError):  # what is left in the buffer has nowhere to go
            self.stream.close()
        if self.path is not None:
            with suppress(OSError):  # it may never have been made
                self.path.unlink()


def _remove_abandoned(target: Path) -> None:
    """Removes the drafts of a file whose writers are gone."""
    form = re.compile(rf"\.{re.escape(_shorten(target.name))}\.[0-9a-f]{{12}}\.part")
    with suppress(OSError):  # a folder that cannot be listed; a draft of somebody else
        for path in [path for path in target.parent.iterdir() if form.fullmatch(path.name)]:
            if sys.platform == "win32":
                with suppress(OSError):  # its writer has it open
                    path.unlink()
                continue
            with suppress(OSError), path.open("rb") as stream:
                if _lock(stream):
                    path.unlink()


def _shorten(name: str) -> str:
    while len(os.fsencode(name)) > _LONGEST:
        name = name[:-1]
    return name


def _lock(stream: IO[bytes]) -> bool:
    """Whether this process has the lock of a file now."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held by its writer, or the file system has no locks
        return False
    return True


def _unwritable(path: str | os.PathLike[str], error: OSError) -> UnwritableFileError:
    return UnwritableFileError(f"{path}: cannot be written ({error.strerror or error})")
