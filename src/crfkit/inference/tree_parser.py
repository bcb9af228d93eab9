"""The questions on the trees of whole treebanks, at the weights of a trained parser, on several threads."""

import numpy as np

from crfkit import _core
from crfkit.arrays import Float64s
from crfkit.errors import ArgumentError


class TreeParser(_core.TreeParser):
    """A layout of weights and their values, ready to answer. Treebanks are those of `crfkit.features.Treebank`."""

    def __init__(self, layout: _core.ArcLayout, weights: Float64s, *, single_root: bool = True) -> None:
        if not np.isfinite(weights).all():
            raise ArgumentError("TreeParser: a weight is NaN or infinite, expected finite numbers.")
        super().__init__(layout, np.ascontiguousarray(weights, dtype=np.float64), bool(single_root))
        self.single_root = bool(single_root)
