"""The training objective of a model, chain or tree.

    f(w)  = Σ_n weight_n · (log Z(Φ_n w) − log Z_gold(Φ_n w)) + ½ Σ_d l2_d w_d²       (+ Σ_d l1_d |w_d|)
    ∇f    = Σ_n weight_n · Φ_nᵀ (marginals − gold marginals) + l2 ∘ w
    H v   = Σ_n weight_n · Φ_nᵀ (Hessian–vector product − gold Hessian–vector product)(Φ_n v) + l2 ∘ v

Z_gold sums over the label sequences that the annotation allows: a single one when all labels are known. The l1 term is not
smooth and is left to the optimizer, which reads `l1`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit._core import StepRule
from crfkit.features import (
    Annotation,
    ArcMap,
    Dataset,
    FeatureMap,
    FunctionData,
    KnownTrees,
    PatternData,
    PatternMap,
    Slice,
    Treebank,
)

Float64s = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]


class _Smooth:
    """The smooth part of an objective, as its native half answers for it."""

    _core: _core.Objective | _core.TreeObjective | _core.PatternObjective
    l1: float | Float64s
    l2: float | Float64s

    def _set_penalties(self, l1: Float64s | float, l2: Float64s | float) -> None:
        self.l1, self.l2 = _strength(l1), _strength(l2)

    @property
    def n_weights(self) -> int:
        """D."""
        return self._core.n_weights

    def value_and_gradient(self, w: Float64s) -> tuple[float, Float64s]:
        """The smooth part of f, and its gradient [D]."""
        return self._core.value_and_gradient(w)

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H(w) v, [D], by the Hessian–vector product recursions: no differences are taken."""
        return self._core.hessian_vector(w, v)


class _Steps:
    """Passes of stochastic methods, of an objective whose native half offers these."""

    _core: _core.Objective | _core.TreeObjective | _core.Online
    l1: float | Float64s

    def run(self, rule: StepRule, state: dict[str, Float64s], order: Int32s) -> float:
        """Takes the steps of one pass over the sequences of `order`, and changes the arrays of `state` in place.

        Returns the sum of the losses, each before its step. Where an exception such as KeyboardInterrupt ends the pass, the
        state is that after the steps so far. With many labels of which few are possible, steps along gradients need a
        chain's objective that was made with `stochastic=True`.
        """
        return _core.run(self._core, rule, np.atleast_1d(self.l1), state, order)


class _GradientSteps(_Smooth, _Steps):
    """Both."""

    _core: _core.Objective | _core.TreeObjective

    def n_residuals(self) -> int:
        """How many numbers the residuals of all sequences are, which SAG keeps."""
        return _core.n_residuals(self._core)


def _strength(values: Float64s | float) -> float | Float64s:
    """Of a penalty: one number for all weights, or one for each."""
    strengths = np.atleast_1d(np.asarray(values, dtype=np.float64))
    return float(strengths[0]) if len(strengths) == 1 else strengths


def _sequence_weights(given: npt.ArrayLike | None, n: int) -> Float64s:
    """The weight of each of n sequences, [n]; 1 where none are given."""
    return np.ones(n) if given is None else np.ascontiguousarray(given, dtype=np.float64)


class Objective(_GradientSteps):
    """f, ∇f and H·v over a data set, on several threads, with the same bits for any number of them.

    Works in single precision until `refine()` is called: values are then exact to about 1e-7 and gradients and
    Hessian products to about 1e-5 of their norm, at half the cost. Call it before asking for all digits of a Hessian
    product. Weights, sums over sequences and penalties are always double.
    """

    _core: _core.Objective

    def __init__(
        self,
        dataset: Dataset,
        annotation: Annotation,
        feature_map: FeatureMap,
        *,
        l1: Float64s | float = 0.0,
        l2: Float64s | float = 1.0,
        sample_weight: npt.ArrayLike | None = None,
        single_precision: bool = True,
        stochastic: bool = False,
        n_threads: int = 1,
    ) -> None:
        self._set_penalties(l1, l2)
        self.n_sequences = dataset.n_sequences
        self._core = _core.Objective(
            feature_map.layout,
            feature_map.design(dataset, n_threads, purpose="stochastic" if stochastic else "training"),
            annotation.labels,
            *annotation.set_arrays,
            _sequence_weights(sample_weight, dataset.n_sequences),
            np.atleast_1d(self.l2),
            single_precision,
            n_threads,
        )

    def refine(self) -> bool:
        """Answer in double precision from now on. Returns whether that is a change."""
        return self._core.refine()


class _Mistakes(_Steps):
    """Steps after the mistakes of single sequences."""

    _core: _core.Online

    @property
    def n_weights(self) -> int:
        """D."""
        return self._core.n_weights


class OnlineObjective(_Mistakes):
    """The mistakes of a chain model over a data set, for training that moves the weights after each of them.

    `l1` is kept for optimizers to refuse. `single_precision`: sequences are labelled at weights rounded to single
    precision, where their labels are scored row by row; weights and losses are always double.
    """

    def __init__(
        self,
        dataset: Dataset,
        annotation: Annotation,
        feature_map: FeatureMap,
        *,
        l1: Float64s | float = 0.0,
        sample_weight: npt.ArrayLike | None = None,
        single_precision: bool = True,
        n_threads: int = 1,
    ) -> None:
        self.l1 = _strength(l1)
        self.n_sequences = dataset.n_sequences
        self._core = _core.ChainOnline(
            feature_map.layout,
            feature_map.design(dataset, n_threads, purpose="training"),
            annotation.labels,
            *annotation.set_arrays,
            _sequence_weights(sample_weight, dataset.n_sequences),
            single_precision,
            n_threads,
        )


class FunctionObjective:
    """The same objective for a model with feature functions, slice by slice; always in double precision."""

    def __init__(
        self,
        data: FunctionData,
        annotation: Annotation,
        *,
        l1: Float64s | float = 0.0,
        l2: Float64s | float = 1.0,
        sample_weight: npt.ArrayLike | None = None,
        n_threads: int = 1,
    ) -> None:
        self.l1 = _strength(l1)
        self._l2 = np.asarray(l2, dtype=np.float64)
        self._weights = _sequence_weights(sample_weight, data.dataset.n_sequences)
        self._data = data
        self._annotation = annotation
        self._n_threads = n_threads

    @property
    def n_weights(self) -> int:
        """D."""
        return self._data.map.n_weights

    def value_and_gradient(self, w: Float64s) -> tuple[float, Float64s]:
        """The smooth part of f, and its gradient [D]."""
        gradient = self._l2 * w
        penalty = 0.5 * float(gradient @ w)
        return self._sum(w, None, gradient) + penalty, gradient

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        """H(w) v, [D], by the Hessian–vector product recursions."""
        product = self._l2 * v
        self._sum(w, v, product)
        return product

    def refine(self) -> bool:
        """Nothing changes: all is double already."""
        return False

    def _sum(self, w: Float64s, v: Float64s | None, out: Float64s) -> float:
        """The likelihood's part of the value; its derivatives are added to `out`."""
        return sum(
            self._of(part).add_to(part.active, w, v, out, self._n_threads) for part in self._data.slices()
        )

    def _of(self, part: Slice) -> _core.FunctionObjective:
        ptr = self._data.dataset.sequence_ptr
        begin, end = int(ptr[part.first]), int(ptr[part.last])
        known = self._annotation.between(begin, end)
        return _core.FunctionObjective(
            part.lattices,
            known.labels,
            *known.set_arrays,
            self._weights[part.first : part.last],
            self._n_threads,
        )


class PatternObjective(_Smooth):
    """The same objective for a chain with patterns, on the trellises of its data.

    Call `refine()` before asking for all digits of a Hessian product.
    """

    _core: _core.PatternObjective

    def __init__(
        self,
        dataset: Dataset,
        annotation: Annotation,
        feature_map: FeatureMap,
        patterns: PatternMap,
        starts: PatternData,
        *,
        l1: Float64s | float = 0.0,
        l2: Float64s | float = 1.0,
        sample_weight: npt.ArrayLike | None = None,
        single_precision: bool = True,
        n_threads: int = 1,
    ) -> None:
        self._set_penalties(l1, l2)
        self._core = _core.PatternObjective(
            patterns.trellises(starts, feature_map, dataset, n_threads),
            annotation.labels,
            *annotation.set_arrays,
            _sequence_weights(sample_weight, dataset.n_sequences),
            np.atleast_1d(self.l2),
            feature_map.n_weights + patterns.n_weights,
            single_precision,
            n_threads,
        )

    def refine(self) -> bool:
        """Answer in double precision from now on. Returns whether that is a change."""
        return self._core.refine()


class TreeObjective(_GradientSteps):
    """The same objective for the trees of a treebank; always in double precision.

    Z sums over all trees and labels, Z_gold over those that agree with the heads and labels that are known.
    """

    def __init__(
        self,
        treebank: Treebank,
        trees: KnownTrees,
        arc_map: ArcMap,
        *,
        l1: Float64s | float = 0.0,
        l2: Float64s | float = 1.0,
        sample_weight: npt.ArrayLike | None = None,
        single_root: bool = True,
        n_threads: int = 1,
    ) -> None:
        self._set_penalties(l1, l2)
        self.n_sequences = len(treebank)
        self._core = _core.TreeObjective(
            arc_map.layout,
            treebank.core,
            trees.heads,
            trees.labels,
            _sequence_weights(sample_weight, len(treebank)),
            np.atleast_1d(self.l2),
            single_root,
            n_threads,
        )

    def refine(self) -> bool:
        """Nothing changes: all is double already."""
        return False


class TreeOnlineObjective(_Mistakes):
    """The mistakes of a parser over a treebank. `l1` is kept for optimizers to refuse."""

    def __init__(
        self,
        treebank: Treebank,
        trees: KnownTrees,
        arc_map: ArcMap,
        *,
        l1: float = 0.0,
        sample_weight: npt.ArrayLike | None = None,
        single_root: bool = True,
    ) -> None:
        self.l1 = l1
        self.n_sequences = len(treebank)
        self._core = _core.TreeOnline(
            arc_map.layout,
            treebank.core,
            trees.heads,
            trees.labels,
            _sequence_weights(sample_weight, len(treebank)),
            single_root,
        )
