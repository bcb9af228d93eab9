"""Word lattices: inputs that list arcs, as a dictionary lookup or the hypotheses of a recogniser give them.

An output is a path: arcs from 0 to the length of the input, each beginning where the one before it ends.

    score(path) = Σ over its arcs (features of the arc) + Σ over neighbouring arcs (weights of their transition)

The label `boundary` stands before the first arc and behind the last one.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crfkit.errors import ArgumentError, FeatureError
from crfkit.structures.chain import Chain

LABELS = "labels"  # one weight for each pair of labels
_FIELD = re.compile(r"%([LR])(\??)\[(\d+)\]")
_PLAIN_CHAIN = Chain()


class LatticeArc(NamedTuple):
    """An arc from `start` to `end`, with a label and features of any form that a position of a chain may have."""

    start: int
    end: int
    label: Hashable
    features: Any = ()


class WordLattice:
    """An input of `length` places with arcs (start, end, label, features) between them, in any order.

    The unit of places is free: characters, frames, milliseconds. An output is a list of numbers of arcs.

    >>> WordLattice(2, [(0, 1, "DET", ["w=a"]), (1, 2, "NOUN", ["w=dog"]), (0, 2, "NAME", ["w=a dog"])])
    WordLattice(2, 3 arcs)
    """

    __slots__ = ("arcs", "length")

    def __init__(self, length: int, arcs: Iterable[Sequence[Any]]) -> None:
        self.length = index(length)
        self.arcs = tuple(_arc(i, arc, self.length) for i, arc in enumerate(arcs))
        if self.length < 0:
            raise ArgumentError(f"length is {length}, expected 0 or more")

    @classmethod
    def of_checked(cls, length: int, arcs: Iterable[LatticeArc]) -> Self:
        """Of arcs that are known to lie between 0 and the length, and to have hashable labels."""
        made = cls.__new__(cls)
        made.length, made.arcs = length, tuple(arcs)
        return made

    def __repr__(self) -> str:
        return f"WordLattice({self.length}, {len(self.arcs)} arcs)"

    def __len__(self) -> int:
        """The number of arcs."""
        return len(self.arcs)


def _arc(i: int, arc: Sequence[Any], length: int) -> LatticeArc:
    try:
        start, end, label, *rest = arc
        start, end = index(start), index(end)
        hash(label)
        (features,) = rest or ((),)
    except (TypeError, ValueError):
        raise FeatureError(
            f"arc {i} is {arc!r}, expected (start, end, label, features) with numbers and a hashable label"
        ) from None
    if not 0 <= start < end <= length:
        raise FeatureError(
            f"arc {i} leads from {start} to {end}, expected a start of 0 or more, before its end, which is {length} at most"
        )
    return LatticeArc(start, end, label, features)


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """Transitions with known costs, which one weight scales: labels are pairs of numbers (left, right).

    The cost of a label `after` behind a label `before` is `costs[before[1], after[0]]`.
    """

    costs: npt.NDArray[np.int16]  # [right contexts, left contexts]
    name: str = "transition cost"

    def value(self, before: Any, after: Any) -> float:
        """The cost of two neighbouring labels."""
        return float(self.costs[before[1], after[0]])


@dataclass(frozen=True)
class Lattice:
    """The structure of models whose inputs are `WordLattice`s.

    transitions : "labels": a weight for each pair of neighbouring labels. None: none. A list of templates: each names a
        weight by the fields of the two labels, which are tuples: `%L[0]` is field 0 of the label before, `%R[1]` field 1
        of the label after. With `%L?[0]` a field that is "*" or empty gives no weight; neither does one that is missing.
        A label may also be a pair of tuples: its fields as the label after another one, and as the label before one.
        A `CostMatrix`: costs that are known.
    crossed : features have a weight for each label of an arc; otherwise one weight, whatever the label
    boundary : the label that stands before the first arc and behind the last one

    >>> Lattice(transitions=["%L[0]/%R[0]", "%L[0],%L?[1]/%R[0]"]).pair_names(("N", "*"), ("V", "past"))
    ['N/V']
    """

    transitions: str | Sequence[str] | CostMatrix | None = LABELS
    crossed: bool = True
    boundary: Hashable = "BOS/EOS"

    def __post_init__(self) -> None:
        """Refuse what is no list of templates."""
        given = self.transitions
        if given is None or isinstance(given, CostMatrix) or given == LABELS:
            return
        if isinstance(given, str) or not all(isinstance(template, str) for template in given):
            raise ArgumentError(f'transitions is {given!r}, expected "{LABELS}", None or a list of templates')
        for template in given:
            if "%" in _FIELD.sub("", template):
                raise FeatureError(
                    f"the template {template!r} has a % that is no %L[n], %R[n], %L?[n] or %R?[n]"
                )
        object.__setattr__(self, "transitions", tuple(given))
        object.__setattr__(self, "_parsed", tuple(_parse(template) for template in given))

    @property
    def chain(self) -> Chain:
        """The settings of the transitions of a chain, of which a lattice uses none."""
        return _PLAIN_CHAIN

    @property
    def bigrams(self) -> None:
        """All pairs of neighbouring labels exist."""

    def pair_names(self, before: Hashable, after: Hashable) -> list[str]:
        """The names of the weights of two neighbouring labels."""
        if self.transitions is None:
            return []
        if isinstance(self.transitions, str):
            return [f"{_text(before)} → {_text(after)}"]
        if isinstance(self.transitions, CostMatrix):
            return [self.transitions.name]
        fields = {"L": _fields(before, 1), "R": _fields(after, 0)}
        names = (_expand(parsed, fields) for parsed in self._parsed)  # type: ignore[attr-defined]
        return [name for name in names if name is not None]


_Part = str | tuple[str, bool, int]  # a text, or a field: (side, whether "*" gives none, number)


def _parse(template: str) -> tuple[_Part, ...]:
    parts: list[_Part] = []
    at = 0
    for found in _FIELD.finditer(template):
        parts += [template[at : found.start()], (found[1], bool(found[2]), int(found[3]))]
        at = found.end()
    return (*parts, template[at:])


def _expand(parsed: tuple[_Part, ...], fields: dict[str, Sequence[Hashable]]) -> str | None:
    texts = []
    for part in parsed:
        if isinstance(part, str):
            texts.append(part)
            continue
        side, optional, i = part
        if i >= len(fields[side]) or (optional and fields[side][i] in ("*", "")):
            return None
        texts.append(str(fields[side][i]))
    return "".join(texts)


def _fields(label: Hashable, side: int) -> Sequence[Hashable]:
    if not isinstance(label, tuple):
        return (label,)
    is_pair = len(label) == 2 and all(isinstance(part, tuple) for part in label)
    fields: Sequence[Hashable] = label[side] if is_pair else label
    return fields


def _text(label: Hashable) -> str:
    return label if isinstance(label, str) else repr(label)
