"""Random spanning trees, for the table of laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crfkit.structures import SpanningTree
from tests.oracles.oracle import Bools, Floats, Output, TreeOracle


@dataclass(frozen=True)
class TreeInstance:
    """Arc scores of a sentence, perhaps with allowed arcs, and what brute force says about its trees."""

    structure: SpanningTree
    scores: Floats  # [T + 1, T + 1] or [T + 1, T + 1, R]
    allowed: Bools | None = None  # the same shape

    @cached_property
    def oracle(self) -> TreeOracle:
        """Brute force over the same scores."""
        return TreeOracle(self.scores, self.structure.single_root, self.allowed)

    @property
    def n_positions(self) -> int:
        """T."""
        return len(self.scores) - 1

    @property
    def n_labels(self) -> int | None:
        """R, or None for trees without labels."""
        return self.scores.shape[2] if self.scores.ndim == 3 else None

    @property
    def scale(self) -> float:
        """What rounding errors are relative to: the largest score of an arc, at least 1."""
        finite = np.abs(self.scores.ravel()[self.existing()])
        return float(np.max(finite[np.isfinite(finite)], initial=1.0))

    def flat(self, parts: Any) -> Floats:
        """Numbers per arc as one vector [P]."""
        return np.asarray(parts, dtype=np.float64).ravel()

    def existing(self) -> Bools:
        """Which entries of the vector [P] can be given scores: not the diagonal, not column 0."""
        exists = np.ones(self.scores.shape, dtype=np.bool_)
        exists[:, 0] = exists[np.arange(len(exists)), np.arange(len(exists))] = False
        return exists.ravel()

    def part_scores(self, vector: Floats) -> Floats:
        """Scores of this instance's shape from a vector [P]."""
        return vector.reshape(self.scores.shape)

    def with_scores(self, vector: Floats) -> TreeInstance:
        """The same question about other scores."""
        return replace(self, scores=self.part_scores(vector))

    def shifted(self, position: int, by: float) -> TreeInstance:
        """Every arc into one word scores `by` more: so does every tree."""
        scores = self.scores.copy()
        scores[:, position + 1] += by
        return replace(self, scores=scores)

    def reversed(self) -> TreeInstance:
        """The words, and the labels, in the opposite order."""
        return self.renamed(np.arange(self.n_positions)[::-1])

    def reversed_parts(self, vector: Floats) -> Floats:
        """Numbers per arc in the order of the reversed instance."""
        return self.renamed_parts(vector, np.arange(self.n_positions)[::-1])

    def draw_order(self, random: np.random.Generator) -> Any:
        """New names for the words."""
        return random.permutation(self.n_positions)

    def renamed(self, order: Any) -> TreeInstance:
        """Word j of the new instance is word `order[j]` of this one; the labels are turned round."""
        return replace(
            self,
            scores=self._renamed(self.scores, order),
            allowed=None if self.allowed is None else self._renamed(self.allowed, order),
        )

    def renamed_parts(self, vector: Floats, order: Any) -> Floats:
        """Numbers per arc in the order of the renamed instance."""
        return np.asarray(self._renamed(vector.reshape(self.scores.shape), order).ravel())

    def _renamed(self, arcs: Any, order: Any) -> Any:
        with_root = [0, *(np.asarray(order) + 1)]
        arcs = arcs[with_root][:, with_root]
        return arcs if arcs.ndim == 2 else arcs[:, :, ::-1]

    def spelled_out(self) -> TreeInstance:
        """The same with forbidden arcs instead of allowed labels."""
        if self.allowed is None:
            return self
        return replace(self, scores=np.where(self.allowed, self.scores, -np.inf), allowed=None)

    def everything(self) -> Bools:
        """AllowedLabels that allows all arcs."""
        return np.ones(self.scores.shape, dtype=np.bool_)

    def allowing(self, output: Output) -> Bools:
        """AllowedLabels that leaves one tree, and what is ignored as it is."""
        mask = ~self.existing().reshape(self.scores.shape)
        for word, choice in enumerate(output, start=1):
            mask[(choice, word) if self.n_labels is None else (choice[0], word, choice[1])] = True  # type: ignore[index]
        return mask

    def allowed_of_one(self, random: np.random.Generator) -> tuple[Bools, float]:
        """AllowedLabels of the likeliest arc into one word, and its probability."""
        word = 1 + int(random.integers(self.n_positions))
        into = self.oracle.marginals.reshape(self.scores.shape)[:, word]
        mask = self.everything() if self.allowed is None else self.allowed.copy()
        known = np.zeros(into.shape, dtype=np.bool_)
        known.ravel()[into.argmax()] = True
        mask[:, word] = known
        return mask, float(into.max())

    def draw_outputs(self, random: np.random.Generator, n: int) -> Any:
        """Any heads and labels, trees or not."""
        heads = random.integers(self.n_positions + 1, size=(n, self.n_positions))
        if self.n_labels is None:
            return heads
        return np.stack([heads, random.integers(self.n_labels, size=heads.shape)], axis=-1)

    def check_sums(self, vector: Floats) -> None:
        """Every word has one head; the root has one dependent, or more."""
        marginals = vector.reshape((*self.scores.shape[:2], -1)).sum(axis=2)
        np.testing.assert_allclose(marginals[:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-9)
        assert np.all(vector[~self.existing()] == 0.0)
        roots = marginals[0].sum()
        if self.n_positions:
            assert roots >= 1 - 1e-9
            assert roots <= 1 + 1e-9 or not self.structure.single_root


def draw_tree(
    random: np.random.Generator,
    *,
    words: tuple[int, int] = (1, 4),
    labels: int | None = None,
    single_root: bool = True,
    scale: float = 1.0,
    forbidden: float = 0.0,
    restricted: float = 0.0,
    whole: bool = False,
) -> TreeInstance:
    """Random arc scores with at least one tree.

    `forbidden` is the share of arcs with score −inf, `restricted` the share that the allowed labels excludes; `whole` scores
    often tie. What is ignored holds large scores.
    """
    T = int(random.integers(words[0], words[1] + 1))
    shape = (T + 1, T + 1) if labels is None else (T + 1, T + 1, labels)
    scores = np.rint(random.normal(size=shape)) if whole else random.normal(size=shape) * scale
    order = random.permutation(T) + 1  # a tree that is never forbidden: each word below one before it
    kept = np.zeros(shape, dtype=np.bool_)
    for place, word in enumerate(order):
        head = order[random.integers(place)] if place else 0
        kept[(head, word) if labels is None else (head, word, random.integers(labels))] = True
    scores[(random.random(shape) < forbidden) & ~kept] = -np.inf
    scores[:, 0] = scores[np.arange(T + 1), np.arange(T + 1)] = 1e6
    mask = (random.random(shape) >= restricted) | kept if restricted else None
    return TreeInstance(SpanningTree(single_root), scores, mask)


TREES: Mapping[str, Mapping[str, Any]] = {
    "tree": {},
    "tree, many roots": {"single_root": False},
    "tree, labels": {"labels": 2, "words": (1, 3)},
    "tree, labels, many roots": {"labels": 3, "words": (1, 3), "single_root": False},
    "tree, forbidden": {"forbidden": 0.5, "words": (3, 5)},
    "tree, forbidden, many roots": {"forbidden": 0.5, "words": (3, 5), "single_root": False},
    "tree, few arcs": {"forbidden": 0.75, "words": (4, 5)},
    "tree, few arcs, many roots": {"forbidden": 0.75, "words": (4, 5), "single_root": False},
    "tree, labels, forbidden": {"labels": 2, "forbidden": 0.6, "words": (3, 4)},
    "tree, six words": {"forbidden": 0.3, "words": (6, 6)},
    "tree, six words, labels, many roots": {
        "forbidden": 0.7,
        "words": (6, 6),
        "labels": 2,
        "single_root": False,
    },
    "tree, allowed labels": {"restricted": 0.4, "words": (3, 4)},
    "tree, allowed labels and labels, many roots": {
        "restricted": 0.5,
        "forbidden": 0.2,
        "labels": 2,
        "words": (2, 4),
        "single_root": False,
    },
    "tree, ties": {"whole": True},
    "tree, ties, labels": {"whole": True, "labels": 2, "words": (2, 3)},
    "tree, all equal": {"scale": 0.0, "single_root": False},
    "tree, scores of 30": {"scale": 30.0, "words": (3, 5)},
    "tree, scores of 400": {"scale": 400.0},
    "tree, scores of 400, many roots": {"scale": 400.0, "single_root": False},
    "tree, scores of 1e4": {"scale": 1e4},
    "tree, scores of 1e4, labels, forbidden": {"scale": 1e4, "labels": 2, "forbidden": 0.4, "words": (2, 4)},
    "tree, scores of 1e4, forbidden, many roots": {
        "scale": 1e4,
        "forbidden": 0.5,
        "restricted": 0.2,
        "words": (3, 4),
        "single_root": False,
    },
    "tree, one word": {"words": (1, 1), "labels": 2},
    "tree, empty": {"words": (0, 0)},
    "tree, empty, labels": {"words": (0, 0), "labels": 2, "restricted": 0.5},
}
