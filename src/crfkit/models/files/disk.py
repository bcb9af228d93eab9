"""Model files and checkpoints on disk: read whole, and saved elsewhere where there is no space."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from crfkit import data
from crfkit.errors import FileFormatError, InputError


def check_no_folder(path: str | os.PathLike[str]) -> None:
    """Raise for a folder where a model file is expected, and name the model file in it."""
    if os.path.isdir(path):
        inside = sorted(name for name in os.listdir(path) if name.endswith(".crf"))
        advice = f", such as {os.path.join(path, inside[0])}" if inside else ""
        raise FileFormatError(f"{path}: not a file but a folder, expected a crfkit model file{advice}")


def read_bytes(path: str | os.PathLike[str], n: int = -1) -> bytes:
    """The content of a model file, or its first `n` bytes.

    InputError where it cannot be read, which is a FileNotFoundError where there is no such file.
    """
    check_no_folder(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileFormatError(f"{path}: not a file, expected a crfkit model file")
    return data.read_bytes(path, n)


def save_elsewhere(save: Callable[[Path], None], path: str | os.PathLike[str]) -> Path | None:
    """Where `save` could put a file for which there is no space at `path`; None where it could not."""
    path = Path(path)
    name = f"{path.stem}-{os.urandom(4).hex()}{path.suffix}"
    folders: tuple[Callable[[], str | Path], ...] = (tempfile.gettempdir, Path.home, Path.cwd)
    for folder in folders:
        with suppress(InputError, OSError, RuntimeError):  # folders that are full, or that do not exist
            other = Path(folder()) / name
            save(other)
            return other
    return None
