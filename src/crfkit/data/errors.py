"""The errors of files that cannot be read."""

import errno
from os import PathLike, fspath

from crfkit.errors import MissingFileError, UnreadableFileError


def make_read_error(path: str | PathLike[str], error: OSError) -> UnreadableFileError:
    """What to raise for a file that cannot be opened or read."""
    words = f"{fspath(path)}: cannot be read: {error.strerror or error}"
    if not isinstance(error, FileNotFoundError):
        return UnreadableFileError(words)
    missing = MissingFileError(words)
    missing.errno, missing.strerror, missing.filename = errno.ENOENT, error.strerror, fspath(path)
    return missing
