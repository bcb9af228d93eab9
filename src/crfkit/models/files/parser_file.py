"""What the file of a parser holds, array by array, and the rules that each must keep.

    arc_keys      keys of the features of arcs, ascending as unsigned numbers
    label_keys    keys of the features of labels
    label_counts  how many labels each of the latter has weights for; `labels` are these, ascending
    weights       [D] those of arcs, then those of labels, feature by feature
    history       of the training
    pruner_…      arc_keys and weights of the first-order model that prunes arcs, where there is one; its features are most
                  often among those of the parser: pruner_shared_arc_keys has a bit for each of these, pruner_arc_keys are
                  the others. In files of before it has labels too: label_keys, label_counts and labels are left out
                  where they are the same

    vector_keys   keys of the blocks of weights of word vectors, where there are such; vector_counts: how many rows each of
                  these has; vector_labels: the label of each row, the number of labels for a row of all of them. The weights
                  of a row, "vector_size" of them, stand behind those of labels

Word clusters are a resource, "clusters", whose bytes it holds (resource_file.py). Word vectors are one too, "vectors", whose
bytes it holds where it is bundled.

Every rule is checked here, but for two that the native core sees to: keys ascend, and so do the labels of a feature.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Float64s, Int64s, offsets
from crfkit.errors import FileFormatError, reword
from crfkit.features import (
    FEATURE_SET,
    ArcMap,
    ArcPruner,
    Clusters,
    MissingResource,
    Resource,
    VectorLayout,
    WordVectors,
)
from crfkit.models.files import resource_file
from crfkit.models.files.file_arrays import (
    array,
    compact,
    count_setting,
    integers,
    read_history,
    read_weights,
    setting,
)
from crfkit.models.files.model_file import Array, ModelFile

TYPE = "Parser"
MAX_LABELS = 10_000
PRUNER = "pruner_"  # what the names of its arrays begin with
PRUNER_KEYS, PRUNER_WEIGHTS = "pruner_arc_keys", "pruner_weights"
SHARED = "pruner_shared_arc_keys"
CLUSTERS, VECTORS = "clusters", "vectors"
VECTOR_SIZE = "vector_size"
MAX_VECTOR_SIZE = 1 << 20
LABEL_ARRAYS = ("label_keys", "label_counts", "labels")


class ParserContents(NamedTuple):
    """A parser as the file holds it."""

    settings: dict[str, Any]
    arc_map: ArcMap
    weights: Float64s  # [D]
    history: Float64s  # [iterations, 5]
    pruner: ArcPruner | None = None
    resources: Mapping[str, Resource | MissingResource] = MappingProxyType({})


def pack(contents: ParserContents, *, single_precision: bool = False) -> ModelFile:
    """The model file of a parser."""
    precision = np.float32 if single_precision else np.float64
    arrays = _pack_map(contents.arc_map, contents.weights.astype(precision, copy=False), "")
    arrays["history"] = contents.history
    settings = {**contents.settings, "labels": list(contents.arc_map.labels), "features": FEATURE_SET}
    pruner = contents.pruner
    if pruner is not None:
        own = _pack_map(pruner.arc_map, pruner.weights.astype(np.float32), PRUNER)
        coarse = pruner.arc_map.is_coarse
        if coarse:  # it knows no labels
            own = {name: own[name] for name in (PRUNER_KEYS, PRUNER_WEIGHTS)}
        arrays |= _without_shared(own, arrays)
        settings["pruning"] = {"threshold": pruner.threshold, "most": pruner.most, "coarse": coarse}
    if contents.arc_map.vector_size:
        arrays |= _pack_vectors(contents.arc_map.layout.vectors)
        settings[VECTOR_SIZE] = contents.arc_map.vector_size
    if not contents.resources:
        return ModelFile(TYPE, settings, arrays)
    settings["resources"] = resource_file.to_json(contents.resources)
    held = {name: resource for name, resource in contents.resources.items() if name == CLUSTERS}
    return resource_file.bundle(ModelFile(TYPE, settings, arrays), held)


def unpack(file: ModelFile) -> ParserContents:
    """The parser of a model file; InputError for anything that is not one."""
    if file.type != TYPE:
        raise FileFormatError(f"its type is {file.type[:40]!r}, expected {TYPE!r}")
    settings = dict(file.settings)
    labels = _labels(settings.pop("labels", None))
    if count_setting(settings, "features") != FEATURE_SET:
        raise FileFormatError(f"it has features of another version, expected version {FEATURE_SET}")
    settings.pop("features")
    size = count_setting(settings, VECTOR_SIZE) if VECTOR_SIZE in settings else 0
    settings.pop(VECTOR_SIZE, None)
    arc_map, weights = _unpack_map(file, labels, "", _unpack_vectors(file, size, len(labels)))
    pruner = None
    if "pruning" in settings:
        pruner = _unpack_pruner(_with_shared(file), labels, settings.pop("pruning"))
    resources = resource_file.read(file, settings)
    _check_resources(resources, size)
    settings.pop("resources", None)
    return ParserContents(settings, arc_map, weights, read_history(file), pruner, resources)


def _check_resources(resources: Mapping[str, Resource | MissingResource], size: int) -> None:
    """FileFormatError unless they are what a parser with vectors of this size, or with none (0), reads."""
    if CLUSTERS in resources and not isinstance(resources[CLUSTERS], Clusters):
        raise FileFormatError("its word clusters are missing")
    vectors = resources.get(VECTORS)
    if set(resources) - {CLUSTERS, VECTORS} or (vectors is None) != (size == 0):
        raise FileFormatError("its list of resources is damaged")
    if vectors is None:
        return
    if vectors.KIND != WordVectors.KIND or (isinstance(vectors, WordVectors) and vectors.size != size):
        raise FileFormatError(
            f"its resource {VECTORS!r} is not the word vectors of {size} numbers that it reads"
        )


def _pack_map(arc_map: ArcMap, weights: npt.NDArray[Any], prefix: str) -> dict[str, Array]:
    layout = arc_map.layout
    return {
        f"{prefix}arc_keys": layout.arc_keys,
        f"{prefix}label_keys": layout.label_keys,
        f"{prefix}label_counts": compact(np.diff(layout.pair_ptr)),
        f"{prefix}labels": compact(layout.pair_labels),
        f"{prefix}weights": weights,
    }


def _pack_vectors(vectors: VectorLayout) -> dict[str, Array]:
    return {
        "vector_keys": vectors.keys,
        "vector_counts": compact(np.diff(vectors.ptr)),
        "vector_labels": compact(vectors.labels),
    }


def _unpack_vectors(file: ModelFile, size: int, n_labels: int) -> VectorLayout | None:
    if size == 0:
        return None
    if size > MAX_VECTOR_SIZE:
        raise FileFormatError(f"its word vectors have {size} numbers, expected at most {MAX_VECTOR_SIZE}")
    keys = _keys(file, "vector_keys")
    counts, rows = (
        integers(file, "vector_counts", n_labels + 2),
        integers(file, "vector_labels", n_labels + 1),
    )
    if len(counts) != len(keys) or int(counts.sum()) != len(rows):
        raise FileFormatError("the rows of its word vectors do not add up")
    try:
        return VectorLayout(size, keys, offsets(counts), rows.astype(np.int32), n_labels)
    except ValueError as error:
        raise reword(error, str(error)) from None


def _without_shared(own: dict[str, Array], arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays of the pruner without what those of the parser have too."""
    kept = dict(own)
    if all(np.array_equal(own.get(PRUNER + name, ()), arrays[name]) for name in LABEL_ARRAYS):
        for name in LABEL_ARRAYS:
            kept.pop(PRUNER + name, None)
    keys = own[PRUNER_KEYS]
    kept[SHARED] = np.packbits(np.isin(arrays["arc_keys"], keys))
    kept[PRUNER_KEYS] = keys[~np.isin(keys, arrays["arc_keys"])]
    return kept


def _with_shared(file: ModelFile) -> ModelFile:
    """The file with all arrays of the pruner; one of an older version has them."""
    arrays = dict(file.arrays)
    for name in LABEL_ARRAYS:
        arrays.setdefault(PRUNER + name, array(file, name))
    if SHARED in arrays:
        keys, bits, rest = _keys(file, "arc_keys"), array(file, SHARED), _keys(file, PRUNER_KEYS)
        if bits.dtype != np.uint8 or bits.shape != (-(-len(keys) // 8),):
            raise FileFormatError(
                f"array {SHARED!r} is {bits.dtype} of shape {list(bits.shape)}, expected a bit for each of the "
                f"{len(keys)} keys of arcs"
            )
        shared = keys[np.unpackbits(bits, count=len(keys)).astype(np.bool_)]
        arrays[PRUNER_KEYS] = np.sort(np.concatenate([shared, rest]).view(np.uint64)).view(np.int64)
    return ModelFile(file.type, file.settings, arrays)


def _unpack_map(
    file: ModelFile, labels: list[str], prefix: str, vectors: VectorLayout | None = None
) -> tuple[ArcMap, Float64s]:
    arc_keys, label_keys = _keys(file, f"{prefix}arc_keys"), _keys(file, f"{prefix}label_keys")
    counts = integers(file, f"{prefix}label_counts", len(labels) + 1)
    pairs = integers(file, f"{prefix}labels", len(labels))
    if len(counts) != len(label_keys) or int(counts.sum()) != len(pairs):
        raise FileFormatError("the labels of its features do not add up")
    n_dense = 0 if vectors is None else vectors.n_weights
    weights = read_weights(file, len(arc_keys) + len(pairs) + n_dense, f"{prefix}weights")
    ptr = offsets(counts)
    try:
        arc_map = ArcMap.of(labels, arc_keys, label_keys, ptr, pairs.astype(np.int32), vectors)
    except ValueError as error:
        raise reword(error, str(error)) from None
    return arc_map, weights


def _unpack_pruner(file: ModelFile, labels: list[str], limits: Any) -> ArcPruner:
    if not isinstance(limits, dict):
        raise FileFormatError("its pruning is no table of settings")
    threshold, most = setting(limits, "threshold", (float, int)), setting(limits, "most", int)
    if not 0 <= threshold <= 1 or not 1 <= most < 2**31:
        raise FileFormatError("its pruning has a threshold outside 0 … 1, or keeps no heads")
    if not limits.get("coarse", False):  # files of before: all templates, with labels
        return ArcPruner(*_unpack_map(file, labels, PRUNER), float(threshold), most)
    keys = _keys(file, PRUNER_KEYS)
    weights = read_weights(file, len(keys), PRUNER_WEIGHTS)
    try:
        return ArcPruner(ArcMap.of_coarse(keys), weights, float(threshold), most)
    except ValueError as error:
        raise reword(error, str(error)) from None


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
