"""From sentences with trees to the weights of a parser: what `Parser.fit` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data import InputError, Sentence
from crfkit.evaluation import TREE_METRICS, as_score, evaluate_trees
from crfkit.features import (
    ArcMap,
    KnownTrees,
    Treebank,
    check_trees,
    checked_sentences,
    known_trees,
    labels_of,
)
from crfkit.inference import TreeParser
from crfkit.models.training import parameters
from crfkit.models.training.data_warnings import FilledShares, filled_shares
from crfkit.models.training.interruption import terminable
from crfkit.models.training.progress import ProgressCallback, Report, count_of
from crfkit.models.training.training import given_optimizer
from crfkit.objective import Objective
from crfkit.optimizers import AdaGrad, Choice, History, StopReason, Watch

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
TreeMetric = str | Callable[[Sequence[Sentence], Sequence[Sentence]], float] | None

DECODERS = ("best", "mbr")
DEFAULT_OPTIMIZER = AdaGrad(max_iterations=10, rate=0.1)


class ParserModel(NamedTuple):
    """A trained parser, apart from its settings."""

    arc_map: ArcMap
    weights: Float64s  # [D]
    columns: FilledShares  # what the words of the training sentences had


class TrainedParser(NamedTuple):
    """What a training gives."""

    model: ParserModel
    history: History
    n_iter: int
    reason: StopReason
    choice: Choice


@dataclass(frozen=True)
class ParserPlan:
    """How to train, as `Parser.fit` is told."""

    dev: Any = None
    metric: TreeMetric = None
    patience: int | None = None
    callback: ProgressCallback | None = None
    time_budget: float | None = None
    verbose: bool | int = False

    def check(self) -> None:
        """Refuse what has no meaning, before any work."""
        check_metric(self.metric)
        for name, value in (("metric", self.metric), ("patience", self.patience)):
            if value is not None and self.dev is None:
                raise InputError(f"{name} was given without dev, the held-out sentences that it is about")
        if self.patience is not None:
            parameters.check_count("patience", self.patience)
        parameters.check_time_budget(self.time_budget)


def check_parameters(params: Mapping[str, Any]) -> None:
    """Refuse parameters that no parser can be trained with."""
    parameters.checked_optimizer(params["optimizer"], params["l1"])
    for name in ("l1", "l2"):
        value = params[name]
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float | np.number)
            or not 0 <= value < 1e300
        ):
            raise InputError(f"{name} is {value!r}, expected a number from 0 on")
    if not isinstance(params["single_root"], bool | np.bool_):
        raise InputError(f"single_root is {params['single_root']!r}, expected True or False")
    if params["decode"] not in DECODERS:
        raise InputError(f"decode is {params['decode']!r}, expected {' or '.join(map(repr, DECODERS))}")
    parameters.check_count("min_count", params["min_count"])
    parameters.thread_count(params["n_threads"])


def train(
    params: Mapping[str, Any], sentences: Any, sample_weight: npt.ArrayLike | None, plan: ParserPlan
) -> TrainedParser:
    """Learn which features there are, minimise the objective, keep the best weights."""
    check_parameters(params)
    plan.check()
    report = Report(plan.verbose)
    n_threads = parameters.thread_count(params["n_threads"])
    report.stage(f"encoding {count_of(sentences, 'sentences')}")
    given = checked_sentences(sentences)
    check_trees(given, single_root=params["single_root"])
    labels = labels_of(given)
    if not labels:
        raise InputError(f"{_named('sentences', given)}: no word has a label, expected trees to learn from")
    weights = parameters.checked_sample_weight(sample_weight, len(given))
    treebank, trees = Treebank(given), known_trees(given, labels)
    if not (trees.heads >= 0).any():
        raise InputError(f"{_named('sentences', given)}: no word has a head, expected trees to learn from")
    columns = filled_shares(given)
    arc_map = ArcMap.learn(treebank, trees, labels, params["min_count"])
    report.stage(f"minimising over {arc_map.layout.n_weights:,} weights, for {len(labels):,} relations")
    choice = given_optimizer(params["optimizer"]) or Choice(
        DEFAULT_OPTIMIZER, "AdaGrad: good weights after few passes over the trees"
    )
    loss = arc_map.loss(
        treebank, trees, sample_weight=weights, single_root=params["single_root"], n_threads=n_threads
    )
    objective = Objective(loss, l1=params["l1"], l2=params["l2"])
    score = None if plan.dev is None else _dev_score(plan.dev, plan.metric, arc_map, params, n_threads)
    with terminable():
        outcome = choice.optimizer.minimize(
            objective,
            np.zeros(objective.n_weights),
            callback=report.callback(plan.callback),
            n_threads=n_threads,
            watch=Watch(score=score, patience=plan.patience, seconds=plan.time_budget),
        )
    report.end(outcome)
    found, n_iter = outcome.weights, len(outcome.history) - 1
    if outcome.best is not None:
        found, n_iter = outcome.best.weights, outcome.best.iteration
    if outcome.note:
        choice = choice._replace(reason=f"{choice.reason}; {outcome.note}")
    model = ParserModel(*arc_map.without_zeros(np.asarray(found)), columns)
    return TrainedParser(model, outcome.history, max(n_iter, 0), outcome.reason, choice)


def _dev_score(
    dev: Any, metric: TreeMetric, arc_map: ArcMap, params: Mapping[str, Any], n_threads: int
) -> Callable[[Float64s], float]:
    """The score of weights on held-out sentences."""
    sentences = checked_sentences(dev, "dev")
    check_trees(sentences, single_root=False)
    treebank = Treebank(sentences)
    if not right_words(sentences, arc_map.labels).counted.any():
        raise InputError(
            f"{_named('dev', sentences)}: no word has a head and a label, expected trees to compare with"
        )
    measure = tree_measure(metric, sentences, arc_map.labels)

    def score(weights: Float64s) -> float:
        parser = TreeParser(arc_map.layout, weights, single_root=params["single_root"])
        heads, labels = parser.decode(
            treebank.core, minimum_risk=params["decode"] == "mbr", n_threads=n_threads
        )
        return measure(heads, labels)

    return score


def check_metric(metric: TreeMetric) -> None:
    """Refuse a metric that is neither a function nor one of `TREE_METRICS`."""
    if metric is not None and not callable(metric) and metric not in TREE_METRICS:
        raise InputError(f"metric is {metric!r}, expected a function or one of {', '.join(TREE_METRICS)}")


def tree_measure(
    metric: TreeMetric, gold: Sequence[Sentence], names: Sequence[str]
) -> Callable[[Int32s, Int32s], float]:
    """A metric as a function of predicted heads and labels [T]; None is LAS.

    LAS alone knows what to do with words whose head or label is unknown: they do not count.
    """
    if metric is None or metric == "las":
        return right_words(gold, names).share

    def measure(heads: Int32s, labels: Int32s) -> float:
        predicted = with_trees(gold, heads, labels, names)
        if callable(metric):
            return as_score(metric(gold, predicted))
        return float(getattr(evaluate_trees(gold, predicted), str(metric)))

    return measure


def with_trees(
    sentences: Sequence[Sentence], heads: Int32s, labels: Int32s, names: Sequence[str]
) -> list[Sentence]:
    """The sentences with other heads and labels [T], sentence after sentence."""
    arcs = zip(heads.tolist(), labels.tolist(), strict=True)  # each sentence takes as many as it has words
    return [
        replace(
            sentence,
            words=[
                word._replace(head=head, deprel=names[label])
                for word, (head, label) in zip(sentence.words, arcs, strict=False)
            ],
        )
        for sentence in sentences
    ]


def _named(what: str, sentences: Sequence[Sentence]) -> str:
    """What messages call sentences: with their file, where there is one."""
    source = sentences[0].source if sentences else Sentence([]).source
    return what if source == Sentence([]).source else f"{what} ({source})"


class RightWords(NamedTuple):
    """Heads and universal labels that are known, to compare others with."""

    known: KnownTrees
    universal: npt.NDArray[np.int64]  # [R] the same number for labels that differ in their subtype only
    gold: npt.NDArray[np.int64]  # [T] number of each word's label, −1 for one that no training sentence has

    def share(self, heads: npt.NDArray[np.int32], labels: npt.NDArray[np.int32]) -> float:
        """LAS: words with the right head and the right label, subtypes apart, among those that count."""
        right = (heads == self.known.heads) & (self.universal[labels] == self.gold)
        return float(right[self.counted].mean()) if self.counted.any() else 0.0

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """[T] the words whose head and label are known, though perhaps to no training sentence."""
        found: npt.NDArray[np.bool_] = (self.known.heads >= 0) & (self.known.labels != -1)
        return found


def right_words(sentences: Sequence[Sentence], labels: Sequence[str]) -> RightWords:
    """What is right in these sentences."""
    number: dict[str, int] = {}
    universal = [number.setdefault(label.partition(":")[0], len(number)) for label in labels]
    gold = [number.get(word.deprel.partition(":")[0], -1) for one in sentences for word in one.words]
    return RightWords(
        known_trees(sentences, labels), np.array(universal, dtype=np.int64), np.array(gold, dtype=np.int64)
    )
