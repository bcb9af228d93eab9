"""Sentences of a treebank as padded tensors.

Letters: B sentences in a batch, T words in its longest sentence, C characters in its longest word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from crfkit.data import Sentence, read_conllu
from crfkit.evaluation import relation_of

PADDING, UNKNOWN = 0, 1
IGNORED = -100  # a label that is not there, as PyTorch's losses have it


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

    words: Index
    characters: Index
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
            tuple(Index(getattr(word, column) for word in words) for column in ("upos", "xpos", "feats")),
            sorted({relation_of(word) for word in words}),
            sorted({word.upos for word in words}),
        )


@dataclass(frozen=True)
class Batch:
    """Sentences of similar length."""

    words: Tensor  # [B, T]
    characters: Tensor  # [B, T, C]
    tags: Tensor  # [B, T, 3]
    labels: Tensor  # [B, T], IGNORED beyond the sentence and for unknown ones
    heads: Tensor  # [B, T], 0 for the root
    relations: Tensor  # [B, T], IGNORED like labels
    lengths: Tensor  # [B]
    numbers: Tensor  # [B] which sentences of the data set these are

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        return Batch(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))

    @property
    def mask(self) -> Tensor:
        """[B, T], true for words."""
        return torch.arange(self.words.shape[1], device=self.words.device) < self.lengths[:, None]


def read(path: str | Path, n: int | None = None) -> list[Sentence]:
    """The first `n` sentences of a CoNLL-U file."""
    sentences = [sentence for sentence in read_conllu(path) if sentence.words]
    return sentences[:n]


def batches(sentences: Sequence[Sentence], vocabulary: Vocabulary, n_words: int) -> Iterator[Batch]:
    """Batches of sentences of similar length, of at most `n_words` words each with the padding (or of one sentence)."""
    group: list[int] = []
    for n in sorted(range(len(sentences)), key=lambda n: len(sentences[n].words)):
        if group and (len(group) + 1) * len(sentences[n].words) > n_words:
            yield _batch(sentences, group, vocabulary)
            group = []
        group.append(n)
    if group:
        yield _batch(sentences, group, vocabulary)


def _batch(sentences: Sequence[Sentence], numbers: Sequence[int], vocabulary: Vocabulary) -> Batch:
    lengths = [len(sentences[n].words) for n in numbers]
    shape = (len(numbers), max(lengths))
    longest = max(len(word.form) for n in numbers for word in sentences[n].words)
    words, heads = torch.zeros(2, *shape, dtype=torch.long)
    characters = torch.zeros(*shape, max(longest, 3), dtype=torch.long)
    tags = torch.zeros(*shape, len(vocabulary.tags), dtype=torch.long)
    labels, relations = torch.full((2, *shape), IGNORED)
    label_of = {label: k for k, label in enumerate(vocabulary.labels)}
    number_of = {name: k for k, name in enumerate(vocabulary.relations)}
    for b, n in enumerate(numbers):
        sentence = sentences[n].words
        T = len(sentence)
        words[b, :T] = torch.tensor([vocabulary.words(word.form.lower()) for word in sentence])
        for t, word in enumerate(sentence):
            characters[b, t, : len(word.form)] = torch.tensor([*map(vocabulary.characters, word.form)])
        for k, (column, index) in enumerate(zip(("upos", "xpos", "feats"), vocabulary.tags, strict=True)):
            tags[b, :T, k] = torch.tensor([index(getattr(word, column)) for word in sentence])
        labels[b, :T] = torch.tensor([label_of.get(word.upos, IGNORED) for word in sentence])
        heads[b, :T] = torch.tensor([word.head or 0 for word in sentence])
        relations[b, :T] = torch.tensor([number_of.get(relation_of(word), IGNORED) for word in sentence])
    return Batch(
        words, characters, tags, labels, heads, relations, torch.tensor(lengths), torch.tensor(numbers)
    )
