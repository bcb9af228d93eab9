"""Resources: what features may know beside the sequence itself, each in a file that is mapped into memory."""

from __future__ import annotations

import io
import os
from typing import Any, ClassVar, Self

import numpy as np

from crfkit import _core
from crfkit.errors import FileFormatError, NotLoadedError
from crfkit.features.knowledge import mapped_file
from crfkit.features.knowledge.mapped_file import MappedFile


class Resource:
    """A lexicon, word clusters or word vectors: never changed once it is built, and known by its digest."""

    KIND: ClassVar[str]  # what files and messages call it

    def __init__(self, file: MappedFile, source: str = "resource") -> None:
        """Open the contents of a file; the other constructors are `build`, `read` and `load`."""
        if file.kind != self.KIND:
            raise FileFormatError(f"{source}: expected {self.KIND}, got {file.kind[:40]}")
        self._file = file
        try:
            self._open(file)
        except (ValueError, KeyError, TypeError) as error:
            raise FileFormatError(f"{source}: the file is damaged ({error})") from None

    def _open(self, file: MappedFile) -> None:
        """Read the contents; ValueError, KeyError or TypeError where they are damaged."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """Tells resources apart: 32 hex digits, equal for equal contents."""
        return self._file.digest

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Map a file that `build` or `save` wrote: in milliseconds, whatever its size."""
        return cls(mapped_file.load(path), str(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file that `load` maps; an existing one is replaced in a single step."""
        mapped_file.save(self._file, path)

    @classmethod
    def _keep(cls, file: MappedFile, path: str | os.PathLike[str] | None) -> Self:
        """The resource with these contents: in memory, or written to a file and mapped."""
        if path is None:
            return cls(file)
        mapped_file.save(file, path)
        return cls.load(path)

    def to_bytes(self) -> bytes:
        """The bytes of its file."""
        stream = io.BytesIO()
        mapped_file.write(self._file, stream)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "resource") -> Self:
        """The inverse of `to_bytes`."""
        return cls(mapped_file.parse(np.frombuffer(data, np.uint8), source), source)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # nothing changes it

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_bytes, (self.to_bytes(),)


class MissingResource:
    """What a model needs and was not given; it can be named, not asked."""

    def __init__(self, kind: str, digest: str) -> None:
        """Take its kind and digest from a model file."""
        self.KIND = kind
        self.digest = digest

    def __repr__(self) -> str:
        return f"<{self.KIND} with digest {self.digest[:8]}…, not loaded>"

    def complaint(self, name: str) -> NotLoadedError:
        """The error to raise where it is asked."""
        return NotLoadedError(
            f"the model needs the {self.KIND} {name!r} (digest {self.digest[:8]}…), which was not loaded: give "
            f"it by crfkit.load(path, resources={{{name!r}: …}}), or by --resource {name}=FILE"
        )


WORD_ARRAYS = ("slots", "ends", "blob")  # of a table of words


def index_words(words: _core.Vocabulary) -> dict[str, mapped_file.Array]:
    """The arrays of a table of words."""
    return dict(zip(WORD_ARRAYS, _core.index_strings(words), strict=True))


def open_words(file: MappedFile) -> _core.StringTable:
    """The table of words of a file."""
    return _core.StringTable(file.arrays["slots"], file.arrays["ends"], file.arrays["blob"])
