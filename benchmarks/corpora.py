"""Where the corpora are: the folder named by CRFKIT_DATA, else `../shared/data` beside the project."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_VARIABLE = "CRFKIT_DATA"

_PROJECT = Path(__file__).resolve().parent.parent
_PACKED = ("", ".xz", ".gz", ".bz2")


class MissingCorpusError(FileNotFoundError):
    """A corpus that is not on this machine; the message says where it was looked for."""


def corpora_folder() -> Path:
    """The folder that holds the corpora; it need not exist."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else _PROJECT.parent / "shared" / "data"


def find_corpus(corpus: str, file: str) -> Path | None:
    """The path of a corpus file such as ("conll2000", "train.txt"), packed or not; None when it is absent."""
    for packed in _PACKED:
        path = corpora_folder() / corpus / (file + packed)
        if path.is_file():
            return path
    return None


def corpus_path(corpus: str, file: str) -> Path:
    """The path of a corpus file, which must be there."""
    path = find_corpus(corpus, file)
    if path is None:
        raise MissingCorpusError(
            f"the corpus file {corpus}/{file} is not in {corpora_folder()} "
            f"(set {FOLDER_VARIABLE} to the folder of corpora)"
        )
    return path
