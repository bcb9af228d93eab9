"""Where the gates of patterns are open: conditions on the features or columns of an input, and functions of it."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crfkit.arrays import Bools, Float64s, Int64s
from crfkit.errors import FunctionError
from crfkit.features.blocks import blocks_of
from crfkit.features.import_paths import NotLoaded
from crfkit.features.templates import Template
from crfkit.features.wording import shorten
from crfkit.structures import Condition, Gate, function_name

_LARGEST = 1e20
_MARK = "U:"  # before the value of a macro, as a line of a template has it


class Gates:
    """The gates of some inputs, each worked out once: x of sequence n has the positions ptr[n]:ptr[n + 1].

    `columns` says that positions are words or rows of columns, as for templates; otherwise they are dicts or lists of
    strings.
    """

    def __init__(self, inputs: Sequence[Any], ptr: Int64s, *, columns: bool) -> None:
        self._inputs = inputs
        self._ptr = ptr
        self._columns = columns
        self._open: dict[Condition, Bools] = {}
        self._values: dict[Callable[..., Any], Float64s] = {}  # NaN: not asked for yet
        self._features: list[frozenset[str]] | None = None  # of each position

    def evaluate(self, gate: Gate, positions: Int64s) -> Bools:
        """Whether a gate is open at each of these positions."""
        is_open = np.ones(len(positions), np.bool_)
        for condition in gate.conditions:
            if condition not in self._open:
                self._open[condition] = self._holds(condition)
            is_open &= self._open[condition][positions]
        return is_open

    def call(self, function: Callable[..., Any], positions: Int64s) -> Float64s:
        """What a function says of each of these positions."""
        values = self._values.setdefault(function, np.full(int(self._ptr[-1]), np.nan))
        sequences = np.searchsorted(self._ptr, positions, side="right") - 1
        for position, n in zip(positions.tolist(), sequences.tolist(), strict=True):
            if math.isnan(values[position]):
                values[position] = self._call(function, n, position - int(self._ptr[n]))
        return values[positions]

    def _call(self, function: Callable[..., Any], n: int, position: int) -> float:
        where = f"sequence {n}, position {position}: the gate {function_name(function)!r}"
        if isinstance(function, NotLoaded):
            function()
        try:
            value = function(self._inputs[n], position)
        except Exception as error:
            raise FunctionError(f"{where} failed ({type(error).__name__}: {error})") from error
        is_number = isinstance(value, bool | int | float | np.bool_ | np.number)
        if not is_number or not abs(float(value)) <= _LARGEST:
            raise FunctionError(f"{where} gives {shorten(value)}, expected True, False or a finite number")
        return float(value)

    def _holds(self, condition: Condition) -> Bools:
        found = self._columns_hold(condition) if self._columns else self._features_hold(condition)
        held = np.fromiter(found, np.bool_, int(self._ptr[-1]))
        return held if condition.holds else ~held

    def _columns_hold(self, condition: Condition) -> Iterator[bool]:
        template = _template(condition)
        wanted = {_MARK + value for value in condition.values}
        for x in self._inputs:
            rows = x if isinstance(x, list | tuple) else list(x)
            for position in range(len(rows)):
                [*found] = template.expand(rows, position)[0]
                yield found[0] in wanted if found and wanted else bool(found)

    def _features_hold(self, condition: Condition) -> Iterator[bool]:
        name = condition.reference
        if not isinstance(name, str):
            raise FunctionError(
                f"the gate reads %{name.function}[…], a column, but the positions are no rows of columns: "
                "expected the name of a feature"
            )
        wanted = {f"{name}{sign}{value}" for value in condition.values for sign in ":="} or {name}
        features = self._position_features()
        for begin, end in pairwise(self._ptr.tolist()):
            for position in range(begin + condition.offset, end + condition.offset):
                yield begin <= position < end and not wanted.isdisjoint(features[position])

    def _position_features(self) -> list[frozenset[str]]:
        if self._features is None:
            self._features = []
            for n, (begin, end) in enumerate(pairwise(self._ptr.tolist())):
                blocks = [b for b in blocks_of(n, self._inputs[n]).values() if isinstance(b, list | tuple)]
                for i in range(end - begin):
                    self._features.append(frozenset(name for block in blocks for name in _names(block[i])))
        return self._features


def _template(condition: Condition) -> Template:
    """The line of a template that gives what a condition looks at."""
    reference = condition.reference
    if isinstance(reference, str):
        if reference != "word" and not reference.isdecimal():
            raise FunctionError(
                f"the gate asks for {reference!r}, but the positions are rows of columns: expected word, the number of "
                "a column, or a macro such as %lower[0,0]"
            )
        return Template.parse(
            f"{_MARK}%x[{condition.offset},{0 if reference == 'word' else reference}]", "gate"
        )
    inside = f"{condition.offset},{reference.column}"
    inside += "" if reference.length is None else f",{reference.length}"
    return Template.parse(f"{_MARK}%{reference.function}[{inside}]", "gate")


def _names(position: Any, before: str = "") -> Iterator[str]:
    """The features of a position, as strings."""
    if isinstance(position, str):
        yield position
    elif isinstance(position, Mapping):
        for key, value in position.items():
            name = f"{before}{key}"
            if isinstance(value, str):
                yield f"{name}:{value}"
            elif isinstance(value, Mapping):
                yield from _names(value, f"{name}:")
            elif isinstance(value, list | tuple | set | frozenset):
                yield from (f"{name}:{part}" for part in value)
            elif isinstance(value, bool | int | float | np.bool_ | np.number) and value:
                yield name
    elif isinstance(position, list | tuple | set | frozenset):
        yield from (name for name in position if isinstance(name, str))
