"""One vocabulary from those of many parts of a data set, with memory for the names that stay."""

from collections.abc import Callable, Iterable

import numpy as np

from crfkit._core import Vocabulary
from crfkit.arrays import Int64s
from crfkit.data import ArrayFile

_MOST_COUNTERS = 1 << 24  # of hashes


def join_vocabularies(parts: Callable[[], Iterable[ArrayFile]], prefix: str, min_count: int) -> Vocabulary:
    """One vocabulary of the parts, in the order of first occurrence, without names counted less than `min_count` times."""
    if min_count == 1:
        joint = Vocabulary()
        for part in parts():
            own = vocabulary_of(part, prefix)
            joint.extend(own, np.ones(len(own), np.bool_))
        return joint
    n_names = sum(len(part.arrays[f"{prefix}lengths"]) for part in parts())
    size = np.uint64(min(_MOST_COUNTERS, 1 << (4 * n_names).bit_length()))
    sketch = np.zeros(int(size), np.int64)
    for part in parts():
        own = vocabulary_of(part, prefix)
        np.add.at(sketch, own.hashes() % size, _counts(part, prefix, len(own)))
    joint, counts = Vocabulary(), np.zeros(0, np.int64)
    for part in parts():
        own = vocabulary_of(part, prefix)
        frequent = sketch[own.hashes() % size] >= min_count
        ids = joint.extend(own, frequent)
        counts = np.concatenate([counts, np.zeros(len(joint) - len(counts), np.int64)])
        counts[ids[frequent]] += _counts(part, prefix, len(own))[frequent]
    return joint.keep(counts >= min_count)[0]


def vocabulary_of(file: ArrayFile, prefix: str) -> Vocabulary:
    """The vocabulary that a file holds; `prefix` is "arc_" for features of transitions."""
    return Vocabulary.from_bytes(file.arrays[f"{prefix}names"], file.arrays[f"{prefix}lengths"])


def _counts(part: ArrayFile, prefix: str, n: int) -> Int64s:
    """At how many positions each feature stands; those of transitions may be absent."""
    found: Int64s = part.arrays.get(f"{prefix}counts", np.zeros(n, np.int64))
    return found
