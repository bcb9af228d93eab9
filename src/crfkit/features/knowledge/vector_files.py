"""Files of word vectors: the texts of word2vec, GloVe and fastText, the binary files of word2vec and of fastText."""

from __future__ import annotations

import mmap
import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data import make_read_error, number_lines
from crfkit.errors import FileFormatError, UnsupportedError

Float32s = npt.NDArray[np.float32]
_FASTTEXT = 793712314  # the number that a .bin file begins with
_FASTTEXT_VERSION = 12
_MOST_SIZE = 100_000
_FEWEST = 3  # numbers of a vector in a text that does not say how many
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FRACTION = re.compile("[.eE]").search


class Subwords(NamedTuple):
    """Vectors of character n-grams, by the bucket that an n-gram falls into."""

    matrix: Float32s  # [buckets, K]
    shortest: int
    longest: int

    def buckets(self, word: str) -> list[int]:
        """The buckets of the n-grams of a word, which stands between < and >."""
        letters = f"<{word}>"
        found = []
        for start in range(len(letters)):
            for n in range(self.shortest, self.longest + 1):
                end = start + n
                if end > len(letters):
                    break
                if n == 1 and (start == 0 or end == len(letters)):
                    continue
                found.append(_hash(letters[start:end].encode("utf-8", "surrogatepass")) % len(self.matrix))
        return found

    def vector(self, word: str) -> Float32s | None:
        """The mean of the vectors of its n-grams; None where it has none."""
        if not len(self.matrix) or self.longest < 1:
            return None
        buckets = self.buckets(word)
        if not buckets:
            return None
        mean: Float32s = self.matrix[buckets].mean(axis=0, dtype=np.float32)
        return mean


def _hash(text: bytes) -> int:
    """FNV-1a of 32 bits; bytes count as signed, as fastText has them."""
    state = 2166136261
    for byte in text:
        state = ((state ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return state


class VectorFile(NamedTuple):
    """What a file of word vectors holds."""

    words: list[str]
    matrix: Float32s  # [words, K]
    subwords: Subwords | None


def looks_like_vectors(lines: Sequence[str]) -> bool:
    """Whether the first lines of a text are word vectors: a word and equally many numbers on each, some with a point.

    Fewer than three numbers are vectors where the first line says so, as in files of word2vec. Words may have blanks, or be
    numbers.
    """
    header = _header(lines[0].encode("utf-8", "surrogatepass")) if lines else None
    rows = [line.split() for line in lines[header is not None :]]
    counts = [_count_numbers(row) for row in rows]
    if not rows or min(counts) < (_FEWEST if header is None else max(header[1], 1)):
        return False
    size = min(counts) if header is None else header[1]
    is_one_word = sum(len(row) == size + 1 for row in rows) * 2 > len(rows)  # few words have blanks
    return is_one_word and any(map(_FRACTION, (number for row in rows for number in row[-size:])))


def _count_numbers(row: Sequence[str]) -> int:
    """How many numbers end a line, the first word not counted."""
    return next((n for n, part in enumerate(reversed(row[1:])) if not _DECIMAL.fullmatch(part)), len(row[1:]))


def read_vectors(path: str | os.PathLike[str], limit: int | None) -> VectorFile:
    """Read a file of any of these forms, as its first bytes look."""
    if Path(path).suffix in (".gz", ".xz", ".bz2"):
        return _read_text(path, limit)
    try:
        with Path(path).open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < 8:
                raise FileFormatError(f"{path}: not a file of word vectors")
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise make_read_error(path, error) from None
    try:
        if struct.unpack_from("<i", data)[0] == _FASTTEXT:
            return _FastText(data).read(limit)
        if _is_binary(data):
            return _read_binary(data, limit)
    except UnsupportedError as error:
        raise UnsupportedError(f"{path}: {error}") from None
    except (struct.error, ValueError, IndexError) as error:
        raise FileFormatError(f"{path}: the file of word vectors is truncated or damaged ({error})") from None
    return _read_text(path, limit)


def _header(line: bytes) -> tuple[int, int] | None:
    """The number of words and the size of vectors, where a line says these."""
    parts = line.split()
    if len(parts) != 2 or not all(part.isdigit() and len(part) < 12 for part in parts):
        return None
    return int(parts[0]), int(parts[1])


def _is_binary(data: mmap.mmap) -> bool:
    """Whether the first vector of word2vec is in binary form: a text has one that can be read as numbers."""
    end = data.find(b"\n", 0, 64)
    header = _header(data[: max(end, 0)])
    if header is None:
        return False
    line = data[end + 1 : end + 1 + 64 * header[1] + 4096].split(b"\n")[0].split()
    try:
        return len([float(part) for part in line[-header[1] :]]) != header[1]
    except ValueError:
        return True


def _read_binary(data: mmap.mmap, limit: int | None) -> VectorFile:
    at = data.find(b"\n") + 1
    header = _header(data[: at - 1])
    if header is None or not 0 < header[1] <= _MOST_SIZE or header[0] * header[1] * 4 > len(data):
        raise ValueError("its first line is damaged")
    n, size = header
    n = n if limit is None else min(n, limit)
    words: list[str] = []
    matrix = np.empty((n, size), dtype=np.float32)
    for row in range(n):
        blank = data.find(b" ", at)
        if blank < 0:
            raise ValueError(f"it ends in word {row}")
        words.append(data[at:blank].lstrip(b"\n").decode("utf-8", "replace"))
        matrix[row] = np.frombuffer(data[blank + 1 : blank + 1 + 4 * size], "<f4")
        at = blank + 1 + 4 * size
    return VectorFile(words, matrix, None)


def _read_text(path: str | os.PathLike[str], limit: int | None) -> VectorFile:
    words: list[str] = []
    rows: list[Float32s] = []
    size: int | None = None
    n_words: int | None = None  # as the first line says
    for number, line in number_lines(path):
        if limit is not None and len(words) == limit:
            break
        if number == 1 and (header := _header(line.encode())) is not None:
            n_words, size = header
            continue
        parts = line.rstrip().split(" ")
        size = len(parts) - 1 if size is None else size
        try:
            row = np.array(parts[-size:], dtype=np.float32)
            if size < 1 or len(row) != size or len(parts) <= size:
                raise ValueError
        except ValueError:
            raise FileFormatError(f"{path}:{number}: expected a word and {size} numbers") from None
        if not np.isfinite(row).all():
            raise FileFormatError(f"{path}:{number}: a number is not finite")
        words.append(" ".join(parts[:-size]))  # some files have words with blanks
        rows.append(row)
    if not rows:
        raise FileFormatError(f"{path}: the file has no word vectors")
    if n_words is not None and len(words) < n_words and len(words) != limit:
        raise FileFormatError(
            f"{path}: found {len(words):,} vectors, expected {n_words:,} as in its first line: it is truncated"
        )
    return VectorFile(words, np.stack(rows), None)


class _FastText:
    """A .bin file of fastText, piece by piece: settings, words, the input matrix."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def take(self, form: str) -> tuple[int | float, ...]:
        values = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def read(self, limit: int | None) -> VectorFile:
        _, version = self.take("ii")
        if version != _FASTTEXT_VERSION:
            raise UnsupportedError(f"a file of fastText has version {version}, expected {_FASTTEXT_VERSION}")
        size, *_, bucket, shortest, longest, _ = map(int, self.take("12i"))
        self.take("d")
        words = self.words()
        (quantized,) = self.take("?")
        if quantized:
            raise UnsupportedError("a quantized file of fastText (.ftz) cannot be read, expected a .bin file")
        n_rows, n_columns = self.take("qq")
        if n_columns != size or not 0 < size <= _MOST_SIZE or n_rows != len(words) + bucket:
            raise ValueError("the size of its matrix does not fit")
        n_numbers = int(n_rows) * size
        if self.at + 4 * n_numbers > len(self.data):
            raise ValueError("its matrix is not complete")
        matrix = np.frombuffer(self.data, "<f4", n_numbers, self.at).reshape(int(n_rows), size)
        subwords = Subwords(matrix[len(words) :], shortest, longest)
        kept = words if limit is None else words[:limit]
        vectors = np.empty((len(kept), size), dtype=np.float32)
        for row, word in enumerate(kept):  # a word's own row and those of its subwords
            buckets = subwords.buckets(word) if bucket and longest and word != "</s>" else []
            own = (
                matrix[row] if not buckets else matrix[[row, *(len(words) + b for b in buckets)]].mean(axis=0)
            )
            vectors[row] = own
        return VectorFile(kept, vectors, subwords if bucket and longest else None)

    def words(self) -> list[str]:
        """The dictionary without its labels, which stand behind the words."""
        _, n_words, n_labels, _, n_pruned = map(int, self.take("iiiqq"))
        if n_pruned > 0:
            raise UnsupportedError("a file of fastText with pruned n-grams cannot be read")
        words = []
        for _ in range(n_words + n_labels):
            end = self.data.find(b"\0", self.at)
            if end < 0:
                raise ValueError("its words are not complete")
            words.append(self.data[self.at : end].decode("utf-8", "replace"))
            self.at = end + 1
            self.take("qb")
        return words[:n_words]
