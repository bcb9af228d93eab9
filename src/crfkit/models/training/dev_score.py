"""The score of weights on held-out data, of the labels that `predict` would give with them."""

import warnings
from collections.abc import Callable
from typing import Any

from crfkit.arrays import Float64s
from crfkit.errors import InputError, reword
from crfkit.evaluation import MetricFunction, as_score, read_metric
from crfkit.models.chain_model import ChainModel
from crfkit.models.constraints import check_possible
from crfkit.models.decoding import SPAN_DECODINGS, decode_labels, find_decoding
from crfkit.models.encoded_input import EncodedInput
from crfkit.models.kinds import read_scheme
from crfkit.models.warning_types import UnknownLabels


def make_dev_score(
    model: ChainModel, dev: Any, *, metric: str | MetricFunction | None, decode: str, n_threads: int
) -> Callable[[Float64s], float]:
    """The score on held-out data (X, y) or (X, y, allowed) as a function of the weights.

    `decode` is that of the model: "viterbi", "spans" or "auto".
    """
    X, y, allowed = (*dev, None)[:3]
    try:
        dataset = model.encode(X, allowed, n_threads)
    except InputError as error:
        raise reword(error, f"dev {error}") from None
    gold = model.read_gold(y, dataset, "dev ")
    if model.potentials.labels_positions:
        check_possible(model.chain, dataset.sequence_ptr, dataset.allowed, "dev ")
        _warn_of_unknown(model, gold)
    design = model.design(dataset, n_threads, asked_often=True)
    figure = model.figure(read_metric(metric), gold)
    decoding = find_decoding(decode, model.labels.written.classes)
    spans = read_scheme(model, None) if decoding in SPAN_DECODINGS else None

    def score(weights: Float64s) -> float:
        ask = EncodedInput(model, model.answerer(weights), design, dataset, n_threads)
        try:
            predicted = decode_labels(ask, decoding, spans)
        except ValueError as error:  # the structure has no label sequence for one of them
            raise reword(error, f"dev {error}") from None
        return as_score(figure(gold, model.convert_outputs(predicted, dataset)))

    return score


def _warn_of_unknown(model: ChainModel, gold: list[Any]) -> None:
    unknown = list(model.labels.unknown_in(gold))
    if unknown:
        n, i, label = unknown[0]
        warnings.warn(
            f"dev sequence {n}, position {i}: the label {label!r} does not occur in training; "
            f"such labels count as errors, at {len(unknown):,} position{'s' * (len(unknown) > 1)}",
            UnknownLabels,
            stacklevel=7,
        )
