"""The columns that a tagger fills, and their values as labels.

The label of a word is the value of its column; where there are several columns, their values with tabs between them, which
no column of CoNLL-U can hold.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError
from crfkit.features import LABEL_KIND

NAMES = ("upos", "xpos", "feats")
UNKNOWN = "_"  # a tag that is not given; in FEATS it says that a word has none

Label = (
    str | frozenset[str] | None
)  # of a word; a set where some of its columns are unknown, None where all are


@dataclass(frozen=True)
class TagColumns:
    """One column of `upos`, `xpos` and `feats`, or several together."""

    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "TagColumns":
        """Of names with + between them, such as `upos+feats`; ArgumentError for anything else."""
        names = tuple(text.split("+")) if isinstance(text, str) else ()
        if not names or len(set(names)) < len(names) or not set(names) <= set(NAMES):
            raise ArgumentError(
                f"tag is {text!r}, expected one of {', '.join(NAMES)}, or several such as upos+feats"
            )
        return cls(tuple(sorted(names, key=NAMES.index)))

    def __str__(self) -> str:
        return "+".join(self.names)

    @property
    def misc_key(self) -> str:
        """The key in MISC of the probability of a word's tag: UposProb, XposProb, FeatsProb, UposFeatsProb …"""
        return "".join(name.capitalize() for name in self.names) + "Prob"

    def join(self, word: Word) -> str:
        """The values of a word as one label, whether they are known or not."""
        return "\t".join([getattr(word, name) for name in self.names])

    def split(self, label: str) -> dict[str, Any]:
        """The value of each column in a label."""
        return dict(zip(self.names, label.split("\t"), strict=True))

    def facets(self, label: str) -> dict[str, str]:
        """What a label is made of, as `CRF(facets=…)` takes it: UPOS, XPOS, each of the FEATS, and the whole."""
        found = {LABEL_KIND: label}
        for name, value in self.split(label).items():
            if name != "feats":
                found[name] = value
            elif value != UNKNOWN:
                pairs = (item.partition("=") for item in value.split("|"))
                found |= {f"feats {kind}": given for kind, _, given in pairs}
        return found

    def is_complete(self, word: Word) -> bool:
        """Whether the word has a value in each of the columns."""
        return all(getattr(word, name) != UNKNOWN or name == "feats" for name in self.names)

    def known_labels(self, sentences: Iterable[Sentence]) -> list[str]:
        """The labels of all words whose columns are known, sorted."""
        words = (word for sentence in sentences for word in sentence.words)
        return sorted({self.join(word) for word in words if self.is_complete(word)})

    def annotate(self, sentences: Iterable[Sentence], known: Collection[str]) -> list[list[Label]]:
        """The labels of the words of each sentence, of which `known` are all that there are for a word with gaps."""
        gaps: dict[str, Label] = {}
        found: list[list[Label]] = []
        for sentence in sentences:
            labels: list[Label] = []
            for word in sentence.words:
                label = self.join(word)
                if self.is_complete(word):
                    labels.append(label)
                    continue
                if label not in gaps:
                    gaps[label] = self._agreeing(word, known)
                labels.append(gaps[label])
            found.append(labels)
        return found

    def _agreeing(self, word: Word, known: Collection[str]) -> Label:
        """The labels that agree with what is known of a word; None where that is nothing, or no label does."""
        given = {
            name: value
            for name, value in self.split(self.join(word)).items()
            if value != UNKNOWN  # FEATS that are _ beside an unknown tag are unknown too
        }
        if not given:
            return None
        return frozenset(label for label in known if given.items() <= self.split(label).items()) or None

    def fill(self, sentence: Sentence, labels: Sequence[str]) -> Sentence:
        """A copy of the sentence whose words have these labels in their columns."""
        words = [
            word._replace(**self.split(label)) for word, label in zip(sentence.words, labels, strict=True)
        ]
        return replace(sentence, words=words)
