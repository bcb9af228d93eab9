"""Sections that reports on labels and on trees share: confusions, and how good probabilities are."""

from collections.abc import Sequence
from typing import Any

from crfkit.evaluation import Confusion, Counts, span_calibration, span_precision_recall
from crfkit.report.page import Section
from crfkit.report.plots import draw_calibration, draw_precision_recall

LEAST = 0.01  # probability of the spans and arcs that are counted
MATRIX = 16  # labels of the confusion table
THRESHOLDS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def confusion_section(confusion: Confusion, things: str) -> Section:
    """Which labels are taken for which."""
    labels = confusion.labels[:MATRIX]
    counts = confusion.counts
    totals = {label: sum(counts.get((label, other), 0) for other in confusion.labels) for label in labels}
    rows = [
        (
            str(gold),
            [
                (count, count / totals[gold] if totals[gold] else 0.0, gold == label)
                for label in labels
                for count in [counts.get((gold, label), 0)]
            ],
        )
        for gold in labels
    ]
    return Section(
        "confusion",
        f"Confusion of {things}",
        {
            "things": things,
            "labels": [str(label) for label in labels],
            "rows": rows,
            "n_labels": len(confusion.labels),
            "errors": confusion.errors(15),
        },
    )


def probability_section(
    gold: Sequence[Sequence[Any]],
    found: Sequence[Sequence[Any]],
    things: str,
    *,
    decoded: tuple[str, Counts] | None,
    beyond: str | None,
    exact: bool = True,
) -> Section:
    """Calibration, and precision and recall over a threshold.

    `gold[n]` are (start, end, label), `found[n]` the same with probabilities; arcs are (dependent, head, label). `decoded`
    are the name and the counts of the best output, and `beyond` says what is counted besides it. `exact`: the probabilities
    are no approximations.
    """
    name, counts = ("", None) if decoded is None else decoded
    calibration = span_calibration(gold, found)
    curve = span_precision_recall(gold, found)
    return Section(
        "probabilities",
        "Are the probabilities right?",
        {
            "things": things,
            "beyond": beyond,
            "calibration": calibration,
            "curve": curve,
            "thresholds": [(least, curve.at(least)) for least in THRESHOLDS],
            "calibration_plot": draw_calibration(calibration, things),
            "curve_plot": draw_precision_recall(curve, counts, name),
            "exact": exact,
        },
    )
