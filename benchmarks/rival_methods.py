"""All training methods of python-crfsuite, with their logs read as they are written."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pycrfsuite

from benchmarks.problems import Data
from crfkit.compat import pycrfsuite as stand_in
from crfkit.features import Encoder, FeatureMap, Labels
from crfkit.objective import Objective
from crfkit.structures import Chain

# The first line of each method's own log.
BEGINNINGS = (
    "L-BFGS optimization",
    "Stochastic Gradient Descent",
    "Averaged perceptron",
    "Passive Aggressive",
    "Adaptive Regularization",
)


class Logged:
    """A trainer of python-crfsuite or of `crfkit.compat.pycrfsuite` whose log is read.

    Notes (CPU seconds, passes, objective, accuracy on the held-out group) after each iteration.

    The seconds are those since the method began, less those before the lines of each performance: there the held-out
    group is tagged.
    """

    def __init__(self, algorithm: str, params: dict[str, Any]) -> None:
        super().__init__(algorithm, params, verbose=True)  # type: ignore[call-arg]
        self.marks: list[list[Any]] = []
        self._seconds = self._passes = self._since = 0.0
        self._began = self._iterating = False

    def message(self, message: str) -> None:
        """A piece of the log."""
        now = time.process_time()
        if self._began and not message.startswith("Performance by label"):
            self._seconds += now - self._since
        self._since = now
        self._began |= message.startswith(BEGINNINGS)
        name, _, value = message.partition(": ")
        if name.startswith("*****"):
            self._iterating = True
        elif name == "Line search trials":
            self._passes += int(value) - 1
        elif name == "Loss" and self._iterating:
            self._passes += 1
            self.marks.append([self._seconds, self._passes, float(value), None])
        elif name == "Seconds required for this iteration":
            self.marks[-1][:2] = [self._seconds, self._passes]
            self._iterating = False
        elif name == "Item accuracy" and self.marks:
            self.marks[-1][3] = float(value.rpartition("(")[2].rstrip(")\n "))


class LoggedTrainer(Logged, pycrfsuite.Trainer):  # type: ignore[misc]
    """python-crfsuite's."""


class LoggedStandIn(Logged, stand_in.Trainer):
    """The same interface of crfkit."""


def objective_of(path: str, data: Data, l2: float) -> float:
    """Our objective at the weights of a model of python-crfsuite."""
    encoder = Encoder(None)
    dataset = encoder.fit_encode(data.X)
    labels = Labels.learn(data.y)
    annotation = labels.encode(data.y, np.diff(dataset.sequence_ptr))
    feature_map = FeatureMap.build(
        dataset,
        annotation,
        Chain(start=False, end=False),
        n_labels=len(labels),
        n_features=len(encoder.vocabulary),
        all_possible_transitions=False,
    )
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    info = tagger.info()
    names = encoder.vocabulary.names()
    classes = labels.classes
    weights = np.zeros(feature_map.n_weights)
    for f, name in enumerate(names):
        for p in range(feature_map.pair_ptr[f], feature_map.pair_ptr[f + 1]):
            weights[p] = info.state_features.get((name, classes[feature_map.pair_labels[p]]), 0.0)
    arcs = zip(feature_map.arc_before.tolist(), feature_map.arc_after.tolist(), strict=True)
    for i, (before, after) in enumerate(arcs, feature_map.arcs_begin):
        weights[i] = info.transitions.get((classes[before], classes[after]), 0.0)
    objective = Objective(feature_map.loss(dataset, annotation, single_precision=False), l2=l2)
    return float(objective.value_and_gradient(weights)[0])
