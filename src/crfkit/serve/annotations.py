"""Texts that people have annotated: spans of characters become labels of tokens."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from crfkit.serve.errors import bad_value
from crfkit.serve.plain_text import Token, split_text
from crfkit.structures import segment_labels

MOST_TEXTS = 10_000  # that are remembered, the oldest are forgotten
MOST_CHARACTERS = 20_000_000  # of all of them together
SPAN = 100  # characters that a span counts for: about the bytes that it takes


@dataclass(frozen=True, slots=True)
class CharacterSpan:
    """text[start:end] has a label."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class AnnotatedText:
    """A text with all of its spans."""

    text: str
    spans: tuple[CharacterSpan, ...] = ()

    @property
    def size(self) -> int:
        """About the memory that it takes, in characters."""
        return len(self.text) + sum(SPAN + len(span.label) for span in self.spans)

    def examples(self, scheme: str) -> tuple[list[list[str]], list[list[Any]]]:
        """The tokens of its sentences, and their labels. A span covers every token that it touches, each once.

        >>> AnnotatedText("Anna sings.", (CharacterSpan(0, 4, "PER"),)).examples("bio")
        ([['Anna', 'sings', '.']], [['B-PER', 'O', 'O']])
        """
        X, y = [], []
        for sentence in split_text(self.text):
            labels: list[Any] = ["O"] * len(sentence)
            for span in sorted(self.spans, key=lambda span: (span.start, -span.end)):
                covered = _covered(sentence, span)
                if covered and all(labels[i] == "O" for i in covered):
                    labels[covered[0] : covered[-1] + 1] = segment_labels(span.label, len(covered), scheme)
            X.append([token.text for token in sentence])
            y.append(labels)
        return X, y


def _covered(sentence: list[Token], span: CharacterSpan) -> list[int]:
    return [i for i, token in enumerate(sentence) if token.start < span.end and span.start < token.end]


class RecentTexts:
    """Texts by key, the last ones that were seen; memory is bounded."""

    def __init__(self, most: int = MOST_TEXTS, characters: int = MOST_CHARACTERS) -> None:
        self._texts: OrderedDict[str, AnnotatedText] = OrderedDict()
        self._most, self._characters = most, characters
        self._size = 0

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, key: str) -> AnnotatedText | None:
        """What is remembered under a key."""
        return self._texts.get(key)

    def put(self, key: str, text: AnnotatedText) -> None:
        """Remember a text, and forget the oldest where there are too many."""
        self.drop(key)
        self._texts[key] = text
        self._size += text.size
        while len(self._texts) > self._most or (self._size > self._characters and len(self._texts) > 1):
            _, oldest = self._texts.popitem(last=False)
            self._size -= oldest.size

    def drop(self, key: str) -> None:
        """Forget a text."""
        if (old := self._texts.pop(key, None)) is not None:
            self._size -= old.size

    def all(self) -> list[AnnotatedText]:
        """All of them, the oldest first."""
        return list(self._texts.values())


def read_result(result: Any, from_name: str) -> list[CharacterSpan]:
    """The spans of an annotation of Label Studio; other regions are left out."""
    if not isinstance(result, list):
        raise bad_value("the result of an annotation is no array")
    found = []
    for region in result:
        value = region.get("value") if isinstance(region, dict) else None
        if not isinstance(value, dict) or region.get("type") != "labels":
            continue
        if region.get("from_name") not in (None, from_name):
            continue
        start, end, labels = value.get("start"), value.get("end"), value.get("labels")
        if not isinstance(start, int) or not isinstance(end, int) or not isinstance(labels, list):
            raise bad_value("a region of an annotation has no start, end and labels")
        if not all(isinstance(label, str) for label in labels):
            raise bad_value("a label of an annotation is no string")
        if labels and 0 <= start < end:
            found.append(CharacterSpan(start, end, labels[0]))
    return found
