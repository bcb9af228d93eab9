"""scikit-learn's metrics on lists of label sequences: on all labels together, or on whole sequences."""

from collections.abc import Iterable, Sequence
from typing import Any

from sklearn import metrics

from crfkit.compat.sklearn_crfsuite.utils import flatten

LabelSequences = Sequence[Sequence[Any]]


def flat_accuracy_score(y_true: LabelSequences, y_pred: LabelSequences) -> float:
    """Share of right labels."""
    return float(metrics.accuracy_score(flatten(y_true), flatten(y_pred)))


def flat_precision_score(y_true: LabelSequences, y_pred: LabelSequences, **kwargs: Any) -> Any:
    """`sklearn.metrics.precision_score` of all labels; keywords go there."""
    return metrics.precision_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_recall_score(y_true: LabelSequences, y_pred: LabelSequences, **kwargs: Any) -> Any:
    """`sklearn.metrics.recall_score` of all labels; keywords go there."""
    return metrics.recall_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_f1_score(y_true: LabelSequences, y_pred: LabelSequences, **kwargs: Any) -> Any:
    """`sklearn.metrics.f1_score` of all labels; keywords go there."""
    return metrics.f1_score(flatten(y_true), flatten(y_pred), **kwargs)


def flat_fbeta_score(y_true: LabelSequences, y_pred: LabelSequences, beta: float, **kwargs: Any) -> Any:
    """`sklearn.metrics.fbeta_score` of all labels; keywords go there."""
    return metrics.fbeta_score(flatten(y_true), flatten(y_pred), beta=beta, **kwargs)


def flat_classification_report(
    y_true: LabelSequences, y_pred: LabelSequences, labels: Iterable[Any] | None = None, **kwargs: Any
) -> Any:
    """`sklearn.metrics.classification_report` of all labels; keywords go there."""
    chosen = None if labels is None else list(labels)
    return metrics.classification_report(flatten(y_true), flatten(y_pred), labels=chosen, **kwargs)


def sequence_accuracy_score(y_true: LabelSequences, y_pred: LabelSequences) -> float:
    """Share of sequences without a wrong label."""
    right = [list(gold) == list(found) for gold, found in zip(y_true, y_pred, strict=True)]
    return sum(right) / len(right) if right else 0.0
