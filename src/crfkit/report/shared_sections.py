"""What reports on labels and on trees share: confusions, how good probabilities are, explanations of errors."""

import math
from collections.abc import Sequence
from typing import Any

from crfkit.evaluation import Confusion, Counts, span_calibration, span_precision_recall
from crfkit.models import Explanation
from crfkit.report.page import Section
from crfkit.report.plots import draw_calibration, draw_precision_recall

LEAST = 0.01  # probability of the spans and arcs that are counted
MATRIX = 16  # labels of the confusion table
N_PARTS = 10  # of an explanation
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


def describe_explanation(why: Explanation, word: str, label: str, against: str) -> dict[str, Any]:
    """The largest parts of an explanation, and the sum of the others, as the macro `why` shows them."""
    parts = sorted(why.parts, key=lambda part: -abs(part.value))
    shown, others = parts[:N_PARTS], parts[N_PARTS:]
    finite = [abs(part.value) for part in shown if math.isfinite(part.value)]
    return {
        "word": word,
        "label": label,
        "against": against,
        "log_odds": why.log_odds,
        "parts": shown,
        "n_others": len(others),
        "others": math.fsum(part.value for part in others),
        "largest": max(finite, default=1.0) or 1.0,
    }
