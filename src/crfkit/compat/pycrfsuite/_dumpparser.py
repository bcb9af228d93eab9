"""A model as text, as `crfsuite dump` writes it, and as dicts with the numbers of that text."""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crfkit.compat.crfsuite_file import CrfsuiteModel

_COUNTS = ("num_features", "num_labels", "num_attrs")
_OFFSETS = ("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs")


def header_of(model: "CrfsuiteModel") -> dict[str, str]:
    """The header of the file, {name: text}."""
    magic, size, kind, version, *numbers = struct.unpack("<4sI4s9I", model.head)
    named = {"magic": magic.decode(), "size": str(size), "type": kind.decode(), "version": str(version)}
    named |= {name: str(number) for name, number in zip(_COUNTS, numbers[:3], strict=True)}
    return named | {name: f"0x{number:X}" for name, number in zip(_OFFSETS, numbers[3:], strict=True)}


def dump_lines(model: "CrfsuiteModel") -> Iterator[str]:
    """The text, line by line."""
    yield "FILEHEADER = {\n"
    for name, number in header_of(model).items():
        yield f"  {name}: {number}\n"
    yield "}\n\n"
    for title, names in (("LABELS", model.labels), ("ATTRIBUTES", model.vocabulary.names())):
        yield f"{title} = {{\n"
        for i, name in enumerate(names):
            yield f"  {i:5d}: {name}\n"
        yield "}\n\n"
    for title, kind_id, weights in (("TRANSITIONS", 1, model.arcs()), ("STATE_FEATURES", 0, model.pairs())):
        yield f"{title} = {{\n"
        for source, label, weight in weights:
            yield f"  ({kind_id}) {source} --> {label}: {weight:.6f}\n"
        yield "}\n\n"


class ParsedDump:
    """A model in dicts.

    header : {name: text} of the file's header
    labels, attributes : {name: number}, the number as text
    transitions : {(label before, label after): weight}
    state_features : {(attribute, label): weight}
    """

    def __init__(self, model: "CrfsuiteModel") -> None:
        self.header = header_of(model)
        self.labels = {name: str(i) for i, name in enumerate(model.labels)}
        self.attributes = {name: str(i) for i, name in enumerate(model.vocabulary.names())}
        self.transitions = {(before, after): _as_dumped(weight) for before, after, weight in model.arcs()}
        self.state_features = {(name, label): _as_dumped(weight) for name, label, weight in model.pairs()}


def _as_dumped(weight: float) -> float:
    """A weight with the six digits that the text has."""
    return float(f"{weight:.6f}")
