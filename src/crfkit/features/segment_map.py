"""The weights of segments, and data sets of segmentations.

The feature map has the weights of positions and of transitions, which link segments here: from any label of a type to any
label that begins a segment, as one pair of labels for each pair of types. Behind them lie own weights:

    lengths    for each type whose segments have several: 1 … K, then one for each position beyond, if there is no limit
    features   of segments: (feature, type), seen together in training or all

Letters: T positions, L labels, C types, F segment features, D weights.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Bools, Int32s, Int64s, offsets
from crfkit.errors import ImpossibleLabelsError, reword
from crfkit.features.dataset import Annotation, Dataset, sequence_weights
from crfkit.features.feature_map import FeatureMap, Purpose
from crfkit.features.function_data import FunctionData
from crfkit.features.seen_segments import SeenSegments
from crfkit.features.segment_features import SegmentCells, SegmentReader
from crfkit.lazy import lazy_property
from crfkit.structures import OBSERVED, Bigrams, Segments, SegmentTypes


class WeightKey(NamedTuple):
    """What a weight of segments scores."""

    type: Hashable
    role: str  # "length", "longer" or "feature"
    what: int | str | None = None  # the length, or the name of the feature


@dataclass(frozen=True, eq=False)
class SegmentMap:
    """Which weights segments have. They lie behind those of the feature map, in the order of `names`."""

    structure: Segments
    labels: tuple[Hashable, ...]  # [L]
    n_lengths: tuple[int, ...]  # [C] K: longer segments have no weight for their length
    features: tuple[str, ...] = ()  # [F] of segments
    pair_ptr: Int64s = field(default_factory=lambda: np.zeros(1, np.int64))  # [F + 1]
    pair_types: Int32s = field(
        default_factory=lambda: np.zeros(0, np.int32)
    )  # feature f has weights for these
    bigrams: Bigrams | None = None  # the types that may follow each other, as training fixed them; None: all

    @classmethod
    def learn(
        cls,
        structure: Segments,
        labels: Sequence[Hashable],
        dataset: Dataset,
        annotation: Annotation,
        base: SegmentMap | None = None,
        *,
        all_possible_states: bool = False,
    ) -> SegmentMap:
        """With the lengths and the features that segments of training data have, beside those of a base.

        Features have weights for the types they are seen with, or `all_possible_states`. The inputs are those of `dataset`.
        """
        types = _types(structure, labels)
        seen = SeenSegments.find(structure, types, labels, dataset, annotation)
        longest = np.ones(len(types.names), np.int64)
        np.maximum.at(longest, seen.types, seen.lengths)
        before = {} if base is None else dict(zip(base.types.names, base.n_lengths, strict=True))
        found = []
        T = int(np.diff(dataset.sequence_ptr).max(initial=0))
        for name, most, several in zip(types.names, longest.tolist(), types.goes_on.tolist(), strict=True):
            limit = structure.limit(name) if several else 1
            known = min(most, structure.longest_weighted) if limit is None else min(limit, max(T, 1))
            kept = before.get(name, 1) if limit is None else min(before.get(name, 1), limit)
            found.append(max(known, kept))
        bigrams = _bind_bigrams(structure, types, seen, annotation, dataset.sequence_ptr, base)
        map_ = cls(structure, tuple(labels), tuple(found), bigrams=bigrams)
        if not map_.reads_inputs:
            return map_
        return map_._with_features(seen, dataset, base, every_type=all_possible_states)

    def _with_features(
        self, seen: SeenSegments, dataset: Dataset, base: SegmentMap | None, *, every_type: bool
    ) -> SegmentMap:
        """With weights for the features of segments that are seen, beside those of a base."""
        known = {name: c for c, name in enumerate(self.types.names)}
        pairs: dict[str, set[int]] = {}
        if base is not None:
            owners = np.repeat(np.arange(len(base.features)), np.diff(base.pair_ptr)).tolist()
            for f, c in zip(owners, base.pair_types.tolist(), strict=True):
                pairs.setdefault(base.features[f], set()).add(known[base.types.names[c]])
        short = seen.lengths <= np.array(self.n_lengths)[seen.types]
        for n, (x, some) in enumerate(seen.by_sequence(dataset, short)):
            reader = self._reader.read(n, x)
            for start, end, c in some:
                for name, _ in reader.names(start, end):
                    pairs.setdefault(name, set()).update(known.values() if every_type else (c,))
            for table in reader.unseen:
                for (start, end), named in table.items():
                    possible = [c for c, k in enumerate(self.n_lengths) if end - start <= k]
                    for name, _ in named if possible else ():
                        pairs.setdefault(name, set()).update(possible)
        return replace(
            self,
            features=tuple(pairs),
            pair_ptr=offsets([len(some) for some in pairs.values()]),
            pair_types=np.array([c for some in pairs.values() for c in sorted(some)], np.int32),
        )

    @property
    def reads_inputs(self) -> bool:
        """Whether features look at whole segments of the inputs."""
        return bool(self.structure.segment_features or self.structure.dictionaries)

    @lazy_property
    def _reader(self) -> SegmentReader:
        return SegmentReader(self.structure)

    def cells(self, dataset: Dataset) -> SegmentCells | None:
        """The features of the segments of a data set."""
        if not self.reads_inputs:
            return None
        assert dataset.inputs is not None
        find = {name: f for f, name in enumerate(self.features)}
        return self._reader.cells(dataset.inputs, dataset.sequence_ptr, max(self.n_lengths), find)

    @lazy_property
    def types(self) -> SegmentTypes:
        """Of segments."""
        return _types(self.structure, self.labels)

    @lazy_property
    def exists(self) -> Bools:
        """Which types may follow which, [C + 1, C + 1]; the last row is the start, the last column the end."""
        C = len(self.types.names)
        found = np.ones((C + 1, C + 1), np.bool_)
        if self.bigrams is not None:
            found[:] = False
            found[self.bigrams.ids(self.types.names)] = True
            found[C, C] = True
        if not self.types.repeats:
            np.fill_diagonal(found[:C, :C], val=False)
        return found

    def label_pairs(self) -> tuple[Int32s, Int32s]:
        """The labels that may follow each other, within a segment and between two; L is the start and the end."""
        types, L = self.types, len(self.labels)
        found = np.zeros((L + 1, L + 1), np.bool_)
        begins, ends = [], []  # [C + 1] the labels that segments of a type begin with, end with
        for first, inside, last, single in zip(
            types.first, types.inside, types.last, types.single, strict=True
        ):
            several = first >= 0 and last >= 0
            begins.append([b for b in {first if several else -1, single} if b >= 0])
            ends.append([b for b in {last if several else -1, single} if b >= 0])
            if several:
                going, following = (
                    [b for b in {*two} if b >= 0] for two in ((first, inside), (inside, last))
                )
                found[np.ix_(going, following)] = True
        for a, c in np.argwhere(self.exists).tolist():
            found[np.ix_([*ends, [L]][a], [*begins, [L]][c])] = True
        before, after = (ids.astype(np.int32) for ids in np.nonzero(found))
        return before, after

    @lazy_property
    def unlimited(self) -> Bools:
        """Whether segments of each type [C] may have any length."""
        limits = [self.structure.limit(name) is None for name in self.types.names]
        return np.array(limits, np.bool_) & self.types.goes_on

    @lazy_property
    def length_begin(self) -> Int64s:
        """Where the own weights of the lengths of each type [C] begin, and where the last ones end; [C + 1]."""
        n_lengths = np.array(self.n_lengths, np.int64)
        return offsets(np.where(self.unlimited | (n_lengths > 1), n_lengths + self.unlimited, 0))

    @property
    def n_weights(self) -> int:
        """Own weights."""
        return int(self.length_begin[-1]) + len(self.pair_types)

    @lazy_property
    def keys(self) -> tuple[WeightKey, ...]:
        """What each own weight scores: its type, and a length, "longer", or a feature."""
        found: list[WeightKey] = []
        for c, name in enumerate(self.types.names):
            n = int(self.length_begin[c + 1] - self.length_begin[c])
            known = n - int(self.unlimited[c])
            found += [WeightKey(name, "length", k) for k in range(1, known + 1)]
            found += [WeightKey(name, "longer")] * (n > known)
        owners = np.repeat(np.arange(len(self.features)), np.diff(self.pair_ptr)).tolist()
        for f, c in zip(owners, self.pair_types.tolist(), strict=True):
            found.append(WeightKey(self.types.names[c], "feature", self.features[f]))
        return tuple(found)

    @lazy_property
    def names(self) -> tuple[str, ...]:
        """The same for people, all of them different: a feature whose name is taken is quoted."""
        found: dict[str, None] = {}
        for kind, role, what in self.keys:
            text = what if role == "feature" else f"length {what}" if role == "length" else role
            name = f"{_prefix(kind)}{text}"
            while name in found:
                text = repr(text)
                name = f"{_prefix(kind)}{text}"
            found[name] = None
        return tuple(found)

    def keep(self, used: Bools) -> SegmentMap:
        """With those of the weights of segment features that are used."""
        owners = np.repeat(np.arange(len(self.features)), np.diff(self.pair_ptr))[used]
        counts = np.bincount(owners, minlength=len(self.features))
        return replace(
            self,
            features=tuple(compress(self.features, counts)),
            pair_ptr=offsets(counts[counts > 0]),
            pair_types=self.pair_types[used],
        )

    def at_boundaries(self, feature_map: FeatureMap) -> FeatureMap:
        """The feature map with transitions between types only, as pairs of the labels that stand for these.

        Where labels have facets, the facets of these labels are linked too.
        """
        L, types, facets = feature_map.n_labels, self.types, feature_map.facets
        stands_for = np.append(types.transition[types.type_of], L)  # [L + 1]
        kind = np.append(types.type_of, len(types.names))  # [L + 1]
        whole = np.maximum(feature_map.arc_before, feature_map.arc_after) <= L  # between labels, not facets
        before, after = _boundaries(types, feature_map.arc_before[whole], feature_map.arc_after[whole])
        exist = self.exists[kind[before], kind[after]]
        before, after = before[exist], after[exist]
        arcs = np.unique(stands_for[before].astype(np.int64) * (L + 1) + stands_for[after])
        before, after = ((arcs // (L + 1)).astype(np.int32), (arcs % (L + 1)).astype(np.int32))
        if facets is not None:
            inner = np.maximum(before, after) < L
            linked = facets.find_arcs(before[inner], after[inner])
            before, after = (np.concatenate(both) for both in zip((before, after), linked, strict=True))
        n_features = len(feature_map.arc_ptr) - 1
        owners = np.repeat(np.arange(n_features), np.diff(feature_map.arc_ptr))
        first, second = np.divmod(feature_map.arc_triples, max(L, 1))
        kept = _links(types, first, second) & self.exists[kind[first], kind[second]]
        pairs = stands_for[first[kept]].astype(np.int64) * L + stands_for[second[kept]]
        triples = np.unique(owners[kept] * (L * L) + pairs)
        return replace(
            feature_map,
            arc_before=before,
            arc_after=after,
            arc_ptr=offsets(np.bincount(triples // max(L * L, 1), minlength=n_features)),
            arc_triples=(triples % max(L * L, 1)).astype(np.int32),
        )

    def data(
        self,
        feature_map: FeatureMap,
        dataset: Dataset,
        cells: SegmentCells | None,
        n_threads: int,
        *,
        functions: FunctionData | None = None,
        purpose: Purpose = "questions",
    ) -> _core.SegmentData:
        """A data set, with the features of its segments, for the native core.

        `functions`: feature functions on the data set, in place of the features of the map.
        """
        design = feature_map.design(dataset, n_threads, purpose=purpose)
        native = None if functions is None else functions.native()
        n_outputs = 0 if functions is None else sum(functions.map.sizes)
        of_labels = native, n_outputs, functions is not None and functions.map.looks_at_pairs
        model = self._model(int(np.diff(dataset.sequence_ptr).max(initial=0)))
        of_segments: tuple[Any, ...] = (None,) * 5 if cells is None else (*cells,)
        arguments: tuple[Any, ...] = (*of_segments, *of_labels)
        return _core.SegmentData(feature_map.layout, design, model, *arguments)

    def loss(
        self,
        feature_map: FeatureMap,
        dataset: Dataset,
        annotation: Annotation,
        cells: SegmentCells | None,
        *,
        functions: FunctionData | None = None,
        sample_weight: npt.ArrayLike | None = None,
        single_precision: bool = True,
        n_threads: int = 1,
    ) -> _core.DataLoss:
        """The loss over the segmentations of a data set, for `Objective`."""
        weights = sequence_weights(sample_weight, dataset.n_sequences)
        purpose: Purpose = "patterns" if feature_map.facets is None and functions is None else "questions"
        data = self.data(feature_map, dataset, cells, n_threads, functions=functions, purpose=purpose)
        given = annotation.labels, *annotation.set_arrays, weights
        try:
            return _core.segment_loss(data, *given, single_precision, n_threads)
        except ValueError as error:
            raise ImpossibleLabelsError(str(error)) from None

    def _model(self, longest: int) -> _core.SegmentModel:
        """For sequences of at most so many positions: lengths up to the limit exist, also those without weights."""
        types, begin = self.types, self.length_begin
        limits = [
            k if limit is None or not several else max(k, min(limit, longest))
            for k, limit, several in zip(
                self.n_lengths, map(self.structure.limit, types.names), types.goes_on, strict=True
            )
        ]
        return _core.SegmentModel(
            types.first,
            types.inside,
            types.last,
            types.single,
            types.transition,
            np.array(limits, np.int64),
            self.unlimited.astype(np.uint8),
            begin[:-1],
            np.diff(begin),
            self.exists.astype(np.uint8).ravel(),
            types.repeats,
            int(begin[-1]),
            self.pair_ptr,
            self.pair_types,
        )


def _types(structure: Segments, labels: Sequence[Hashable]) -> SegmentTypes:
    try:
        return structure.types(labels)
    except ValueError as error:
        raise reword(error, str(error).rstrip(".")) from None


def _bind_bigrams(
    structure: Segments,
    types: SegmentTypes,
    seen: SeenSegments,
    annotation: Annotation,
    ptr: Int64s,
    base: SegmentMap | None,
) -> Bigrams | None:
    """The types that may follow each other in training data, beside those of a base."""
    if structure.bigrams is None:
        return None
    found = seen.bigrams(types.names, ptr) if structure.bigrams == OBSERVED else structure.bigrams
    assert isinstance(found, Bigrams)
    if base is not None and base.bigrams is not None:
        found |= base.bigrams
    seen.check_bigrams(found, types.names, annotation, ptr)
    return Bigrams.from_ids(types.names, *found.ids(types.names))


def _prefix(name: Hashable) -> str:
    text = name if isinstance(name, str) else repr(name)
    return f"{text} " if text else ""


def _links(types: SegmentTypes, before: Int32s, after: Int32s) -> Bools:
    """Whether a segment begins between two labels."""
    return types.begins[after] if types.repeats else before != after


def _boundaries(types: SegmentTypes, before: Int32s, after: Int32s) -> tuple[Int32s, Int32s]:
    """The transitions between which a segment begins, with those from the start and to the end."""
    L = len(types.type_of)
    inner = (before < L) & (after < L)
    kept = ~inner
    kept[inner] = _links(types, before[inner], after[inner])
    return before[kept], after[kept]
