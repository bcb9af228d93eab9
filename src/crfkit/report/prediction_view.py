"""Predictions to look at: labels and spans in colour with their probabilities, trees as pictures."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from crfkit.data import Sentence, SequenceFrame
from crfkit.errors import ArgumentError, ShapeError
from crfkit.evaluation import scheme_of
from crfkit.markup import Html, join, label_chip, label_hues, tag
from crfkit.models import CRF, Parser, WordSegmenter
from crfkit.pipeline import Lemmatizer, Pipeline, TreebankTagger
from crfkit.report.tree_picture import draw_tree
from crfkit.report.tree_text import tree_text
from crfkit.report.view import View
from crfkit.report.words import words_of
from crfkit.structures import Span, Threshold

OUTSIDE = "O"


def show(model: Any, X: Any, *, threshold: Threshold = "auto", decode: str | None = "auto") -> View:
    """What a model predicts, to look at: spans or labels of a `CRF`, words of a `WordSegmenter`, trees of a `Parser` or a
    `Pipeline`.

    X is what `predict` takes; a text for a pipeline. `threshold` and `decode` say which spans, as for `CRF.predict_spans`;
    "auto": those of the labels that `predict` gives.

    >>> crf = CRF(features="names", l2=0.01).fit([["Ann", "saw", "Rome"]], [["B-PER", "O", "B-LOC"]])
    >>> print(show(crf, [["Ann", "slept"]]))  # doctest: +ELLIPSIS
    [Ann PER 0...] slept
    """
    if isinstance(model, CRF):
        if scheme_of(model.classes_) is not None:
            chosen = model.decode_ if decode == "auto" else decode
            return show_spans(X, model.predict_spans(X, threshold, decode=chosen))
        return show_labels(X, *_with_probabilities(model, X))
    if isinstance(model, WordSegmenter):
        words = model.predict(X)
        tags = [[word.fields[0] if word.fields else "" for word in found] for found in words]
        return show_labels([[word.form for word in found] for found in words], tags)
    if isinstance(model, Pipeline) and isinstance(X, str):
        return show_trees(model(X))
    if isinstance(model, Parser | Pipeline | TreebankTagger | Lemmatizer):
        return show_trees(model.predict(X))
    raise ArgumentError(
        f"model is of type {type(model).__name__}, expected a CRF, WordSegmenter, Parser, TreebankTagger or Pipeline"
    )


def show_spans(X: Any, spans: Sequence[Sequence[Span]], gold: Sequence[Sequence[Span]] | None = None) -> View:
    """Spans in colour, with their labels and probabilities.

    X has sequences of positions, or texts; spans of texts are in characters (`Span.in_characters`). Spans that overlap one
    with a higher probability are listed below their sentence. With `gold` spans, those that are wrong are underlined and
    those that are missing are listed.

    >>> print(show_spans([["Ann", "saw", "Rome"]], [[Span(0, 1, "PER", 0.98)]]))
    [Ann PER 0.98] saw Rome
    """
    sentences = _sentences(X)
    _check_lengths("spans", spans, sentences)
    right = [[]] * len(sentences) if gold is None else gold
    _check_lengths("gold", right, sentences)
    hues = label_hues(span.label for found in (*spans, *right) for span in found)
    parts, lines = [], []
    for words, found, known in zip(sentences, spans, right, strict=True):
        view = _SpanSentence(words, found, None if gold is None else known, hues)
        parts.append(view.html())
        lines.append(view.text())
    return View(join(parts), "\n".join(lines), "Spans")


def show_labels(
    X: Any,
    labels: Sequence[Sequence[Hashable]],
    probabilities: Sequence[Sequence[float]] | None = None,
    gold: Sequence[Sequence[Hashable]] | None = None,
) -> View:
    """Positions in the colours of their labels, with the names of these; O has none.

    With the `probabilities` of the labels, the mouse shows them. With `gold` labels, wrong ones are underlined.

    >>> print(show_labels([["the", "dog"]], [["DET", "NOUN"]], [[0.99, 0.75]]))
    [the DET 0.99] [dog NOUN 0.75]
    """
    sentences = _sentences(X)
    for name, given in (("labels", labels), ("probabilities", probabilities), ("gold", gold)):
        if given is not None:
            _check_lengths(name, given, sentences)
            for n, (words, own) in enumerate(zip(sentences, given, strict=True)):
                if len(words) != len(own):
                    raise ShapeError(f"{name} of sequence {n} are {len(own)}, expected {len(words)}")
    hues = label_hues(label for own in labels for label in own if label != OUTSIDE)
    parts, lines = [], []
    for n, words in enumerate(sentences):
        chips, texts = [], []
        for i, word in enumerate(words):
            label = labels[n][i]
            sure = None if probabilities is None else float(probabilities[n][i])
            right = label if gold is None else gold[n][i]
            chips.append(_labelled(word, label, hues, sure, right))
            texts.append(_bracketed(word, label, sure))
        parts.append(tag("div", join(chips, " "), class_="sentence"))
        lines.append(" ".join(texts))
    return View(join(parts), "\n".join(lines), "Labels")


def show_trees(sentences: Sequence[Sentence], gold: Sequence[Sentence] | None = None) -> View:
    """The trees of sentences, one below the other; with `gold`, wrong and missing arcs stand out, see `draw_tree`.

    >>> from crfkit.data import Word
    >>> print(show_trees([Sentence([Word("dogs", upos="NOUN", head=2, deprel="nsubj"), Word("bark", upos="VERB", head=0)])]))
    ┌▶ dogs  NOUN  nsubj
    └─ bark  VERB  _
    """
    if gold is not None:
        _check_lengths("gold", gold, sentences)
    right: Sequence[Sentence | None] = [None] * len(sentences) if gold is None else gold
    pictures = [draw_tree(sentence, known).svg for sentence, known in zip(sentences, right, strict=True)]
    body = join(tag("div", Html(svg), style="overflow-x:auto") for svg in pictures)
    return View(body, "\n\n".join(map(tree_text, sentences)), "Trees")


class _SpanSentence:
    """One sentence, or text, with its spans."""

    def __init__(
        self,
        words: str | list[str],
        spans: Sequence[Span],
        gold: Sequence[Span] | None,
        hues: Mapping[Hashable, int],
    ) -> None:
        self._words = words
        self._hues = hues
        self._gold = None if gold is None else {span[:3] for span in gold}
        for span in (*spans, *(gold or ())):
            if not 0 <= span.start < span.end <= len(words):
                raise ShapeError(f"{span} is not within the {len(words)} positions of its sequence")
        self._shown, self._others = _disjoint(spans)
        self._missing = [span for span in gold or () if span[:3] not in {found[:3] for found in spans}]

    def html(self) -> Html:
        parts = [words if span is None else self._chip(words, span) for words, span in self._pieces()]
        lines = [tag("div", join(parts, "" if isinstance(self._words, str) else " "), class_="sentence")]
        others = [self._chip(self._between(span.start, span.end), span) for span in self._others]
        missing = [
            label_chip(self._between(span.start, span.end), span.label, self._hues[span.label])
            for span in self._missing
        ]
        for name, chips in (("also:", others), ("missing:", missing)):
            if chips:
                lines.append(tag("div", tag("span", f"{name} ", class_="pale"), join(chips, " ")))
        return join(lines)

    def text(self) -> str:
        """One line, and one for spans that overlap others."""
        pieces = [
            words if span is None else _bracketed(words, span.label, span.probability)
            for words, span in self._pieces()
        ]
        line = ("" if isinstance(self._words, str) else " ").join(pieces)
        for span in self._others:
            line += f"\n  also: {_bracketed(self._between(*span[:2]), span.label, span.probability)}"
        for span in self._missing:
            line += f"\n  missing: {_bracketed(self._between(*span[:2]), span.label, None)}"
        return line

    def _pieces(self) -> Iterator[tuple[str, Span | None]]:
        """The sentence from left to right: runs outside of spans, and spans."""
        at = 0
        for span in self._shown:
            if at < span.start:
                yield self._between(at, span.start), None
            yield self._between(span.start, span.end), span
            at = span.end
        if at < len(self._words):
            yield self._between(at, len(self._words)), None

    def _between(self, start: int, end: int) -> str:
        part = self._words[start:end]
        return part if isinstance(part, str) else " ".join(part)

    def _chip(self, words: str, span: Span) -> Html:
        wrong = self._gold is not None and span[:3] not in self._gold
        name = f"{span.label} {span.probability:.2f}"
        note = f"p({span.label}) = {span.probability:.6g}"
        return label_chip(words, name, self._hues[span.label], note=note, wrong=wrong)


def _disjoint(spans: Sequence[Span]) -> tuple[list[Span], list[Span]]:
    """Spans that do not overlap, the likeliest first, in their order; and all others."""
    shown: list[Span] = []
    others: list[Span] = []
    for span in sorted(spans, key=lambda span: (-span.probability, span.start)):
        free = all(span.end <= other.start or other.end <= span.start for other in shown)
        (shown if free else others).append(span)
    return sorted(shown), others


def _labelled(
    word: str, label: Hashable, hues: Mapping[Hashable, int], sure: float | None, right: Hashable
) -> Html:
    wrong = right is not None and right != label
    note = None if sure is None else f"p({label}) = {sure:.6g}"
    if wrong:
        note = f"{note}; right: {right}" if note else f"right: {right}"
    if label == OUTSIDE:
        return tag("span", word, title=note, class_="wrong" if wrong else None)
    return label_chip(word, label, hues[label], note=note, wrong=wrong)


def _bracketed(words: str, label: Hashable, sure: float | None) -> str:
    if label == OUTSIDE:
        return words
    return f"[{words} {label}]" if sure is None else f"[{words} {label} {sure:.2f}]"


def _with_probabilities(crf: CRF[Any], X: Any) -> tuple[list[list[Any]], list[list[float]]]:
    """The predicted labels, and the probability of each."""
    labels = crf.predict(X)
    ids = {label: k for k, label in enumerate(crf.classes_)}
    tables = crf.predict_marginals(X)
    sure = [
        [float(row[ids[label]]) for row, label in zip(rows, own, strict=True)]
        for rows, own in zip(tables, labels, strict=True)
    ]
    return labels, sure


def _sentences(X: Any) -> list[str | list[str]]:
    """The words of each sequence; texts as they are."""
    if isinstance(X, str):
        raise ArgumentError("X is a text, expected a list of sequences, or a list of texts")
    given = X.X if isinstance(X, SequenceFrame) else X
    return [x if isinstance(x, str) else words_of([x])[0] for x in given]


def _check_lengths(name: str, given: Sequence[Any], expected: Sequence[Any]) -> None:
    if len(given) != len(expected):
        raise ShapeError(f"{name} has {len(given)} sequences, expected {len(expected)}")
