"""Functions by their import paths, `package.module:name`: how a model file names them, without holding any code."""

import importlib
import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

from crfkit.errors import ArgumentError, NotLoadedError

_SAFE = {"builtins:len": len}  # needs no trust


class NotLoaded:
    """Stands for a function of a model file that was loaded without its functions."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<{self.path}, not loaded>"

    def __call__(self, *arguments: object) -> Any:
        """There is nothing to call."""
        raise NotLoadedError(
            f"the function {self.path} is not loaded: crfkit.load(path, functions=[…]) takes the functions, "
            "crfkit.load(path, trust_functions=True) imports them"
        )


def import_path(function: Callable[..., Any]) -> str | None:
    """Where a function can be imported from; None when it cannot, as a lambda or a function inside another one."""
    if isinstance(function, NotLoaded):
        return function.path
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    try:
        found: Any = reduce(getattr, name.split("."), sys.modules[module])
    except (KeyError, AttributeError):
        return None
    return f"{module}:{name}" if found is function else None


def placeholder(path: str) -> Callable[..., Any]:
    """What stands for a function until it is given, or imported on request."""
    return _SAFE.get(path) or NotLoaded(path)


def load_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, or the one that a placeholder names. This runs the code of its module."""
    return import_function(function.path) if isinstance(function, NotLoaded) else function


def import_function(path: str) -> Callable[..., Any]:
    """The function at an import path. This runs the code of its module."""
    module, _, name = path.partition(":")
    try:
        found: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    except Exception as error:  # an import runs foreign code
        raise NotLoadedError(
            f"the feature function {path} cannot be imported ({type(error).__name__}: {error})"
        ) from error
    if not callable(found):
        raise ArgumentError(f"{path} is {type(found).__name__}, expected a function")
    return found  # type: ignore[no-any-return]
