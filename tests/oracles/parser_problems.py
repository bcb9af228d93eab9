"""Small treebanks with what their arcs have of each weight."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crfkit.data import Sentence
from crfkit.features import ArcMap, WordVectors, encode_sentences, known_trees, labels_of
from crfkit.inference import TreeParser
from crfkit.objective import Loss

Floats = npt.NDArray[np.float64]


class ParserProblem:
    """A small treebank and random weights."""

    def __init__(
        self, sentences: list[Sentence], *, single_root: bool = True, vectors: WordVectors | None = None
    ) -> None:
        self.sentences, self.single_root = sentences, single_root
        self.labels = labels_of(sentences)
        self.treebank = encode_sentences(sentences, vectors=vectors)
        self.trees = known_trees(sentences, self.labels)
        self.map = ArcMap.learn(self.treebank, self.trees, self.labels, 1)
        random = np.random.default_rng(7)
        self.sample_weight = random.uniform(0.5, 2.0, len(sentences))
        self.weights = random.normal(0, 0.3, self.map.n_weights)

    def loss(self, n_threads: int = 1) -> Loss:
        """The one to be tested."""
        return self.map.loss(
            self.treebank,
            self.trees,
            sample_weight=self.sample_weight,
            single_root=self.single_root,
            n_threads=n_threads,
        )

    def scores(self, weights: Floats) -> list[Floats]:
        """Of the labelled arcs of each sentence."""
        return TreeParser(self.map.layout, weights).scores(self.treebank)

    def allowed(self, sentence: Sentence, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Which arcs agree with what is known."""
        allowed = np.ones(shape, dtype=np.bool_)
        for m, word in enumerate(sentence.words, start=1):
            for h in range(shape[0]):
                for r, label in enumerate(self.labels):
                    allowed[h, m, r] = word.head in (None, h) and word.deprel in ("_", label)
        return allowed


def real_arcs(scores: Floats) -> Floats:
    """−inf for arcs that do not exist."""
    scores = scores.copy()
    scores[:, 0] = -np.inf
    scores[np.arange(len(scores)), np.arange(len(scores))] = -np.inf
    return scores
