"""Tokens of a text as labels of its positions, and labels as tokens.

S    a sentence begins here, and with it a token
T    a token begins here
I    neither: the position is inside a token
SM, TM   the token that begins here is one of several words
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from crfkit.arrays import Float64s
from crfkit.data import Sentence
from crfkit.pipeline.text_units import Units, runs
from crfkit.pipeline.written_text import begins_paragraph, tokens_of

LABELS = ("I", "S", "SM", "T", "TM")

_MOST_SENTENCES = 50  # of a paragraph in training: treebanks of single sentences have no paragraphs
_INNER_SHARE = 0.02  # of the tokens may begin inside runs of letters before each character is a position


class AnnotatedText(NamedTuple):
    """A paragraph, and the labels of the characters at which tokens begin."""

    text: str
    labels: dict[int, str]  # offset → label


def annotate(sentences: Iterable[Sentence]) -> list[AnnotatedText]:
    """The paragraphs of a treebank as raw text."""
    found: list[AnnotatedText] = []
    parts: list[str] = []
    labels: dict[int, str] = {}
    n_sentences = at = 0
    for sentence in sentences:
        if parts and (begins_paragraph(sentence) or n_sentences >= _MOST_SENTENCES):
            found.append(AnnotatedText("".join(parts), labels))
            parts, labels, n_sentences, at = [], {}, 0, 0
        n_sentences += 1
        for token in tokens_of(sentence):
            labels[at] = ("S" if token.first == 1 else "T") + ("M" if token.is_multiword else "")
            piece = token.written + token.spaces_after
            parts.append(piece)
            at += len(piece)
    if parts:
        found.append(AnnotatedText("".join(parts), labels))
    return found


def has_inner_spaces(sentences: Iterable[Sentence]) -> bool:
    """Whether a token of the sentences holds white space."""
    return any(len(token.form.split()) > 1 for sentence in sentences for token in tokens_of(sentence))


def has_inner_boundaries(texts: Iterable[AnnotatedText]) -> bool:
    """Whether many tokens begin inside runs of letters or digits."""
    pattern = runs()
    n_inner = n_tokens = 0
    for text, labels in texts:
        starts = {found.start() for found in pattern.finditer(text)}
        n_inner += sum(offset not in starts for offset in labels)
        n_tokens += len(labels)
    return n_inner > _INNER_SHARE * n_tokens


@dataclass
class Tokens:
    """The tokens of a paragraph, each from `starts[i]` to `ends[i]`."""

    starts: list[int]
    ends: list[int]
    units: list[int]  # the position at which each begins
    n_units: int
    multiword: list[bool]
    sentences: list[int]  # the tokens that begin sentences
    probabilities: list[float] | None = None  # of tokens: that they begin and end there
    sentence_probabilities: list[float] = field(default_factory=list)  # of beginnings of sentences

    def drop_last(self, n_characters: int) -> int:
        """Drop the last sentence, or the last token where there is one sentence; the number of characters from there on."""
        if len(self.sentences) > 1:
            kept = self.sentences.pop()
        elif len(self.starts) > 1:
            kept = len(self.starts) - 1
        else:
            return 0
        rest = n_characters - self.starts[kept]
        self.n_units = self.units[kept]
        for values in (self.starts, self.ends, self.units, self.multiword):
            del values[kept:]
        return rest

    def split_long(self, most: int) -> int:
        """Let another sentence begin after every `most` tokens of one that goes on; the longest sentence that there was."""
        spans = self.spans()
        longest = max((last - first for first, last in spans), default=0)
        if longest > most:
            self.sentences = [start for first, last in spans for start in range(first, last, most)]
        return longest

    def add_probabilities(self, table: Float64s, labels: Sequence[str]) -> None:
        """Read the probabilities of tokens off those of the labels of all positions, [T, L]."""
        inside = table[:, [label == "I" for label in labels]].sum(1)
        begins = table[:, [label.startswith("S") for label in labels]].sum(1)
        starting = [*(1.0 - inside).tolist(), 1.0]  # the end of the text is the end of a token
        ends = [*self.units[1:], self.n_units]
        self.probabilities = [
            min(starting[i] if i else 1.0, starting[j]) for i, j in zip(self.units, ends, strict=True)
        ]
        self.sentence_probabilities = [
            float(begins[self.units[token]]) if token else 1.0 for token in self.sentences
        ]

    def spans(self) -> list[tuple[int, int]]:
        """The tokens of each sentence: the first, and the one behind the last."""
        return list(pairwise([*self.sentences, len(self.starts)]))


def decode(units: Units, labels: Sequence[str], *, spaces_inside: bool) -> Tokens:
    """The tokens that the labels of positions say; a paragraph begins with a sentence."""
    tokens = Tokens([], [], [], len(units.rows), [], [])
    end = 0
    for i, (row, start, label) in enumerate(zip(units.rows, units.starts, labels, strict=True)):
        if i == 0 or label != "I" or (row[1] == "1" and not spaces_inside):
            if i:
                tokens.ends.append(end)
            if i == 0 or label.startswith("S"):
                tokens.sentences.append(len(tokens.starts))
            tokens.starts.append(start)
            tokens.units.append(i)
            tokens.multiword.append(label.endswith("M"))
        end = start + len(row[0])
    if labels:
        tokens.ends.append(end)
    return tokens
