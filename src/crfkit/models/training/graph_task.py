"""What is particular to training on factor graphs: the graphs of inputs, and the labels of their variables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s
from crfkit.errors import EmptyDataError, UnsupportedError
from crfkit.evaluation import as_score
from crfkit.features import (
    FactorMap,
    GraphAnswers,
    GraphInput,
    check_possible,
    graph_loss,
    learn_factors,
    read_input,
    read_outputs,
)
from crfkit.models.checks import check_dev, check_pair_lengths, read_sample_weight
from crfkit.models.graph_settings import GraphSettings
from crfkit.models.settings import DEFAULT_OPTIMIZER
from crfkit.models.training.fingerprint import Fingerprint
from crfkit.models.training.progress import count_of
from crfkit.models.training.train import Plan
from crfkit.objective import Objective
from crfkit.optimizers import Choice


class FactorModel(NamedTuple):
    """A conditional random field on factor graphs without its weights."""

    factor_map: FactorMap

    @property
    def n_weights(self) -> int:
        """D."""
        return self.factor_map.n_weights

    def transfer_weights(self, old: FactorModel, weights: Float64s) -> Float64s:
        """The weights [D] to begin with: those that another model has too, and 0."""
        return self.factor_map.transfer_weights(old.factor_map, weights)

    def find_difference(self, old: FactorModel) -> str | None:
        """Why few weights pass from another model to this one; None where that cannot be seen."""
        here, there = set(old.factor_map.features), set(self.factor_map.features)
        return None if here & there else "they have no feature of a kind of factors in common"

    def prune(self, weights: Float64s) -> tuple[FactorModel, Float64s]:
        """The same model without weights that are exactly 0, and the weights that are left."""
        factor_map, left = self.factor_map.prune(np.asarray(weights))
        return FactorModel(factor_map), left


@dataclass(frozen=True)
class GraphTask:
    """Inputs with their outputs, and the settings of the model that is to be trained on them."""

    settings: GraphSettings
    X: Any
    y: Any
    sample_weight: npt.ArrayLike | None = None

    @property
    def sequences(self) -> str:
        """How many inputs there are, for people."""
        return count_of(self.X, "graphs")

    def check(self, plan: Plan[Any]) -> None:
        """Refuse a dev set that is none."""
        check_dev(plan.dev)
        if plan.metric is not None and not callable(plan.metric):
            raise UnsupportedError(
                f"metric is {plan.metric!r}, expected a function of gold and predicted outputs"
            )

    def encode(self, plan: Plan[Any], n_threads: int) -> EncodedGraphs:
        """The graphs in numbers, and which features have weights."""
        inputs, outputs = read_pairs(self.settings, self.X, self.y)
        if not any(graph.variables for graph in inputs):
            raise EmptyDataError("X: no graph has a variable, expected graphs to learn from")
        weights = read_sample_weight(self.sample_weight, len(inputs))
        factor_map = learn_factors(
            inputs,
            outputs,
            all_configurations=self.settings.all_configurations,
            min_count=self.settings.min_count,
        )
        for number, (graph, output) in enumerate(zip(inputs, outputs, strict=True)):
            check_possible(factor_map, graph, output, number)
        dev = None if plan.dev is None else read_pairs(self.settings, *plan.dev)
        return EncodedGraphs(
            self.settings, FactorModel(factor_map), inputs, outputs, weights, dev, plan.metric
        )


@dataclass(frozen=True)
class EncodedGraphs:
    """Training data in numbers."""

    settings: GraphSettings
    model: FactorModel
    inputs: list[GraphInput]
    outputs: list[list[Any]]
    sample_weight: Float64s | None
    dev: tuple[list[GraphInput], list[list[Any]]] | None
    metric: Callable[[Any, Any], float] | None

    @property
    def labels(self) -> str:
        """How many there are, for people."""
        return ", ".join(
            f"{len(labels)} labels of {kind!r}" for kind, labels in self.model.factor_map.labels.items()
        )

    def objective(self, n_threads: int, start: Float64s | None) -> Objective:
        """What training minimises."""
        loss = graph_loss(
            self.model.factor_map,
            self.inputs,
            self.outputs,
            sample_weight=self.sample_weight,
            criterion=self.settings.objective,
            memory_limit=self.settings.memory_bytes,
            n_threads=n_threads,
        )
        return Objective(loss, l1=self.settings.l1, l2=self.settings.l2)

    def choose(self) -> Choice:
        """The optimizer for any data."""
        return Choice(DEFAULT_OPTIMIZER, "L-BFGS: the minimum, for objectives of any kind")

    def dev_score(self, n_threads: int) -> Callable[[Float64s], float] | None:
        """The score of weights on held-out data, if there are such."""
        if self.dev is None:
            return None
        (inputs, outputs), metric = self.dev, self.metric
        answers = open_answers(self.model.factor_map, inputs, self.settings, n_threads)
        gold = [
            {variable.name: value for variable, value in zip(graph.variables, output, strict=True)}
            for graph, output in zip(inputs, outputs, strict=True)
        ]

        def score(weights: Float64s) -> float:
            predicted = answers.decode(weights)
            if metric is not None:
                return as_score(metric(gold, predicted))
            return share_right(inputs, outputs, predicted)

        return score

    def fingerprint(self) -> dict[str, str]:
        """Of inputs and outputs."""
        return {
            "data": _fingerprint(self.inputs, self.outputs, self.sample_weight),
            "factors": _fingerprint_of_kinds(self.model.factor_map),
            "dev": "none" if self.dev is None else f"{len(self.dev[0])} graphs",
            "dev data": "none" if self.dev is None else _fingerprint(*self.dev),
        }


def read_pairs(settings: GraphSettings, X: Any, y: Any) -> tuple[list[GraphInput], list[list[Any]]]:
    """The graphs of inputs, and the annotation of each variable."""
    inputs, outputs = [], []
    for number, (x, output) in enumerate(check_pair_lengths(X, y)):
        inputs.append(read_input(settings.graph_template, x, number))
        outputs.append(read_outputs(inputs[-1], output, number))
    return inputs, outputs


def open_answers(
    factor_map: FactorMap, inputs: Sequence[GraphInput], settings: GraphSettings, n_threads: int
) -> GraphAnswers:
    """What predicts for inputs."""
    return GraphAnswers(
        factor_map,
        inputs,
        method=settings.inference,
        memory_limit=settings.memory_bytes,
        n_threads=n_threads,
    )


def share_right(
    inputs: Sequence[GraphInput],
    outputs: Sequence[Sequence[Any]],
    predicted: Sequence[dict[Hashable, Hashable]],
) -> float:
    """Accuracy: the share of variables with a known label that are predicted right."""
    right = total = 0
    for graph, output, found in zip(inputs, outputs, predicted, strict=True):
        for variable, value in zip(graph.variables, output, strict=True):
            if value is not None and not isinstance(value, set | frozenset):
                total += 1
                right += found[variable.name] == value
    return right / total if total else 0.0


def _fingerprint(
    inputs: Sequence[GraphInput], outputs: Sequence[Sequence[Any]], sample_weight: Float64s | None = None
) -> str:
    """Of graphs with their features and labels."""
    digest = Fingerprint().add(sample_weight)
    for graph, output in zip(inputs, outputs, strict=True):
        digest.add([repr(variable) for variable in graph.variables])
        digest.add([(f.kind, f.variables, dict(f.features)) for f in graph.factors])
        digest.add([repr(constraint) for constraint in graph.constraints])
        digest.add([sorted(map(repr, v)) if isinstance(v, set | frozenset) else repr(v) for v in output])
    return digest.hexdigest()


def _fingerprint_of_kinds(factor_map: FactorMap) -> str:
    """Of which configurations of which labels share a weight."""
    digest = Fingerprint()
    for name, kind in factor_map.kinds.items():
        digest.add([name, kind.kinds, kind.tied, [repr(factor_map.labels[k]) for k in kind.kinds]])
        digest.add(kind.classes if kind.tied else None)
    return digest.hexdigest()
