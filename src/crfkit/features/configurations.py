"""Configurations: what functions of an input give as patterns of that input alone.

A function yields (first position, labels of each position, name of the weight) or (…, value). The labels of a position
are a label, a set or a list of labels, or None for any.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Int64s
from crfkit.errors import FunctionError
from crfkit.features.import_paths import NotLoaded
from crfkit.features.wording import shorten
from crfkit.structures import Configurations, function_name

_LARGEST = 1e20
_KNOWN = 20  # labels named in a message
_EXPECTED = "expected (first position, [labels of each position], name of the weight) or (…, value)"


class Configuration(NamedTuple):
    """One of them, without positions at its ends that may have any label; labels are ids."""

    position: int  # over all sequences
    sets: tuple[tuple[int, ...], ...]
    weight: str
    value: float


def configurations(
    function: Configurations, inputs: Sequence[Any], ptr: Int64s, labels: Sequence[Hashable]
) -> Iterator[Configuration]:
    """What a function gives for each input; InputError, which names function and sequence, for what is none."""
    if isinstance(function, NotLoaded):
        function()
    reader = _Reader(labels)
    for n, x in enumerate(inputs):
        begin, end = int(ptr[n]), int(ptr[n + 1])
        where = f"sequence {n}: the pattern function {function_name(function)!r}"
        try:
            given = list(function(x) or ())
        except Exception as error:
            raise FunctionError(f"{where} failed ({type(error).__name__}: {error})") from error
        for entry in given:
            found = reader.read(where, entry, end - begin)
            if found is not None:
                yield found._replace(position=begin + found.position)


class _Reader:
    """Reads configurations over known labels."""

    def __init__(self, labels: Sequence[Hashable]) -> None:
        self.ids = {label: i for i, label in enumerate(labels)}
        self.any = tuple(range(len(labels)))

    def read(self, where: str, entry: Any, n_positions: int) -> Configuration | None:
        """A configuration of a sequence with so many positions; None for one of value 0."""
        if not isinstance(entry, tuple | list) or len(entry) not in (3, 4):
            raise FunctionError(f"{where} gives {shorten(entry)}, {_EXPECTED}")
        position, given, weight, *rest = entry
        value = rest[0] if rest else 1.0
        if not isinstance(weight, str) or not weight:
            raise FunctionError(f"{where} gives the weight {shorten(weight)}, expected a name")
        if not isinstance(value, int | float | np.number | np.bool_) or not abs(float(value)) <= _LARGEST:
            raise FunctionError(f"{where} gives the value {shorten(value)}, expected a finite number")
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise FunctionError(
                f"{where} gives the labels {shorten(given)}, expected a list with those of each position"
            )
        sets = [self.set_of(where, labels) for labels in given]
        inside = isinstance(position, int | np.integer) and 0 <= position <= n_positions - len(sets)
        if not inside or not sets:
            raise FunctionError(
                f"{where} gives {len(sets)} positions from position {shorten(position)} on, expected some of "
                f"the {n_positions} of the sequence"
            )
        if not value:
            return None
        while len(sets) > 1 and sets[-1] == self.any:
            sets.pop()
        wild = 0
        while wild < len(sets) - 1 and sets[wild] == self.any:
            wild += 1
        return Configuration(int(position) + wild, tuple(sets[wild:]), weight, float(value))

    def set_of(self, where: str, labels: Any) -> tuple[int, ...]:
        """The ids of the labels of a position."""
        if labels is None:
            return self.any
        several = labels if isinstance(labels, set | frozenset | list) else (labels,)
        try:
            ids = tuple(sorted({self.ids[label] for label in several}))
        except (KeyError, TypeError):
            known = ", ".join(map(str, list(self.ids)[:_KNOWN])) + ", …" * (len(self.ids) > _KNOWN)
            raise FunctionError(f"{where} gives {shorten(labels)}, expected labels among {known}") from None
        if not ids:
            raise FunctionError(
                f"{where} gives a position without labels, expected one or more, or None for any"
            )
        return ids
