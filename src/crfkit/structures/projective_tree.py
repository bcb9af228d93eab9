"""Projective trees over the words of a sentence: trees that can be drawn above it without crossing arcs.

Heads, scores and labels are those of spanning trees (`crfkit.structures.spanning_tree`), and

    score(y) = Σ_m scores[y_m, m]                                    first order
    score(y) = Σ_m arcs[y_m, m] + Σ_m siblings[y_m, s_m, m]          second order

The sum over y runs over all trees in which, for every arc, all words between head and dependent are below the head; the
root, 0, stands before the first word. In the second order, s_m is the adjacent sibling of word m: the dependent of
the same head, on the same side of it, that is next to m on the way to the head. The dependent that is nearest to the head
on its side has none; its s_m is the head itself. With heads [2, 0, 2, 2] the parts (head, sibling, dependent) are (2, 2, 1),
(0, 0, 2), (2, 2, 3) and (2, 3, 4).

Letters: T words, R labels of arcs.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s, Int32s
from crfkit.errors import ArgumentError, ShapeError
from crfkit.structures.score_arrays import numeric, refuse_unusable
from crfkit.structures.structure import AllowedLabels


class TreeParts(NamedTuple):
    """Numbers for each part of a second-order tree: scores, marginals, or a direction of scores.

    In `siblings` only (head, sibling, dependent) with the sibling between head and dependent, or the head itself, are read;
    marginals are 0 elsewhere. −inf forbids.
    """

    arcs: Float64s  # [T + 1, T + 1] or [T + 1, T + 1, R]
    siblings: Float64s  # [T + 1, T + 1, T + 1]


@dataclass(frozen=True)
class ProjectiveTree:
    """Trees without crossing arcs, in which every word has a head and all are reached from the root.

    With `single_root` exactly one word has the root as its head, as in dependency trees; else one or more. With `order` 1
    arcs have scores, an array [T + 1, T + 1] or [T + 1, T + 1, R]; with `order` 2 adjacent siblings too, and the scores
    are `TreeParts`.

    >>> import math, numpy as np
    >>> from crfkit.inference import log_partition
    >>> round(math.exp(log_partition(ProjectiveTree(), np.zeros((4, 4)))))  # 7 of the 9 trees over 3 words
    7
    >>> scores = TreeParts(np.zeros((4, 4)), np.zeros((4, 4, 4)))
    >>> round(math.exp(log_partition(ProjectiveTree(order=2), scores)))
    7
    """

    single_root: bool = True
    order: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.single_root, bool | np.bool_):
            raise ArgumentError(
                f"ProjectiveTree: single_root is {self.single_root!r}, expected True or False."
            )
        if self.order not in (1, 2) or isinstance(self.order, bool):
            raise ArgumentError(f"ProjectiveTree: order is {self.order!r}, expected 1 or 2.")

    def bind(
        self, labels: Sequence[Hashable], outputs: Iterable[npt.ArrayLike | AllowedLabels]
    ) -> "ProjectiveTree":
        """The structure itself: it does not depend on training data."""
        return self


def sibling_scores(values: npt.ArrayLike, n_words: int, where: str = "The scores of siblings") -> Float64s:
    """`values` as float64 [T + 1, T + 1, T + 1] in C order, without a copy if possible."""
    given = numeric(values, where)
    side = n_words + 1
    if given.shape != (side, side, side):
        raise ShapeError(f"{where}: expected [T + 1, T + 1, T + 1] = {[side] * 3}, got {list(given.shape)}.")
    array = np.ascontiguousarray(given, dtype=np.float64)
    if not (array < np.inf).all():  # NaN compares false
        refuse_unusable(np.where(possible_siblings(n_words), array, 0.0), where)
    return array


def possible_siblings(n_words: int) -> Bools:
    """Which (head, sibling, dependent) can be in a tree, [T + 1, T + 1, T + 1]."""
    head, sibling, dependent = np.ogrid[: n_words + 1, : n_words + 1, : n_words + 1]
    low, high = np.minimum(head, dependent), np.maximum(head, dependent)
    between = (sibling == head) | ((low < sibling) & (sibling < high))
    return np.asarray((dependent != 0) & (head != dependent) & between)


def is_projective(heads: Int32s) -> bool:
    """Whether no two arcs cross; the root stands before the first word."""
    words = np.arange(1, len(heads) + 1)
    low, high = np.minimum(heads, words), np.maximum(heads, words)
    return not any(
        np.any((low < begin) & (begin < high) & (high < end)) for begin, end in zip(low, high, strict=True)
    )


def adjacent_siblings(heads: Int32s) -> Int32s:
    """s_m of each word, [T]: the dependent of the same head next to it towards the head, or the head itself."""
    siblings = np.empty_like(heads)
    nearest: dict[tuple[int, bool], int] = {}  # (head, side) → the dependent that is farthest out so far
    words = range(1, len(heads) + 1)
    for side in (True, False):  # right dependents from left to right, left ones from right to left
        for word in words if side else reversed(words):
            head = int(heads[word - 1])
            if (word > head) == side:
                siblings[word - 1] = nearest.get((head, side), head)
                nearest[head, side] = word
    return siblings
