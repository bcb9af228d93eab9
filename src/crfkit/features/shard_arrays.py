"""Shards of encoded data sets as arrays with names; `crfkit.data.EncodedDataset` has them on disk."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from crfkit.errors import FileFormatError
from crfkit.features.dataset import Annotation, Dataset, FeatureList
from crfkit.structures import AllowedLabels


def shard_arrays(dataset: Dataset, annotation: Annotation) -> dict[str, Any]:
    """A shard as arrays with names; see `crfkit.data.EncodedDataset`."""
    arrays: dict[str, Any] = {"sequence_ptr": dataset.sequence_ptr}
    for stem, features in (("state", dataset.states), ("arc", dataset.arcs)):
        if features is not None:
            arrays |= {f"{stem}_ptr": features.position_ptr, f"{stem}_ids": features.ids}
            if features.values is not None:
                arrays[f"{stem}_values"] = features.values
    arrays["labels"] = annotation.labels
    if annotation.sets is not None:
        arrays |= {"set_ptr": annotation.sets.position_ptr, "set_labels": annotation.sets.labels}
    return arrays | {f"dense:{name}": np.asarray(block, np.float64) for name, block in dataset.dense.items()}


def read_shard(arrays: Mapping[str, Any]) -> tuple[Dataset, Annotation]:
    """The inverse of `shard_arrays`."""

    def features(stem: str) -> FeatureList | None:
        if f"{stem}_ptr" not in arrays:
            return None
        return FeatureList(arrays[f"{stem}_ptr"], arrays[f"{stem}_ids"], arrays.get(f"{stem}_values"))

    states = features("state")
    if states is None or "labels" not in arrays or "sequence_ptr" not in arrays:
        raise FileFormatError("a shard without sequences, features or labels")
    dense = {name[6:]: array for name, array in arrays.items() if name.startswith("dense:")}
    sets = AllowedLabels(arrays["set_ptr"], arrays["set_labels"]) if "set_ptr" in arrays else None
    return Dataset(arrays["sequence_ptr"], states, features("arc"), dense), Annotation(arrays["labels"], sets)
