"""The kinds of structures that a CRF may have, one object each: no other place asks which one it is.

Settings, training, checkpoints, model files, inspection and questions ask the object that `kind_of` finds. A kind names its
potentials, which have the weights of a trained model.
"""

from typing import Any

from crfkit.errors import ArgumentError, FileFormatError
from crfkit.models.chain_model import ChainModel
from crfkit.models.kinds.chains import ChainKind
from crfkit.models.kinds.graphs import GraphKind
from crfkit.models.kinds.kind import StoredModel, StructureKind
from crfkit.models.kinds.lattices import LatticeKind
from crfkit.models.kinds.patterns import PatternKind
from crfkit.models.kinds.segments import SegmentKind
from crfkit.structures import SpanLabels

__all__ = ["KINDS", "StoredModel", "StructureKind", "kind_in", "kind_of", "read_scheme"]

CHAIN = ChainKind()
KINDS: tuple[StructureKind, ...] = (CHAIN, PatternKind(), SegmentKind(), LatticeKind(), GraphKind())


def kind_of(structure: object) -> StructureKind:
    """The kind of a structure; ArgumentError for what is none."""
    for kind in KINDS:
        if isinstance(structure, kind.structure):
            return kind
    *others, last = (kind.written for kind in KINDS)
    raise ArgumentError(f"structure is {structure!r}, expected {', '.join(others)} or {last}")


def read_scheme(model: ChainModel, scheme: str | None) -> SpanLabels | None:
    """How the states of a model are read as spans, by the scheme of its labels (None: as they look).

    None where the outputs are spans themselves.
    """
    structure = model.trained_structure
    found = kind_of(structure).read_spans(structure, list(model.labels.written.classes), scheme)
    return None if found is None else model.labels.read_as_spans(found)


def kind_in(settings: dict[str, Any]) -> StructureKind:
    """The kind of the structure of a model file with these settings."""
    found = [kind for kind in KINDS if kind.is_in(settings)] or [CHAIN]
    if len(found) > 1:
        raise FileFormatError("it has several structures")
    return found[0]
