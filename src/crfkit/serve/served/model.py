"""What a server needs of a model."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from crfkit.serve.errors import unanswerable
from crfkit.serve.given import Document, Given, Item
from crfkit.serve.limits import Limits
from crfkit.serve.question import Question

Names = tuple[str, ...]
Sentences = list[dict[str, Any]]  # the answer for one item, as JSON


class ServedModel(ABC):
    """A trained model, asked from one thread at a time."""

    kind: ClassVar[str]  # in messages and in /models
    questions: Names  # those it answers
    forms: Names  # of input that it reads

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    @abstractmethod
    def read(self, given: Given) -> list[Document]:
        """The input of a request as this model reads it; RequestError where it cannot."""

    @abstractmethod
    def answer(self, question: Question, items: Sequence[Item]) -> list[Sentences]:
        """The answer for each item: the sentences that it has, each as JSON."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What /models says of it."""

    def longest(self) -> int:
        """Tokens that a sentence may have."""
        return self.limits.max_sentence

    def check(self, question: Question, given: Given) -> None:
        """Refuse questions and forms of input that are not for this model."""
        if question.name not in self.questions:
            able = ", ".join(f"/{name}" for name in self.questions)
            raise unanswerable(f"the model is {self.kind}: it answers {able}, not /{question.name}")
        if given.form not in self.forms:
            able = ", ".join(self.forms)
            raise unanswerable(f"the model is {self.kind}: it reads {able}, not {given.form}")

    def description(self, **more: Any) -> dict[str, Any]:
        """The part of `describe` that all models have."""
        return {"kind": self.kind, "questions": self.questions, "reads": self.forms, **more}


def only_item(question: Question, items: Sequence[Item]) -> Item:
    """The sentence that is to be explained; RequestError where there is none, or no such token."""
    if question.sentence >= len(items):
        raise unanswerable(f"there is no sentence {question.sentence}: the first input has {len(items)}")
    item = items[question.sentence]
    if question.position >= item.size:
        raise unanswerable(f"there is no position {question.position}: the sentence has {item.size} tokens")
    return item
