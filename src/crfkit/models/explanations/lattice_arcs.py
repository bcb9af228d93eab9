"""Why an arc of a word lattice is on the path and not another one: `CRF.explain` of a model with a `Lattice`.

The definitions are those of `positions`, with Z(a) the sum over the paths that pass arc a:

    log p(arc a) − log p(arc b) = log Z(a) − log Z(b),     log Z(a) = own + before + after + left + right
"""

import math
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import LatticeDataset
from crfkit.models.encoded_input import EncodedInput
from crfkit.models.explanations.explanation import ROUNDING, Explanation, ExplanationPart
from crfkit.models.explanations.positions import LEFT, RIGHT, feature_parts, read_position


def explain_lattice_arc(
    ask: EncodedInput, weights: Float64s, arc: int, label: Any, against: Any
) -> Explanation:
    """The explanation of an arc of the only lattice of `ask`, by default against the likeliest that excludes it."""
    dataset, n_arcs = ask.dataset, int(ask.ptr[-1])
    assert isinstance(dataset, LatticeDataset)
    if label is not None:
        raise UnsupportedError(
            "label is for positions of label sequences, an arc of a word lattice has its own"
        )
    arc = read_position("i", arc, n_arcs)
    with ask.explain_impossible():
        if against is None:
            against = _find_rival(dataset, arc, ask.model.read_marginals(ask.answerer.marginals(ask.design)))
        against = read_position("against", against, n_arcs)
        if arc == against:
            raise ArgumentError(f"i and against are both {arc}, expected two arcs")
        given = ask.answerer.explain_arcs(ask.design, 0, arc, against)
    log_p, log_q = (some.log_probability for some in given)
    if log_p == log_q == -math.inf:
        raise ArgumentError(f"no path that is allowed passes arc {arc} or arc {against}")
    parts = _feature_parts(ask, weights, dataset, arc, against)
    if -math.inf in (log_p, log_q):
        name = f"no path that is allowed passes arc {arc if log_p < log_q else against}"
        parts.insert(0, ExplanationPart(name, log_p - log_q, "constraint"))
    else:
        a, b = given
        rest = a.own - b.own - math.fsum(part.value for part in parts)
        for name, value, group in (
            ("other scores of the arcs", rest, "rest"),
            ("from the arc before", a.before - b.before, "transition"),
            ("to the arc after", a.after - b.after, "transition"),
            (LEFT, a.left - b.left, "left"),
            (RIGHT, a.right - b.right, "right"),
        ):
            if abs(value) > ROUNDING:
                parts.append(ExplanationPart(name, value, group))
    odds = math.exp(log_p), math.exp(log_q), log_p - log_q
    return Explanation("path", arc, arc + 1, arc, against, *odds, tuple(parts))


def _find_rival(dataset: LatticeDataset, arc: int, probabilities: Float64s) -> int:
    """The likeliest arc that no path passes beside this one, as both cover the same place."""
    covers = (dataset.starts < dataset.ends[arc]) & (dataset.ends > dataset.starts[arc])
    covers[arc] = False
    if not covers.any():
        raise UnsupportedError(f"every path passes arc {arc}, there is none to compare it with")
    return int(np.argmax(np.where(covers, probabilities, -1.0)))


def _feature_parts(
    ask: EncodedInput, weights: Float64s, dataset: LatticeDataset, arc: int, against: int
) -> list[ExplanationPart]:
    """The features of both arcs; what both have is one part."""
    outcomes = ask.model.potentials.outcomes(dataset)
    sums: dict[str, float] = {}
    for which, sign in ((arc, 1.0), (against, -1.0)):
        if outcomes[which] < 0:
            continue  # a label that training has not seen
        coefficients = np.zeros(ask.model.potentials.feature_map.n_labels)
        coefficients[outcomes[which]] = sign
        for name, value, _ in feature_parts(ask, weights, which, coefficients):
            sums[name] = sums.get(name, 0.0) + value
    found = [ExplanationPart(name, value, "feature") for name, value in sums.items() if value]
    found.sort(key=lambda part: -abs(part.value))
    return found
