"""Resources of any kind, as their files look."""

import os
import re
from itertools import islice

import numpy as np

from crfkit.data import number_lines
from crfkit.errors import FileFormatError
from crfkit.features.knowledge import mapped_file
from crfkit.features.knowledge.clusters import Clusters
from crfkit.features.knowledge.lexicon import Lexicon
from crfkit.features.knowledge.resource import Resource
from crfkit.features.knowledge.vector_files import looks_like_vectors
from crfkit.features.knowledge.word_vectors import WordVectors

KINDS: dict[str, type[Resource]] = {kind.KIND: kind for kind in (Lexicon, Clusters, WordVectors)}
_VECTORS = (".vec", ".bin", ".vec.gz")
_PATHS = re.compile(r"[01]+\t[^\t]+(\t[0-9]+)?")
_LOOKED_AT = 100  # lines that tell what a text holds


def open_resource(path: str | os.PathLike[str]) -> Resource:
    """The resource of a file: one that was built or saved, word vectors (.vec, .bin), Brown clusters, or a list of entries.

    A text file whose lines are `path<TAB>word<TAB>count` holds clusters, one with a word and equally many decimal numbers on
    each line vectors, as those of GloVe; any other has an entry of a lexicon on each line.
    """
    if mapped_file.is_mapped_file(path):
        return _open(mapped_file.load(path), str(path))
    if str(path).endswith(_VECTORS):
        return WordVectors.read(path)
    lines = [line for _, line in islice(number_lines(path), _LOOKED_AT)]
    if lines and all(map(_PATHS.fullmatch, lines)):
        return Clusters.read(path)
    if looks_like_vectors(lines):
        return WordVectors.read(path)
    return Lexicon.read(path)


def open_vectors(path: str | os.PathLike[str]) -> WordVectors:
    """Word vectors of a file: one that was saved, or one that `WordVectors.read` reads."""
    return WordVectors.load(path) if mapped_file.is_mapped_file(path) else WordVectors.read(path)


def resource_from_bytes(data: bytes, source: str) -> Resource:
    """The resource of any kind in the bytes of its file."""
    return _open(mapped_file.parse(np.frombuffer(data, np.uint8), source), source)


def _open(file: mapped_file.MappedFile, source: str) -> Resource:
    if file.kind not in KINDS:
        raise FileFormatError(
            f"{source}: a resource of the kind {file.kind[:40]!r}, expected {', '.join(KINDS)}"
        )
    return KINDS[file.kind](file, source)
