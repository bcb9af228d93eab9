"""The section that compares two models on the same test set."""

from collections.abc import Callable, Sequence
from typing import Any

from crfkit.evaluation import paired_bootstrap
from crfkit.report.page import Section

TITLES = {
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "accuracy": "accuracy of labels",
    "sequence_accuracy": "sentences without an error",
    "las": "LAS",
    "uas": "UAS",
    "clas": "CLAS",
}


def compare(
    gold: Sequence[Any],
    model: Sequence[Any],
    other: Sequence[Any],
    metrics: Sequence[str],
    *,
    name: str,
    other_name: str,
    is_right: Callable[[Any, Any], bool],
    by_type: Sequence[tuple[str, Any, Any]],
    n_samples: int,
    seed: int,
) -> Section:
    """Differences of metrics with intervals and p values; which sentences only one of both has right.

    `by_type` has, for each type, relation or label, its counts in both.
    """
    found = [
        (TITLES[metric], paired_bootstrap(gold, other, model, metric, n_samples=n_samples, seed=seed))
        for metric in metrics
    ]
    right = [(is_right(g, a), is_right(g, b)) for g, a, b in zip(gold, model, other, strict=True)]
    return Section(
        "comparison",
        "Comparison",
        {
            "name": name,
            "other": other_name,
            "rows": found,
            "n_samples": n_samples,
            "seed": seed,
            "sentences": [
                ("both models", right.count((True, True))),
                (f"only {name}", right.count((True, False))),
                (f"only {other_name}", right.count((False, True))),
                ("neither", right.count((False, False))),
            ],
            "by_type": by_type,
        },
    )
