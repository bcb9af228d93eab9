"""Word segmenters: texts without spaces become words."""

from collections.abc import Sequence
from typing import Any

from crfkit.models import Word, WordSegmenter
from crfkit.serve.given import Document, Given, Item
from crfkit.serve.limits import Limits
from crfkit.serve.question import Question
from crfkit.serve.served.model import Names, Sentences, ServedModel

_DEFAULT_THRESHOLD = 0.5


class ServedSegmenter(ServedModel):
    """A `WordSegmenter`."""

    kind = "a word segmenter"
    questions: Names = ("tag", "spans", "nbest")
    forms: Names = ("texts",)

    def __init__(self, segmenter: WordSegmenter, limits: Limits) -> None:
        super().__init__(limits)
        self.segmenter = segmenter

    def describe(self) -> dict[str, Any]:
        """What /models says of it."""
        return self.description(labels=[], scheme="words")

    def read(self, given: Given) -> list[Document]:
        """Each line of a text is analysed by itself."""
        documents = []
        for text in given.values:
            document, at = [], 0
            for line in text.split("\n"):
                if line.strip():
                    document.append(Item(len(line), line, text=line, offsets=[(at, at + len(line))]))
                at += len(line) + 1
            documents.append(document)
        return documents

    def answer(self, question: Question, items: Sequence[Item]) -> list[Sentences]:
        """The answer for each item."""
        texts = [item.inputs for item in items]
        if question.name == "tag":
            found = self.segmenter.predict(texts)
            return [[_words_json(words, item)] for words, item in zip(found, items, strict=True)]
        if question.name == "nbest":
            several = self.segmenter.predict_nbest(texts, question.n)
            return [
                [{"nbest": [{"probability": p, **_words_json(words, item)} for p, words in best]}]
                for best, item in zip(several, items, strict=True)
            ]
        least = _DEFAULT_THRESHOLD if question.threshold is None else question.threshold
        return [
            [{"spans": [_span(word, p, item) for word, p in words if p >= least]}]
            for words, item in zip(self.segmenter.predict_marginals(texts), items, strict=True)
        ]


def _start(item: Item) -> int:
    """Where the line begins in its text."""
    assert item.offsets is not None
    return item.offsets[0][0]


def _words_json(words: Sequence[Word], item: Item) -> dict[str, Any]:
    at = _start(item)
    return {
        "tokens": [word.form for word in words],
        "offsets": [(at + word.start, at + word.end) for word in words],
        "labels": [",".join(word.fields) for word in words],
        "known": [word.known for word in words],
    }


def _span(word: Word, probability: float, item: Item) -> dict[str, Any]:
    at = _start(item)
    return {
        "label": ",".join(word.fields),
        "probability": min(probability, 1.0),
        "text": word.form,
        "begin_character": at + word.start,
        "end_character": at + word.end,
    }
