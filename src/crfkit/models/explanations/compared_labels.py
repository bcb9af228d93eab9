"""The two labels that an explanation compares; where labels have states, their likeliest ones.

With p(s) the probability of state s and a label's p the sum over its states, s* the likeliest:

    log p(label) = log p(s*) + log Σ_s p(s) / p(s*)

The first term has the parts of one state, the second is a part of its own.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from crfkit.errors import LabelError
from crfkit.features import StateLabels
from crfkit.inference import LabelContext
from crfkit.models.encoded_input import EncodedInput
from crfkit.models.explanations.explanation import ROUNDING, ExplanationPart


class ComparedLabel(NamedTuple):
    """A label of the comparison."""

    id: int  # of its likeliest state
    context: LabelContext  # of this state
    log_probability: float  # of all states of the label


def compare_labels(
    ask: EncodedInput, i: int, label: Any, against: Any
) -> tuple[ComparedLabel, ComparedLabel]:
    """Two labels of position i of the only sequence; None: the likeliest one, and the likeliest other one."""
    labels = ask.model.labels
    if isinstance(labels, StateLabels):
        return _compare_states(ask, labels, i, label, against)
    a = -1 if label is None else labels.id_of(0, i, label)
    b = -1 if against is None else labels.id_of(0, i, against)
    _refuse_equal(a, b, label)
    a, b, one, other = ask.answerer.explain(ask.design, 0, i, a, b)
    return ComparedLabel(a, one, one.log_probability), ComparedLabel(b, other, other.log_probability)


def _compare_states(
    ask: EncodedInput, labels: StateLabels, i: int, label: Any, against: Any
) -> tuple[ComparedLabel, ComparedLabel]:
    written = labels.written
    a = -1 if label is None else written.id_of(0, i, label)
    b = -1 if against is None else written.id_of(0, i, against)
    _refuse_equal(a, b, label)
    if a < 0 or b < 0:
        table = labels.sum_states(ask.answerer.marginals(ask.design, ask.n_threads))[i]
        ranked = np.argsort(-table, kind="stable").tolist()
        a = a if a >= 0 else next(k for k in ranked if k != b)
        b = b if b >= 0 else next(k for k in ranked if k != a)
    ours, theirs = (labels.ids_of(written.classes[k]) for k in (a, b))
    found = [
        ask.answerer.explain(ask.design, 0, i, ours[min(k, len(ours) - 1)], theirs[min(k, len(theirs) - 1)])
        for k in range(max(len(ours), len(theirs)))
    ]
    logs = [
        [one.log_probability for _, _, one, _ in found[: len(ours)]],
        [other.log_probability for _, _, _, other in found[: len(theirs)]],
    ]
    best = [states[int(np.argmax(own))] for states, own in zip((ours, theirs), logs, strict=True)]
    a, b, one, other = ask.answerer.explain(ask.design, 0, i, *best)  # whose parts are up to the same number
    totals = [float(np.logaddexp.reduce(own)) for own in logs]
    return ComparedLabel(a, one, totals[0]), ComparedLabel(b, other, totals[1])


def _refuse_equal(a: int, b: int, label: Any) -> None:
    if a == b and a >= 0:
        raise LabelError(f"label and against are both {label!r}, expected two labels")


def other_states(
    names: Sequence[Hashable], one: ComparedLabel, other: ComparedLabel
) -> Iterator[ExplanationPart]:
    """What the states of both labels beside their likeliest ones add."""
    added = [found.log_probability - found.context.log_probability for found in (one, other)]
    value = added[0] - added[1]
    if math.isfinite(value) and abs(value) > ROUNDING:
        name = f"first, last and single positions of spans: {names[one.id]}, not {names[other.id]}"
        yield ExplanationPart(name, value, "rest")
