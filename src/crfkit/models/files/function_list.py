"""Functions of a structure, such as conditions of patterns and features of segments, given to a loaded model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from crfkit.errors import ArgumentError
from crfkit.features import load_function


def choose_functions(
    functions: Sequence[Callable[..., Any]], given: object, whose: str, *, trust: bool
) -> Iterator[Callable[..., Any]]:
    """Those that are given, in their order; else those that import paths name, where `trust`; else `functions`."""
    if given is None:
        return iter([*map(load_function, functions)] if trust else functions)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ArgumentError(f"functions is {given!r}, expected a list of functions")
    new = list(given)
    if len(new) != len(functions) or not all(map(callable, new)):
        raise ArgumentError(
            f"functions has {len(new)} entries, the {whose} of the model call {len(functions)} functions: "
            f"{', '.join(map(repr, functions)) or 'none'}"
        )
    return iter(new)


def explain_unnamed(paths: Iterable[tuple[str, str | None]]) -> str | None:
    """Why no file can name functions, of which each is described, with its import path; None where one can."""
    for function, path in paths:
        if path is None:
            return (
                f"{function} has no import path; expected a function that stands in a module, not a lambda or one that is "
                "defined inside another function"
            )
    return None
