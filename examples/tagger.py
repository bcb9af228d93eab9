"""Parts of speech by affixes, a character CNN, a BiLSTM and a CRF (after Ma and Hovy 2016).

    python -m examples.tagger --train en_ewt-ud-train.conllu --dev en_ewt-ud-dev.conllu --test en_ewt-ud-test.conllu

On a CPU add `--sentences 500 --epochs 5 --n-words 300 --hidden 100`: it takes a few minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from crfkit.nn import ChainCRF
from examples.encoder import Encoder
from examples.sentences import IGNORED, LARGE, Batch, Vocabulary, batches
from examples.training import Network, Settings, files, options, train


class Tagger(Network):
    """A chain over parts of speech whose emissions the encoder computes."""

    def __init__(self, vocabulary: Vocabulary, hidden: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.encoder = Encoder(vocabulary, hidden, 2, dropout, with_affixes=True)
        self.emissions = nn.Linear(self.encoder.size, len(vocabulary.labels))
        self.crf = ChainCRF(labels=vocabulary.labels)

    def loss(self, batch: Batch) -> Tensor:
        """−log p(labels), by token; a label that is not known is summed over."""
        emissions = self.emissions(self.encoder(batch))
        return -self.crf(emissions, batch.labels, lengths=batch.lengths, reduction="token_mean")

    def forward(self, batch: Batch) -> Tensor:
        """The labels of the best label sequence, [B, T]; −1 beyond the sentence."""
        return self.crf.decode(self.emissions(self.encoder(batch)), lengths=batch.lengths)


@torch.no_grad()
def accuracy(tagger: Network, data: Sequence[Batch]) -> float:
    """The share of words whose label is right; a label that training did not have is wrong."""
    right = total = 0
    for batch in data:
        right += int(((tagger(batch) == batch.labels) & (batch.labels != IGNORED)).sum())
        total += int(batch.lengths.sum())
    return right / total


def main(arguments: Sequence[str] | None = None) -> None:
    """Train on the files that the options name, and say how many test words are tagged rightly."""
    given = options((__doc__ or "").splitlines()[0], hidden=400).parse_args(arguments)
    learned, *others = files(given)
    vocabulary, settings = Vocabulary.of(learned), Settings.of(given)
    dev, test = (batches(sentences, vocabulary, LARGE, settings.device) for sentences in others)
    tagger = train(
        Tagger(vocabulary, given.hidden),
        learned,
        vocabulary,
        lambda network: accuracy(network, dev),
        settings,
    )
    print(f"test accuracy {100 * accuracy(tagger, test):.2f}")


if __name__ == "__main__":
    main()
