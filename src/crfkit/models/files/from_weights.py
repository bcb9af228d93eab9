"""A trained model from its parts: what was learned elsewhere, by another toolkit or another training loop."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from crfkit.data import MAX_WEIGHT, check_labels
from crfkit.errors import ArgumentError, ShapeError
from crfkit.features import Encoder, FeatureMap, Labels, Template, Vocabulary
from crfkit.models.chain_model import ChainModel
from crfkit.models.crf import CRF
from crfkit.models.potentials import FeaturePotentials, LocalPotentials
from crfkit.optimizers import History
from crfkit.structures import Chain


def assemble(
    labels: Iterable[str],
    vocabulary: Vocabulary,
    feature_map: FeatureMap,
    weights: npt.ArrayLike,
    *,
    template: Template | None = None,
    arc_vocabulary: Vocabulary | None = None,
    n_columns: int | None = None,
    more_columns: bool = False,
    local: bool = False,
    history: History | None = None,
    reason: str = "the weights were given",
) -> CRF:
    """The CRF with these labels, names of features and weights [D]; all arcs between labels exist.

    Its positions are lists of strings and dicts, or with a template rows of `n_columns`, or `more_columns`. Start and
    end transitions are those of the feature map. `arc_vocabulary` names the features of transitions. `local`: normalised
    at each position.
    """
    classes = Labels(labels)
    values = np.array(weights, dtype=np.float64)
    if values.shape != (feature_map.n_weights,):
        raise ShapeError(f"weights has the shape {values.shape}, expected ({feature_map.n_weights},)")
    if not (np.abs(values) <= MAX_WEIGHT).all():
        raise ArgumentError(f"weights has a number beyond ±{MAX_WEIGHT:g}, expected finite ones")
    if len(classes) != feature_map.n_labels or len(vocabulary) != len(feature_map.pair_ptr) - 1:
        raise ShapeError(
            f"{len(classes)} labels and {len(vocabulary)} features were given, the feature map has "
            f"{feature_map.n_labels} and {len(feature_map.pair_ptr) - 1}"
        )
    arc_names = Vocabulary() if arc_vocabulary is None else arc_vocabulary
    if len(arc_names) != len(feature_map.arc_ptr) - 1:
        raise ShapeError(
            f"{len(arc_names)} features of arcs were given, the feature map has {len(feature_map.arc_ptr) - 1}"
        )
    check_labels(len(classes), len(values))
    n = len(classes)
    structure = Chain(
        start=bool((feature_map.arc_before == n).any()), end=bool((feature_map.arc_after == n).any())
    )
    crf = CRF(structure, template)
    encoder = Encoder(template, vocabulary, arc_names, n_columns=n_columns, more_columns=more_columns)
    potentials = (LocalPotentials if local else FeaturePotentials)(encoder, feature_map)
    crf._set_model(ChainModel(classes, structure, potentials), values)
    crf.history_ = History() if history is None else history
    crf.n_iter_ = len(crf.history_)
    crf.stop_message_ = reason
    crf.optimizer_, crf.optimizer_reason_ = crf.optimizer, "the model was trained elsewhere"  # type: ignore[assignment]
    return crf
