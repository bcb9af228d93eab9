"""What is particular to training a CRF."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.counts import check_count
from crfkit.errors import UnsavableError, UnsupportedError
from crfkit.evaluation import read_metric
from crfkit.features import (
    SHARD_SIZE,
    CostFeatures,
    Costs,
    Dataset,
    FeatureMap,
    MergedFeatures,
    check_costs,
    fix_margin,
    read_costs,
    with_margin_features,
)
from crfkit.models.chain_model import ChainModel
from crfkit.models.checks import check_dev, check_optimizer, read_sample_weight
from crfkit.models.constraints import warn_of_skipped, without_labels
from crfkit.models.decoding import find_decoding
from crfkit.models.potentials import FeaturePotentials, TrainingData
from crfkit.models.settings import CRFSettings
from crfkit.models.training.data_warnings import warn_of_tag_dictionary, warn_of_training_data
from crfkit.models.training.dev_score import make_dev_score
from crfkit.models.training.fingerprint import Fingerprint, NoFingerprintError
from crfkit.models.training.merged_objective import choose_objective
from crfkit.models.training.progress import count_of
from crfkit.models.training.sharded_data import ShardedData, TrainingShards
from crfkit.models.training.train import Plan
from crfkit.models.training.training_set import Examples, TrainingInput, check_labels_given
from crfkit.models.warning_types import UnsavableModel
from crfkit.objective import Loss, Objective
from crfkit.optimizers import Choice, choose

MakeLoss = Callable[[TrainingShards, FeaturePotentials, int], Loss]


def here(shards: TrainingShards, potentials: FeaturePotentials, n_threads: int) -> Loss:
    """The loss of training data, computed by this process."""
    return shards.loss(potentials, n_threads)


"""The loss of training data with the weights of potentials, by so many threads."""


def counts_mistakes(settings: CRFSettings) -> bool:
    """Whether the optimizer steps after mistakes, with no objective to which costs could be added."""
    return "mistakes" in getattr(check_optimizer(settings.optimizer, settings.l1), "needs", ())


def check_structure(settings: CRFSettings, given: str) -> None:
    """Refuse what knows no costs."""
    if settings.functions is not None or not settings.kind.find_potentials(settings).labels_positions:
        what = "feature functions have" if settings.functions is not None else f"{settings.kind.written} has"
        raise UnsupportedError(f"{given}, but {what} none; expected features of positions")


@dataclass(frozen=True)
class CRFTask:
    """Sequences with labels, and the settings of the CRF that is to be trained on them."""

    settings: CRFSettings
    examples: Examples
    extend: bool = False  # keep all that the model to begin with knows: `partial_fit`
    shard_size: int = SHARD_SIZE  # positions of a shard
    costs: Costs | None = None  # of mistakes
    make_loss: MakeLoss = here  # by the processors of this machine, or others

    @property
    def sequences(self) -> str:
        """How many there are, for people."""
        return count_of(self.examples.X, "sequences")

    def check(self, plan: Plan[Any]) -> None:
        """Refuse a dev set that is not a pair (X, y), and a metric that is none."""
        check_count("shard_size", self.shard_size)
        check_dev(plan.dev)
        read_metric(plan.metric)
        if self.costs is not None:
            check_costs(self.costs)
            if counts_mistakes(self.settings):
                raise UnsupportedError(
                    f"costs were given, but optimizer is {self.settings.optimizer!r}, which steps after mistakes; expected "
                    "one that minimises the objective, such as crfkit.LBFGS(…)"
                )
        if self.costs is not None or self.settings.margin:
            check_structure(self.settings, "margin is not 0" if self.costs is None else "costs were given")

    def encode(self, plan: Plan[Any], n_threads: int) -> "EncodedSequences":
        """The training set in numbers, and warnings about it."""
        settings, examples = self.settings, self.examples
        check_labels_given(examples.y)
        base = plan.start.model if self.extend and plan.start is not None else None
        X, template = settings.fit_template(examples.X)
        if base is not None:
            template = base.potentials.encoder.template
        given = TrainingInput(X, examples.y, examples.allowed, settings, template, n_threads, base)
        found = given.learn()
        if reason := found.model.find_unsavable():
            warnings.warn(f"this model cannot be saved or pickled: {reason}", UnsavableModel, stacklevel=5)
        warn_of_training_data(found.model, settings.least_count(1), stacklevel=5)
        warn_of_tag_dictionary(settings.tag_dictionary, found.model.labels.written.classes, stacklevel=5)
        kept = found.kept
        if not kept.all():
            warn_of_skipped(int(np.count_nonzero(~kept)), len(kept), stacklevel=5)
        dev = plan.dev
        if dev is not None and len(dev) > 2:
            dev = (*dev[:2], without_labels(dev[2], found.gone))
        weights = read_sample_weight(examples.sample_weight, len(kept), kept)
        data = ShardedData.cut(found.data, weights, self.shard_size)
        costs = None if self.costs is None else read_costs(self.costs, found.model.labels.written.classes)
        costs = None if costs is None else found.model.labels.spread_costs(costs)
        own = (self.extend, costs, self.make_loss)
        return EncodedSequences(settings, found.model, dev, plan.metric, data, *own)


@dataclass(frozen=True)
class EncodedChains(ABC):
    """Training sequences in numbers, wherever they are."""

    settings: CRFSettings
    model: ChainModel  # without its weights
    dev: Any
    metric: Any

    @property
    def labels(self) -> str:
        """How many there are, for people."""
        return f"{len(self.model.labels):,} labels"

    @abstractmethod
    def objective(self, n_threads: int, start: Float64s | None) -> Objective:
        """What training minimises."""

    @abstractmethod
    def fingerprint(self) -> dict[str, str]:
        """Of the data, and of what they call for."""

    def _penalty(self, name: str) -> Float64s:
        return self.model.potentials.penalty(name, getattr(self.settings, name))

    def _with_margin(self, feature_map: FeatureMap, make: Callable[[FeatureMap], Loss]) -> Loss:
        """The loss that `make` makes of this map, with the margin of the settings: the weights of right labels stay."""
        margin = 0.0 if counts_mistakes(self.settings) else float(self.settings.margin)
        if not margin:
            return make(feature_map)
        return fix_margin(make(with_margin_features(feature_map)), feature_map, margin)

    def choose(self) -> Choice:
        """The optimizer that most likely reaches the minimum first."""
        return choose(self.model.n_weights, l1=bool(self._penalty("l1").any()))

    def dev_score(self, n_threads: int) -> Callable[[Float64s], float] | None:
        """The score of weights on held-out data, if there are such."""
        if self.dev is None:
            return None
        return make_dev_score(
            self.model, self.dev, metric=self.metric, decode=self.settings.decode, n_threads=n_threads
        )

    def _dev_fingerprint(self) -> dict[str, str]:
        dev = self.dev
        if dev is None:
            return {"dev": "none", "dev data": "none"}
        return {
            "dev": f"{len(dev[1])} sequences",
            "dev data": _dev_fingerprint(self.model, *dev),
            "decode": repr(
                find_decoding(self.settings.decode, self.model.labels.written.classes)
            ),  # of the dev set
        }


@dataclass(frozen=True)
class EncodedSequences(EncodedChains):
    """Training sequences in memory."""

    sharded: ShardedData
    extend: bool
    costs: Float64s | None = None  # [L, L] of gold and predicted labels
    make_loss: MakeLoss = here

    def objective(self, n_threads: int, start: Float64s | None) -> Objective:
        """What training minimises, merged where equal features have equal weights in `start`.

        Weights that `partial_fit` has no data for are not penalised and stay as they are.
        """
        potentials, sharded = self.model.potentials, self.sharded
        data = sharded.data
        l1, l2 = self._penalty("l1"), self._penalty("l2")

        def loss(merged: MergedFeatures | None) -> Loss:
            features = potentials.feature_map if merged is None else merged.feature_map
            return self._loss(features, data.dataset if merged is None else merged.dataset, n_threads)

        if self.extend:
            touched = potentials.find_touched(data)
            l1, l2 = np.where(touched, l1, 0.0), np.where(touched, l2, 0.0)
        if start is None or sharded.n_shards > 1:  # which features are equal is seen in all data together
            return Objective(loss(None), l1=l1, l2=l2, features=potentials.number_features)
        return choose_objective(loss, potentials.merge(data), start, l1=l1, l2=l2)

    def _loss(self, feature_map: FeatureMap, dataset: Dataset, n_threads: int) -> Loss:
        """That of the training data, given with their features as this map has them, with costs."""
        data = self.sharded.data

        def make(feature_map: FeatureMap, dataset: Dataset = dataset) -> Loss:
            sharded = self.sharded._replace(data=data._replace(dataset=dataset))
            return self.make_loss(sharded, replace(self.model.potentials, feature_map=feature_map), n_threads)

        if self.costs is None:
            return self._with_margin(feature_map, make)
        costs = CostFeatures.of(self.costs, feature_map, dataset, data.annotation)
        return costs.fix(make(costs.feature_map, costs.dataset))

    def fingerprint(self) -> dict[str, str]:
        """Of the data, and of what they call for."""
        sharded = self.sharded
        shards = {} if sharded.n_shards == 1 else {"shards": repr(sharded.shard_ptr.tolist())}
        return shards | {
            "data": _fingerprint(self.model, sharded.data, sharded.sample_weight, self.costs),
            **self._dev_fingerprint(),
        }


def _fingerprint(
    model: ChainModel, data: TrainingData, sample_weight: Float64s | None, costs: Float64s | None
) -> str:
    """The training data of a chain, and what they call for."""
    potentials = model.potentials
    names = (
        potentials.encoder.vocabulary.to_bytes(),
        potentials.encoder.arc_vocabulary.to_bytes(),
        model.labels.classes,
        list(potentials.output_names),
    )
    dataset = replace(data.dataset, inputs=None)
    digest = Fingerprint()
    try:
        for thing in (dataset, data.annotation, sample_weight, names, potentials.feature_map):
            digest.add(thing)
        for thing in potentials.list_compared(data):
            digest.add(thing)
        if costs is not None:
            digest.add(costs)
    except NoFingerprintError as error:
        raise UnsavableError(
            f"the training data have {error}, which cannot be compared with that of another run"
        ) from None
    return digest.hexdigest()


def _dev_fingerprint(model: ChainModel, X: Any, y: Any, allowed: Any = None) -> str:
    """A dev set as a chain sees it, with its labels."""
    dataset = model.encode(X, allowed)
    digest = Fingerprint().add(replace(dataset, inputs=None))
    for thing in model.potentials.list_compared_input(dataset):
        digest.add(thing)
    numbers: dict[Any, int] = {}  # entries of y by their first occurrence
    for labels in model.read_gold(y, dataset, "dev "):
        entries = [frozenset(entry) if isinstance(entry, set) else entry for entry in labels]
        digest.add(np.array([numbers.setdefault(entry, len(numbers)) for entry in entries], dtype=np.int64))
    return digest.add(list(numbers)).hexdigest()
