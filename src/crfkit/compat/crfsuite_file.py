"""CRFsuite's binary model files: read, written, and turned into models of this package and back.

The layout of the bytes is documented in the native core (`crfsuite_file.hpp`). Such a model has weights for attributes with
labels and for arcs between labels. All arcs exist, those without a weight score 0, and there are none into the first
label or out of the last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crfkit import _core
from crfkit.arrays import Float64s, Int32s, Int64s
from crfkit.compat.crfsuite_opening import OpenedModel, errors_of
from crfkit.data import read_bytes
from crfkit.errors import FileFormatError, UnsavableError
from crfkit.features import FeatureMap, Vocabulary
from crfkit.lazy import lazy_property
from crfkit.models import CRF, assemble, kind_of, replacing

MAGIC = b"lCRF"
_NO_TRIPLES = (np.zeros(1, np.int64), np.zeros(0, np.int32))


@dataclass(frozen=True, eq=False)
class CrfsuiteModel:
    """What a model file of CRFsuite holds. The vocabulary is made when it is first asked for."""

    labels: list[str]  # [L]
    names: npt.NDArray[np.uint8]  # of the attributes, UTF-8, one after the other
    name_lengths: npt.NDArray[np.uint32]  # [F]
    pair_ptr: Int64s  # [F + 1] attribute f has the pairs pair_ptr[f]:pair_ptr[f + 1]
    pair_labels: Int32s  # [P]
    arc_before: Int32s  # [A]
    arc_after: Int32s  # [A]
    weights: Float64s  # [P + A]
    head: bytes  # the first 48 bytes of the file
    source: str  # what complaints call it

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, source: str = "<bytes>") -> CrfsuiteModel:
        """The model in the bytes of a file; InputError for any other bytes."""
        opened = OpenedModel.from_bytes(bytes(data), source)
        if not opened.labels:
            with errors_of(source):
                raise FileFormatError("it has no labels")
        return opened.whole

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> CrfsuiteModel:
        """The model in a file; InputError where there is none."""
        return cls.from_bytes(read_bytes(path), str(path))

    @lazy_property
    def vocabulary(self) -> Vocabulary:
        """The names of the attributes."""
        with errors_of(self.source):
            return Vocabulary.from_bytes(self.names, self.name_lengths)

    @lazy_property
    def feature_map(self) -> FeatureMap:
        """Where the weights lie."""
        pairs, arcs = (self.pair_ptr, self.pair_labels), (self.arc_before, self.arc_after)
        return FeatureMap(len(self.labels), *pairs, {}, *arcs, *_NO_TRIPLES)

    @lazy_property
    def potentials(self) -> _core.ChainPotentials:
        """What answers questions."""
        return _core.ChainPotentials(self.feature_map.layout, self.weights)

    def arcs(self) -> Iterator[tuple[str, str, float]]:
        """Label before, label after and weight of each arc that has one."""
        weights = self.weights[len(self.pair_labels) :]
        for before, after, weight in zip(self.arc_before, self.arc_after, weights.tolist(), strict=True):
            yield self.labels[before], self.labels[after], weight

    def pairs(self) -> Iterator[tuple[str, str, float]]:
        """Attribute, label and weight of each pair that has one."""
        names, counts = self.vocabulary.names(), np.diff(self.pair_ptr).tolist()
        labels, weights = self.pair_labels.tolist(), self.weights.tolist()
        each = (name for name, count in zip(names, counts, strict=True) for _ in range(count))
        for name, label, weight in zip(each, labels, weights, strict=False):  # weights of arcs follow
            yield name, self.labels[label], weight

    def to_crf(self) -> CRF:
        """The same model as a `crfkit.CRF`."""
        reason = "the model was trained by CRFsuite"
        return assemble(self.labels, self.vocabulary, self.feature_map, self.weights, reason=reason)


def read_crfsuite(path: str | os.PathLike[str]) -> CRF:
    """The model of CRFsuite in a file, as a `crfkit.CRF`; InputError where there is none."""
    return CrfsuiteModel.read(path).to_crf()


def crfsuite_bytes(crf: CRF[Any]) -> bytes:
    """The bytes of CRFsuite's file of a model; InputError for what such a file cannot hold.

    That is all but lists of strings and dicts as positions, labels that are strings, and an unrestricted chain without
    start and end arcs, `Chain(start=False, end=False)`.
    """
    labels, feature_map = crf.classes_, crf.feature_map_
    check_expressible(crf)
    names = [str(label) for label in labels]
    vocabulary = crf.encoder_.vocabulary
    check_names(names, vocabulary)
    try:
        return _core.write_crfsuite(feature_map.layout, names, vocabulary, crf.weights_)
    except ValueError as error:
        raise UnsavableError(f"CRFsuite's file cannot hold this model: {error}") from None


def check_names(labels: Sequence[str], vocabulary: Vocabulary) -> None:
    """Refuse names of labels and attributes that a file of CRFsuite cannot hold."""
    for name in (*labels, *(vocabulary.names() if b"\0" in vocabulary.to_bytes()[0].tobytes() else ())):
        if "\0" in name:
            raise UnsavableError(f"{name!r} has a NUL character, which a file of CRFsuite cannot hold")


def check_expressible(crf: CRF[Any]) -> None:
    """Refuse a model that has more than CRFsuite knows."""
    feature_map, n = crf.feature_map_, len(crf.classes_)
    ends = (feature_map.arc_before == n) | (feature_map.arc_after == n)
    reasons = {
        "probabilities that are normalised at each position": crf.locally_normalised_,
        "a template: it makes features of columns": crf.encoder_.template is not None,
        "hashed features: their names are not known": crf.encoder_.hash_bits is not None,
        "patterns": bool(crf.pattern_names_),
        "a structure of its own": not kind_of(crf.structure_).adds_to_chain,
        "feature functions": bool(crf.output_names_) or len(crf.weights_) > feature_map.n_weights,
        "facets": feature_map.facets is not None,
        "a tag dictionary": bool(crf.tag_dictionary),
        "bigrams": feature_map.bigrams is not None,
        "dense blocks": bool(feature_map.dense),
        "features on arcs": len(feature_map.arc_triples) > 0,
        "start or end arcs (train with Chain(start=False, end=False))": bool(ends.any()),
        "labels that are not strings": not all(isinstance(label, str) for label in crf.classes_),
    }
    for what, has in reasons.items():
        if has:
            raise UnsavableError(f"the model has {what}, which a file of CRFsuite cannot hold")


def write_crfsuite(crf: CRF[Any], path: str | os.PathLike[str]) -> None:
    """Write a model as CRFsuite's file, which replaces an existing one in one step."""
    data = crfsuite_bytes(crf)
    with replacing(path) as stream:
        stream.write(data)


def write_empty_crfsuite(path: str | os.PathLike[str]) -> None:
    """Write CRFsuite's file of a model without labels, the result of training without data."""
    with replacing(path) as stream:
        stream.write(_core.write_empty_crfsuite())
