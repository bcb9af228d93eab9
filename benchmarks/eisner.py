"""The best projective tree by Eisner's algorithm (1996), O(T³), with one root; whole diagonals of spans at a time.

Spans i … j of words hold the best trees over them, headed at one of their ends (→ at i, ← at j):

    open(i, j)        = max_q  →(i, q) + ←(q + 1, j)                  i ≤ q < j; an arc between i and j closes it
    →(i, j)           = max_q  open(i, q) + score(i, q) + →(q, j)     i < q ≤ j
    ←(i, j)           = max_q  ←(i, q) + open(q, j) + score(j, q)     i ≤ q < j
    best              = max_r  score(root, r) + ←(1, r) + →(r, T)     so that the root has one dependent
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class _Spans:
    """The best spans over the words of one sentence, and where each is put together."""

    def __init__(self, scores: Floats) -> None:
        n_words = len(scores)  # [T, T] (head, dependent)
        self.right, self.left = np.zeros((2, n_words, n_words))  # →, ←: [T, T] by first and last word
        to_right, to_left = np.full((2, n_words, n_words), -np.inf)  # open spans with their arc
        self.open_split, self.right_split, self.left_split = np.zeros((3, n_words, n_words), np.int64)
        for length in range(1, n_words):
            first = np.arange(n_words - length)
            last = first + length
            begin, end = first[:, None], last[:, None]
            split = begin + np.arange(length)  # [T − length, length]
            here = (first, last)
            best, self.open_split[here] = _best(split, self.right[begin, split] + self.left[split + 1, end])
            to_right[here] = best + scores[first, last]
            to_left[here] = best + scores[last, first]
            self.left[here], self.left_split[here] = _best(
                split, self.left[begin, split] + to_left[split, end]
            )
            self.right[here], self.right_split[here] = _best(
                split + 1, to_right[begin, split + 1] + self.right[split + 1, end]
            )


def _best(split: Ints, values: Floats) -> tuple[Floats, Ints]:
    """The highest value of each row, and the split that it belongs to."""
    rows, found = np.arange(len(values)), values.argmax(axis=1)
    return values[rows, found], split[rows, found]


def best_projective(scores: Floats) -> list[int]:
    """The heads [T] of the best projective tree with one root; scores[h, m] of arcs [T + 1, T + 1], 0 is the root."""
    spans = _Spans(scores[1:, 1:])
    n_words = len(scores) - 1
    root = int(np.argmax(scores[0, 1:] + spans.left[0] + spans.right[:, n_words - 1]))
    heads = [0] * n_words
    to_do = [("left", 0, root), ("right", root, n_words - 1)]
    while to_do:
        kind, i, j = to_do.pop()
        if i == j:
            continue
        if kind == "right":
            q = int(spans.right_split[i, j])
            heads[q] = i + 1
            to_do += [("open", i, q), ("right", q, j)]
        elif kind == "left":
            q = int(spans.left_split[i, j])
            heads[q] = j + 1
            to_do += [("left", i, q), ("open", q, j)]
        else:
            q = int(spans.open_split[i, j])
            to_do += [("right", i, q), ("left", q + 1, j)]
    return heads


def is_projective(heads: Sequence[int]) -> bool:
    """Whether no two arcs cross when they are drawn above the words, the root to the left of them."""
    arcs = [(min(head, word), max(head, word)) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)
