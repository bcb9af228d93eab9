"""The OCR letters of Kassel and Taskar: handwritten words, letter by letter as 16 × 8 pixels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.corpora import corpus_path
from crfkit.data import read_text

N_PIXELS = 128


class Word(NamedTuple):
    """One handwritten word, whose first letter was left out."""

    letters: str  # T of them
    fold: int  # 0 to 9
    pixels: npt.NDArray[np.uint8]  # [T, 128], 0 or 1, row by row


def words() -> list[Word]:
    """All 6,877 words in the order of the file."""
    found = []
    letters, rows = "", []
    for line in read_text(corpus_path("letters", "letter.data")).splitlines():
        _, letter, following, _, _, fold, *pixels = line.split()
        letters += letter
        rows.append(pixels)
        if following == "-1":
            found.append(Word(letters, int(fold), np.array(rows, dtype=np.uint8)))
            letters, rows = "", []
    return found
