"""A model of CRF++ from its parts, which its text files and its binary files have in common."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int64s
from crfkit.compat.template_model import Weights, check_label_names, template_model
from crfkit.data import MAX_WEIGHT
from crfkit.errors import FileFormatError
from crfkit.features import Template
from crfkit.models import CRF


class CrfppParts(NamedTuple):
    """What a file of CRF++ holds."""

    labels: Sequence[str]  # [L]
    template: str
    n_columns: int  # that a row must have at least
    features: Sequence[str]  # [F] each begins with U or with B
    starts: npt.ArrayLike  # [F] the number of its first weight
    weights: Float64s  # [D]
    cost_factor: float  # which multiplies all weights


def crfpp_model(parts: CrfppParts) -> CRF:
    """The same as a `crfkit.CRF`; InputError where the parts do not go together.

    A feature that begins with U has a weight for each of the L labels, one that begins with B has L · L, those of the
    first label before it first.
    """
    check_label_names(parts.labels)
    if not 0 < parts.cost_factor <= MAX_WEIGHT:
        raise FileFormatError(f"its cost factor is {parts.cost_factor:g}, expected a number above 0")
    template = Template.parse(parts.template, "its template")
    template.check_columns(parts.n_columns)
    starts = np.asarray(parts.starts, dtype=np.int64)
    on_labels = np.array([name.startswith("U") for name in parts.features], dtype=bool)
    n = len(parts.labels)
    used = int(on_labels.sum()) * n + int((~on_labels).sum()) * n**2
    if used > len(parts.weights):
        raise FileFormatError(f"its features need {used:,} weights, and there are {len(parts.weights):,}")
    states = _weights(parts, starts, on_labels, n)
    arcs = _weights(parts, starts, ~on_labels, n**2)
    return template_model(
        template, parts.labels, parts.n_columns, states, arcs, "the model was trained by CRF++"
    )


def _weights(parts: CrfppParts, starts: Int64s, chosen: npt.NDArray[np.bool_], size: int) -> Weights:
    """The weights of the features of one kind, `size` of each."""
    begins = starts[chosen]
    if len(begins) and (begins.min() < 0 or begins.max() + size > len(parts.weights)):
        wrong = begins.min() if begins.min() < 0 else begins.max()
        raise FileFormatError(f"a feature begins with weight {wrong}, and there are {len(parts.weights):,}")
    names = [parts.features[f] for f in np.flatnonzero(chosen).tolist()]
    values = parts.weights[(begins[:, None] + np.arange(size)).ravel()]
    if not (np.abs(values) <= MAX_WEIGHT).all():
        raise FileFormatError(f"it has a weight beyond ±{MAX_WEIGHT:g}, expected finite ones")
    values = values * parts.cost_factor
    outcomes = np.tile(np.arange(size, dtype=np.int32), len(begins))
    return Weights(names, np.repeat(np.arange(len(begins)), size), outcomes, values)
