"""The file of a model, kept under the name where pickles of sklearn-crfsuite look for it."""

from __future__ import annotations

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

    filename : its path; None: it is a temporary file
    keep_tempfiles : leave a temporary file behind
    suffix, prefix : of the name of a temporary file
    """

    def __init__(
        self, filename: str | None = None, keep_tempfiles: bool = False, suffix: str = "", prefix: str = ""
    ) -> None:
        self.filename = filename
        self.keep_tempfiles = keep_tempfiles
        self.suffix = suffix
        self.prefix = prefix
        self._content: bytes | None = None
        self._temporary: str | None = None

    @property
    def name(self) -> str | None:
        """Its path; None for a temporary file without content.

        A temporary file is written when this is first asked for, and deleted with this object.
        """
        if self.filename is not None or self._content is None:
            return self.filename
        if self._temporary is None:
            self._temporary = self._written()
        return self._temporary

    def _written(self) -> str:
        """The path of a new temporary file with the content."""
        handle, path = tempfile.mkstemp(self.suffix, self.prefix)
        with os.fdopen(handle, "wb") as stream:
            stream.write(self._content or b"")
        if not self.keep_tempfiles:
            weakref.finalize(self, _delete, path, os.getpid())
        return path

    @property
    def content(self) -> bytes | None:
        """Its bytes; None where there are none yet."""
        if self._content is None and self.filename is not None and Path(self.filename).is_file():
            self._content = Path(self.filename).read_bytes() or None
        return self._content

    @contextmanager
    def writing(self) -> Iterator[str]:
        """A path to write to; what is there afterwards is the content."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model")) if self.filename is None else self.filename
            yield path
            self._content = Path(path).read_bytes()
        self._temporary = self._written() if self.filename is None and self.keep_tempfiles else None

    def __getstate__(self) -> dict[str, Any]:
        return {
            "name": self.filename,
            "auto": self.filename is None,
            "keep_tempfiles": self.keep_tempfiles,
            "suffix": self.suffix,
            "prefix": self.prefix,
            _CONTENT: self.content,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        filename = None if state["auto"] else state["name"]
        self.__init__(filename, state["keep_tempfiles"], state["suffix"], state["prefix"])  # type: ignore[misc]
        self._content = state.get(_CONTENT)


def _delete(path: str, process: int) -> None:
    """Delete a file, but not from a fork of the process that made it."""
    if os.getpid() == process:
        with suppress(OSError):
            os.unlink(path)
