"""Feature functions: any Python function that looks at an input, a position and one or two labels.

    f(x, label, i)             on a label at position i
    f(x, before, label, i)     on a pair of neighbouring labels at positions i − 1 and i

A function gives a number, a vector, or only those of its outputs that are not 0. Each output has one weight, whatever the
labels: score(y) = Σ_i Σ_k w_k f_k(x, y_{i−1}, y_i, i). It is called only for the labels and pairs that exist.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crfkit.arrays import offsets
from crfkit.errors import ArgumentError, FunctionError
from crfkit.features.dataset import Dataset, FeatureList
from crfkit.features.given_sequences import list_sequences
from crfkit.features.import_paths import NotLoaded, import_function, import_path
from crfkit.features.wording import shorten

LABELS, TRANSITIONS = "labels", "transitions"
_ARGUMENTS = {3: LABELS, 4: TRANSITIONS}
MEMORY = 1 << 30


@dataclass(frozen=True)
class FeatureFunction:
    """A function with what there is to say about it.

    outputs : how many outputs it has, or their names. None: as many as its first value has; or, where it gives dicts with
        names as keys, the names seen in training.
    name : by which messages, penalties and `inspect` speak of it; its own when none is given
    on : "labels" for f(x, label, i), "transitions" for f(x, before, label, i); by the number of its arguments when not given
    vectorised : f(x, labels, positions) and f(x, befores, labels, positions) get arrays of equal length and give an
        array with a row for each entry, or a SciPy sparse matrix, or a list
    end : f(x, before, END, T) is called too, T being the number of positions
    """

    function: Callable[..., Any]
    outputs: int | Sequence[str] | None = None
    name: str = ""
    on: str = ""
    vectorised: bool = field(default=False, kw_only=True)
    end: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Fill in name and kind, and refuse what cannot be."""
        if not callable(self.function):
            raise ArgumentError(f"feature functions: got {shorten(self.function)}, expected a function")
        name = self.name or getattr(self.function, "__name__", "") or type(self.function).__name__
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "on", self.on or _kind(self.function, name))
        if self.on not in (LABELS, TRANSITIONS):
            raise ArgumentError(
                f"feature function {name!r}: on is {self.on!r}, expected 'labels' or 'transitions'"
            )
        if self.end and self.on != TRANSITIONS:
            raise ArgumentError(
                f"feature function {name!r}: end is for functions of pairs, f(x, before, label, i)"
            )
        object.__setattr__(self, "outputs", _outputs(self.outputs, name))

    @property
    def on_arcs(self) -> bool:
        """Whether it looks at pairs of labels."""
        return self.on == TRANSITIONS


@dataclass(frozen=True)
class FeatureFunctions:
    """Feature functions as the `features` of a model.

    functions : functions f(x, label, i) and f(x, before, label, i), or `FeatureFunction(f, …)` with more to say
    length : how many positions an input has; an input may be any object
    transitions : whether pairs of neighbouring labels have weights of their own too, as with other features
    memory : bytes of values that are kept from one pass over the data to the next; the rest is computed again in each pass

    >>> def long_noun(x, label, i):
    ...     return label == "NOUN" and len(x[i]) > 3
    >>> FeatureFunctions([long_noun])
    FeatureFunctions([long_noun])
    """

    functions: Sequence[FeatureFunction | Callable[..., Any]]
    length: Callable[[Any], int] = field(default=len, kw_only=True)
    transitions: bool = field(default=True, kw_only=True)
    memory: int = field(default=MEMORY, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse what cannot be feature functions."""
        if isinstance(self.functions, str | Mapping) or not isinstance(self.functions, Iterable):
            raise ArgumentError(
                f"FeatureFunctions: got {shorten(self.functions)}, expected a list of functions"
            )
        given = tuple(f if isinstance(f, FeatureFunction) else FeatureFunction(f) for f in self.functions)
        names = [function.name for function in given]
        for name in names:
            if names.count(name) > 1:
                raise ArgumentError(
                    f"two feature functions have the name {name!r}: give one another, FeatureFunction(f, name=…)"
                )
        if not given:
            raise ArgumentError("FeatureFunctions: the list is empty, expected at least one function")
        if not callable(self.length):
            raise ArgumentError(
                f"FeatureFunctions: length is {shorten(self.length)}, expected a function of x"
            )
        if not isinstance(self.memory, int | np.integer) or self.memory < 0:
            raise ArgumentError(
                f"FeatureFunctions: memory is {shorten(self.memory)}, expected a number of bytes"
            )
        object.__setattr__(self, "functions", given)

    def __repr__(self) -> str:
        changed = "" if self.length is len else f", length={getattr(self.length, '__name__', self.length)}"
        changed += "" if self.transitions else ", transitions=False"
        changed += "" if self.memory == MEMORY else f", memory={self.memory}"
        return f"FeatureFunctions([{', '.join(function.name for function in self)}]{changed})"

    def __iter__(self) -> Iterator[FeatureFunction]:
        return iter(self.functions)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.functions)

    def __deepcopy__(self, memo: object) -> "FeatureFunctions":
        """It never changes, and neither should what its functions hold be copied."""
        return self

    def lengths(self, X: Any) -> tuple[Sequence[Any], list[int]]:
        """The inputs as a list, and how many positions each has."""
        self.check_loaded()
        inputs, found = list_sequences(X), []
        for n, x in enumerate(inputs):
            try:
                n_positions = self.length(x)
            except Exception as error:
                raise FunctionError(
                    f"sequence {n}: length(x) failed for {shorten(x)} ({type(error).__name__}: {error})"
                ) from error
            if not isinstance(n_positions, int | np.integer) or n_positions < 0:
                raise FunctionError(
                    f"sequence {n}: length(x) is {shorten(n_positions)}, expected a whole number from 0 on"
                )
            found.append(int(n_positions))
        return inputs, found

    def dataset(self, X: Any) -> Dataset:
        """The inputs as a data set: so many positions, and no features but what the functions will see."""
        inputs, lengths = self.lengths(X)
        ptr = offsets(lengths)
        nothing = FeatureList(np.zeros(int(ptr[-1]) + 1, np.int64), np.zeros(0, np.int32), None)
        return Dataset(ptr, nothing, inputs=inputs)

    def paths(self) -> tuple[list[str | None], str | None]:
        """The import paths of the functions and of `length`; None for one that has none."""
        return [import_path(f.function) for f in self], import_path(self.length)

    def check_loaded(self) -> None:
        """Refuse to work with functions that a model file only names."""
        for function in (*(f.function for f in self), self.length):
            if isinstance(function, NotLoaded):
                function()

    def with_functions(self, given: "FeatureFunctions | Sequence[Any]") -> "FeatureFunctions":
        """The same with these functions, in the same order, in place of those it has."""
        if isinstance(given, FeatureFunctions):
            return replace(self.with_functions(given.functions), length=given.length)
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise ArgumentError(f"functions is {shorten(given)}, expected a list of functions")
        functions = [f.function if isinstance(f, FeatureFunction) else f for f in given]
        if len(functions) != len(self):
            names = ", ".join(f.name for f in self)
            raise ArgumentError(
                f"functions has {len(functions)} functions, the model was trained with {len(self)}: {names}"
            )
        return replace(
            self,
            functions=[replace(own, function=f) for own, f in zip(self, functions, strict=True)],
        )

    def with_imports(self) -> "FeatureFunctions":
        """The same with the functions that its import paths name. This runs the code of their modules."""

        def function(found: Any) -> Any:
            if isinstance(found, NotLoaded):
                found = import_function(found.path)
            return found.function if isinstance(found, FeatureFunction) else found

        functions = [replace(f, function=function(f.function)) for f in self]
        return replace(self, functions=functions, length=function(self.length))


def _kind(function: Callable[..., Any], name: str) -> str:
    """Whether it is a function of labels or of pairs, by the number of its arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    needed = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    if len(needed) not in _ARGUMENTS:
        raise ArgumentError(
            f"feature function {name!r} takes {len(needed)} arguments, expected f(x, label, i) or "
            "f(x, before, label, i); FeatureFunction(f, on='labels') or on='transitions' says which it is"
        )
    return _ARGUMENTS[len(needed)]


def _outputs(outputs: Any, name: str) -> int | tuple[str, ...] | None:
    if outputs is None:
        return None
    if isinstance(outputs, int | np.integer) and not isinstance(outputs, bool) and 0 < outputs < 2**31:
        return int(outputs)
    named = isinstance(outputs, Iterable) and not isinstance(outputs, str | Mapping)
    names = tuple(outputs) if named else ()
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise ArgumentError(
            f"feature function {name!r}: outputs is {shorten(outputs)}, expected how many there are, or their distinct names"
        )
    return names
