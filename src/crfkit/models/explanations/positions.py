"""Why a position has its label and not another one: `CRF.explain`.

With Z(a) the sum over the label sequences in which position i has label a, E_a the mean over these, and F(a) the sum over
their beginnings, positions 0 … i:

    log p(y_i = a) − log p(y_i = b) = log Z(a) − log Z(b)
    log Z(a) = own + before + after + left + right

    own      E_a[scores of the position itself]: its features, Σ_f w[f, a] · value, the start and the end
    before   E_a[scores of the transition into the position]
    after    E_a[scores of the transition out of it]
    left     log F(a) − own − before           what the positions before add
    right    log Z(a) − log F(a) − after       what the positions behind add

Where labels have states, a and b are their likeliest ones here, and one more part stands for the others.

The native core computes these for both labels (core/paths/label_context.hpp); here they get their names. A transition is
named by the likeliest neighbours of both labels; its value is the difference of the two means.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError, LabelError, UnsupportedError
from crfkit.inference import LabelContext
from crfkit.models.encoded_input import EncodedInput
from crfkit.models.explanations.compared_labels import compare_labels, other_states
from crfkit.models.explanations.explanation import ROUNDING, Explanation, ExplanationPart
from crfkit.structures import END, START

LEFT, RIGHT = "what comes from the left", "what comes from the right"


def explain_position(ask: EncodedInput, weights: Float64s, i: int, label: Any, against: Any) -> Explanation:
    """The explanation of position i of the only sequence of `ask`."""
    names = ask.model.labels.names
    i = read_position("i", i, int(ask.ptr[-1]))
    check_explainable(ask)
    with ask.explain_impossible():
        one, other = compare_labels(ask, i, label, against)
    a, b, given_a, given_b = one.id, other.id, one.context, other.context
    difference = label_difference(len(names), a, b)
    features = feature_parts(ask, weights, i, difference)
    log_p, log_q = one.log_probability, other.log_probability
    if -math.inf in (log_p, log_q):
        if log_p == log_q:
            raise LabelError(f"position {i} can have neither {names[a]!r} nor {names[b]!r}")
        log_odds = math.inf if log_p > log_q else -math.inf
        reason = _constraint(ask, i, b if log_p > log_q else a)
        parts = [ExplanationPart(reason, log_odds, "constraint"), *features]
    else:
        log_odds = log_p - log_q
        rest = given_a.own - given_b.own - math.fsum(part[1] for part in features)
        parts = [*features, *own_parts(ask, weights, i, difference, rest)]
        parts += _context_parts(names, a, b, given_a, given_b)
        parts += other_states(names, one, other)
    odds = math.exp(log_p), math.exp(log_q), log_odds
    return Explanation("label", i, i + 1, names[a], names[b], *odds, tuple(parts))


def read_position(name: str, i: Any, n_positions: int) -> int:
    """A position of a sequence, counted from the end if it is negative."""
    if not isinstance(i, int | np.integer) or isinstance(i, bool) or not -n_positions <= i < n_positions:
        raise ArgumentError(f"{name} is {i!r}, expected a position of a sequence of {n_positions}")
    return int(i) % n_positions


def check_explainable(ask: EncodedInput) -> None:
    """Refuse models whose positions have no labels, or no features of their own."""
    potentials = ask.model.potentials
    if not potentials.labels_positions:
        raise UnsupportedError("explain is for labels of positions, the model has outputs of another kind")
    if potentials.local:
        raise UnsupportedError("explain is for models that are normalised over whole sequences")
    if len(ask.model.labels) < 2:
        raise UnsupportedError("the model has one label, there is none to compare it with")
    ask.model.check_marginals()


def label_difference(n_labels: int, a: int, b: int) -> Float64s:
    """Coefficients [L] of score(a) − score(b)."""
    found = np.zeros(n_labels)
    found[a] = 1.0
    found[b] = -1.0
    return found


def feature_parts(
    ask: EncodedInput, weights: Float64s, i: int, coefficients: Float64s, place: str = ""
) -> list[ExplanationPart]:
    """What the features of position i add to Σ_b coefficients[b] · score(b), those that add 0 apart; largest first."""
    potentials, dataset = ask.model.potentials, ask.dataset
    begin, end = dataset.states.position_ptr[i : i + 2].tolist()
    values = dataset.states.values
    feature_map = potentials.feature_map
    names, scores = feature_map.layout.feature_scores(
        weights,
        potentials.encoder.vocabulary,
        dataset.states.ids[begin:end],
        None if values is None else values[begin:end],
        coefficients,
    )
    if place:
        names = [name + place for name in names]
    found = [*map(ExplanationPart._make, zip(names, scores, repeat("feature")))]
    for block in feature_map.dense:
        row = dataset.dense[block][i]
        first = feature_map.dense_begin(block)
        table = weights[first : first + len(row) * feature_map.n_labels].reshape(len(row), -1)
        columns = zip((row * (table @ coefficients)).tolist(), range(len(row)), strict=True)
        found += [ExplanationPart(f"{block}[{k}]{place}", score, "feature") for score, k in columns if score]
    for name, score in potentials.function_scores(dataset, i, coefficients, weights):
        found.append(ExplanationPart(name + place, score, "feature"))
    if len(found) > len(names):
        found.sort(key=lambda part: -abs(part.value))
    return found


def own_parts(
    ask: EncodedInput, weights: Float64s, i: int, coefficients: Float64s, rest: float, place: str = ""
) -> Iterator[ExplanationPart]:
    """Of Σ_b coefficients[b] · score(b) at position i what is not features, `rest`: the start, the end, and all else."""
    if abs(rest) <= ROUNDING:
        return
    feature_map, names = ask.model.potentials.feature_map, ask.model.labels.names
    L = feature_map.n_labels
    label = names[int(np.argmax(coefficients))]
    ends = []
    if i == 0:
        ends.append(("start", f"start → {label}", feature_map.arc_before, feature_map.arc_after))
    if i + 1 == ask.ptr[-1]:
        ends.append(("end", f"{label} → end", feature_map.arc_after, feature_map.arc_before))
    for group, name, outside, inside in ends if ask.model.potentials.ends_at_positions else ():
        at = np.flatnonzero((outside == L) & (inside < L))
        value = float(weights[feature_map.arcs_begin + at] @ coefficients[inside[at]])
        if value:
            rest -= value
            yield ExplanationPart(name, value, group)
    if abs(rest) > ROUNDING:
        yield ExplanationPart(ask.model.potentials.own_scores + place, rest, "rest")


def _context_parts(
    names: Sequence[Hashable], a: int, b: int, given_a: LabelContext, given_b: LabelContext
) -> Iterator[ExplanationPart]:
    """Transitions, named by the likeliest neighbours, and what comes from the left and from the right."""

    def name(of: LabelContext, label: int) -> tuple[str, str]:
        here = names[label]
        before, after = of.label_before, of.label_after
        return (
            f"{names[before] if before >= 0 else START} → {here}",
            f"{here} → {names[after] if after >= 0 else END}",
        )

    (into_a, out_of_a), (into_b, out_of_b) = name(given_a, a), name(given_b, b)
    for text, value, group in (
        (f"{into_a}, not {into_b}", given_a.before - given_b.before, "transition"),
        (f"{out_of_a}, not {out_of_b}", given_a.after - given_b.after, "transition"),
        (LEFT, given_a.left - given_b.left, "left"),
        (RIGHT, given_a.right - given_b.right, "right"),
    ):
        if abs(value) > ROUNDING:
            yield ExplanationPart(text, value, group)


def _constraint(ask: EncodedInput, i: int, forbidden: int) -> str:
    """Why a label is impossible at a position."""
    name, allowed = ask.model.labels.names[forbidden], ask.allowed
    if allowed is not None:
        begin, end = allowed.position_ptr[i : i + 2].tolist()
        if begin < end and forbidden not in allowed.labels[begin:end]:
            return f"{name} is not among the labels allowed here"
    return f"no allowed label sequence has {name} here"
