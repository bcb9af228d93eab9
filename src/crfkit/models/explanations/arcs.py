"""Why a word has its head and not another one: `Parser.explain_arc`.

With Z(h) the sum over the trees in which word m has head h, and E_h the mean over these,

    log p(h → m) − log p(g → m) = log Z(h) − log Z(g)
    log Z(h) = features + labels + siblings + grandparents + rest

    features       Σ_f w_f of the features of the arc h → m
    labels         log Σ_r exp(score of label r of the arc)
    siblings       E_h[scores of m with the dependents of h beside it], of order 2
    grandparents   E_h[scores of m with the head of h, and of the dependents of m with h], of order 2
    rest           what the other arcs of the tree add
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.features import ARC_TEMPLATES, Treebank
from crfkit.inference import SecondOrderParser, TreeParser
from crfkit.models.explanations.explanation import Explanation, ExplanationPart

_ROUNDING = 1e-12
_UNCERTAIN = 1e-200  # probabilities below are computed as log Z(h) − log Z


class _Head(NamedTuple):
    """The trees in which a word has a given head."""

    log_probability: float
    siblings: float
    grandparents: float


def explain_arc(
    parser: TreeParser | SecondOrderParser,
    treebank: Treebank,
    labels: list[str],
    dependent: int,
    head: int | None,
    against: int | None,
) -> Explanation:
    """The explanation of the head of a word of the only sentence of `treebank`; words count from 1, 0 is the root."""
    n_words = int(treebank.sentence_ptr[-1])
    dependent = _read_word("dependent", dependent, 1, n_words)
    if n_words < 2:
        raise UnsupportedError("a sentence of one word has one tree, there is no head to compare with")
    column = parser.marginals(treebank)[0][:, dependent]  # [T + 1] P(h → m)
    first, second = _choose(column, dependent, n_words, head, against)
    heads = _heads(parser, treebank, dependent, [first, second], column)
    log_odds = _odds(heads, dependent, first, second)
    if math.isinf(log_odds):
        impossible = first if log_odds < 0 else second
        reason = f"no tree that the parser considers has the head {impossible}"
        parts = [ExplanationPart(reason, log_odds, "constraint")]
    else:
        given = [parser.explain_arc(treebank, 0, h, dependent) for h in (first, second)]
        parts = list(_parts(given, heads, labels, log_odds))
    odds = math.exp(heads[0].log_probability), math.exp(heads[1].log_probability), log_odds
    return Explanation("arc", dependent, dependent + 1, first, second, *odds, tuple(parts))


def _read_word(name: str, word: Any, least: int, most: int) -> int:
    if not isinstance(word, int | np.integer) or isinstance(word, bool) or not least <= word <= most:
        raise ArgumentError(f"{name} is {word!r}, expected the number of a word, from {least} to {most}")
    return int(word)


def _choose(
    column: Float64s, dependent: int, n_words: int, head: int | None, against: int | None
) -> tuple[int, int]:
    """The heads that are given, or the likeliest one and the likeliest other one."""
    given = {"head": head, "against": against}
    for name, word in given.items():
        if word is not None and _read_word(name, word, 0, n_words) == dependent:
            raise ArgumentError(f"{name} is {word}, which is the dependent itself")
    if head is not None and head == against:
        raise ArgumentError(f"head and against are both {head}, expected two words")
    order = [h for h in np.argsort(-column, kind="stable").tolist() if h != dependent]
    first = next(h for h in order if h != against) if head is None else int(head)
    second = next(h for h in order if h != first) if against is None else int(against)
    return first, second


def _heads(
    parser: TreeParser | SecondOrderParser,
    treebank: Treebank,
    dependent: int,
    heads: list[int],
    column: Float64s,
) -> list[_Head]:
    """log p(h → m) for each head, and what parts of second order add."""
    if isinstance(parser, SecondOrderParser):
        found = parser.explain_heads(treebank, 0, dependent, np.array(heads, np.int32))
        return [_Head(min(log_p, 0.0), *parts) for log_p, *parts in found]
    if all(column[h] > _UNCERTAIN for h in heads):
        return [_Head(math.log(min(column[h], 1.0)), 0.0, 0.0) for h in heads]
    unknown = np.full(int(treebank.sentence_ptr[-1]), -1, np.int32)
    log_z = float(parser.log_partitions(treebank)[0])
    logs = []
    for h in heads:
        known = unknown.copy()
        known[dependent - 1] = h
        logs.append(float(parser.log_partitions(treebank, known, unknown)[0]) - log_z)
    return [_Head(min(log_p, 0.0), 0.0, 0.0) for log_p in logs]


def _odds(heads: list[_Head], dependent: int, first: int, second: int) -> float:
    a, b = (head.log_probability for head in heads)
    if a == b == -math.inf:
        raise ArgumentError(f"word {dependent} can have neither the head {first} nor {second}")
    return a - b


def _parts(
    given: list[tuple[Any, Float64s, Float64s]], heads: list[_Head], labels: list[str], log_odds: float
) -> Iterator[ExplanationPart]:
    (numbers, values, scores), (other_numbers, other_values, other_scores) = given
    features: dict[int, float] = dict(zip(numbers.tolist(), values.tolist(), strict=True))
    for number, value in zip(other_numbers.tolist(), other_values.tolist(), strict=True):
        features[number] = features.get(number, 0.0) - value
    found = [
        ExplanationPart(ARC_TEMPLATES[number], value, "feature")
        for number, value in features.items()
        if value
    ]
    found.sort(key=lambda part: -abs(part.value))
    relation, other = (labels[int(np.argmax(some))] for some in (scores, other_scores))
    a, b = heads
    for name, value, group in (
        (
            f"relation {relation}, not {other}",
            float(np.logaddexp.reduce(scores) - np.logaddexp.reduce(other_scores)),
            "relation",
        ),
        ("siblings", a.siblings - b.siblings, "sibling"),
        ("grandparents and grandchildren", a.grandparents - b.grandparents, "grandparent"),
    ):
        if abs(value) > _ROUNDING:
            found.append(ExplanationPart(name, value, group))
    rest = log_odds - math.fsum(part.value for part in found)
    if abs(rest) > _ROUNDING:
        found.append(ExplanationPart("what the other arcs of the tree add", rest, "tree"))
    yield from found
