"""Some sequences of an encoded data set as a part of its own: with the features, labels and words that they have.

A part is what `encode_part` makes of sequences. Names are numbered in the order of first occurrence, as there.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crfkit import _core
from crfkit._core import Vocabulary
from crfkit.arrays import Int32s, Int64s, offsets
from crfkit.data import ArrayFile, EncodedDataset
from crfkit.features.dataset import Annotation, Dataset, FeatureList
from crfkit.features.dictionary_words import DictionaryWords
from crfkit.features.encoding import Encoder
from crfkit.features.joint_parts import COUNTED, JointParts, describe_shard, join_parts, make_head, make_part
from crfkit.features.joint_vocabulary import vocabulary_of
from crfkit.features.labels import Labels
from crfkit.features.part_encoding import EncodingSettings
from crfkit.features.shard_arrays import read_shard
from crfkit.features.tag_dictionary import TagDictionary
from crfkit.structures import AllowedLabels


def sample_part(stored: EncodedDataset, which: Int64s) -> ArrayFile:
    """The sequences with these numbers, ascending; memory holds these and one shard."""
    datasets, annotations, words = [], [], [np.zeros(0, np.int32)]
    for i, first in enumerate(stored.shard_ptr[:-1]):
        own = which[(which >= first) & (which < stored.shard_ptr[i + 1])] - first
        if len(own):
            arrays = stored.shard(i)
            dataset, annotation = read_shard(arrays)
            positions = _list_places(dataset.sequence_ptr, own)
            datasets.append(_take_sequences(dataset, own, positions))
            annotations.append(_take_labels(annotation, positions))
            if "words" in arrays:
                words.append(arrays["words"][positions])
    names = ArrayFile({}, stored.vocabulary())
    joint, vocabularies = _join(datasets), {}
    states, vocabularies[""] = _renumber(joint.states, vocabulary_of(names, ""))
    arcs, vocabularies["arc_"] = joint.arcs, Vocabulary()
    if arcs is not None:
        arcs, vocabularies["arc_"] = _renumber(arcs, vocabulary_of(names, "arc_"))
    of_words = None
    if "word_names" in names.arrays:
        of_words, vocabularies["word_"] = _number(np.concatenate(words), vocabulary_of(names, "word_"))
    annotation = Annotation.join(annotations)
    members = [annotation.labels] if annotation.sets is None else [annotation.labels, annotation.sets.labels]
    used = np.unique(np.concatenate(members))
    used = used[used >= 0]
    classes = Labels.from_json(stored.labels).classes
    ids = np.full(len(classes) + 1, -1, np.int32)  # −1 stays −1
    ids[used] = np.arange(len(used))
    facts = {name: stored.settings.get(name) for name in ("n_columns", "more_columns")}
    return make_part(
        Dataset(joint.sequence_ptr, states, arcs, joint.dense),
        restrict_labels(annotation, ids),
        Labels(classes[i] for i in used.tolist()),
        vocabularies,
        facts,
        of_words,
    )


def restrict_labels(annotation: Annotation, ids: Int32s) -> Annotation:
    """The annotation with other ids of labels, [L + 1]; where that is −1 the label is unknown, and left out of sets."""
    labels = ids[annotation.labels]
    if annotation.sets is None:
        return Annotation(labels)
    owners = np.repeat(np.arange(len(labels)), np.diff(annotation.sets.position_ptr))
    members = ids[annotation.sets.labels]
    owners, members = owners[members >= 0], members[members >= 0]
    order = np.lexsort((members, owners))  # ascending at each position
    owners, members = owners[order], members[order]
    counts = np.bincount(owners, minlength=len(labels))
    single = counts[owners] == 1
    labels[owners[single]] = members[single]
    counts[counts == 1] = 0
    if not counts.any():
        return Annotation(labels)
    return Annotation(labels, AllowedLabels(offsets(counts), members[~single]))


class SampledDataset(EncodedDataset):
    """Some sequences of an encoded data set, in memory, as a data set of one shard."""

    def __init__(self, stored: EncodedDataset, part: ArrayFile, min_count: int) -> None:
        """Those of a part, without features at fewer than `min_count` of its positions."""
        encoding = EncodingSettings(None, min_count, word_column=stored.settings.get("word_column"))
        known = join_parts(lambda: [part], encoding)
        settings = stored.settings | {"min_count": min_count}
        counts = {name: a for name, a in stored.vocabulary().items() if name.startswith(COUNTED)}
        self._known = ArrayFile(known.metadata | {"settings": settings}, known.arrays | counts)
        self._arrays = JointParts(self._known).renumber(part)
        head = make_head(self._known, [describe_shard(self._arrays)], stored.shard_size)
        super().__init__(stored.path, head)

    def shard(self, i: int) -> dict[str, Any]:
        """The arrays of the only shard."""
        return self._arrays

    def expect(self, i: int) -> None:
        """It is in memory already."""

    def vocabulary(self) -> dict[str, Any]:
        """The names of the features."""
        return self._known.arrays


def open_part(
    part: ArrayFile, encoder: Encoder, labels: Labels, dictionary: TagDictionary | None
) -> tuple[Dataset, Annotation]:
    """A part in the numbers of a model; features that it does not have are dropped, labels are unknown."""
    dataset, annotation = read_shard(part.arrays)
    states = _rename(dataset.states, encoder.vocabulary, vocabulary_of(part, ""))
    arcs = dataset.arcs
    if arcs is not None:
        arcs = _rename(arcs, encoder.arc_vocabulary, vocabulary_of(part, "arc_"))
    known = {label: i for i, label in enumerate(labels.written.classes)}
    own = Labels.from_json(part.metadata["labels"]).classes
    ids = np.array([*(known.get(label, -1) for label in own), -1], np.int32)
    dataset = replace(dataset, states=states, arcs=arcs)
    if dictionary is not None:
        words = DictionaryWords.find(dictionary, vocabulary_of(part, "word_").names())
        allowed = labels.complete_words(words.allowed(part.arrays["words"]))
        dataset = replace(dataset, allowed=labels.allow_states(allowed))
    ptr = dataset.sequence_ptr
    return dataset, labels.to_states(labels.read_spans(restrict_labels(annotation, ids), ptr), ptr)


def _rename(features: FeatureList, vocabulary: Vocabulary, own: Vocabulary) -> FeatureList:
    """Features with the ids of a vocabulary, without those that it does not have."""
    return FeatureList(*_core.renamed_features(*features, vocabulary.find(own)))


def _list_places(ptr: Int64s, which: Int64s) -> Int64s:
    """The places of the items of these lists, one after the other: list k has ptr[k]:ptr[k + 1]."""
    counts = np.diff(ptr)[which]
    begins = offsets(counts)
    places: Int64s = np.arange(begins[-1]) + np.repeat(ptr[which] - begins[:-1], counts)
    return places


def _take(features: FeatureList, positions: Int64s) -> FeatureList:
    places = _list_places(features.position_ptr, positions)
    values = None if features.values is None else features.values[places]
    return FeatureList(offsets(np.diff(features.position_ptr)[positions]), features.ids[places], values)


def _take_sequences(dataset: Dataset, which: Int64s, positions: Int64s) -> Dataset:
    """These sequences, which have these positions."""
    return Dataset(
        offsets(np.diff(dataset.sequence_ptr)[which]),
        _take(dataset.states, positions),
        None if dataset.arcs is None else _take(dataset.arcs, positions),
        {name: block[positions] for name, block in dataset.dense.items()},
    )


def _take_labels(annotation: Annotation, positions: Int64s) -> Annotation:
    labels, sets = annotation.labels[positions], annotation.sets
    if sets is None:
        return Annotation(labels)
    members = sets.labels[_list_places(sets.position_ptr, positions)]
    return Annotation(labels, AllowedLabels(offsets(np.diff(sets.position_ptr)[positions]), members))


def _join(parts: Sequence[Dataset]) -> Dataset:
    """Those of several shards, one after the other; shards of a data set have the same kinds of features."""
    sequence_ptr = offsets(np.concatenate([np.diff(part.sequence_ptr) for part in parts]))
    arcs = [part.arcs for part in parts if part.arcs is not None]
    dense = {name: np.concatenate([part.dense[name] for part in parts]) for name in parts[0].dense}
    return Dataset(
        sequence_ptr,
        _join_features([part.states for part in parts]),
        _join_features(arcs) if arcs else None,
        dense,
    )


def _join_features(parts: Sequence[FeatureList]) -> FeatureList:
    ptr = offsets(np.concatenate([np.diff(part.position_ptr) for part in parts]))
    values = [part.values for part in parts if part.values is not None]
    return FeatureList(
        ptr, np.concatenate([part.ids for part in parts]), np.concatenate(values) if values else None
    )


def _number(ids: Int32s, vocabulary: Vocabulary) -> tuple[Int32s, Vocabulary]:
    """Ids by first occurrence, and the names that they are those of."""
    found, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(found), np.int32)
    rank[order] = np.arange(len(found))
    own = Vocabulary()
    for i in found[order].tolist():
        own.add(vocabulary.name(i))
    return rank[inverse], own


def _renumber(features: FeatureList, vocabulary: Vocabulary) -> tuple[FeatureList, Vocabulary]:
    ids, own = _number(features.ids, vocabulary)
    return features._replace(ids=ids), own
