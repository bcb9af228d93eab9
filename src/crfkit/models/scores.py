"""Scores of label sequences, before they are normalised, as other toolkits write them."""

from collections.abc import Hashable, Sequence
from typing import Any

from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.errors import LabelError
from crfkit.models.crf import CRF
from crfkit.models.encoded_input import ScoredLabels
from crfkit.models.sequence_model import Allowed


def score_nbest(model: CRF, X: Sequence[Any], n: int, *, allowed: Allowed = None) -> list[list[ScoredLabels]]:
    """The n best label sequences of each input with their scores and log Z, best first; fewer where fewer exist."""
    return model._ask(X, allowed).find_best(check_count("n", n))


def position_scores(model: CRF, X: Sequence[Any], y: Sequence[Sequence[Hashable]]) -> list[Float64s]:
    """The score [T] of each position of the label sequences y: that of its label, and of the transition into it.

    They add up to the score of the sequence, and log p(y | x) is that less log Z. In a model that is normalised at each
    position they are log p(y_t | y_{t−1}, x).
    """
    ask = model._ask(X, None)
    annotation = ask.model.annotate(y, ask.dataset)
    if (annotation.labels < 0).any():
        raise LabelError("y has an unknown label, expected one at every position")
    ids = [annotation.labels[begin:end] for begin, end in zip(ask.ptr[:-1], ask.ptr[1:], strict=True)]
    return ask.position_scores(ids)
