"""Functions of a structure, such as conditions of patterns and features of segments, given to a loaded model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from crfkit.features import load_function
from crfkit.models.files.file_arrays import GivenFunctionsError


def choose_functions(
    functions: Sequence[Callable[..., Any]], given: object, whose: str, *, trust: bool
) -> Iterator[Callable[..., Any]]:
    """Those that are given, in their order; else those that import paths name, where `trust`; else `functions`."""
    if given is None:
        return iter([*map(load_function, functions)] if trust else functions)
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise GivenFunctionsError(f"functions is {given!r}, expected a list of functions")
    new = list(given)
    if len(new) != len(functions):
        expected = f"{len(functions)}: {', '.join(map(repr, functions))}" if functions else "none"
        raise GivenFunctionsError(f"functions has {len(new)} entries for the {whose}, expected {expected}")
    for function in new:
        if not callable(function):
            raise GivenFunctionsError(f"functions has {function!r} for the {whose}, expected a function")
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
