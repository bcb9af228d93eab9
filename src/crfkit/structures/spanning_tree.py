"""Spanning trees over the words of a sentence: every word has one head, another word or the root.

    score(y) = Σ_m scores[y_m, m]              y_m: the head of word m = 1 … T, 0 is the root
    score(y) = Σ_m scores[y_m, m, r_m]         with a label r_m on the arc into each word
    p(y)     = exp(score(y)) / Z,    Z = Σ_y exp(score(y))

The sum runs over all y in which every word is reached from the root: projective or not, with exactly one word below the
root (`single_root`) or with one or more. −inf forbids an arc; the diagonal and column 0 are ignored. An empty sentence
has one tree, the empty one, with score 0.

An output is the heads [T], or [T, 2] for labelled trees: (head, label) of each word.
Letters: T words, R labels of arcs.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s, Int32s
from crfkit.errors import ArgumentError, ShapeError
from crfkit.structures.score_arrays import numeric, refuse_unusable
from crfkit.structures.structure import AllowedLabels

AllowedArcs = AllowedLabels | npt.ArrayLike | None


@dataclass(frozen=True)
class SpanningTree:
    """Trees in which every word has a head, and all are reached from the root.

    With `single_root` exactly one word has the root as its head, as in dependency trees; else one or more.

    >>> import math, numpy as np
    >>> from crfkit.inference import log_partition
    >>> round(math.exp(log_partition(SpanningTree(), np.zeros((4, 4)))))  # 3² trees over 3 words, one root each
    9
    """

    single_root: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.single_root, bool | np.bool_):
            raise ArgumentError(f"SpanningTree: single_root is {self.single_root!r}, expected True or False.")

    def bind(
        self, labels: Sequence[Hashable], outputs: Iterable[npt.ArrayLike | AllowedLabels]
    ) -> "SpanningTree":
        """The structure itself: it does not depend on training data."""
        return self


def tree_scores(values: npt.ArrayLike, where: str = "The scores of a tree") -> Float64s:
    """`values` as float64 [T + 1, T + 1] or [T + 1, T + 1, R] in C order, without a copy if possible."""
    given = numeric(values, where)
    shape = given.shape
    if given.ndim not in (2, 3) or shape[0] != shape[1] or shape[0] == 0 or given.size == 0:
        raise ShapeError(f"{where}: expected [T + 1, T + 1] or [T + 1, T + 1, R], got {list(shape)}.")
    array = np.ascontiguousarray(given, dtype=np.float64)
    refuse_unusable(array, where, lambda at: at[0] != at[1] and at[1] != 0)
    return array


def allowed_arcs(allowed: AllowedArcs, shape: tuple[int, ...]) -> Bools | None:
    """What is known about a tree, as bools in the shape of its scores, [T + 1, T + 1] or [T + 1, T + 1, R].

    `allowed` is bools of this shape (for labelled trees also [T + 1, T + 1]), or heads [T], −1 where unknown, or
    heads and labels [T, 2], or an `AllowedLabels` of the possible heads of each word.
    """
    if allowed is None:
        return None
    n_words = shape[0] - 1
    if isinstance(allowed, AllowedLabels):
        if allowed.n_positions != n_words:
            raise ShapeError(
                f"The allowed labels are of {allowed.n_positions} words, the scores of {n_words}."
            )
        mask = np.ones((n_words + 1, n_words + 1), dtype=np.bool_)
        mask[:, 1:] = allowed.mask(n_words + 1).T
        return _with_labels(mask, shape)
    given = np.asarray(allowed)
    if given.dtype == np.bool_:
        if given.shape not in (shape, shape[:2]):
            raise ShapeError(
                f"The allowed labels have shape {list(given.shape)}, expected that of the scores, {list(shape)}."
            )
        return _with_labels(given, shape)
    return _allowed_by_heads(given, shape)


def _with_labels(allowed: Bools, shape: tuple[int, ...]) -> Bools:
    """Arcs that are allowed with every label."""
    return allowed if allowed.shape == shape else np.repeat(allowed[:, :, None], shape[2], axis=2)


def _allowed_by_heads(known: npt.NDArray[np.generic], shape: tuple[int, ...]) -> Bools:
    """Arcs that agree with known heads [T] or with known heads and labels [T, 2]; −1: unknown."""
    n_words = shape[0] - 1
    pairs = known.shape == (n_words, 2) and len(shape) == 3
    if not (pairs or known.shape == (n_words,)) or (known.size and known.dtype.kind not in "iu"):
        raise ShapeError(
            f"The allowed labels are {known.dtype} with shape {list(known.shape)}, expected bools of shape {list(shape)} or "
            f"heads [T] = [{n_words}], −1 where unknown."
        )
    heads = (known[:, 0] if pairs else known).astype(np.int64)
    allowed = np.ones(shape, dtype=np.bool_)
    for word in np.flatnonzero(heads != -1):
        if not 0 <= heads[word] <= n_words:
            raise ArgumentError(
                f"Word {word + 1} has the head {heads[word]}, expected 0 to {n_words}, or −1."
            )
        allowed[np.arange(n_words + 1) != heads[word], word + 1] = False
    if pairs:
        labels = known[:, 1].astype(np.int64)
        for word in np.flatnonzero(labels != -1):
            if not 0 <= labels[word] < shape[2]:
                raise ArgumentError(
                    f"Word {word + 1} has the label {labels[word]}, expected 0 to {shape[2] - 1}, or −1."
                )
            allowed[:, word + 1, np.arange(shape[2]) != labels[word]] = False
    return allowed


def tree_output(output: npt.ArrayLike, n_words: int | None, n_labels: int | None) -> tuple[Int32s, Int32s]:
    """Heads [T] and labels [T] (zeros for unlabelled trees, `n_labels` None) of an output, checked word by word."""
    y = np.asarray(output)
    pairs = n_labels is not None
    if y.size == 0 and y.ndim <= 2:
        y = np.zeros((0, 2) if pairs else 0, dtype=np.int32)
    if y.ndim != 1 + pairs or (pairs and y.shape[1] != 2) or y.dtype.kind not in "iu":
        form = "heads and labels [T, 2]" if pairs else "heads [T]"
        raise ShapeError(f"A tree is given by {form}, got {y.dtype} with shape {list(y.shape)}.")
    if n_words is not None and len(y) != n_words:
        raise ShapeError(f"The tree has {len(y)} words, the scores have {n_words}.")
    heads, labels = (y[:, 0], y[:, 1]) if pairs else (y, np.zeros_like(y))
    _refuse_outside("head", heads, len(y))
    _refuse_outside("label", labels, (n_labels or 1) - 1)
    return heads.astype(np.int32), labels.astype(np.int32)


def _refuse_outside(what: str, values: npt.NDArray[np.integer], highest: int) -> None:
    """Raise an error for a head or label that does not exist."""
    wrong = np.flatnonzero((values < 0) | (values > highest))
    if len(wrong):
        raise ArgumentError(
            f"Word {wrong[0] + 1} has {what} {values[wrong[0]]}, expected numbers from 0 to {highest}."
        )


def is_tree(heads: Int32s, single_root: bool) -> bool:
    """Whether every word is reached from the root, and the root has one dependent if `single_root`."""
    if single_root and len(heads) and np.count_nonzero(heads == 0) != 1:
        return False
    reached = np.zeros(len(heads) + 1, dtype=np.bool_)
    reached[0] = True
    above = np.concatenate([[0], heads]).tolist()
    for word in range(1, len(above)):
        path: list[int] = []
        while not reached[word]:
            if len(path) == len(heads):
                return False  # a cycle
            path.append(word)
            word = above[word]
        reached[path] = True
    return True
