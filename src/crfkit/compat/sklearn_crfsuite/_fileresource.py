"""The file of a model, kept under the name where pickles of sklearn-crfsuite look for it."""

import os
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_CONTENT = "__FILE_RESOURCE_DATA__"  # what sklearn-crfsuite calls it in a pickle


class FileResource:
    """A file that is pickled with its content.

    A temporary file holds a new model only once its name is asked for; until then the model is kept in memory.

    filename : its path; None: it is a temporary file, deleted with this object
    keep_tempfiles : leave a temporary file behind
    suffix, prefix : of the name of a temporary file

    auto : whether it is a temporary file
    fd : the descriptor of the temporary file, once there is one; a program may close it
    """

    fd: int

    def __init__(
        self, filename: str | None = None, keep_tempfiles: bool = False, suffix: str = "", prefix: str = ""
    ) -> None:
        self.auto = filename is None
        self.keep_tempfiles = keep_tempfiles
        self.suffix = suffix
        self.prefix = prefix
        self._name = filename
        self._content: bytes | None = None  # what no file holds yet
        self._deletion: weakref.finalize[..., FileResource] | None = None

    @property
    def name(self) -> str | None:
        """Its path; None for a temporary file that is not there and has no content."""
        if self._name is None and self._content is not None:
            Path(self._create()).write_bytes(self._content)
            self._content = None
        return self._name

    @name.setter
    def name(self, path: str | None) -> None:
        self._name, self._content = path, None

    def ensure_name(self) -> None:
        """Create an empty temporary file unless there is a file name."""
        if self._name is None:
            self._create()

    def _create(self) -> str:
        """The path of a new temporary file, which is this one from now on."""
        if not self.auto:
            raise ValueError("the model file has no name, and is not a temporary file")
        self.fd, path = tempfile.mkstemp(self.suffix, self.prefix)
        if not self.keep_tempfiles:
            self._deletion = weakref.finalize(self, _delete, path, self.fd, os.getpid())
        self._name = path
        return path

    def cleanup(self) -> None:
        """Delete the temporary file, unless it is to be kept; a file with a name of its own stays."""
        if self.keep_tempfiles or not self.auto:
            return
        if self._deletion is not None:
            self._deletion()
        self.name = None

    def refresh(self) -> None:
        """Replace the temporary file by a new, empty one."""
        self.cleanup()
        self.ensure_name()

    @property
    def content(self) -> bytes | None:
        """Its bytes; None where there are none yet."""
        if self._content is None and self.exists():
            assert self._name is not None
            return Path(self._name).read_bytes()
        return self._content

    def exists(self) -> bool:
        """Whether there is any content."""
        if self._content is not None:
            return True
        with suppress(OSError):
            return self._name is not None and Path(self._name).stat().st_size > 0
        return False

    @contextmanager
    def writing(self) -> Iterator[str]:
        """A path to write to; what is there afterwards is the content."""
        if self._name is not None or self.keep_tempfiles:
            yield self._name or self._create()
            self._content = None
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            yield str(path)
            self._content = path.read_bytes()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "name": None if self.auto else self._name,
            "auto": self.auto,
            "keep_tempfiles": self.keep_tempfiles,
            "suffix": self.suffix,
            "prefix": self.prefix,
            _CONTENT: self.content,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        filename = None if state["auto"] else state["name"]
        self.__init__(filename, state["keep_tempfiles"], state["suffix"], state["prefix"])  # type: ignore[misc]
        self._content = state.get(_CONTENT)


def _delete(path: str, descriptor: int, process: int) -> None:
    """Close and delete a temporary file, but not from a fork of the process that made it."""
    if os.getpid() != process:
        return
    with suppress(OSError):
        # A program may have closed the descriptor, and its number may by now be that of another file.
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            os.close(descriptor)
    with suppress(OSError):
        os.unlink(path)
