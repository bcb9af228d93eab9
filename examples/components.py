"""The networks of this folder as components of a `crfkit.Pipeline`.

    pipeline = Pipeline([Tokenizer(), NeuralTagger(), NeuralParser()], folds=4)
    pipeline.fit(list(read_conllu(train)), dev=list(read_conllu(dev)))
    pipeline("Raw text in, trees out.")

A component is trained by `fit` and asked by `predict`; both take the sentences of CoNLL-U files. `Pipeline.fit` trains the
parser on the parts of speech that the tagger predicts for sentences that it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Self

import torch

from crfkit.data import Sentence
from crfkit.evaluation import evaluate_trees
from examples.parser import Parser, parsed
from examples.sentences import LARGE, Vocabulary, batches
from examples.tagger import Tagger, accuracy
from examples.training import Network, Settings, train


class NeuralTagger:
    """Fills UPOS."""

    network: Network
    vocabulary: Vocabulary

    def __init__(
        self,
        hidden: int = 400,
        dropout: float = 0.5,
        settings: Settings = Settings(),  # noqa: B008 (frozen)
    ) -> None:
        self.hidden = hidden
        self.dropout = dropout
        self.settings = settings

    def fit(self, sentences: Sequence[Sentence], *, dev: Sequence[Sentence] | None = None) -> Self:
        """Train; the epoch that is best on `dev`, or on the sentences themselves, is kept."""
        torch.manual_seed(self.settings.seed)
        self.vocabulary = Vocabulary.of(sentences)
        held_out = batches(dev or sentences, self.vocabulary, LARGE, self.settings.device)
        network = Tagger(self.vocabulary, self.hidden, self.dropout)
        self.network = train(
            network, sentences, self.vocabulary, lambda found: accuracy(found, held_out), self.settings
        )
        return self

    @torch.no_grad()
    def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The sentences with parts of speech."""
        names = self.vocabulary.labels
        found = list(sentences)
        for batch in batches(sentences, self.vocabulary, LARGE, self.settings.device):
            for n, row in zip(batch.numbers.tolist(), self.network(batch).tolist(), strict=True):
                words = [word._replace(upos=names[row[t]]) for t, word in enumerate(sentences[n].words)]
                found[n] = replace(sentences[n], words=words)
        return found


class NeuralParser:
    """Fills HEAD and DEPREL."""

    network: Network
    vocabulary: Vocabulary

    def __init__(
        self,
        hidden: int = 400,
        dropout: float = 0.33,
        settings: Settings = Settings(),  # noqa: B008 (frozen)
    ) -> None:
        self.hidden = hidden
        self.dropout = dropout
        self.settings = settings

    def fit(self, sentences: Sequence[Sentence], *, dev: Sequence[Sentence] | None = None) -> Self:
        """Train; the epoch that is best on `dev`, or on the sentences themselves, is kept."""
        torch.manual_seed(self.settings.seed)
        self.vocabulary = Vocabulary.of(sentences)
        held_out = dev or sentences
        data = batches(held_out, self.vocabulary, LARGE, self.settings.device)

        def las(network: Network) -> float:
            return evaluate_trees(held_out, parsed(network, held_out, data, self.vocabulary.relations)).las

        network = Parser(self.vocabulary, self.hidden, self.dropout)
        self.network = train(network, sentences, self.vocabulary, las, self.settings)
        return self

    def predict(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The sentences with heads and relations."""
        data = batches(sentences, self.vocabulary, LARGE, self.settings.device)
        return parsed(self.network, sentences, data, self.vocabulary.relations)
