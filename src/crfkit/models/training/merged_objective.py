"""Training in the coordinates of merged features."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.features import Coordinates, MergedFeatures
from crfkit.objective import Loss, Objective


class MergedObjective(Objective):
    """f in the coordinates v [M] of merged features; `minimize` has weights [D] all the same.

    `loss` is that of the merged features. l1 and l2 are those of the weights, which they must fit: see `Coordinates`.
    """

    def __init__(
        self, loss: Loss, coordinates: Coordinates, *, l1: Float64s | float = 0.0, l2: Float64s | float = 1.0
    ) -> None:
        self._coordinates, self._root = coordinates, coordinates.root
        l1, l2 = (
            np.broadcast_to(given, coordinates.of_weight.shape)[coordinates.first] for given in (l1, l2)
        )
        super().__init__(loss, l1=l1 * self._root, l2=l2 / self._root**2)  # l2 of the sums √k · v

    def value_and_gradient(self, w: Float64s) -> tuple[float, Float64s]:
        """The smooth part of f, and its gradient [M]."""
        value, gradient = super().value_and_gradient(w * self._root)
        gradient *= self._root
        return value, gradient

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H(w) v, [M]."""
        return super().hessian_vector(w * self._root, v * self._root) * self._root

    def minimize(
        self, optimizer: Any, start: Float64s, *, callback: Any = None, watch: Any = None, **asked: Any
    ) -> Any:
        """The outcome of an optimizer that begins at `start` [D], which fits the coordinates."""
        split = self._coordinates.split
        tell = None if callback is None else lambda step: callback(step._replace(weights=split(step.weights)))
        if watch is not None and (score := watch.score) is not None:
            watch = replace(watch, score=lambda v: score(split(v)))
        outcome = optimizer.minimize(self, self._coordinates.join(start), callback=tell, watch=watch, **asked)
        best = None if outcome.best is None else outcome.best._replace(weights=split(outcome.best.weights))
        return outcome._replace(weights=split(outcome.weights), best=best)


def choose_objective(
    loss: Callable[[MergedFeatures | None], Loss],
    merged: MergedFeatures | None,
    start: Float64s,
    *,
    l1: Float64s | float,
    l2: Float64s | float,
) -> Objective:
    """What training minimises: f of merged features where `start` [D] and the penalties fit them, otherwise f itself.

    `loss(merged)` makes the loss of merged features, `loss(None)` that of the features as they are.
    """
    if merged is None or not merged.coordinates.fit(start, l1, l2):
        return Objective(loss(None), l1=l1, l2=l2)
    return MergedObjective(loss(merged), merged.coordinates, l1=l1, l2=l2)
