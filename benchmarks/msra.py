"""The corpus MSRA (SIGHAN 2006): sentences of Chinese newspapers with names of persons, places and organisations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Self

from benchmarks.corpora import corpus_path
from benchmarks.gazetteers import Gazetteers
from benchmarks.name_types import all_types, organisations
from crfkit.data import read_columns
from crfkit.evaluation import spans

TEST = "msra/msra_test.txt"
QUICK = 400  # sentences of each file
BLOCK = 50  # neighbouring sentences that are held out or learned from together: they may be of one article
END = 4_000  # last sentences of the training data


class Corpus(NamedTuple):
    """Sentences and the labels of their characters."""

    texts: list[str]
    labels: list[list[str]]
    types: list[list[str]]  # the labels of all names

    @classmethod
    def read(cls, file: str, n_sentences: int | None) -> Self:
        """The first sentences of a file of MSRA."""
        texts, labels, types = [], [], []
        sequences = read_columns(corpus_path("msra", file), separator="\t", comment=None)
        for sequence in islice(sequences, n_sentences):
            texts.append("".join(row[0] for row in sequence.rows))
            tags = [row[1] for row in sequence.rows]
            labels.append(organisations(tags))
            types.append(all_types(texts[-1], tags))
        return cls(texts, labels, types)

    def part(self, chosen: Sequence[int]) -> Corpus:
        """These sentences."""
        return Corpus(*([part[n] for n in chosen] for part in self))  # type: ignore[arg-type]

    def gazetteers(self) -> Gazetteers:
        """The gazetteers, with the names of these sentences."""
        return Gazetteers(
            self.texts, [[(span.start, span.end) for span in spans(labels)] for labels in self.labels]
        )


def corpora(
    share: int | None, held_out: str | None, *, last: int = END, quick: bool = False
) -> tuple[Corpus, Corpus]:
    """What is learned from, and what is tested on."""
    if held_out is None:
        test = Corpus.read(Path(TEST).name, QUICK if quick else None)
        return Corpus.read("msra_train.txt", share), test
    if held_out == "end":
        train = Corpus.read("msra_train.txt", None)
        n = len(train.texts) - last
        return train.part(range(n if share is None else min(share, n))), train.part(range(n, n + last))
    train = Corpus.read("msra_train.txt", share)
    held = [n // BLOCK % 10 == 9 for n in range(len(train.texts))]
    learned, tested = ([n for n, out in enumerate(held) if out == wanted] for wanted in (False, True))
    return train.part(learned), train.part(tested)
