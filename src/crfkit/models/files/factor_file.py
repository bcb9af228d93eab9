"""What the file of a `GraphCRF` holds, array by array, and the rules that each must keep.

settings         parameters; "labels": the labels of each kind of variables; "factors": the kinds of variables of each
                 factor kind, and whether configurations share weights
features         names of features, factor kind by factor kind; "factors" says how many each has
weight_counts    how many weights each feature has
weight_classes   the class of configurations of each weight
classes.K        of factor kind number K, where configurations share weights: the class of each + 1, 0 for none
weights          [D]
history          of the training
"""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s, offsets
from crfkit.errors import FileFormatError, UnsavableError
from crfkit.features import FactorKind, FactorMap
from crfkit.models.files.file_arrays import (
    compact,
    count_setting,
    integers,
    pack_texts,
    read_history,
    read_weights,
    setting,
    unpack_texts,
)
from crfkit.models.files.model_file import Array, ModelFile
from crfkit.models.graph_settings import GraphSettings

TYPE = "GraphCRF"
MAX_LABELS = 1_000_000
MAX_CONFIGURATIONS = 1 << 20


class FactorContents(NamedTuple):
    """A conditional random field on factor graphs as the file holds it."""

    settings: dict[str, Any]
    parameters: GraphSettings
    factor_map: FactorMap
    weights: Float64s  # [D]
    history: Float64s


def pack(contents: FactorContents, *, single_precision: bool = False) -> ModelFile:
    """The model file of a `GraphCRF`."""
    why = contents.parameters.why_unsavable()
    if why is not None:
        raise UnsavableError(why)
    factor_map = contents.factor_map
    owners = factor_map.owners
    order = sorted(range(len(owners)), key=lambda feature: list(factor_map.kinds).index(owners[feature]))
    names = list(factor_map.features)
    counts = np.diff(factor_map.weight_ptr)
    arrays: dict[str, Array] = {
        "weight_counts": compact(counts[order]),
        "weight_classes": compact(_by_feature(factor_map, factor_map.weight_classes, order)),
        "history": contents.history,
    }
    weights = _by_feature(factor_map, contents.weights, order)
    arrays["weights"] = weights.astype(np.float32) if single_precision else weights
    for number, kind in enumerate(factor_map.kinds.values()):
        if kind.tied:
            arrays[f"classes.{number}"] = compact(kind.classes + 1)
    n_bytes = pack_texts(arrays, "features", [names[feature][1] for feature in order])
    settings = {
        **contents.settings,
        "parameters": contents.parameters.to_json(),
        "labels": {kind: [_label(label) for label in labels] for kind, labels in factor_map.labels.items()},
        "factors": [
            {"name": name, "kinds": list(kind.kinds), "tied": kind.tied, "features": owners.count(name)}
            for name, kind in factor_map.kinds.items()
        ],
        "n_bytes": {"features": n_bytes},
    }
    return ModelFile(TYPE, settings, arrays)


def unpack(file: ModelFile) -> FactorContents:
    """The contents of a model file; InputError for anything that is not one."""
    settings = dict(file.settings)
    parameters = GraphSettings.from_json(setting(settings, "parameters", dict))
    labels = _read_labels(setting(settings, "labels", dict))
    kinds: dict[str, FactorKind] = {}
    owners: list[str] = []
    for number, value in enumerate(setting(settings, "factors", list)):
        if not isinstance(value, dict):
            raise FileFormatError("its factors are damaged")
        name, kind = setting(value, "name", str), _read_kind(file, value, number, labels)
        if name in kinds:
            raise FileFormatError(f"it has the factor {name[:40]!r} twice")
        kinds[name] = kind
        owners += [name] * count_setting(value, "features", len(file.arrays.get("weight_counts", ())))
    names = unpack_texts(file, "features", setting(settings, "n_bytes", dict), len(owners))
    features = {key: i for i, key in enumerate(zip(owners, names, strict=True))}
    counts = integers(file, "weight_counts", MAX_CONFIGURATIONS + 1)
    classes = integers(file, "weight_classes", MAX_CONFIGURATIONS)
    if len(counts) != len(owners) or len(features) != len(owners) or int(counts.sum()) != len(classes):
        raise FileFormatError("the weights of its features do not add up")
    limits = np.array([kinds[owner].n_classes for owner in owners], dtype=np.int64)
    ptr = offsets(counts)
    rising = np.diff(classes) > 0
    inside = np.ones(max(len(classes) - 1, 0), dtype=np.bool_)
    inside[ptr[(ptr > 0) & (ptr < len(classes))] - 1] = False  # between two features
    if (classes >= np.repeat(limits, counts)).any() or not rising[inside].all():
        raise FileFormatError("the classes of its weights are damaged")
    weights = read_weights(file, len(classes))
    return FactorContents(
        settings, parameters, FactorMap(labels, kinds, features, ptr, classes), weights, read_history(file)
    )


def _by_feature(factor_map: FactorMap, numbers: Array, order: list[int]) -> Array:
    """Numbers of the weights [D] where features come in another order."""
    pieces = np.split(numbers, factor_map.weight_ptr[1:-1]) if factor_map.features else []
    return np.concatenate([numbers[:0], *(pieces[feature] for feature in order)])


def _label(label: Hashable) -> Any:
    if isinstance(label, np.generic):
        label = label.item()
    if not isinstance(label, str | int | bool):
        raise UnsavableError(
            f"a label is {label!r}, expected texts, whole numbers or True and False in a model that is saved"
        )
    return label


def _read_labels(value: dict[str, Any]) -> dict[str, tuple[Hashable, ...]]:
    labels: dict[str, tuple[Hashable, ...]] = {}
    for kind, some in value.items():
        if (
            not isinstance(some, list)
            or not 1 <= len(some) <= MAX_LABELS
            or not all(isinstance(label, str | int) for label in some)
            or len(set(some)) < len(some)
        ):
            raise FileFormatError(f"its labels of {kind[:40]!r} are damaged")
        labels[kind] = tuple(some)
    return labels


def _read_kind(
    file: ModelFile, value: dict[str, Any], number: int, labels: dict[str, tuple[Hashable, ...]]
) -> FactorKind:
    scope, size = setting(value, "kinds", list), 1
    for kind in scope:
        if not isinstance(kind, str) or kind not in labels:
            raise FileFormatError("its factors are damaged")
        size *= len(labels[kind])
    if size > MAX_CONFIGURATIONS:
        raise FileFormatError(
            f"a factor has {size:,} configurations, expected at most {MAX_CONFIGURATIONS:,}"
        )
    tied = bool(setting(value, "tied", bool))
    if not tied:
        return FactorKind(tuple(scope), np.arange(size, dtype=np.int64), tied=False)
    classes = integers(file, f"classes.{number}", size + 1) - 1
    if len(classes) != size:
        raise FileFormatError("the configurations of its factors do not add up")
    return FactorKind(tuple(scope), classes, tied=True)
