"""What is worked out, or imported, when it is first asked for."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import Any, TypeVar

Value = TypeVar("Value")


class lazy_property(cached_property[Value]):  # noqa: N801
    """`functools.cached_property` without its lock, which Python 3.11 still has.

    A child that `fork()` makes while another thread works such an attribute out would wait for this lock for ever. Two
    threads may now work it out at the same time; both get the same.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        super().__init__(function)
        self.lock = nullcontext()


def lazy_names(namespace: dict[str, Any], names: Mapping[str, Iterable[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a module: imports each name from the module that has it, the first time it is used.

    namespace : the `globals()` of the module, which keep what was imported
    names : {module: names that it has}; where a module ends with the name itself, the name is the module
    """
    modules = {name: module for module, listed in names.items() for name in listed}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        found = importlib.import_module(modules[name])
        value = found if modules[name].endswith(f".{name}") else getattr(found, name)
        return namespace.setdefault(name, value)

    return get
