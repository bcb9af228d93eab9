"""What the file of a parser holds, array by array, and the rules that each must keep.

    arc_keys      keys of the features of arcs, ascending as unsigned numbers
    label_keys    keys of the features of labels
    label_counts  how many labels each of the latter has weights for; `labels` are these, ascending
    weights       [D] those of arcs, then those of labels, feature by feature
    history       of the training

Every rule is checked here, but for two that the native core sees to: keys ascend, and so do the labels of a feature.
"""

from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s, Int64s, offsets
from crfkit.errors import FileFormatError, reword
from crfkit.features import FEATURE_SET, ArcMap
from crfkit.models.files.file_arrays import (
    array,
    compact,
    count_setting,
    integers,
    read_history,
    read_weights,
)
from crfkit.models.files.model_file import Array, ModelFile

TYPE = "Parser"
MAX_LABELS = 10_000


class ParserContents(NamedTuple):
    """A parser as the file holds it."""

    settings: dict[str, Any]
    arc_map: ArcMap
    weights: Float64s  # [D]
    history: Float64s  # [iterations, 5]


def pack(contents: ParserContents, *, single_precision: bool = False) -> ModelFile:
    """The model file of a parser."""
    layout = contents.arc_map.layout
    arrays: dict[str, Array] = {
        "arc_keys": layout.arc_keys,
        "label_keys": layout.label_keys,
        "label_counts": compact(np.diff(layout.pair_ptr)),
        "labels": compact(layout.pair_labels),
        "weights": contents.weights.astype(np.float32) if single_precision else contents.weights,
        "history": contents.history,
    }
    settings = {**contents.settings, "labels": list(contents.arc_map.labels), "features": FEATURE_SET}
    return ModelFile(TYPE, settings, arrays)


def unpack(file: ModelFile) -> ParserContents:
    """The parser of a model file; InputError for anything that is not one."""
    if file.type != TYPE:
        raise FileFormatError(f"its type is {file.type[:40]!r}, expected {TYPE!r}")
    settings = dict(file.settings)
    labels = _labels(settings.pop("labels", None))
    if count_setting(settings, "features") != FEATURE_SET:
        raise FileFormatError(f"it has features of another version, expected version {FEATURE_SET}")
    settings.pop("features")
    arc_keys, label_keys = _keys(file, "arc_keys"), _keys(file, "label_keys")
    counts, pairs = integers(file, "label_counts", len(labels) + 1), integers(file, "labels", len(labels))
    if len(counts) != len(label_keys) or int(counts.sum()) != len(pairs):
        raise FileFormatError("the labels of its features do not add up")
    weights = read_weights(file, len(arc_keys) + len(pairs))
    history = read_history(file)
    ptr = offsets(counts)
    try:
        arc_map = ArcMap.of(labels, arc_keys, label_keys, ptr, pairs.astype(np.int32))
    except ValueError as error:
        raise reword(error, str(error)) from None
    return ParserContents(settings, arc_map, weights, history)


def _keys(file: ModelFile, name: str) -> Int64s:
    """Keys [·]; that they ascend is seen to when they are put into a table."""
    found = array(file, name)
    if found.dtype != np.int64 or found.ndim != 1:
        raise FileFormatError(
            f"array {name!r} is {found.dtype} of shape {list(found.shape)}, expected int64 keys"
        )
    return found


def _labels(value: Any) -> list[str]:
    if (
        not isinstance(value, list)
        or not 1 <= len(value) <= MAX_LABELS
        or not all(isinstance(label, str) for label in value)
        or len(set(value)) < len(value)
    ):
        raise FileFormatError(f"it has no list of 1 to {MAX_LABELS} different labels")
    return value
