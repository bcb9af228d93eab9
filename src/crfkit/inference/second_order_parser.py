"""The questions on the trees of whole treebanks, at the weights of a trained second-order parser, on several threads."""

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError


class SecondOrderParser(_core.SecondOrderParser):
    """Trees of the arcs that a first-order model leaves over, with scores of siblings and grandparents.

    Of projective trees all answers are exact. Else log Z and probabilities are those of belief propagation, the best tree
    is searched for by dual decomposition (`bounded_decode` gives its bound), and the k best are the best and others with
    the highest product of arc probabilities.
    """

    def __init__(
        self,
        pruning: _core.PruningModel,
        layout: _core.ArcLayout,
        weights: Float64s,
        *,
        projective: bool = True,
        single_root: bool = True,
    ) -> None:
        if not np.isfinite(weights).all():
            raise ArgumentError("SecondOrderParser: a weight is NaN or infinite, expected finite numbers.")
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        super().__init__(pruning, layout, weights, bool(projective), bool(single_root))
        self.single_root = bool(single_root)
