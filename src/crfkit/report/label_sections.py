"""The sections of a report on labels: scores, confusions, partial matches, probabilities, known words."""

from collections import Counter
from typing import Any

from crfkit.evaluation import Confusion, Counts, Share, partial_matches, span_report
from crfkit.report.label_results import LabelResults
from crfkit.report.page import Section
from crfkit.report.shared_sections import LEAST, confusion_section, probability_section
from crfkit.report.words import KnownWords

MOST_LABELS = 100  # rows of a table


def label_counts(confusion: Confusion) -> dict[str, Counts]:
    """Correct, predicted and gold positions of each label, in the order of the confusion table."""
    gold, predicted = Counter[Any](), Counter[Any]()
    for (right, found), count in confusion.counts.items():
        gold[right] += count
        predicted[found] += count
    return {
        str(label): Counts(confusion.counts.get((label, label), 0), predicted[label], gold[label])
        for label in confusion.labels
    }


def names_of(results: LabelResults) -> list[str]:
    """Types of spans, or labels, the most frequent in gold first: the order of their colours."""
    report = results.evaluation.spans
    if report is None:
        return list(label_counts(results.evaluation.confusion))
    return sorted(map(str, report.types), key=lambda name: (-report.types[name].gold, name))


def scores(results: LabelResults) -> Section:
    """Precision, recall and F1 by type, or by label."""
    report = results.evaluation.spans
    counts = label_counts(results.evaluation.confusion) if report is None else report.types
    names = names_of(results)
    shown = names[:MOST_LABELS]
    macro = [
        sum(getattr(counts[name], ratio) for name in names) / max(len(names), 1)
        for ratio in ("precision", "recall", "f1")
    ]
    return Section(
        "scores",
        "Scores by label" if report is None else "Scores by type",
        {
            "what": "label" if report is None else "type",
            "rows": [(name, counts[name]) for name in shown],
            "n_left_out": len(names) - len(shown),
            "overall": None if report is None else report.overall,
            "macro": macro,
        },
    )


def confusions(results: LabelResults) -> Section:
    """Which labels are taken for which."""
    return confusion_section(results.evaluation.confusion, "labels")


def matches(results: LabelResults) -> Section:
    """Spans that are right in part."""
    found = partial_matches(results.gold_spans, results.predicted_spans)
    order = [name for name in names_of(results) if name in found.types]
    return Section(
        "matches",
        "Partial matches",
        {"overall": found.overall, "types": [(name, found.types[name]) for name in order]},
    )


def probabilities(results: LabelResults) -> Section:
    """Calibration, and precision and recall over a threshold."""
    if results.evaluation.spans is not None:
        return probability_section(
            results.gold_spans,
            results.likely_spans,
            "spans",
            decoded=("predicted labels", results.evaluation.spans.overall),
            beyond=f"all spans from a probability of {LEAST} on are counted, also those outside the predicted labels",
        )
    # Every position is a span of its own.
    gold = [[(i, i + 1, label) for i, label in enumerate(labels)] for labels in results.gold]
    found = [
        [(i, i + 1, label, p) for i, (label, p) in enumerate(zip(labels, some, strict=True))]
        for labels, some in zip(results.predicted, results.predicted_probabilities, strict=True)
    ]
    return probability_section(gold, found, "labels", decoded=None, beyond=None)


def known_words(results: LabelResults, known: KnownWords) -> Section:
    """Labels and spans of words that were in the training set, and of others."""
    right, total = {True: 0, False: 0}, {True: 0, False: 0}
    for words, gold, predicted in zip(results.words, results.gold, results.predicted, strict=True):
        for word, label, guess in zip(words, gold, predicted, strict=True):
            is_known = known.knows(word)
            total[is_known] += 1
            right[is_known] += label == guess
    spans = []
    if results.has_spans:
        for title, wanted in (("all words known", True), ("with an unknown word", False)):
            lists = [
                [
                    [span for span in some if all(map(known.knows, words[span.start : span.end])) is wanted]
                    for words, some in zip(results.words, lists, strict=True)
                ]
                for lists in (results.gold_spans, results.predicted_spans)
            ]
            spans.append((title, span_report(lists[0], lists[1]).overall))
    return Section(
        "words",
        "Known and unknown words",
        {
            "source": known.source,
            "words": [
                (title, Share(right[which], total[which]))
                for title, which in (("known words", True), ("unknown words", False))
            ],
            "n_words": results.n_positions,
            "spans": spans,
        },
    )
