"""Dependency trees by a BiLSTM, biaffine arc scores (Dozat and Manning 2017) and a CRF over spanning trees.

    python -m examples.parser --train en_ewt-ud-train.conllu --dev en_ewt-ud-dev.conllu --test en_ewt-ud-test.conllu

Parts of speech and morphology are read from the files. On a CPU add `--sentences 500 --epochs 5 --n-words 300 --hidden 100`:
it takes a few minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from crfkit.data import Sentence
from crfkit.evaluation import TreeReport, evaluate_trees
from crfkit.nn import TreeDistribution
from examples.encoder import Encoder
from examples.sentences import IGNORED, LARGE, Batch, Vocabulary, batches
from examples.training import Network, Settings, files, options, train


class Biaffine(nn.Module):
    """Scores of pairs of vectors: x W y with a 1 behind each vector, so that W has biases too; `n` scores a pair."""

    def __init__(self, size: int, n: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n, size + 1, size + 1))

    def forward(self, heads: Tensor, dependents: Tensor) -> Tensor:
        """[B, H, size] and [B, D, size] → [B, n, H, D]."""
        x, y = (torch.cat([side, torch.ones_like(side[..., :1])], -1) for side in (heads, dependents))
        return torch.einsum("bhi,nij,bdj->bnhd", x, self.weight, y)


class Parser(Network):
    """A distribution over trees with one root, and one over the relations of each arc."""

    def __init__(self, vocabulary: Vocabulary, hidden: int, dropout: float = 0.33) -> None:
        super().__init__()
        self.encoder = Encoder(vocabulary, hidden, 3, dropout, with_tags=True)
        self.root = nn.Parameter(torch.zeros(self.encoder.size))
        self.sides = nn.ModuleList(
            nn.Sequential(nn.Linear(self.encoder.size, size), nn.LeakyReLU(0.1), nn.Dropout(dropout))
            for size in (500, 500, 100, 100)
        )
        self.arcs = Biaffine(500, 1)
        self.relations = Biaffine(100, len(vocabulary.relations))

    def scores(self, batch: Batch) -> tuple[TreeDistribution, Tensor]:
        """The distribution over trees, and the scores of relations [B, R, T + 1, T]."""
        words = self.encoder(batch)  # [B, T, size]
        nodes = torch.cat([self.root.expand(len(words), 1, -1), words], 1)  # the root is node 0
        head, dependent, relation_head, relation_dependent = (
            side(vectors) for side, vectors in zip(self.sides, (nodes, words, nodes, words), strict=True)
        )
        arcs = self.arcs(head, dependent)[:, 0]  # [B, T + 1, T]
        arcs = torch.cat([torch.zeros_like(arcs[..., :1]), arcs], -1)  # nothing enters the root
        trees = TreeDistribution(arcs, lengths=batch.lengths)
        return trees, self.relations(relation_head, relation_dependent)

    def loss(self, batch: Batch) -> Tensor:
        """−log p(tree) − log p(relations | tree), by word."""
        trees, relations = self.scores(batch)
        given = relations.gather(2, batch.heads[:, None, None, :].expand(-1, relations.shape[1], 1, -1))[
            :, :, 0
        ]
        of_relations = nn.functional.cross_entropy(
            given, batch.relations, ignore_index=IGNORED, reduction="sum"
        )
        return (of_relations - trees.log_prob(batch.heads).sum()) / batch.lengths.sum()

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Heads of the best trees, and the best relations of their arcs, [B, T] each."""
        trees, relations = self.scores(batch)
        heads = trees.argmax().clamp(min=0)
        given = relations.gather(2, heads[:, None, None, :].expand(-1, relations.shape[1], 1, -1))[:, :, 0]
        return heads, given.argmax(1)


@torch.no_grad()
def parsed(
    parser: Network, sentences: Sequence[Sentence], data: Sequence[Batch], relations: Sequence[str]
) -> list[Sentence]:
    """The sentences, which are `data` as well, with the heads and relations that the parser gives them."""
    out = list(sentences)
    for batch in data:
        heads, numbers = (found.tolist() for found in parser(batch))
        for b, n in enumerate(batch.numbers.tolist()):
            words = [
                word._replace(head=heads[b][t], deprel=relations[numbers[b][t]])
                for t, word in enumerate(sentences[n].words)
            ]
            out[n] = replace(sentences[n], words=words)
    return out


def main(arguments: Sequence[str] | None = None) -> None:
    """Train on the files that the options name, and say how many test words are attached rightly."""
    given = options((__doc__ or "").splitlines()[0], hidden=400).parse_args(arguments)
    learned, dev, test = files(given)
    vocabulary, settings = Vocabulary.of(learned), Settings.of(given)

    def evaluation(sentences: Sequence[Sentence]) -> Callable[[Network], TreeReport]:
        data = batches(sentences, vocabulary, LARGE, settings.device)
        return lambda network: evaluate_trees(
            sentences, parsed(network, sentences, data, vocabulary.relations)
        )

    on_dev = evaluation(dev)
    parser = train(
        Parser(vocabulary, given.hidden), learned, vocabulary, lambda network: on_dev(network).las, settings
    )
    found = evaluation(test)(parser)
    print(f"test UAS {100 * found.uas:.2f}  LAS {100 * found.las:.2f}")


if __name__ == "__main__":
    main()
