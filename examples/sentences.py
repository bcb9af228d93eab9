"""Sentences of a treebank as padded tensors.

Letters: B sentences in a batch, T words in its longest sentence, C characters in its longest word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from crfkit.data import Sentence, Word, read_conllu
from crfkit.evaluation import relation_of

PADDING, UNKNOWN = 0, 1
LARGE = 20_000  # words in a batch that nothing is learned from
IGNORED = -100  # a label that is not there, as PyTorch's losses have it


def affixes(form: str) -> list[str]:
    """The first 1, 2, 3 and 4 characters of a word, the last ones, and the shape, "Xxd" for "Paris7"."""
    lower = form.lower()
    kinds = ("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in form)
    shape = "".join(kind for kind, _ in groupby(kinds))
    return [*(lower[:k] for k in range(1, 5)), *(lower[-k:] for k in range(1, 5)), shape]


class Index:
    """Numbers of names, in order of their frequency; 0 is padding and 1 all names that are not known."""

    def __init__(self, names: Iterable[str], min_count: int = 1) -> None:
        """Names that occur fewer than `min_count` times are not known."""
        counts = Counter(names)
        self.names = ["", "?", *(name for name, n in counts.most_common() if n >= min_count)]
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __call__(self, name: str) -> int:
        """The number of a name."""
        return self._numbers.get(name, UNKNOWN)


@dataclass(frozen=True)
class Vocabulary:
    """What is known of the training data."""

    words: Index  # in lower case
    characters: Index
    affixes: tuple[Index, ...]  # see `affixes`
    tags: tuple[Index, ...]  # of UPOS, XPOS and morphology
    relations: list[str]  # without subtypes
    labels: list[str]  # parts of speech, to be predicted

    @classmethod
    def of(cls, sentences: Sequence[Sentence]) -> Self:
        """Count what these sentences have."""
        words = [word for sentence in sentences for word in sentence.words]
        return cls(
            Index((word.form.lower() for word in words), min_count=2),
            Index(character for word in words for character in word.form),
            tuple(
                Index(names, min_count=2)
                for names in zip(*(affixes(word.form) for word in words), strict=True)
            ),
            tuple(Index(getattr(word, column) for word in words) for column in ("upos", "xpos", "feats")),
            sorted({relation_of(word) for word in words}),
            sorted({word.upos for word in words}),
        )


@dataclass(frozen=True)
class Batch:
    """Sentences of similar length."""

    words: Tensor  # [B, T]
    characters: Tensor  # [B, T, C]
    affixes: Tensor  # [B, T, 9]
    tags: Tensor  # [B, T, 3]
    labels: Tensor  # [B, T], IGNORED beyond the sentence and for unknown ones
    heads: Tensor  # [B, T], 0 for the root
    relations: Tensor  # [B, T], IGNORED like labels
    lengths: Tensor  # [B]
    numbers: Tensor  # [B] which sentences of the data set these are

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        return Batch(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))


def read(path: str | Path, n: int | None = None) -> list[Sentence]:
    """The first `n` sentences of a CoNLL-U file."""
    sentences = [sentence for sentence in read_conllu(path) if sentence.words]
    return sentences[:n]


def batches(
    sentences: Sequence[Sentence], vocabulary: Vocabulary, n_words: int, device: str = "cpu"
) -> list[Batch]:
    """Batches of sentences of similar length, of at most `n_words` words each with the padding (or of one sentence)."""
    groups: list[list[int]] = [[]]
    for n in sorted(range(len(sentences)), key=lambda n: len(sentences[n].words)):
        if groups[-1] and (len(groups[-1]) + 1) * len(sentences[n].words) > n_words:
            groups.append([])
        groups[-1].append(n)
    return [_batch(sentences, group, vocabulary).to(torch.device(device)) for group in groups if group]


def _batch(sentences: Sequence[Sentence], numbers: Sequence[int], vocabulary: Vocabulary) -> Batch:
    rows = [sentences[n].words for n in numbers]
    longest = max(3, *(len(word.form) for row in rows for word in row))
    labels = {label: k for k, label in enumerate(vocabulary.labels)}
    relations = {name: k for k, name in enumerate(vocabulary.relations)}

    def padded(numbers_of: Callable[[Word], Any], fill: int = PADDING) -> Tensor:
        """What each word has, [B, T] or [B, T, …]."""
        columns = [torch.tensor([numbers_of(word) for word in row]) for row in rows]
        return pad_sequence(columns, batch_first=True, padding_value=fill)

    def characters(word: Word) -> list[int]:
        found = [vocabulary.characters(character) for character in word.form]
        return found + [PADDING] * (longest - len(found))

    def parts(word: Word) -> list[int]:
        return [index(name) for index, name in zip(vocabulary.affixes, affixes(word.form), strict=True)]

    def tags(word: Word) -> list[int]:
        columns = (word.upos, word.xpos, word.feats)
        return [index(name) for index, name in zip(vocabulary.tags, columns, strict=True)]

    return Batch(
        words=padded(lambda word: vocabulary.words(word.form.lower())),
        characters=padded(characters),
        affixes=padded(parts),
        tags=padded(tags),
        labels=padded(lambda word: labels.get(word.upos, IGNORED), IGNORED),
        heads=padded(lambda word: word.head or 0),
        relations=padded(lambda word: relations.get(relation_of(word), IGNORED), IGNORED),
        lengths=torch.tensor([len(row) for row in rows]),
        numbers=torch.tensor(numbers),
    )
