"""The endings of words, and the labels that words with these endings have.

Shapes: W words, P (word, label) pairs, E endings, n characters.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Int32s, Int64s, offsets

_CHARACTERS = 0x110000  # of Unicode


class Endings(NamedTuple):
    """The endings that are frequent enough, the empty one first, and the longest one that each word shares."""

    texts: list[str]  # [E]
    of_words: Int64s  # [W] the longest ending that enough positions with other words have
    ptr: Int64s  # [E + 1] ending e has the labels ptr[e]:ptr[e + 1]
    labels: Int32s  # ascending within an ending

    @classmethod
    def build(
        cls,
        words: Sequence[str],
        pair_words: Int64s,
        pair_labels: Int64s,
        pair_counts: Int64s,
        *,
        longest: int,
        min_count: int,
        n_labels: int,
    ) -> "Endings":
        """The endings of at most `longest` characters that `min_count` positions have.

        Word `pair_words[p]` has the label `pair_labels[p]` at `pair_counts[p]` positions, p = 0 … P − 1. A word counts for
        its own ending no more than if it had never been seen: so a rare word shares the ending that it would be given
        were it unknown.
        """
        nodes = _nodes(words, longest)  # [W, n + 1]
        n_nodes = int(nodes.max(initial=0)) + 1
        own = np.bincount(pair_words, pair_counts, len(words)).astype(np.int64)  # [W] positions
        positions = np.zeros(n_nodes, np.int64)
        for column in nodes.T:
            has = column >= 0
            positions += np.bincount(column[has], own[has], n_nodes).astype(np.int64)
        shared = (nodes >= 0) & (positions[nodes] - own[:, None] >= min_count)
        shared[:, 0] = True  # the empty ending
        length = longest - np.argmax(shared[:, ::-1], axis=1)  # [W] of the longest
        chosen = nodes[np.arange(len(words)), length]
        kept = np.flatnonzero((positions >= min_count) | (np.arange(n_nodes) == 0))
        place = np.full(n_nodes, -1, np.int64)
        place[kept] = np.arange(len(kept))
        ptr, labels = _labels_of(
            place[nodes[pair_words]], nodes[pair_words] >= 0, pair_labels, len(kept), n_labels
        )
        return cls(_texts(words, nodes, place, len(kept)), place[chosen], ptr, labels)


def distinct(codes: Int64s) -> Int64s:
    """The distinct numbers, ascending: by sorting, which is several times as fast as `np.unique` on long lists."""
    ascending: Int64s = np.sort(codes)
    first = np.concatenate([np.ones(min(len(codes), 1), np.bool_), np.diff(ascending) > 0])
    return np.compress(first, ascending)


def _nodes(words: Sequence[str], longest: int) -> Int64s:
    """The number of the ending of each word of each length, [W, n + 1]; −1 beyond the word, 0 for the empty one."""
    nodes = np.full((len(words), longest + 1), -1, np.int64)
    nodes[:, 0] = 0
    if not longest or not words:
        return nodes
    backwards = np.array([word[: -longest - 1 : -1] for word in words], dtype=f"<U{longest}")
    characters = backwards.view(np.uint32).reshape(len(words), longest).astype(np.int64)  # 0 beyond the word
    lengths = np.array([len(word) for word in words])
    n_nodes = 1
    for n in range(1, longest + 1):
        has = np.flatnonzero(lengths >= n)
        codes = nodes[has, n - 1] * _CHARACTERS + characters[has, n - 1]
        distinct, number = np.unique(codes, return_inverse=True)
        nodes[has, n] = n_nodes + number
        n_nodes += len(distinct)
    return nodes


def _labels_of(
    places: Int64s, has: npt.NDArray[np.bool_], pair_labels: Int64s, n_endings: int, n_labels: int
) -> tuple[Int64s, Int32s]:
    """The labels of each ending; pair p has the endings places[p][has[p]], −1 for those that are not kept."""
    has = has & (places >= 0)
    codes = distinct(places[has] * n_labels + np.broadcast_to(pair_labels[:, None], places.shape)[has])
    endings, labels = np.divmod(codes, n_labels)
    counts = np.bincount(endings, minlength=n_endings)
    return offsets(counts), labels.astype(np.int32)


def _texts(words: Sequence[str], nodes: Int64s, place: Int64s, n_endings: int) -> list[str]:
    """The endings themselves."""
    places = np.where(nodes >= 0, place[nodes], -1)
    which, length = np.nonzero(places >= 0)
    kept, first = np.unique(places[which, length], return_index=True)
    texts = [""] * n_endings
    for ending, word, n in zip(kept.tolist(), which[first].tolist(), length[first].tolist(), strict=True):
        texts[ending] = words[word][len(words[word]) - n :]
    return texts
