"""Random projective trees, of the first and of the second order, for the table of laws."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crfkit.structures import ProjectiveTree, TreeParts
from tests.oracles.oracle import Bools, Enumeration, Floats, Output, all_lead_to_the_root
from tests.oracles.tree_instances import TreeInstance


class ProjectiveOracle(Enumeration):
    """All projective trees of a sentence, from the definition.

    An output is the heads, or pairs of head and label. Parts are arcs, numbered as in the scores, [T + 1, T + 1] or
    [T + 1, T + 1, R], and behind these, where they have scores, adjacent siblings [T + 1, T + 1, T + 1].
    """

    def __init__(
        self, arcs: Floats, siblings: Floats | None, single_root: bool, allowed: Bools | None = None
    ) -> None:
        open_arcs = arcs > -np.inf if allowed is None else allowed & (arcs > -np.inf)
        numbers = np.arange(arcs.size).reshape(arcs.shape)
        T = len(arcs) - 1
        choices = [
            [tuple(int(i) for i in choice) for choice in np.argwhere(open_arcs[:, word])]
            for word in range(1, T + 1)
        ]

        def trees() -> Iterator[tuple[Any, list[int]]]:
            for tree in itertools.product(*choices):
                heads = [choice[0] for choice in tree]
                if single_root and heads.count(0) > 1:
                    continue
                if all_lead_to_the_root(heads) and all_between_are_below(heads):
                    parts = [int(numbers[c[0], word, *c[1:]]) for word, c in enumerate(tree, start=1)]
                    if siblings is not None:
                        for word, head in enumerate(heads, start=1):
                            place = (head, sibling_of(heads, word), word)
                            parts.append(arcs.size + int(np.ravel_multi_index(place, siblings.shape)))
                    yield (tree if arcs.ndim == 3 else tuple(heads)), parts

        scores = [arcs.ravel()] if siblings is None else [arcs.ravel(), siblings.ravel()]
        super().__init__(trees(), np.concatenate(scores))


def all_between_are_below(heads: list[int]) -> bool:
    """Whether every word between a head and its dependent leads up to the head."""
    for word, head in enumerate(heads, start=1):
        for between in range(min(word, head) + 1, max(word, head)):
            here = between
            while here not in (0, head):
                here = heads[here - 1]
            if here != head:
                return False
    return True


def sibling_of(heads: list[int], word: int) -> int:
    """Of the words between a word and its head that have the same head, the one next to the word; else the head."""
    head = heads[word - 1]
    towards = range(word - 1, head, -1) if head < word else range(word + 1, head)
    return next((other for other in towards if heads[other - 1] == head), head)


@dataclass(frozen=True)
class ProjectiveInstance(TreeInstance):
    """Scores of a sentence, perhaps with allowed arcs, and what brute force says about its projective trees."""

    structure: Any  # ProjectiveTree
    scores: Any  # [T + 1, T + 1] or [T + 1, T + 1, R]; in the second order TreeParts

    @property
    def arcs(self) -> Floats:
        """Scores of arcs."""
        return np.asarray(self.scores[0] if self.structure.order == 2 else self.scores)

    @property
    def siblings(self) -> Floats | None:
        """Scores of siblings."""
        return np.asarray(self.scores[1]) if self.structure.order == 2 else None

    @cached_property
    def oracle(self) -> Any:
        """Brute force over the same scores."""
        return ProjectiveOracle(self.arcs, self.siblings, self.structure.single_root, self.allowed)

    @property
    def n_positions(self) -> int:
        """T."""
        return len(self.arcs) - 1

    @property
    def n_labels(self) -> int | None:
        """R, or None for trees without labels."""
        return self.arcs.shape[2] if self.arcs.ndim == 3 else None

    @property
    def scale(self) -> float:
        """What rounding errors are relative to: the largest score of a part, at least 1."""
        finite = np.abs(self.flat(self.scores)[self.existing()])
        return float(np.max(finite[np.isfinite(finite)], initial=1.0))

    def flat(self, parts: Any) -> Floats:
        """Numbers per part as one vector [P]."""
        pieces = parts if self.structure.order == 2 else [parts]
        return np.concatenate([np.asarray(piece, dtype=np.float64).ravel() for piece in pieces])

    def existing(self) -> Bools:
        """Which entries of the vector [P] can be given scores."""
        exists = np.ones(self.arcs.shape, dtype=np.bool_)
        exists[:, 0] = exists[np.arange(len(exists)), np.arange(len(exists))] = False
        if self.siblings is None:
            return exists.ravel()
        parts = np.zeros(self.siblings.shape, dtype=np.bool_)
        for head, dependent in itertools.permutations(range(len(exists)), 2):
            if dependent:
                parts[head, head, dependent] = True
                parts[head, min(head, dependent) + 1 : max(head, dependent), dependent] = True
        return np.concatenate([exists.ravel(), parts.ravel()])

    def part_scores(self, vector: Floats) -> Any:
        """Scores of this instance's shape from a vector [P]."""
        arcs = vector[: self.arcs.size].reshape(self.arcs.shape)
        if self.siblings is None:
            return arcs
        return TreeParts(arcs, vector[self.arcs.size :].reshape(self.siblings.shape))

    def with_arcs(self, arcs: Floats) -> ProjectiveInstance:
        """The same with other scores of arcs."""
        return replace(self, scores=arcs if self.siblings is None else TreeParts(arcs, self.siblings))

    def shifted(self, position: int, by: float) -> ProjectiveInstance:
        """Every arc into one word scores `by` more: so does every tree."""
        arcs = self.arcs.copy()
        arcs[:, position + 1] += by
        return self.with_arcs(arcs)

    def reversed(self) -> ProjectiveInstance:
        """The words, and the labels, in the opposite order: but not where several siblings stand right of the root."""
        return self.renamed(self._opposite())

    def reversed_parts(self, vector: Floats) -> Floats:
        """Numbers per part in the order of the reversed instance."""
        return self.renamed_parts(vector, self._opposite())

    def _opposite(self) -> Any:
        words = np.arange(self.n_positions)
        return words[::-1] if self.structure.single_root or self.siblings is None else words

    def draw_order(self, random: np.random.Generator) -> Any:
        """The words remain where they are: labels alone get new names."""
        return np.arange(self.n_positions)

    def renamed(self, order: Any) -> ProjectiveInstance:
        """Word j of the new instance is word `order[j]` of this one; the labels are turned round."""
        return replace(
            self,
            scores=self.part_scores(self.renamed_parts(self.flat(self.scores), order)),
            allowed=None if self.allowed is None else self._renamed(self.allowed, order),
        )

    def renamed_parts(self, vector: Floats, order: Any) -> Floats:
        """Numbers per part in the order of the renamed instance."""
        pieces = [self._renamed(vector[: self.arcs.size].reshape(self.arcs.shape), order).ravel()]
        if self.siblings is not None:
            with_root = [0, *(np.asarray(order) + 1)]
            siblings = vector[self.arcs.size :].reshape(self.siblings.shape)
            moved = siblings[np.ix_(with_root, with_root, with_root)]
            moved[0, 1:] = siblings[0, 1:]  # of several dependents of the root, which have an order
            pieces.append(moved.ravel())
        return np.concatenate(pieces)

    def spelled_out(self) -> ProjectiveInstance:
        """The same with forbidden arcs instead of allowed labels."""
        if self.allowed is None:
            return self
        return replace(self.with_arcs(np.where(self.allowed, self.arcs, -np.inf)), allowed=None)

    def everything(self) -> Bools:
        """AllowedLabels that allows all arcs."""
        return np.ones(self.arcs.shape, dtype=np.bool_)

    def allowing(self, output: Output) -> Bools:
        """AllowedLabels that leaves one tree, and what is ignored as it is."""
        mask = ~self.existing()[: self.arcs.size].reshape(self.arcs.shape)
        for word, choice in enumerate(output, start=1):
            mask[(choice, word) if self.n_labels is None else (choice[0], word, choice[1])] = True  # type: ignore[index]
        return mask

    def allowed_of_one(self, random: np.random.Generator) -> tuple[Bools, float]:
        """AllowedLabels of the likeliest arc into one word, and its probability."""
        word = 1 + int(random.integers(self.n_positions))
        into = self.oracle.marginals[: self.arcs.size].reshape(self.arcs.shape)[:, word]
        mask = self.everything() if self.allowed is None else self.allowed.copy()
        known = np.zeros(into.shape, dtype=np.bool_)
        known.ravel()[into.argmax()] = True
        mask[:, word] = known
        return mask, float(into.max())

    def check_sums(self, vector: Floats) -> None:
        """Every word has one head and one sibling; the root has one dependent, or more."""
        replace(self, structure=ProjectiveTree(self.structure.single_root), scores=self.arcs).check_arcs(
            vector[: self.arcs.size]
        )
        if self.siblings is not None:
            siblings = vector[self.arcs.size :].reshape(self.siblings.shape)
            arcs = vector[: self.arcs.size].reshape((*self.arcs.shape[:2], -1)).sum(axis=2)
            np.testing.assert_allclose(siblings.sum(axis=1), arcs, rtol=0, atol=1e-9)
            assert np.all(vector[~self.existing()] == 0.0)

    def check_arcs(self, vector: Floats) -> None:
        """The sums of marginals of arcs."""
        super().check_sums(vector)


def draw_projective(
    random: np.random.Generator,
    *,
    words: tuple[int, int] = (1, 5),
    labels: int | None = None,
    single_root: bool = True,
    order: int = 1,
    scale: float = 1.0,
    forbidden: float = 0.0,
    forbidden_siblings: float = 0.0,
    restricted: float = 0.0,
    whole: bool = False,
) -> ProjectiveInstance:
    """Random scores with at least one projective tree: the chain from left to right is never forbidden.

    `forbidden` is the share of arcs with score −inf, `forbidden_siblings` that of siblings, `restricted` the share of
    arcs that the allowed labels exclude; `whole` scores often tie. What is ignored holds large scores.
    """
    T = int(random.integers(words[0], words[1] + 1))
    shape = (T + 1, T + 1) if labels is None else (T + 1, T + 1, labels)
    arcs = np.rint(random.normal(size=shape)) if whole else random.normal(size=shape) * scale
    kept = np.zeros(shape, dtype=np.bool_)
    for word in range(1, T + 1):
        kept[(word - 1, word) if labels is None else (word - 1, word, random.integers(labels))] = True
    arcs[(random.random(shape) < forbidden) & ~kept] = -np.inf
    mask = (random.random(shape) >= restricted) | kept if restricted else None
    scores: Any = arcs
    if order == 2:
        siblings = random.normal(size=(T + 1,) * 3) * scale
        siblings = np.rint(siblings) if whole else siblings
        siblings[random.random(siblings.shape) < forbidden_siblings] = -np.inf
        for word in range(1, T + 1):
            siblings[word - 1, word - 1, word] = random.normal()
        scores = TreeParts(arcs, siblings)
    instance = ProjectiveInstance(ProjectiveTree(single_root, order), scores, mask)
    ignored = ~instance.existing()
    vector = instance.flat(scores)
    vector[ignored] = random.choice([1e6, np.inf, np.nan, -np.inf], size=np.count_nonzero(ignored))
    return replace(instance, scores=instance.part_scores(vector))


PROJECTIVE: Mapping[str, Mapping[str, Any]] = {
    "projective": {},
    "projective, many roots": {"single_root": False},
    "projective, labels": {"labels": 2, "words": (1, 3)},
    "projective, labels, many roots": {"labels": 3, "words": (1, 3), "single_root": False},
    "projective, forbidden": {"forbidden": 0.5},
    "projective, forbidden, many roots": {"forbidden": 0.5, "words": (3, 6), "single_root": False},
    "projective, few arcs": {"forbidden": 0.75, "words": (6, 7)},
    "projective, allowed labels": {"restricted": 0.4, "words": (3, 4)},
    "projective, allowed labels and labels, many roots": {
        "restricted": 0.5,
        "forbidden": 0.2,
        "labels": 2,
        "words": (2, 4),
        "single_root": False,
    },
    "projective, ties": {"whole": True},
    "projective, all equal": {"scale": 0.0, "single_root": False},
    "projective, scores of 30": {"scale": 30.0, "words": (3, 5)},
    "projective, scores of 700": {"scale": 700.0, "forbidden": 0.1},
    "projective, scores of 700, many roots": {"scale": 700.0, "single_root": False},
    "projective, scores of 1e4, labels": {"scale": 1e4, "labels": 2, "forbidden": 0.3, "words": (2, 4)},
    "projective, one word": {"words": (1, 1), "labels": 2},
    "projective, two words": {"words": (2, 2)},
    "projective, empty": {"words": (0, 0)},
    "siblings": {"order": 2},
    "siblings, many roots": {"order": 2, "single_root": False},
    "siblings, labels": {"order": 2, "labels": 2, "words": (1, 3)},
    "siblings, labels, many roots": {
        "order": 2,
        "labels": 2,
        "words": (3, 4),
        "single_root": False,
        "forbidden": 0.3,
    },
    "siblings, forbidden": {"order": 2, "forbidden": 0.3, "forbidden_siblings": 0.3},
    "siblings, forbidden, many roots": {
        "order": 2,
        "forbidden": 0.4,
        "forbidden_siblings": 0.4,
        "words": (3, 6),
        "single_root": False,
    },
    "siblings, few arcs": {"order": 2, "forbidden": 0.75, "words": (6, 7), "single_root": False},
    "siblings, allowed labels": {"order": 2, "restricted": 0.4, "words": (3, 5), "single_root": False},
    "siblings, ties": {"order": 2, "whole": True},
    "siblings, scores of 30": {"order": 2, "scale": 30.0},
    "siblings, scores of 700": {"order": 2, "scale": 700.0, "single_root": False},
    "siblings, scores of 1e4": {"order": 2, "scale": 1e4, "forbidden_siblings": 0.2},
    "siblings, one word": {"order": 2, "words": (1, 1), "labels": 2},
    "siblings, empty": {"order": 2, "words": (0, 0)},
}
