"""What a model would say beside what is right: label sequences of training sequences, and which candidate patterns each has.

R label sequences of N sequences: exact samples of each sequence, and its right labels, which count as one sample more,
so that
nothing that occurs is thought impossible. A sequence whose samples are all right says nothing and is left out.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Bools, Float64s, Int32s, Int64s
from crfkit.models.chain_model import ChainModel
from crfkit.models.training.training_set import Examples
from crfkit.structures import ANYWHERE, Gram, Growth, LabelUnits, places

_SAMPLES = 16  # of each sequence
_MOST_DRAWN = 8_000_000  # labels of all samples; beyond that some sequences stand for all
_MOST_POSITIONS = 1_000_000  # of the label sequences that are looked at, likewise


class SampledSequences(NamedTuple):
    """Distinct label sequences, those of a sequence side by side."""

    ids: Int32s  # labels of all positions
    ptr: Int64s  # [R + 1] label sequence r has the positions ptr[r]:ptr[r + 1]
    sequence: Int64s  # [R] from 0 to N − 1, ascending
    share: Float64s  # [R] of the samples of its sequence
    right: Bools  # [R]
    weight: Float64s  # [N] of each sequence


class Counts(NamedTuple):
    """How often each candidate matches in each label sequence, where it does."""

    names: list[str]  # [C] the patterns; '' for what none can be written for
    label_sequence: Int64s  # of each entry
    candidate: Int64s
    times: Float64s


def label_sequences(
    model: ChainModel, weights: Float64s, examples: Examples, weight: Float64s | None, n_threads: int
) -> SampledSequences:
    """Samples at these weights [D] of the training sequences whose labels are all known; `weight` [N] of each."""
    n_positions = sum(map(len, examples.y))
    step = max(1, -(-n_positions * _SAMPLES // _MOST_DRAWN))
    X, y = examples.X[::step], examples.y[::step]
    dataset = model.encode(X, None if examples.allowed is None else examples.allowed[::step])
    ptr = dataset.sequence_ptr
    gold = model.labels.encode(y, np.diff(ptr)).labels
    uniforms = np.random.default_rng(0).random(_SAMPLES * len(gold))
    drawn = model.answerer(weights).sample(model.design(dataset, n_threads), _SAMPLES, uniforms, n_threads)
    of_sequence = np.ones(len(examples.y)) if weight is None else weight
    return _make_distinct(drawn, gold, ptr, step * of_sequence[::step])


def _make_distinct(drawn: Int32s, gold: Int32s, ptr: Int64s, weight: Float64s) -> SampledSequences:
    """Equal samples made one. `drawn` has [samples, T] of one sequence after the other; `gold` −1 where it is not known."""
    lists, sequence, times, right = [], [], [], []
    kept: list[int] = []
    n_positions = n_left = 0
    for n in np.random.default_rng(0).permutation(len(ptr) - 1).tolist():
        begin, end = int(ptr[n]), int(ptr[n + 1])
        labels = gold[begin:end]
        samples = drawn[_SAMPLES * begin : _SAMPLES * end].reshape(_SAMPLES, -1)
        if begin == end or labels.min() < 0 or (samples == labels).all():
            continue
        if n_positions > _MOST_POSITIONS:
            n_left += 1
            continue
        distinct, n_times = np.unique(np.vstack([samples, labels]), axis=0, return_counts=True)
        lists.append(distinct)
        sequence.append(np.full(len(distinct), len(kept)))
        times.append(n_times)
        right.append((distinct == labels).all(axis=1))
        kept.append(n)
        n_positions += distinct.size
    lengths = [part.shape[1] for part in lists for _ in part]
    none = np.zeros(0, np.int64)
    return SampledSequences(
        np.concatenate([np.zeros(0, np.int32), *(part.ravel() for part in lists)]),
        np.cumsum([0, *lengths]),
        np.concatenate([none, *sequence]),
        np.concatenate([none, *times]) / (_SAMPLES + 1),
        np.concatenate([np.zeros(0, np.bool_), *right]),
        weight[kept] * (1 + n_left / max(len(kept), 1)),
    )


def candidate_counts(found: SampledSequences, model: ChainModel, growth: Growth) -> Counts:
    """The runs of labels and of units that the label sequences have."""
    labels = model.labels.classes
    names: list[str] = []
    entries = [np.zeros((2, 0), np.int64)]
    for texts, which, owner in _families(found, labels, growth):
        entries.append(np.stack([owner, which + len(names)]))
        names += texts
    label_sequence, candidate = np.concatenate(entries, axis=1)
    keys, times = np.unique(label_sequence * max(len(names), 1) + candidate, return_counts=True)
    return Counts(names, *np.divmod(keys, max(len(names), 1)), times.astype(np.float64))


def _families(
    found: SampledSequences, labels: Any, growth: Growth
) -> Iterator[tuple[list[str], Int64s, Int64s]]:
    """For each length: the texts of the candidates, and for each match which one it is and in which label sequence."""
    for length in range(3, growth.order + 2):
        runs, which, owner = places(found.ids, found.ptr, length)
        yield [Gram(ANYWHERE, tuple(run)).text(labels) for run in runs.tolist()], which, owner
    units = LabelUnits.of(labels)
    kinds, ptr = units.split(found.ids, found.ptr)
    for length in range(3, growth.units + 1):
        runs, which, owner = places(kinds, ptr, length)
        yield [units.text(run) or "" for run in runs.tolist()], which, owner
