"""Functions that the model files in this folder name by import path, as `tests.old_files.functions`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Words = Sequence[str]


def long_noun(x: Words, label: str, i: int) -> bool:
    """One output without a name."""
    return label == "N" and len(x[i]) > 3


def word_and_label(x: Words, label: str, i: int) -> dict[str, float]:
    """Named outputs, those seen in training."""
    return {f"{x[i]}/{label}": 1.0}


def verb_after_noun(x: Words, before: str, label: Any, i: int) -> list[float]:
    """Two outputs on pairs of labels, at the end too."""
    at_end = i == len(x)
    return [float(before == "N" and not at_end and label == "V"), float(at_end and before == "V")]


def letters(x: Words, labels: npt.NDArray[Any], sites: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Vectorised: a row for each (label, position)."""
    lengths = np.array([len(x[i]) for i in sites], dtype=np.float64)
    return np.stack([lengths * (labels == label) / 10 for label in ("D", "N", "V")], axis=1)


def first_half(x: Any, i: int) -> bool:
    """A condition of a pattern."""
    return 2 * i < len(x)


def how_early(x: Any, i: int) -> float:
    """A condition of a pattern that is a number."""
    return 1.0 / (1 + i)


def doubled_words(x: Any) -> Iterator[tuple[Any, ...]]:
    """Patterns that depend on the input: a word that stands twice, two positions apart."""
    for i in range(len(x) - 2):
        if x[i] == x[i + 2]:
            yield i, ["N", None, "N"], "doubled"
            yield i, [{"N", "D"}, None, {"N", "V"}], "doubled loosely", 0.5


def gender(label: str) -> dict[str, str]:
    """Facets of a label, by a function."""
    return {"class": label[0], "last": label[-1]}
