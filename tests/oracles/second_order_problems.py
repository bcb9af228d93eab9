"""Small treebanks with all projective trees of given arcs, and what these have of each weight of a second-order model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.data import Sentence
from crfkit.features import (
    ArcMap,
    ArcPruner,
    WordVectors,
    encode_sentences,
    known_trees,
    labels_of,
    lift_crossing_arcs,
)
from crfkit.inference import SecondOrderParser
from crfkit.objective import Loss
from tests.oracles.oracle import all_lead_to_the_root

Floats = npt.NDArray[np.float64]
Tree = tuple[tuple[int, int], ...]  # head and label of each word
NONE = -1
SIBLINGS, GRANDPARENT = 0, 1
LEFT, RIGHT = 0, 1


class SecondOrderProblem:
    """A small treebank, random weights, and a pruner that keeps all arcs, or the likeliest `most` of each word."""

    def __init__(
        self,
        sentences: list[Sentence],
        *,
        single_root: bool = True,
        most: int = 99,
        vectors: WordVectors | None = None,
    ) -> None:
        self.sentences, self.single_root = sentences, single_root
        self.labels = labels_of(sentences)
        self.treebank = encode_sentences(sentences, vectors=vectors)
        trees = known_trees(sentences, self.labels)
        random = np.random.default_rng(7)
        first = ArcMap.learn(self.treebank, trees, self.labels, 1)
        threshold = 0.0
        self.pruner = ArcPruner(first, random.normal(0, 0.3, first.n_weights), threshold, most)
        self.trees = lift_crossing_arcs(self.treebank, trees)
        self.map = ArcMap.learn(self.treebank, self.trees, self.labels, 1, 2)
        self.sample_weight = random.uniform(0.5, 2.0, len(sentences))
        self.weights = random.normal(0, 0.3, self.map.n_weights)
        self.ptr = self.treebank.sentence_ptr.tolist()

    def candidates(self) -> _core.CandidateArcs:
        """Arcs of the training sentences."""
        return self.pruner.candidates(self.treebank, self.trees, single_root=self.single_root, n_threads=1)

    def loss(self, n_threads: int = 1) -> Loss:
        """The one to be tested."""
        return self.map.second_order_loss(
            self.treebank,
            self.trees,
            self.candidates(),
            sample_weight=self.sample_weight,
            single_root=self.single_root,
            n_threads=n_threads,
        )

    def parser(self, weights: Floats) -> SecondOrderParser:
        """The answers to be tested."""
        return SecondOrderParser(self.pruner.model, self.map.layout, weights, single_root=self.single_root)

    def admits(self, n: int, tree: Tree) -> bool:
        """Whether a tree of sentence n agrees with what is known."""
        at = slice(self.ptr[n], self.ptr[n + 1])
        known = zip(self.trees.heads[at].tolist(), self.trees.labels[at].tolist(), strict=True)
        return all(
            h in (head, NONE) and r in (label, NONE)
            for (head, label), (h, r) in zip(tree, known, strict=True)
        )

    def trees_of(self, n: int, arcs: set[tuple[int, int]]) -> list[Tree]:
        """All labelled projective trees of sentence n over these arcs."""
        n_words = self.ptr[n + 1] - self.ptr[n]
        found = projective_trees(n_words, arcs, single_root=self.single_root)
        labels = list(product(range(len(self.labels)), repeat=n_words))
        return [tuple(zip(heads, each, strict=True)) for heads in found for each in labels]

    def counts(self) -> list[dict[tuple[int, ...], Floats]]:
        """What each part of each sentence, of all arcs, has of each weight, [D].

        A score at weights 1, 8, 64, … has the counts of these weights as its digits.
        """
        everything = replace(self.pruner, most=99)
        D, digits = self.map.n_weights, 16
        found: list[dict[tuple[int, ...], Floats]] = [{} for _ in self.sentences]
        for first in range(0, D, digits):
            weights = np.zeros(D)
            some = weights[first : first + digits]
            some[:] = 8.0 ** np.arange(len(some))
            for n, of_sentence in enumerate(found):
                for key, score in self.parts(n, weights, everything).items():
                    counts = of_sentence.setdefault(key, np.zeros(D))
                    counts[first : first + digits] = [(int(score) >> (3 * i)) & 7 for i in range(len(some))]
        return found

    def parts(self, n: int, weights: Floats, pruner: ArcPruner | None = None) -> dict[tuple[int, ...], float]:
        """Scores of the parts of sentence n: (head, dependent, label), and those of second order."""
        pruner = self.pruner if pruner is None else pruner
        parser = SecondOrderParser(pruner.model, self.map.layout, weights, single_root=self.single_root)
        arcs, others, scores = parser.parts(self.treebank, n)
        R = len(self.labels)
        keys = [(int(h), int(m), r) for h, m in arcs for r in range(R)] + [
            tuple(map(int, row)) for row in others
        ]
        return dict(zip(keys, scores.tolist(), strict=True))


def projective_trees(
    n_words: int, arcs: set[tuple[int, int]], *, single_root: bool
) -> Iterator[tuple[int, ...]]:
    """Heads of all trees of these arcs whose arcs, that of the root included, do not cross."""
    choices = [[h for h in range(n_words + 1) if (h, m) in arcs] for m in range(1, n_words + 1)]
    for heads in product(*choices):
        if not all_lead_to_the_root(list(heads)) or (single_root and heads.count(0) > 1):
            continue
        spans = [(min(h, m), max(h, m)) for m, h in enumerate(heads, start=1)]
        if not any(a < c < b < d for a, b in spans for c, d in spans):
            yield heads


def second_order_parts(heads: tuple[int, ...]) -> Iterator[tuple[int, int, int, int, int]]:
    """(kind, side, head, sibling or grandparent, dependent) of a tree, said again from their definition."""
    n_words = len(heads)
    for h in range(n_words + 1):
        below = [m for m in range(1, n_words + 1) if heads[m - 1] == h]
        for side, those in ((LEFT, [m for m in below if m < h][::-1]), (RIGHT, [m for m in below if m > h])):
            if h == 0 and side == LEFT:
                continue
            yield from (
                (SIBLINGS, side, h, s, m) for s, m in zip([NONE, *those], [*those, NONE], strict=True)
            )
            if h > 0:
                yield from ((GRANDPARENT, side, h, heads[h - 1], m) for m in those)


def parts_of(tree: Tree) -> list[tuple[int, ...]]:
    """The keys of all parts of a labelled tree."""
    arcs: list[tuple[int, ...]] = [(h, m, r) for m, (h, r) in enumerate(tree, start=1)]
    return [*arcs, *second_order_parts(tuple(h for h, _ in tree))]
