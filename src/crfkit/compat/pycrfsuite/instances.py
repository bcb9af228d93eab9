"""The instances of a trainer, encoded, and the features that CRFsuite generates from them."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Int32s
from crfkit.compat.pycrfsuite.items import read_items
from crfkit.features import Annotation, Dataset, FeatureList, FeatureMap, Vocabulary
from crfkit.structures import Chain

CHAIN = Chain(start=False, end=False)  # CRFsuite has no arcs into the first label or out of the last


class Instance(NamedTuple):
    """One sequence."""

    states: FeatureList
    labels: Int32s  # [T]
    group: int


class Examples(NamedTuple):
    """Some of the instances, one after the other."""

    dataset: Dataset
    annotation: Annotation


@dataclass
class Instances:
    """Sequences as they come; names of attributes and labels have the ids of their first occurrence."""

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    label_ids: dict[str, int] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.instances)

    def append(self, xseq: Any, yseq: Iterable[Any], group: int) -> None:
        """Add an instance; ValueError where items and labels are not as many."""
        names = [_label(label) for label in yseq]
        states = FeatureList(*read_items(xseq).add_to(self.vocabulary))
        n_positions = len(states.position_ptr) - 1
        if n_positions != len(names):
            raise ValueError(
                f"The numbers of items and labels differ: |x| = {n_positions}, |y| = {len(names)}"
            )
        ids = [self.label_ids.setdefault(name, len(self.label_ids)) for name in names]
        self.instances.append(Instance(states, np.array(ids, dtype=np.int32), group))

    def without(self, group: int) -> Examples:
        """The instances of all groups but one."""
        return _join([instance for instance in self.instances if instance.group != group])

    def only(self, group: int) -> Examples:
        """The instances of one group."""
        return _join([instance for instance in self.instances if instance.group == group])


def _label(label: Any) -> str:
    if isinstance(label, bytes):
        return label.decode()
    if not isinstance(label, str):
        raise TypeError(f"expected a string, {type(label).__name__} found")
    label.encode()  # UnicodeEncodeError for what no file can hold
    return str(label)


def _join(instances: list[Instance]) -> Examples:
    """Instances as flat arrays."""
    labels = [instance.labels for instance in instances]
    states = [instance.states for instance in instances]
    ids = [part.ids for part in states]
    values = None
    if any(part.values is not None for part in states):
        values = np.concatenate(
            [np.ones(len(part.ids)) if part.values is None else part.values for part in states]
        )
    counts = [np.diff(part.position_ptr) for part in states]
    features = FeatureList(_pointers(counts), np.concatenate([np.zeros(0, np.int32), *ids]), values)
    lengths = np.array([len(part) for part in labels], dtype=np.int64)
    dataset = Dataset(_pointers([lengths]), features)
    return Examples(dataset, Annotation(np.concatenate([np.zeros(0, np.int32), *labels])))


def _pointers(counts: list[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]))


def feature_map(
    examples: Examples,
    n_attributes: int,
    n_labels: int,
    *,
    minfreq: float,
    possible_states: bool,
    possible_transitions: bool,
) -> FeatureMap:
    """The features that CRFsuite generates, those with a frequency below `minfreq` left out.

    The frequency of an attribute with a label is the sum of its values there, that of an arc the number of its occurrences.
    So an attribute whose values with a label sum to less than 0 has no weight for it, even where `minfreq` is 0.
    """
    dataset, annotation = examples
    built = FeatureMap.build(
        dataset,
        annotation,
        CHAIN,
        n_labels=n_labels,
        n_features=n_attributes,
        all_possible_states=possible_states,
        all_possible_transitions=possible_transitions,
    )
    pairs = np.ones(built.n_pairs, dtype=bool)
    arcs = np.ones(len(built.arc_before), dtype=bool)
    attributes = np.repeat(np.arange(n_attributes), np.diff(built.pair_ptr))  # [P]
    if possible_states:
        seen = np.zeros(n_attributes, dtype=bool)
        seen[dataset.states.ids] = True
        pairs &= seen[attributes]
    values = dataset.states.values
    if minfreq > 0 or (values is not None and values.min(initial=0.0) < 0):
        pairs &= _pair_frequencies(examples, built, attributes) >= minfreq
        arcs &= _arc_frequencies(examples, built) >= minfreq
    if pairs.all() and arcs.all():
        return built
    counts = np.bincount(attributes[pairs], minlength=n_attributes)
    return replace(
        built,
        pair_ptr=_pointers([counts.astype(np.int64)]),
        pair_labels=built.pair_labels[pairs],
        arc_before=built.arc_before[arcs],
        arc_after=built.arc_after[arcs],
    )


def _pair_frequencies(
    examples: Examples, built: FeatureMap, attributes: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """[P]."""
    states, n = examples.dataset.states, built.n_labels
    labels = np.repeat(examples.annotation.labels, np.diff(states.position_ptr)).astype(np.int64)
    codes, places = np.unique(states.ids * np.int64(n) + labels, return_inverse=True)
    sums = np.bincount(places, weights=states.values, minlength=len(codes)).astype(np.float64)
    return _look_up(codes, sums, attributes * n + built.pair_labels)


def _arc_frequencies(examples: Examples, built: FeatureMap) -> npt.NDArray[np.float64]:
    """[A]."""
    labels, ptr, n = (
        examples.annotation.labels.astype(np.int64),
        examples.dataset.sequence_ptr,
        built.n_labels,
    )
    follows = np.ones(len(labels), dtype=bool)
    follows[ptr[:-1][ptr[:-1] < len(labels)]] = False  # a first position follows none
    after = np.flatnonzero(follows)
    codes, counts = np.unique(labels[after - 1] * n + labels[after], return_counts=True)
    return _look_up(codes, counts.astype(np.float64), built.arc_before * np.int64(n) + built.arc_after)


def _look_up(
    codes: npt.NDArray[np.int64], sums: npt.NDArray[np.float64], wanted: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The sum of each wanted code, 0 where it is not among the ascending codes."""
    if len(codes) == 0:
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(codes[places] == wanted, sums[places], 0.0)
