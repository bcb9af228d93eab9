"""The training objective of a model of any structure: the loss of its data, and penalties.

    f(w)  = Σ_n weight_n · (log Z(Φ_n w) − log Z_gold(Φ_n w)) + ½ Σ_d l2_d w_d²       (+ Σ_d l1_d |w_d|)
    ∇f    = Σ_n weight_n · Φ_nᵀ (marginals − gold marginals) + l2 ∘ w
    H v   = Σ_n weight_n · Φ_nᵀ (Hessian–vector product − gold Hessian–vector product)(Φ_n v) + l2 ∘ v

Z_gold sums over the outputs that the annotation allows: a single one when all labels are known. The l1 term is not smooth
and is left to the optimizer, which reads `l1`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from crfkit import _core

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Loss = _core.DataLoss  # of a chain, feature functions, patterns or trees over a data set
Summand = TypeVar("Summand", float, Float64s)


def add_in_tree(parts: Sequence[Summand]) -> Summand:
    """The sum of what shards give (values, gradients, Hessian–vector products), in the order that is the same everywhere.

    It is a binary tree that the number n of the parts alone decides: with m half of n, rounded up,

        sum(parts[:n]) = sum(parts[:m]) + sum(parts[m:])

    So parts that some process has added up in the form of such a subtree give the same bits as all of them, one by one.
    """
    if len(parts) == 1:
        return parts[0]
    m = (len(parts) + 1) // 2
    return add_in_tree(parts[:m]) + add_in_tree(parts[m:])


def sum_losses(losses: Sequence[Loss]) -> Loss:
    """The loss of a data set from those of its shards, of the same weights; answers are added as `add_in_tree` adds.

    One loss is given back as it is. Its sequences are those of the shards, one after the other.
    """
    return losses[0] if len(losses) == 1 else _core.sharded_loss(list(losses))


def stored_loss(
    shard_ptr: Sequence[int], make: Callable[[int], Loss], n_weights: int, scratch: str, n_threads: int
) -> Loss:
    """The same sum for shards that are not in memory together: `make(i)` gives the loss of shard i.

    What is large of the losses of dense chains is kept in a file without a name in the folder `scratch`; others are made
    each time they are asked for.
    """
    return _core.stored_loss(list(shard_ptr), make, n_weights, scratch, n_threads)


class Objective:
    """f, ∇f and H·v over a data set, and steps along single sequences of it.

    `loss` is that of a chain (`FeatureMap.loss`), of feature functions (`FunctionData.loss`), of patterns
    (`PatternMap.loss`) or of trees (`ArcMap.loss`). Answers have the same bits for any number of threads. A loss may
    answer in single precision until `refine()` is called: values are then exact to about 1e-7 and gradients and Hessian
    products to about 1e-5 of their norm, at half the cost. Call it before asking for all digits of a Hessian product.
    Weights, sums over sequences and penalties are always double.
    """

    def __init__(
        self,
        loss: Loss,
        *,
        l1: Float64s | float = 0.0,
        l2: Float64s | float = 1.0,
        features: Callable[[], Int32s] | None = None,
    ) -> None:
        self.l1 = _strength(l1)
        self.n_weights = loss.n_weights  # D
        self.n_sequences = loss.n_sequences  # N
        self.shard_ptr = loss.shard_ptr  # the first sequence of each shard, and N
        self.features = features  # for dropout: gives [D] what each weight is one of, −1: of none
        self._loss = loss
        self._core = _core.Objective(loss, np.atleast_1d(np.asarray(l2, dtype=np.float64)))
        self.l2 = _strength(self._core.l2)  # kept once

    def value_and_gradient(self, w: Float64s) -> tuple[float, Float64s]:
        """The smooth part of f, and its gradient [D]."""
        return self._core.value_and_gradient(w)

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H(w) v, [D], by the Hessian–vector product recursions: no differences are taken."""
        return self._core.hessian_vector(w, v)

    def refine(self) -> bool:
        """Answer in double precision from now on. Returns whether that is a change."""
        return self._core.refine()

    def minimize(self, optimizer: Any, start: Float64s, **asked: Any) -> Any:
        """The outcome of an optimizer that begins at `start` [D]."""
        return optimizer.minimize(self, start, **asked)

    def run(
        self,
        rule: _core.StepRule,
        state: dict[str, Float64s],
        order: Int32s,
        dropout: tuple[float, int] | None = None,
    ) -> float:
        """Takes the steps of one pass over the sequences of `order`, and changes the arrays of `state` in place.

        Returns the sum of the losses, each before its step. Where an exception such as KeyboardInterrupt ends the pass, the
        state is that after the steps so far. Rules that step after mistakes use no penalty. `dropout` is a rate and a seed:
        each sequence is seen without this share of its features, chosen by the seed; the rest counts 1 / (1 − rate) times.
        """
        dropped = None
        if dropout is not None:
            assert self.features is not None
            dropped = _core.Dropout(self.features(), *dropout)
        return _core.run(self._core, rule, np.atleast_1d(self.l1), state, order, dropped)

    def takes_any_order(self) -> bool:
        """Whether single sequences may be visited in any order: no shard of the data is made anew for each."""
        return self._loss.takes_any_order()

    def n_residuals(self) -> int:
        """How many numbers the residuals of all sequences are, which SAG keeps."""
        return _core.n_residuals(self._core)


def _strength(values: Float64s | float) -> float | Float64s:
    """Of a penalty: one number for all weights, or one for each."""
    strengths = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return float(strengths[0]) if len(strengths) == 1 else strengths


class LossFunctions(Protocol):
    """A loss in Python: of data that are elsewhere, for example."""

    def evaluate(self, w: Float64s) -> tuple[float, Float64s]:
        """The value and the gradient [D] at weights w [D]."""

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H(w) v, [D]."""

    def refine(self) -> bool:
        """Answer in double precision from now on. Returns whether that is a change."""


def python_loss(functions: LossFunctions, *, n_weights: int, n_sequences: int, n_threads: int = 1) -> Loss:
    """A loss for `Objective` that asks these functions; for optimizers that see all data at once."""
    return _core.PythonLoss(
        n_weights, n_sequences, n_threads, functions.evaluate, functions.hessian_vector, functions.refine
    )


def evaluate(loss: Loss, w: Float64s, out: Float64s | None = None) -> tuple[float, Float64s]:
    """The value of a loss without penalty, and its gradient [D], in `out` if given."""
    gradient = np.empty(loss.n_weights) if out is None else out
    return _core.evaluate_loss(loss, w, gradient), gradient


def hessian_vector(loss: Loss, w: Float64s, v: Float64s, out: Float64s | None = None) -> Float64s:
    """H(w) v of a loss without penalty, [D], in `out` if given."""
    product = np.empty(loss.n_weights) if out is None else out
    _core.loss_hessian_vector(loss, w, v, product)
    return product


def refine(loss: Loss) -> bool:
    """The loss answers in double precision from now on. Returns whether that is a change."""
    return _core.refine_loss(loss)


def instruction_set() -> str:
    """Which instructions of the processor the core uses. The last bits of losses depend on it."""
    return _core.instruction_set()
