"""A model whose features are made by a template, from the weights that another toolkit gave to their names."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.data import MAX_LABELS, MAX_WEIGHT
from crfkit.errors import FileFormatError
from crfkit.features import FeatureMap, Template, Vocabulary
from crfkit.models import CRF, assemble


class Weights(NamedTuple):
    """Weights of features of one kind, feature after feature, each once."""

    names: Sequence[str]  # [F] of the features
    features: Int64s  # [n] which feature, rising
    outcomes: Int32s  # [n] for which label, or for arcs which before · L + after; rising in each feature
    values: Float64s  # [n]

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Weights":
        """Some of the weights."""
        return Weights(self.names, self.features[chosen], self.outcomes[chosen], self.values[chosen])

    def lists(self) -> tuple[Vocabulary, Int64s]:
        """The features that have weights, and where those of each begin [features + 1]."""
        counts = np.bincount(self.features, minlength=len(self.names))
        vocabulary = Vocabulary()
        for name, count in zip(self.names, counts.tolist(), strict=True):
            if count:
                vocabulary.add(name)
        kept = counts[counts > 0]
        if len(vocabulary) != len(kept):
            raise FileFormatError("a feature is there twice")
        return vocabulary, np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)


def template_model(
    template: Template,
    labels: Sequence[str],
    n_columns: int,
    states: Weights,
    arcs: Weights,
    reason: str,
    *,
    local: bool = False,
) -> CRF:
    """The model with these weights of labels and of transitions. Rows may have more than `n_columns` columns.

    Features that every transition has are weights of plain arcs, as many times as the template lists them. Where other lines
    may make the same name of an input, it is a feature of that input too.
    """
    n = len(labels)
    lines = [line for line in template.program().lines if line.kind == "B"]
    listed = Counter(line.tail for line in lines if not line.macros)
    begins = tuple(line.macros[0].literal for line in lines if line.macros)
    for part in (states, arcs):
        if not (np.abs(part.values) <= MAX_WEIGHT).all():
            raise FileFormatError(f"it has a weight beyond ±{MAX_WEIGHT:g}, expected finite ones")
    counts = np.array([listed[name] for name in arcs.names], dtype=np.float64)[arcs.features]
    everywhere = counts > 0
    plain_cells, plain_values = _sum_by_cell(arcs._replace(values=arcs.values * counts).where(everywhere))
    made = np.array([not listed[name] or name.startswith(begins) for name in arcs.names], dtype=np.bool_)
    states, arcs = states.where(states.values != 0), arcs.where(made[arcs.features] & (arcs.values != 0))
    vocabulary, pair_ptr = states.lists()
    arc_vocabulary, arc_ptr = arcs.lists()
    feature_map = FeatureMap(
        n,
        pair_ptr,
        states.outcomes,
        {},
        (plain_cells // n).astype(np.int32),
        (plain_cells % n).astype(np.int32),
        arc_ptr,
        arcs.outcomes,
    )
    return assemble(
        labels,
        vocabulary,
        feature_map,
        np.concatenate([states.values, plain_values, arcs.values]),
        template=template,
        arc_vocabulary=arc_vocabulary,
        n_columns=n_columns,
        more_columns=True,
        local=local,
        reason=reason,
    )


def with_columns(crf: CRF, n_columns: int) -> CRF:
    """A model whose rows may have more columns than it reads, changed to take rows of exactly `n_columns`."""
    encoder = crf.encoder_
    if encoder.template is None or not encoder.more_columns:
        raise FileFormatError("the model knows how many columns its rows have")
    encoder.template.check_columns(n_columns)
    encoder.n_columns, encoder.more_columns = n_columns, False
    return crf


def check_label_names(labels: Sequence[str]) -> None:
    """Refuse labels that are none, too many, or not distinct."""
    if not 1 <= len(labels) <= MAX_LABELS or len(set(labels)) != len(labels) or not all(labels):
        raise FileFormatError(
            f"it has {len(labels):,} labels, expected 1 to {MAX_LABELS:,} names that are distinct"
        )


def _sum_by_cell(arcs: Weights) -> tuple[Int32s, Float64s]:
    """Which arcs have weights, rising, and the sum of those of each."""
    cells, places = np.unique(arcs.outcomes, return_inverse=True)
    values = np.zeros(len(cells))
    np.add.at(values, places, arcs.values)
    return cells, values
