"""The figure by which a training is judged: F1 of spans where the labels are those of spans, else accuracy."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from crfkit.evaluation import accuracy, scheme_of, span_report


class Metric(NamedTuple):
    """A figure from 0 to 1 of predicted labels beside gold ones."""

    name: str

    def __call__(self, gold: Sequence[Sequence[Hashable]], predicted: Sequence[Sequence[Hashable]]) -> float:
        """Compare `gold[n][i]` with `predicted[n][i]`."""
        if self.name == "F1":
            return span_report(gold, predicted).overall.f1
        return accuracy(gold, predicted)


def metric_for(labels: Iterable[Hashable]) -> Metric:
    """The figure that goes with these labels."""
    return Metric("accuracy" if scheme_of(labels) is None else "F1")
