"""States of spans by enumeration: every valid label sequence of BIO, its IOBES states, its score and its probability.

Spans decide both: a label sequence is read as a list of spans, and these are written in IOBES.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

Spans = list[tuple[int, int, str]]


def spans_of(labels: Sequence[str]) -> Spans:
    """The spans of a label sequence as conlleval reads it: I-X begins one where no B-X or I-X comes before."""
    found: Spans = []
    for i, label in enumerate(labels):
        letter, _, kind = label.partition("-")
        if label == "O":
            continue
        if letter == "I" and found and found[-1][1] == i and found[-1][2] == kind:
            found[-1] = (found[-1][0], i + 1, kind)
        else:
            found.append((i, i + 1, kind))
    return found


def write(spans: Spans, length: int, scheme: str) -> list[str]:
    """Spans as labels of "bio" or "iobes"."""
    labels = ["O"] * length
    for begin, end, kind in spans:
        tail = f"-{kind}" if kind else ""
        labels[begin:end] = [f"I{tail}"] * (end - begin)
        labels[begin] = f"B{tail}"
        if scheme == "iobes":
            labels[end - 1] = f"E{tail}" if end - begin > 1 else f"S{tail}"
    return labels


def valid_sequences(labels: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """The label sequences of valid BIO."""
    for y in product(labels, repeat=length):
        if list(y) == write(spans_of(y), length, "bio"):
            yield y


class Weights(NamedTuple):
    """The weights of a model by name."""

    of_features: Mapping[tuple[str, str], float]  # feature, state
    of_arcs: Mapping[tuple[str, str], float]  # state before, state after, "start" and "end" among them

    @classmethod
    def of(cls, crf: Any, weights: Any = None) -> Weights:
        """Those of a trained CRF of plain features, or other ones in their places."""
        map_, w, states = (
            crf.feature_map_,
            (crf.weights_ if weights is None else weights).tolist(),
            crf.states_,
        )
        names = crf.encoder_.vocabulary.names()
        pairs, at = {}, 0
        for name, begin, end in zip(
            names, map_.pair_ptr[:-1].tolist(), map_.pair_ptr[1:].tolist(), strict=True
        ):
            for k in range(begin, end):
                pairs[name, states[map_.pair_labels[k]]] = w[k]
                at += 1
        arcs = {
            ([*states, "start"][before], [*states, "end"][after]): w[at + k]
            for k, (before, after) in enumerate(
                zip(map_.arc_before.tolist(), map_.arc_after.tolist(), strict=True)
            )
        }
        return cls(pairs, arcs)

    def score(self, x: Sequence[Sequence[str]], y: Sequence[str]) -> float:
        """The score of a label sequence of BIO by the weights of its states."""
        states = write(spans_of(y), len(y), "iobes")
        path = ["start", *states, "end"]
        return math.fsum(
            [
                self.of_features.get((f, s), 0.0)
                for features, s in zip(x, states, strict=True)
                for f in features
            ]
            + [self.of_arcs.get(pair, 0.0) for pair in pairwise(path)]
        )

    def distribution(
        self, x: Sequence[Sequence[str]], labels: Sequence[str], allowed: Sequence[Any] | None = None
    ) -> dict[tuple[str, ...], float]:
        """The probability of each label sequence, among those that have an allowed label everywhere (None: any)."""
        scores = {y: self.score(x, y) for y in valid_sequences(labels, len(x)) if fits(y, allowed)}
        log_z = log_sum_exp(scores.values())
        return {y: math.exp(score - log_z) for y, score in scores.items()}


def fits(y: Sequence[str], entries: Sequence[Any] | None) -> bool:
    """Whether a label sequence agrees with labels, sets of labels and None (unknown)."""
    return entries is None or all(
        entry is None or (label in entry if isinstance(entry, set) else label == entry)
        for label, entry in zip(y, entries, strict=True)
    )


def log_sum_exp(scores: Any) -> float:
    """log Σ exp."""
    values = list(scores)
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))
