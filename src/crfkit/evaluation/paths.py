"""Metrics of paths through lattices: lists of (start, end, label), gold and predicted ones compared as sets."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from crfkit.errors import UnsupportedError
from crfkit.evaluation.counts import Counts
from crfkit.evaluation.metrics import Metric, MetricFunction, Weights

Paths = Sequence[Sequence[Hashable]]


def path_counts(gold: Paths, predicted: Paths, sample_weight: Weights = None) -> Counts:
    """How many arcs the predicted paths share with the gold ones."""
    correct = found = wanted = 0.0
    weights = [1.0] * len(gold) if sample_weight is None else sample_weight
    for right, given, weight in zip(gold, predicted, weights, strict=True):
        correct += weight * len(set(right) & set(given))
        found += weight * len(given)
        wanted += weight * len(right)
    return Counts(correct, found, wanted)


@dataclass(frozen=True)
class PathMetric:
    """A metric of paths by its name: "f1", "precision", "recall" or "sequence_accuracy"."""

    name: str = "f1"

    @property
    def title(self) -> str:
        """The name as people write it."""
        return "F1" if self.name == "f1" else self.name.replace("_", " ")

    def __call__(self, gold: Paths, predicted: Paths, sample_weight: Weights = None) -> float:
        """Compare the paths of each input; input n counts `sample_weight[n]` times."""
        if self.name == "sequence_accuracy":
            weights = [1.0] * len(gold) if sample_weight is None else sample_weight
            right = [list(a) == list(b) for a, b in zip(gold, predicted, strict=True)]
            return sum(w for w, same in zip(weights, right, strict=True) if same) / (sum(weights) or 1.0)
        return float(getattr(path_counts(gold, predicted, sample_weight), self.name))


def path_metric(metric: MetricFunction | None) -> MetricFunction:
    """A checked metric for paths: F1 of arcs by default."""
    if metric is None:
        return PathMetric()
    if not isinstance(metric, Metric):
        return metric
    if metric.name == "accuracy":
        raise UnsupportedError(
            "metric is 'accuracy', which paths have none of: expected f1, precision, recall or sequence_accuracy"
        )
    return PathMetric(metric.name)
