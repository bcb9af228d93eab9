"""Models of label sequences: `CRF`, and `TreebankTagger`, whose labels are tags."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from crfkit.errors import InputError, LabelError, UnsupportedError
from crfkit.models import CRF, kind_of
from crfkit.pipeline import TreebankTagger
from crfkit.serve.errors import unanswerable
from crfkit.serve.given import Document, Given, Item, cut_texts
from crfkit.serve.limits import Limits
from crfkit.serve.question import Question
from crfkit.serve.served.model import Names, Sentences, ServedModel, only_item
from crfkit.structures import Span, SpanLabels

_LABELS_NAMED = 20  # of the labels that there are, in an error message


class ServedCRF(ServedModel):
    """A `CRF` over words, rows of columns, or features."""

    kind = "a model of labels"
    questions: Names = ("tag", "spans", "nbest", "explain")
    forms: Names = ("texts", "tokens", "rows", "features")

    def __init__(self, crf: CRF[Any], limits: Limits) -> None:
        super().__init__(limits)
        if inputs := kind_of(crf.structure).inputs:
            raise UnsupportedError(f"the model reads {inputs}, which no request can hold; use it from Python")
        self.crf = crf
        self.columns = crf.encoder_.least_columns  # None: positions have features
        self.more_columns = crf.encoder_.more_columns
        if self.columns is None and (crf.features is not None or crf.encoder_.dense_sizes):
            raise UnsupportedError(
                "the model was trained on features made in Python, not on columns or features by name; use it from Python"
            )
        if self.columns is None:
            self.forms = ("features",)
        elif self.columns > 1:
            self.forms = ("rows",)
        else:
            self.forms = ("texts", "tokens", "rows")
        self.classes = list(crf.classes_)
        self.names = [_as_json(label) for label in self.classes]
        self.numbers = {label: k for k, label in enumerate(self.classes)}
        self.plain = self.names == self.classes  # labels are JSON as they are

    def describe(self) -> dict[str, Any]:
        """What /models says of it."""
        return self.description(
            labels=self.names, scheme=self.scheme(), columns=self.columns, features=self.crf.n_features_
        )

    def scheme(self) -> str | None:
        """How labels are read as spans; None where they are not."""
        try:
            return SpanLabels.of(self.classes).scheme
        except InputError:
            return None

    def types(self) -> list[str]:
        """The labels of spans."""
        try:
            return [str(kind) for kind in SpanLabels.of(self.classes).types]
        except InputError:
            return []

    def read(self, given: Given) -> list[Document]:
        """The input of a request as the model reads it."""
        if given.form == "texts":
            return cut_texts(given.values)
        if given.form == "tokens":
            return [[Item(len(tokens), tokens, tokens)] for tokens in given.values]
        if given.form == "rows":
            return [[self._read_rows(n, rows)] for n, rows in enumerate(given.values)]
        return [[Item(len(features), features)] for features in given.values]

    def _read_rows(self, n: int, rows: list[Any]) -> Item:
        least, expected = self.columns, f"{self.columns} or more" if self.more_columns else f"{self.columns}"
        assert least is not None  # where there are features, rows are no form of input
        found = []
        for i, row in enumerate(rows):
            if not isinstance(row, list) or not all(isinstance(column, str) for column in row):
                raise unanswerable(f"rows[{n}][{i}] is no array of strings")
            if len(row) < least or (len(row) > least and not self.more_columns):
                raise unanswerable(f"rows[{n}][{i}] has {len(row)} columns, expected {expected}")
            found.append(tuple(row))
        return Item(len(found), found, [row[0] for row in found])

    def answer(self, question: Question, items: Sequence[Item]) -> list[Sentences]:
        """The answer for each item."""
        if question.name == "explain":
            return [[self._explain(question, only_item(question, items))]]
        X = [item.inputs for item in items]
        return [
            [{**_tokens(item), **answer}]
            for item, answer in zip(
                items, getattr(self, f"_{question.name}")(question, X, items), strict=True
            )
        ]

    def _tag(self, question: Question, X: list[Any], items: Sequence[Item]) -> list[dict[str, Any]]:
        found = self.crf.predict(X)
        answers = [{"labels": self._labels(labels)} for labels in found]
        if question.probabilities:
            for answer, labels, table in zip(answers, found, self.crf.predict_marginals(X), strict=True):
                chosen = [self.numbers[label] for label in labels]
                answer["probabilities"] = np.minimum(table[np.arange(len(chosen)), chosen], 1.0).tolist()
        return answers

    def _spans(self, question: Question, X: list[Any], items: Sequence[Item]) -> list[dict[str, Any]]:
        threshold = "auto" if question.threshold is None else question.threshold
        try:
            found = self.crf.predict_spans(
                X,
                threshold,  # type: ignore[arg-type]
                decode=question.decode,
                scheme=question.scheme,
            )
        except LabelError as error:
            raise unanswerable(str(error)) from None
        return [
            {"spans": [span_json(span, item) for span in spans]}
            for spans, item in zip(found, items, strict=True)
        ]

    def _nbest(self, question: Question, X: list[Any], items: Sequence[Item]) -> list[dict[str, Any]]:
        return [
            {"nbest": [{"probability": p, "labels": self._labels(labels)} for p, labels in best]}
            for best in self.crf.predict_nbest(X, question.n)
        ]

    def _explain(self, question: Question, item: Item) -> dict[str, Any]:
        names = {str(name): label for name, label in zip(self.names, self.classes, strict=True)}
        wanted = []
        for option in (question.label, question.against):
            if option is not None and str(option) not in names:
                some = ", ".join(list(names)[:_LABELS_NAMED]) + ", …" * (len(names) > _LABELS_NAMED)
                raise unanswerable(f"the model has no label {str(option)[:60]!r}, expected one of {some}")
            wanted.append(None if option is None else names[str(option)])
        explanation = self.crf.explain(item.inputs, question.position, *wanted)
        return {**_tokens(item), "explanation": explanation.to_dict()}

    def _labels(self, labels: list[Any]) -> list[Any]:
        return labels if self.plain else [self.names[self.numbers[label]] for label in labels]


class ServedTagger(ServedCRF):
    """A `TreebankTagger`: labels are tags of words."""

    kind = "a tagger of treebanks"
    questions: Names = ("tag", "nbest", "explain")

    def __init__(self, tagger: TreebankTagger, limits: Limits) -> None:
        if tagger.words is not None:
            raise UnsupportedError("the tagger reads a list of words; serve it as a part of a pipeline")
        super().__init__(tagger.crf_, limits)
        self.tagger = tagger

    def describe(self) -> dict[str, Any]:
        """What /models says of it."""
        return self.description(labels=self.names, scheme=None, columns=1, tag=self.tagger.tag)


def span_json(span: Span, item: Item) -> dict[str, Any]:
    """A span as JSON: positions, label, probability; with its text, and its characters, where they are known."""
    found: dict[str, Any] = {
        "start": span.start,
        "end": span.end,
        "label": _as_json(span.label),
        "probability": min(span.probability, 1.0),
    }
    if item.offsets is not None and item.text is not None:
        begin, end = item.offsets[span.start][0], item.offsets[span.end - 1][1]
        found |= {"text": item.text[begin:end], "begin_character": begin, "end_character": end}
    elif item.tokens is not None:
        found["text"] = " ".join(item.tokens[span.start : span.end])
    return found


def _tokens(item: Item) -> dict[str, Any]:
    """The tokens of a text that was cut here."""
    return {} if item.offsets is None else {"tokens": item.tokens, "offsets": item.offsets}


def _as_json(label: Any) -> Any:
    return label if isinstance(label, str | int | float) else str(label)
