"""One number for predicted label sequences beside gold ones, by name, by default, or by a function of the user.

    accuracy            share of positions with the right label
    sequence_accuracy   share of sequences without a wrong label
    f1                  F1 of spans, as conlleval counts them; precision and recall likewise

By default it is F1 where the labels are those of spans, and accuracy for all other labels. Training on the command
line, `CRF.fit` with a dev set, `CRF.score` and `make_scorer` all take it from `metric_for`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from crfkit.errors import ArgumentError, FunctionError, InputError
from crfkit.evaluation.labels import Labels, known_accuracy, scheme_of, sequence_accuracy, span_totals

Weights = Sequence[float] | None  # of the sequences, [N]; None: all count once
MetricFunction = Callable[..., float]
"""A metric: a function of (gold, predicted), and of sample_weight=[…] where weights are given."""


def _of_spans(ratio: str) -> MetricFunction:
    return lambda *labels, **weights: float(getattr(span_totals(*labels, **weights), ratio))


METRICS: Mapping[str, MetricFunction] = MappingProxyType(
    {
        "accuracy": known_accuracy,
        "sequence_accuracy": sequence_accuracy,
        "f1": _of_spans("f1"),
        "precision": _of_spans("precision"),
        "recall": _of_spans("recall"),
    }
)
"""The metrics that have names, each a function of gold and predicted label sequences."""

TREE_METRICS = ("las", "uas", "label_accuracy", "clas", "mlas", "blex")
"""The metrics of dependency trees: properties of `TreeReport`."""


@dataclass(frozen=True)
class Metric:
    """A metric of `METRICS` by its name: called with gold and predicted label sequences it gives a number from 0 to 1."""

    name: str

    def __post_init__(self) -> None:
        """Refuse a name that no metric has."""
        if self.name not in METRICS:
            raise ArgumentError(
                f"metric is {self.name!r}, expected a function or one of {', '.join(METRICS)}"
            )

    @property
    def title(self) -> str:
        """The name as people write it."""
        return "F1" if self.name == "f1" else self.name.replace("_", " ")

    def __call__(
        self, gold: Sequence[Labels], predicted: Sequence[Labels], sample_weight: Weights = None
    ) -> float:
        """Compare `gold[n][i]` with `predicted[n][i]`; sequence n counts `sample_weight[n]` times."""
        return METRICS[self.name](gold, predicted, sample_weight=sample_weight)


def metric_for(labels: Iterable[Hashable], gold: Sequence[Iterable[Any]] = ()) -> Metric:
    """The default metric: F1 of spans where all labels are those of spans, otherwise accuracy.

    `labels` are those of the training data, `gold` what is compared with: its labels count as well, and where one is
    unknown (None, or a set of labels) it is accuracy, of the positions whose label is known.
    """
    distinct = set(labels)
    for sequence in gold:
        for label in sequence:
            if label is None or isinstance(label, set | frozenset):
                return Metric("accuracy")
            distinct.add(label)
    return Metric("accuracy" if scheme_of(distinct) is None else "f1")


def read_metric(metric: Any) -> MetricFunction | None:
    """A metric as it may be given: by name, as a function of gold and predicted labels, or None for the default."""
    if metric is None or callable(metric):
        function: MetricFunction | None = metric
        return function
    if isinstance(metric, str):
        return Metric(metric)
    raise ArgumentError(f"metric is {metric!r}, expected a function or one of {', '.join(METRICS)}")


def measure(
    metric: Any,
    labels: Iterable[Hashable],
    gold: Sequence[Any],
    predicted: Sequence[Labels],
    sample_weight: Weights = None,
) -> float:
    """The metric of predictions; `labels` are those of the training data, which the default depends on."""
    function = read_metric(metric) or metric_for(labels, gold)
    if sample_weight is None:
        return as_score(function(gold, predicted))
    return as_score(function(gold, predicted, sample_weight=sample_weight))


def as_score(value: Any) -> float:
    """What a metric gave, as a number; InputError for a report or anything else that is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise FunctionError(
            f"the metric gave an object of type {type(value).__name__}, expected a number"
        ) from None


@dataclass(frozen=True)
class Scorer:
    """What `make_scorer` gives: scikit-learn calls it with a trained estimator and held-out data."""

    metric: Any = None
    greater_is_better: bool = True

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The score of an estimator on sequences X with labels y, or of a parser on sentences X with trees."""
        if y is None:
            score = float(estimator.score(X, metric=self.metric))
        else:
            labels = getattr(estimator, "classes_", ())
            score = measure(self.metric, labels, y, estimator.predict(X), sample_weight)
        return score if self.greater_is_better else -score


def make_scorer(metric: str | MetricFunction | None = None, *, greater_is_better: bool = True) -> Scorer:
    """A scorer for `GridSearchCV`, `cross_validate` and the like: `GridSearchCV(CRF(), …, scoring=make_scorer("f1"))`.

    `metric` is a name of `METRICS` (of `TREE_METRICS` for a parser), a function of gold and predicted label sequences,
    or None for the default: F1 of spans where the labels are those of spans, otherwise accuracy; LAS for a parser. Of a
    function that is a loss (`greater_is_better=False`) the negative is the score.

    >>> make_scorer("f1")
    Scorer(metric='f1', greater_is_better=True)
    """
    if metric not in TREE_METRICS:
        try:
            read_metric(metric)
        except InputError as error:
            raise ArgumentError(f"{error}; for a parser, one of {', '.join(TREE_METRICS)}") from None
    return Scorer(metric, greater_is_better)
