"""What training fixes of a parser besides the weights."""

from typing import NamedTuple

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.features import ArcMap, ArcPruner
from crfkit.inference import SecondOrderParser, TreeParser
from crfkit.models.training.data_warnings import FilledShares
from crfkit.models.training.warm_start import copy_keyed, find_keys, make_keys


class ParserModel(NamedTuple):
    """A parser without its weights w [D]: those of arcs come first, then those of labels, then those of word vectors."""

    arc_map: ArcMap
    columns: FilledShares  # what the words of the training sentences had
    structure: str = "spanning"  # or "projective"
    structure_reason: str = ""
    pruner: ArcPruner | None = None  # of models with siblings and grandparents, and of projective ones

    @property
    def n_weights(self) -> int:
        """D."""
        return self.arc_map.n_weights

    def parser(self, weights: Float64s, *, single_root: bool) -> TreeParser | SecondOrderParser:
        """What answers questions at weights [D]."""
        layout = self.arc_map.layout
        if self.pruner is None:
            return TreeParser(layout, weights, single_root=single_root)
        projective = self.structure == "projective"
        return SecondOrderParser(
            self.pruner.model, layout, weights, projective=projective, single_root=single_root
        )

    def find_difference(self, old: "ParserModel") -> str | None:
        """Why few weights pass from another parser to this one; None where that cannot be seen."""
        here, there = set(old.arc_map.labels), set(self.arc_map.labels)
        return None if here & there else "they have no relation in common"

    def transfer_weights(self, old: "ParserModel", weights: Float64s) -> Float64s:
        """The weights [D] to begin with: those that another parser has too, and 0.

        A weight is known by the key of its feature, that of a label by key and name of the label; those of word vectors are
        taken over where the vectors have one size.
        """
        here, there, start = old.arc_map, self.arc_map, np.zeros(self.n_weights)
        copy_keyed(here.layout.arc_keys, weights, there.layout.arc_keys, start)
        place = {label: i for i, label in enumerate(there.labels)}
        labels = np.array([place.get(label, -1) for label in here.labels] + [len(place)], dtype=np.int64)
        a, b = here.layout, there.layout
        known, wanted = _pairs(
            (a.label_keys, a.pair_ptr, a.pair_labels), (b.label_keys, b.pair_ptr, b.pair_labels), labels
        )
        copy_keyed(known, weights[here.n_arc_features :], wanted, start[there.n_arc_features :])
        u, v = a.vectors, b.vectors
        if u.size == v.size > 0:
            rows = find_keys(*_pairs((u.keys, u.ptr, u.labels), (v.keys, v.ptr, v.labels), labels))
            old_rows = weights[len(weights) - u.n_weights :].reshape(-1, u.size)
            new_rows = start[len(start) - v.n_weights :].reshape(-1, v.size)
            new_rows[rows[rows >= 0]] = old_rows[rows >= 0]
        return start

    def prune(self, weights: Float64s) -> "tuple[ParserModel, Float64s]":
        """The same parser without weights that are exactly 0, and the weights that are left."""
        arc_map, left = self.arc_map.without_zeros(np.asarray(weights))
        return self._replace(arc_map=arc_map), left


def _pairs(
    old: tuple[Int64s, Int64s, Int32s], new: tuple[Int64s, Int64s, Int32s], labels: Int64s
) -> tuple[Int64s, Int64s]:
    """One number for each pair of a feature and a label (keys, offsets, labels), the same for the same pair of both.

    labels : the new number of each old label, −1 where there is none
    """
    size = int(labels[-1]) + 1
    known = make_keys(np.repeat(find_keys(old[0], new[0]), np.diff(old[1])), labels[old[2]], size)
    return known, make_keys(np.repeat(np.arange(len(new[0])), np.diff(new[1])), new[2], size)
