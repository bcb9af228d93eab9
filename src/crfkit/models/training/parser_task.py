"""What is particular to training a parser: trees to learn from, and metrics of trees."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s
from crfkit.data import Sentence
from crfkit.errors import ArgumentError, EmptyDataError, TreeError
from crfkit.evaluation import TREE_METRICS, as_score, evaluate_trees
from crfkit.features import (
    ArcMap,
    KnownTrees,
    Treebank,
    check_sentences,
    check_trees,
    known_trees,
    labels_of,
    lift_crossing_arcs,
)
from crfkit.models.checks import read_sample_weight
from crfkit.models.parser_model import ParserModel
from crfkit.models.settings import PARSER_OPTIMIZER, ParserSettings
from crfkit.models.training.data_warnings import filled_shares
from crfkit.models.training.fingerprint import Fingerprint
from crfkit.models.training.progress import Report, count_of
from crfkit.models.training.pruning import PROJECTIVE, TrainingTrees, choose_structure, train_pruner
from crfkit.models.training.train import Plan
from crfkit.objective import Objective
from crfkit.optimizers import Choice

TreeMetric = str | Callable[[Sequence[Sentence], Sequence[Sentence]], float] | None


@dataclass(frozen=True)
class ParserTask:
    """Sentences with trees, and the settings of the parser that is to be trained on them."""

    settings: ParserSettings
    given: Any
    sample_weight: npt.ArrayLike | None = None

    @property
    def sequences(self) -> str:
        """How many sentences there are, for people."""
        return count_of(self.given, "sentences")

    def check(self, plan: Plan[Any]) -> None:
        """Refuse a metric that is none."""
        check_metric(plan.metric)

    def encode(self, plan: Plan[Any], n_threads: int) -> "EncodedTrees":
        """The treebank in numbers, and which features have weights."""
        sentences = check_sentences(self.given)
        check_trees(sentences, single_root=self.settings.single_root)
        labels = labels_of(sentences)
        if not labels:
            raise EmptyDataError(
                f"{_name_data('sentences', sentences)}: no word has a label, expected trees to learn from"
            )
        weights = read_sample_weight(self.sample_weight, len(sentences))
        columns = self.settings.columns
        treebank = self.settings.encode(sentences)
        trees = known_trees(sentences, labels)
        if not (trees.heads >= 0).any():
            raise EmptyDataError(
                f"{_name_data('sentences', sentences)}: no word has a head, expected trees to learn from"
            )
        encoded = TrainingTrees(treebank, trees, tuple(labels), weights)
        structure, reason = choose_structure(self.settings, encoded)
        pruner = None
        if structure == PROJECTIVE or self.settings.order > 1:
            Report(plan.verbose).stage(f"{reason}; a first-order model that prunes arcs")
            pruner = train_pruner(self.settings, encoded, n_threads)
            if structure == PROJECTIVE:
                trees = lift_crossing_arcs(treebank, trees)
        arc_map = ArcMap.learn(treebank, trees, labels, self.settings.min_count, self.settings.order)
        model = ParserModel(arc_map, filled_shares(sentences, columns), structure, reason, pruner)
        dev = None if plan.dev is None else check_sentences(plan.dev, "dev")
        return EncodedTrees(self.settings, model, sentences, treebank, trees, weights, dev, plan.metric)


@dataclass(frozen=True)
class EncodedTrees:
    """Training sentences in numbers."""

    settings: ParserSettings
    model: ParserModel
    sentences: list[Sentence]
    treebank: Treebank
    trees: KnownTrees
    sample_weight: Float64s | None  # [N]
    dev: list[Sentence] | None
    metric: TreeMetric

    @property
    def labels(self) -> str:
        """How many there are, for people."""
        return f"{len(self.model.arc_map.labels):,} relations"

    def objective(self, n_threads: int, start: Float64s | None) -> Objective:
        """What training minimises."""
        single_root, pruner = self.settings.single_root, self.model.pruner
        if pruner is None:
            loss = self.model.arc_map.loss(
                self.treebank,
                self.trees,
                sample_weight=self.sample_weight,
                single_root=single_root,
                n_threads=n_threads,
            )
        else:
            candidates = pruner.candidates(
                self.treebank, self.trees, single_root=single_root, n_threads=n_threads
            )
            with _naming_sentences(self.sentences):
                loss = self.model.arc_map.second_order_loss(
                    self.treebank,
                    self.trees,
                    candidates,
                    projective=self.model.structure == PROJECTIVE,
                    sample_weight=self.sample_weight,
                    single_root=single_root,
                    n_threads=n_threads,
                )
        return Objective(loss, l1=self.settings.l1, l2=self.settings.l2)

    def choose(self) -> Choice:
        """The optimizer that most likely is good after few passes."""
        return Choice(PARSER_OPTIMIZER, "AdaGrad: good weights after few passes over the trees")

    def dev_score(self, n_threads: int) -> Callable[[Float64s], float] | None:
        """The score of weights on held-out sentences, if there are such."""
        if self.dev is None:
            return None
        dev, model, settings = self.dev, self.model, self.settings
        check_trees(dev, single_root=False)
        treebank = settings.encode(dev)
        if not right_words(dev, model.arc_map.labels).counted.any():
            raise EmptyDataError(
                f"{_name_data('dev', dev)}: no word has a head and a label, expected trees to compare with"
            )
        measure = tree_measure(self.metric, dev, model.arc_map.labels)

        def score(weights: Float64s) -> float:
            parser = model.parser(weights, single_root=settings.single_root)
            heads, labels = parser.decode(
                treebank, minimum_risk=settings.decode == "mbr", n_threads=n_threads
            )
            return measure(heads, labels)

        return score

    def fingerprint(self) -> dict[str, str]:
        """Of the sentences."""
        dev = self.dev
        return {
            "data": _fingerprint(self.sentences, self.sample_weight),
            "dev": "none" if dev is None else f"{len(dev)} sentences",
            "dev data": "none" if dev is None else _fingerprint(dev),
        }


@contextmanager
def _naming_sentences(sentences: Sequence[Sentence]) -> Iterator[None]:
    """Say file and line for "sentence 3: …"."""
    try:
        yield
    except ValueError as error:
        found = re.fullmatch(r"sentence (\d+): (.*)", str(error))
        if found is None:
            raise
        raise TreeError(f"{sentences[int(found[1])].place(1)}: {found[2]}") from None


def _fingerprint(sentences: Sequence[Sentence], sample_weight: Float64s | None = None) -> str:
    """Of words with their heads and labels."""
    digest = Fingerprint().add(sample_weight)
    for sentence in sentences:
        digest.add([str(part) for word in sentence.words for part in word])
    return digest.hexdigest()


def check_metric(metric: TreeMetric) -> None:
    """Refuse a metric that is neither a function nor one of `TREE_METRICS`."""
    if metric is not None and not callable(metric) and metric not in TREE_METRICS:
        raise ArgumentError(f"metric is {metric!r}, expected a function or one of {', '.join(TREE_METRICS)}")


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


def _name_data(what: str, sentences: Sequence[Sentence]) -> str:
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
