"""Label sequences with the higher-order features that are seen in them: what a reranker learns from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from benchmarks.name_patterns import Configuration

Run = tuple[
    int, tuple[str | tuple[str, ...] | None, ...]
]  # first position, what the labels from there on may be


class ScoredLabels(list[str]):
    """Labels of a sentence, and the higher-order features that are seen in them."""

    def __init__(self, labels: Sequence[str], runs: Mapping[Run, Sequence[str]]) -> None:
        """`runs` are those of the sentence."""
        super().__init__(labels)
        self.active = [
            weight
            for (position, sets), weights in runs.items()
            if fits(labels, position, sets)
            for weight in weights
        ]


def runs_of(configurations: Iterable[Configuration]) -> dict[Run, list[str]]:
    """The weights of each run of labels."""
    runs = defaultdict[Run, list[str]](list)
    for position, sets, weight in configurations:
        run = tuple(tuple(allowed) if isinstance(allowed, list) else allowed for allowed in sets)
        runs[position, run].append(weight)
    return dict(runs)


def fits(labels: Sequence[str], position: int, run: Sequence[str | tuple[str, ...] | None]) -> bool:
    """Whether labels from a position on are as a run says."""
    return all(
        allowed is None or label in allowed
        for allowed, label in zip(run, islice(labels, position, None), strict=False)
    )


def active(labels: Sequence[str]) -> Sequence[str]:
    """The higher-order features of a label sequence that knows them."""
    return labels.active if isinstance(labels, ScoredLabels) else ()
