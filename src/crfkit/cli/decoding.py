"""From a model and some sequences to the label sequences that `crfkit tag` writes, with what is asked for beside them."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.cli.columns import Example
from crfkit.cli.constraints import allowed_of, name_places
from crfkit.cli.output_formats import Details, LabelSequence

if TYPE_CHECKING:
    from crfkit.models import CRF


def decode_examples(
    model: "CRF", chunk: Sequence[Example], details: Details, decode: str | None = None
) -> Iterator[list[LabelSequence]]:
    """The label sequences of each input, best first, with the scores and probabilities that are asked for."""
    X = [example.inputs for example in chunk]
    allowed = allowed_of(chunk, model.classes_)
    columns = {str(label): k for k, label in enumerate(model.classes_)}
    with name_places(chunk):
        marginals: Sequence[Any] = [None] * len(chunk)
        if details.marginals or details.all_marginals or details.posterior:
            marginals = model.predict_marginals(X, allowed=allowed)
        if details.posterior:
            found = _by_marginals(model, X, marginals, details, allowed)
        elif details.nbest is None and not details.probability and not details.scores:
            predicted = model.predict(X, decode=decode, allowed=allowed)
            found = [[LabelSequence(labels)] for labels in predicted]
        else:
            found = _by_score(model, X, details, allowed)
    for best, probabilities in zip(found, marginals, strict=True):
        yield [
            answer._replace(
                labels=[*map(str, answer.labels)], rank=rank, marginals=probabilities, columns=columns
            )
            for rank, answer in enumerate(best, 1)
        ]


def _by_score(model: "CRF", X: Sequence[Any], details: Details, allowed: Any) -> list[list[LabelSequence]]:
    """The label sequences with the highest scores (Viterbi)."""
    from crfkit.models import position_scores, score_nbest

    found = [
        [LabelSequence(*answer, answer.probability) for answer in best]
        for best in score_nbest(model, X, details.nbest or 1, allowed=allowed)
    ]
    if not details.scores:
        return found
    places = [(n, rank) for n, best in enumerate(found) for rank in range(len(best))]
    scores = position_scores(model, [X[n] for n, _ in places], [found[n][rank].labels for n, rank in places])
    for (n, rank), values in zip(places, scores, strict=True):
        answer = found[n][rank]
        if model.locally_normalised_ and answer.score is not None:
            answer = answer._replace(score=math.exp(answer.score), log_partition=None)
            values = np.exp(values)
        found[n][rank] = answer._replace(scores=values)
    return found


def _by_marginals(
    model: "CRF", X: Sequence[Any], marginals: Sequence[Float64s], details: Details, allowed: Any
) -> list[list[LabelSequence]]:
    """The label sequences whose labels have the highest marginals, by their product, which is their score."""
    from crfkit.inference import k_best
    from crfkit.structures import Chain, ChainScores

    chain, classes = Chain(start=False, end=False), model.classes_
    found: list[list[LabelSequence]] = []
    for rows in marginals:
        with np.errstate(divide="ignore"):
            states = np.log(rows)
        found.append([])
        for answer in k_best(chain, ChainScores(states), details.nbest or 1):
            chosen = rows[np.arange(len(rows)), answer.output]
            labels = [classes[k] for k in answer.output.tolist()]
            found[-1].append(LabelSequence(labels, score=math.exp(answer.score), scores=chosen))
    if details.probability or details.nbest is not None:
        places = [(n, rank) for n, best in enumerate(found) for rank in range(len(best))]
        logs = model.log_probability(
            [X[n] for n, _ in places],
            [found[n][rank].labels for n, rank in places],
            allowed=None if allowed is None else [allowed[n] for n, _ in places],
        )
        for (n, rank), log_probability in zip(places, logs.tolist(), strict=True):
            found[n][rank] = found[n][rank]._replace(probability=math.exp(log_probability))
    return found
