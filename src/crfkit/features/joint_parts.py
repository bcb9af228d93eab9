"""Parts of a data set that were encoded one by one, each with ids of its own, as shards with the same ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from crfkit import _core
from crfkit._core import Vocabulary
from crfkit.arrays import Int32s
from crfkit.data import ArrayFile, DatasetFolder, pack_arrays
from crfkit.errors import FileFormatError, ShapeError
from crfkit.features.dataset import Annotation, Dataset, FeatureList
from crfkit.features.frequent_words import FREQUENT_WORD_ARRAYS, FrequentWords
from crfkit.features.joint_vocabulary import join_vocabularies, vocabulary_of
from crfkit.features.labels import Labels
from crfkit.features.rare_features import AUTO_COUNT, least_count
from crfkit.features.shard_arrays import read_shard, shard_arrays

if TYPE_CHECKING:
    from crfkit.features.part_encoding import EncodingSettings

COUNTED = "counted_"
"""What the names of arrays begin with that hold counts of words."""
PART_NAMES = (
    *("names", "lengths", "counts", "arc_names", "arc_lengths", "arc_counts"),
    *("word_names", "word_lengths"),
)
"""The arrays of a part that `join_parts` looks at; of the others it sees which there are, and their columns."""


def make_part(
    dataset: Dataset,
    annotation: Annotation,
    labels: Labels,
    vocabularies: Mapping[str, Vocabulary],
    facts: Mapping[str, Any],
    words: Int32s | None,
) -> ArrayFile:
    """Sequences with ids of their own.

    `vocabularies` are those of features, by prefix: "", "arc_" for transitions, "word_" for `words` [T]. `facts` are
    n_columns and more_columns.
    """
    arrays = shard_arrays(dataset, annotation)
    for prefix, vocabulary in vocabularies.items():
        arrays[f"{prefix}names"], arrays[f"{prefix}lengths"] = vocabulary.to_bytes()
    for prefix, features in (("", dataset.states), ("arc_", dataset.arcs)):
        if features is not None:
            arrays[f"{prefix}counts"] = _core.position_counts(*features[:2], len(vocabularies[prefix]))
    if words is not None:
        arrays["words"] = words
    counts = {"n_sequences": dataset.n_sequences, "n_positions": dataset.n_positions}
    return ArrayFile({**counts, **facts, "labels": labels.to_json()}, arrays)


def join_parts(parts: Callable[[], Iterable[ArrayFile]], settings: EncodingSettings) -> ArrayFile:
    """One vocabulary and one list of labels, in the order of the parts, and which arrays all shards have."""
    least = _least_count(parts, settings.min_count)
    states = join_vocabularies(parts, "", least)
    arcs = join_vocabularies(parts, "arc_", least)
    found: dict[Any, None] = {}  # labels
    kinds: dict[str, list[int]] = {}  # names of arrays that all shards have, with their numbers of columns
    facts: list[dict[str, Any]] = []
    n_sequences = 0
    for part in parts():
        facts.append(part.metadata)
        found |= dict.fromkeys(Labels.from_json(part.metadata["labels"]).classes)
        for name, array in part.arrays.items():
            shape = list(array.shape[1:])
            if kinds.setdefault(name, shape) != shape:
                [wide], [known] = shape, kinds[name]
                raise ShapeError(
                    f"{name.replace(':', ' block ')} has rows of {wide} numbers from sequence {n_sequences} on, "
                    f"expected {known} as before"
                )
        n_sequences += part.metadata["n_sequences"]
    # Sequences of a part may all be empty: it has no columns.
    with_rows = next((one for one in facts if one["n_columns"] is not None), facts[0])
    n_columns, more_columns = with_rows["n_columns"], with_rows["more_columns"]
    own = settings.to_json(settings.template_for(n_columns))
    names: dict[str, Any] = dict(zip(("names", "lengths"), states.to_bytes(), strict=True))
    names |= dict(zip(("arc_names", "arc_lengths"), arcs.to_bytes(), strict=True))
    if settings.word_column is not None:
        words = join_vocabularies(parts, "word_", 1)
        names |= dict(zip(("word_names", "word_lengths"), words.to_bytes(), strict=True))
    if settings.counts is not None:
        names |= {f"{COUNTED}{name}": array for name, array in settings.counts.to_arrays().items()}
    about = {
        "n_parts": len(facts),
        "labels": Labels.learn([list(found)]).to_json(),
        "settings": own | {"min_count": least, "n_columns": n_columns, "more_columns": more_columns},
        "kinds": kinds,
    }
    return ArrayFile(about, names)


def _least_count(parts: Callable[[], Iterable[ArrayFile]], min_count: int | str) -> int:
    """At how many positions a feature must stand, in data of the size of all parts together."""
    if min_count != AUTO_COUNT:
        return least_count(min_count, 0)
    return least_count(min_count, sum(part.metadata["n_positions"] for part in parts()))


def read_counts(names: Mapping[str, Any], source: str) -> FrequentWords:
    """The counts of words that the vocabulary of a data set holds; FileFormatError where they are damaged."""
    arrays = {name: names.get(f"{COUNTED}{name}") for name in FREQUENT_WORD_ARRAYS}
    try:
        return FrequentWords.from_arrays(arrays)
    except FileFormatError as error:
        raise FileFormatError(f"{source}: {error}") from None


class JointParts:
    """What `join_parts` gives, for the shards: parts with the ids of all."""

    def __init__(self, known: ArrayFile) -> None:
        self.known = known

    @cached_property
    def _vocabularies(self) -> dict[str, Vocabulary]:
        prefixes = [prefix for prefix in ("", "arc_", "word_") if f"{prefix}names" in self.known.arrays]
        return {prefix: vocabulary_of(self.known, prefix) for prefix in prefixes}

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        return {label: i for i, label in enumerate(Labels.from_json(self.known.metadata["labels"]).classes)}

    def __reduce__(self) -> tuple[Any, ...]:
        return JointParts, (self.known,)

    def renumber(self, part: ArrayFile) -> dict[str, Any]:
        """The arrays of a shard; where other parts have arrays that this one lacks, these are added."""
        dataset, annotation = read_shard(part.arrays)
        kinds = self.known.metadata["kinds"]
        states = self._features(part, "", dataset.states, dataset.n_positions)
        arcs = self._features(part, "arc_", dataset.arcs, dataset.n_positions)
        dense = {
            name.removeprefix("dense:"): part.arrays.get(name, np.zeros((dataset.n_positions, *shape)))
            for name, shape in kinds.items()
            if name.startswith("dense:")
        }
        assert states is not None
        arrays = shard_arrays(Dataset(dataset.sequence_ptr, states, arcs, dense), annotation)
        ids = self._label_ids(part)
        arrays["labels"] = ids[annotation.labels]
        if "words" in part.arrays:
            arrays["words"] = self._vocabularies["word_"].find(vocabulary_of(part, "word_"))[
                part.arrays["words"]
            ]
        if annotation.sets is not None:
            ptr = annotation.sets.position_ptr
            owners = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
            renamed = ids[annotation.sets.labels]
            arrays["set_labels"] = renamed[np.lexsort((renamed, owners))]  # ascending at each position
        return arrays

    def _features(
        self, part: ArrayFile, prefix: str, features: FeatureList | None, n_positions: int
    ) -> FeatureList | None:
        """With the ids of all; None where no shard has such features."""
        kinds, stem = self.known.metadata["kinds"], prefix.rstrip("_") or "state"
        if f"{stem}_ptr" not in kinds:
            return None
        if features is None:
            features = FeatureList(np.zeros(n_positions + 1, np.int64), np.zeros(0, np.int32), None)
        remap = self._vocabularies[prefix].find(vocabulary_of(part, prefix))
        ptr, ids, values = _core.renamed_features(*features, remap)
        if values is None and f"{stem}_values" in kinds:
            values = np.ones(len(ids))
        return FeatureList(ptr, ids, values)

    def _label_ids(self, part: ArrayFile) -> Int32s:
        """The id of each label of a part, and −1 for the one that is not known."""
        own = Labels.from_json(part.metadata["labels"]).classes
        return np.array([*(self._numbers[label] for label in own), -1], np.int32)


def describe_shard(arrays: Mapping[str, Any]) -> dict[str, int]:
    """What the head of a data set says of a shard."""
    pieces, checksum = pack_arrays(arrays, {})
    return {
        "n_sequences": len(arrays["sequence_ptr"]) - 1,
        "n_positions": int(arrays["sequence_ptr"][-1]),
        "n_bytes": sum(map(len, pieces)),
        "checksum": checksum,
    }


def make_head(known: ArrayFile, shards: Sequence[dict[str, int]], shard_size: int) -> dict[str, Any]:
    """What `dataset.json` says of a data set."""
    return {
        "format": DatasetFolder.FORMAT,
        "version": DatasetFolder.VERSION,
        "settings": known.metadata["settings"],
        "labels": known.metadata["labels"],
        "n_sequences": sum(shard["n_sequences"] for shard in shards),
        "n_positions": sum(shard["n_positions"] for shard in shards),
        "n_features": len(known.arrays["lengths"]),
        "n_arc_features": len(known.arrays["arc_lengths"]),
        "shard_size": shard_size,
        "shards": list(shards),
    }
