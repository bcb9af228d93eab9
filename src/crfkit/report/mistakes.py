"""The errors of a model of labels, sorted by how sure the model was."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from crfkit.report.label_results import FAINT, LabelResults
from crfkit.structures import Span

KINDS: Mapping[str, str] = {
    "type": "wrong type",
    "boundary": "wrong boundary",
    "both": "wrong type and boundary",
    "spurious": "spurious",
    "missed": "missed",
    "label": "wrong label",
}
"""What can be wrong, as a report names it."""

CONTEXT = 12  # words shown before and after


@dataclass(frozen=True)
class Mistake:
    """One error: a predicted span that is wrong, a gold span that nothing predicted overlaps, or a wrong label."""

    kind: str  # one of KINDS
    sequence: int
    predicted: Span | None
    gold: tuple[Span, ...]  # those that the predicted one overlaps, or the missed one
    sure: float  # the probability of what was predicted; of a missed span, that it is none

    @property
    def span(self) -> tuple[int, int]:
        """The positions that it is about."""
        some = [*([] if self.predicted is None else [self.predicted]), *self.gold]
        return min(span.start for span in some), max(span.end for span in some)

    @property
    def types(self) -> list[str]:
        """The types, or labels, that it is about."""
        some = [*([] if self.predicted is None else [self.predicted]), *self.gold]
        return list(dict.fromkeys(str(span.label) for span in some))


def find_mistakes(results: LabelResults) -> list[Mistake]:
    """All errors, those that the model was surest of first."""
    found = _span_mistakes(results) if results.has_spans else _label_mistakes(results)
    return sorted(found, key=lambda one: (-one.sure, one.sequence, one.span))


def _span_mistakes(results: LabelResults) -> Iterator[Mistake]:
    lists = zip(results.gold_spans, results.predicted_spans, results.faint_spans, strict=True)
    for n, (gold, predicted, faint) in enumerate(lists):
        probability = {span[:3]: span.probability for span in faint}
        right = [Span(*span[:3], probability.get(span[:3], 0.0)) for span in gold]
        exact, overlapped = {span[:3] for span in gold}, set[Span]()
        for span in predicted:
            near = tuple(one for one in right if one.start < span.end and span.start < one.end)
            overlapped.update(near)
            if span[:3] not in exact:
                yield Mistake(_kind(span, near), n, span, near, span.probability)
        for one in right:
            if one not in overlapped:
                yield Mistake("missed", n, None, (one,), 1.0 - max(one.probability, FAINT / 2))


def _kind(predicted: Span, near: Sequence[Span]) -> str:
    if not near:
        return "spurious"
    if any(one[:2] == predicted[:2] for one in near):
        return "type"
    return "boundary" if any(one.label == predicted.label for one in near) else "both"


def _label_mistakes(results: LabelResults) -> Iterator[Mistake]:
    for n, (gold, predicted) in enumerate(zip(results.gold, results.predicted, strict=True)):
        for i, (right, found) in enumerate(zip(gold, predicted, strict=True)):
            if right != found:
                p, q = results.predicted_probabilities[n][i], results.gold_probabilities[n][i]
                yield Mistake("label", n, Span(i, i + 1, found, p), (Span(i, i + 1, right, q),), p)


class Piece(NamedTuple):
    """A run of words that the same spans cover; a span has its label where it begins."""

    text: str
    gold: str | None  # label; None: no gold span covers it
    predicted: str | None
    gold_begins: bool
    predicted_begins: bool
    is_error: bool  # the rest is context


def mark_words(
    words: Sequence[str], gold: Sequence[Span], predicted: Sequence[Span], span: tuple[int, int]
) -> list[Piece]:
    """The words around a span, cut where spans begin and end."""
    first, last = max(0, span[0] - CONTEXT), min(len(words), span[1] + CONTEXT)
    cuts = {first, last}
    for one in (*gold, *predicted):
        cuts.update(at for at in (one.start, one.end) if first < at < last)
    edges = sorted(cuts)
    pieces = [Piece("…", None, None, False, False, False)] if first else []
    for begin, end in pairwise(edges):
        text = " ".join(words[begin:end])
        covering = [next((s for s in some if s.start <= begin < s.end), None) for some in (gold, predicted)]
        labels = [None if s is None else str(s.label) for s in covering]
        begins = [s is not None and begin in (s.start, first) for s in covering]
        pieces.append(Piece(text, labels[0], labels[1], begins[0], begins[1], span[0] <= begin < span[1]))
    if last < len(words):
        pieces.append(Piece("…", None, None, False, False, False))
    return pieces
