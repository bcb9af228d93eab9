"""AdaGrad: a rate for each weight, and penalties that are exact."""

from dataclasses import dataclass

import numpy as np

from crfkit import _core
from crfkit.optimizers.protocols import Vector
from crfkit.optimizers.stochastic import Order, PassDescent, State, StochasticObjective
from crfkit.optimizers.stochastic_gradient import GradientDescent, StochasticGradient

FIRST_ROOT = 1.0  # √G at the start: gradients of single parts are at most 1


@dataclass(frozen=True)
class AdaGrad(StochasticGradient):
    """AdaGrad (Duchi and others 2011) as the leader of all steps so far (FTRL-Proximal, McMahan 2011).

    A step along `batch` sequences with gradient g, where C passes were made,

        z ← z + g − (√(G + g²) − √G) / rate · w        G ← G + g²
        w = −soft(z, l1 · C) / (√G / rate + l2 · C)    soft(x, a) = sign(x) · max(|x| − a, 0)

    costs what its sequences touch. Without penalties it is w ← w − rate / √G · g: weights that are seldom touched move
    further. l1 gives exact zeros, and both penalties count in full after each pass. G begins at 1.

    rate : "auto": powers of 2 are tried on a sample of the data; `CRF.optimizer_reason_` says which one was taken
    batch : sequences of a step. Their gradients add up, on several threads; the same bits for any number of these.
    random_state : the same one gives the same bits
    dropout : the share of features that each sequence is seen without, chosen anew in every pass; the others count
        1 / (1 − dropout) times. Transitions stay. Against features that fit the training data too well.

    The objective in the history is the sum of the losses met during the pass, plus the penalty after it; it is not known
    at the start, and its gradient norm never is (NaN).
    """

    max_iterations: int = 10
    rate: float | str = "auto"
    batch: int = 1
    random_state: int = 0
    dropout: float = 0.0

    def descent(self, objective: StochasticObjective, start: Vector, n_threads: int) -> PassDescent:
        """A new descent from `start`."""
        return _Descent(self, objective, start)


class _Descent(GradientDescent):
    """Steps with a rate for each weight.

    State, [D] each: the weights, z and root, which is √G.
    """

    first_rate = 0.5

    def _first_state(self, start: Vector) -> State:
        return self._at(start, self.rate)

    @staticmethod
    def _at(weights: Vector, rate: float) -> State:
        """The state that has these weights before the first step."""
        root = np.full(len(weights), FIRST_ROOT)
        return {"weights": weights, "z": -weights * root / rate, "root": root}

    def _copy_state(self, state: State) -> State:
        """The weights follow from z and root: they are not copied, and take up no memory before the pass ends."""
        weights = np.zeros(len(state["weights"]))
        weights[:1] = np.nan  # not known yet
        known = {name: array for name, array in state.items() if name != "weights"}
        return {"weights": weights, **super()._copy_state(known)}

    def _try_rate(self, rate: float, order: Order) -> Vector:
        state = self._copy_state(self._at(self.point.x, rate))
        self._objective.run(_core.AdaGradRule(rate, 0.0, self._batch), state, order)
        return state["weights"]

    def _rule(self, order: Order, state: State) -> _core.AdaGradRule:
        return _core.AdaGradRule(self.rate, float(self.n_passes), self._batch)
