"""What is said about input that cannot be used."""

import errno
from os import PathLike, fspath


class InputError(ValueError):
    """Bad input, in one sentence: what was given, what was expected, and where.

    Where is a file and a line, or a sequence and a position.
    """


class MissingFileError(InputError, FileNotFoundError):
    """A file to read that does not exist."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def unreadable(path: str | PathLike[str], error: OSError) -> InputError:
    """What to raise for a file that cannot be opened or read."""
    words = f"{fspath(path)}: cannot be read: {error.strerror or error}"
    if not isinstance(error, FileNotFoundError):
        return InputError(words)
    missing = MissingFileError(words)
    missing.errno, missing.strerror, missing.filename = errno.ENOENT, error.strerror, fspath(path)
    return missing
