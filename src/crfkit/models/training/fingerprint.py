"""Fingerprints: whether two things are equal, in another process too.

Values are known by what they hold, never by where they lie. A function is known by its import path, its code, its defaults,
what its closure holds, and the functions of its own module that it calls; not by other global names. A callable object is
known by its class, its `__call__` and its state.
"""

import copyreg
import functools
import hashlib
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Self

import numpy as np

from crfkit.errors import UnsavableError

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice)
_CODE = (
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_code",
    "co_exceptiontable",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
)
_HAS_DOCSTRING = 0x4000000  # a flag of code


class NoFingerprintError(Exception):
    """Something that cannot be compared with that of another process."""


class Fingerprint:
    """A digest of everything that is added.

    `state` says whether what may change while it is used counts: lists, dicts, sets, arrays and the attributes of objects.
    Without it these count by their type alone.
    """

    def __init__(self, *, state: bool = True) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self._state = state
        self._open: list[int] = []  # what is being added now: a thing may hold itself
        self._functions: dict[int, int] = {}  # functions met before, by the order of their first occurrence

    def hexdigest(self) -> str:
        """The digest, 32 characters."""
        return self._digest.hexdigest()

    def add(self, thing: object) -> Self:
        """Adds a thing; NoFingerprintError where it, or something in it, cannot be compared."""
        if isinstance(thing, _PLAIN) and type(thing) in _PLAIN:
            text = thing if isinstance(thing, str) else repr(thing)
            self._write(type(thing).__name__, text.encode("utf-8", "surrogatepass"))
            return self
        if id(thing) in self._open:
            self._write("again", str(self._open.index(id(thing))).encode())
            return self
        self._open.append(id(thing))
        try:
            self._add_parts(thing)
        except RecursionError:
            raise NoFingerprintError("something that is nested too deeply") from None
        finally:
            self._open.pop()
        return self

    def _write(self, kind: str, data: bytes | memoryview) -> None:
        """A piece with its kind and its length, so that no two sequences of pieces look alike."""
        self._digest.update(f"{kind} {len(data) if isinstance(data, bytes) else data.nbytes} ".encode())
        self._digest.update(data)

    def _add_all(self, kind: str, *things: object) -> None:
        self._write(kind, str(len(things)).encode())
        for thing in things:
            self.add(thing)

    def _add_parts(self, thing: Any) -> None:
        match thing:
            case np.ndarray():
                self._add_array(thing)
            case np.generic():
                self._add_all(
                    "scalar", thing.dtype.str, thing.item() if thing.dtype.hasobject else thing.tobytes()
                )
            case types.CodeType():
                self._add_code(thing, None)
            case types.FunctionType():
                self._add_function(thing)
            case types.MethodType():
                self._add_all("method", thing.__func__, thing.__self__)
            case functools.partial():
                self._add_all("partial", thing.func, thing.args, thing.keywords)
            case types.BuiltinFunctionType() | types.MethodWrapperType():
                owner = getattr(thing, "__self__", None)
                known = owner is None or isinstance(owner, types.ModuleType)
                self._add_all("builtin", thing.__name__, _path(thing) if known else owner)
            case types.ModuleType():
                self._write("module", thing.__name__.encode())
            case type():
                self._write("class", _path(thing).encode())
            case Enum():
                self._add_all("member", type(thing), thing.name)
            case re.Pattern():
                self._add_all("expression", thing.pattern, thing.flags)
            case _:
                self._add_object(thing)

    def _add_array(self, array: np.ndarray[Any, Any]) -> None:
        if not self._state:
            self._write("array", b"")
        elif array.dtype.hasobject:
            self._add_all("objects", array.shape, *array.ravel().tolist())
        else:
            self._write("array", f"{array.dtype.str} {array.shape}".encode())
            self._write("numbers", np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _add_code(self, code: types.CodeType, docstring: str | None) -> None:
        flags = code.co_flags & ~_HAS_DOCSTRING
        self._add_all("code", flags, *(getattr(code, name) for name in _CODE))
        constants = [c for i, c in enumerate(code.co_consts) if i or c != docstring]
        self._add_all("constants", *constants)

    def _add_function(self, function: types.FunctionType) -> None:
        seen = self._functions.get(id(function))
        if seen is not None:
            self._write("function", str(seen).encode())
            return
        self._functions[id(function)] = len(self._functions)
        self._write("function", _path(function).encode())
        self._add_code(function.__code__, function.__doc__)
        self._add_all("defaults", function.__defaults__, *sorted((function.__kwdefaults__ or {}).items()))
        for cell in function.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:  # not filled yet
                self._write("cell", b"")
        for name in function.__code__.co_names:
            called = function.__globals__.get(name)
            if isinstance(called, types.FunctionType) and called.__module__ == function.__module__:
                self.add(called)

    def _add_object(self, thing: Any) -> None:
        wrapped = getattr(thing, "__wrapped__", None)
        container = isinstance(thing, tuple | list | Mapping)
        if callable(wrapped) and not container:  # such as a function with a cache
            self._add_all("wrapper", type(thing), wrapped)
            return
        self._write("object", _path(type(thing)).encode())
        call = next(
            (vars(kind)["__call__"] for kind in type(thing).__mro__ if "__call__" in vars(kind)), None
        )
        if isinstance(call, types.FunctionType):
            self.add(call)
        if callable(thing) and isinstance(name := getattr(thing, "__name__", None), str):
            self.add(name)
        if isinstance(thing, tuple):
            self._add_all("items", *thing)
        elif isinstance(thing, frozenset) or (self._state and isinstance(thing, set)):
            self._add_all("members", *sorted(self._inner(member) for member in thing))
        elif is_dataclass(thing) and vars(type(thing))["__dataclass_params__"].frozen:
            self._add_all("fields", *_fields(thing))
        elif self._state:
            self._add_state(thing)

    def _add_state(self, thing: Any) -> None:
        """What an object holds, as far as it could be copied."""
        if isinstance(thing, list):
            self._add_all("items", *thing)
        elif isinstance(thing, Mapping):
            self._add_all("entries", *((key, thing[key]) for key in sorted(thing, key=self._inner)))
        elif is_dataclass(thing):
            self._add_all("fields", *_fields(thing))
        elif callable(getattr(thing, "tocsr", None)):  # a sparse matrix
            matrix = thing.tocsr()
            self._add_all("sparse", matrix.shape, matrix.data, matrix.indices, matrix.indptr)
        elif callable(getattr(thing, "__array__", None)):
            self._add_array(np.asarray(thing))
        else:
            try:
                reduce = copyreg.dispatch_table.get(type(thing))
                reduced = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
            except Exception:  # whatever an object says that cannot be pickled
                raise NoFingerprintError(f"an object of type {_path(type(thing))}") from None
            if isinstance(reduced, str):
                self._write("global", reduced.encode())
            else:
                made, arguments, state, *items = (*reduced, None, None, None)[:5]
                self._add_all(
                    "made", made, arguments, state, *(None if i is None else list(i) for i in items)
                )

    def _inner(self, thing: object) -> str:
        """The digest of a member of something that has no order."""
        return fingerprint(thing, state=self._state)


def _fields(thing: Any) -> list[tuple[str, Any]]:
    """The fields of a dataclass. Earlier versions lack those whose metadata say `later`: their defaults do not count."""
    found = [(f, getattr(thing, f.name)) for f in fields(thing) if f.init]
    return [(f.name, value) for f, value in found if not (f.metadata.get("later") and value is f.default)]


def fingerprint(thing: object, *, state: bool = True) -> str:
    """The digest of a thing; NoFingerprintError where it cannot be compared with that of another process."""
    return Fingerprint(state=state).add(thing).hexdigest()


def name_of(thing: object) -> str:
    """What messages call a function or an object: its import path, or that of its class."""
    return _path(
        thing if isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType) else type(thing)
    )


def by_code(thing: object, function: object = None) -> str:
    """A function whose values are compared too: by its code where that can be, else by its name."""
    name = name_of(function or thing)
    try:
        return f"{name} (fingerprint {fingerprint(thing, state=False)[:16]})"
    except NoFingerprintError:
        return name


def compare_by_code(thing: object, what: str) -> str:
    """A thing that is compared by its code and state alone; UnsavableError where these have no fingerprint."""
    try:
        return f"{name_of(thing)} (fingerprint {fingerprint(thing)[:16]})"
    except NoFingerprintError as error:
        raise UnsavableError(
            f"{what} holds {error}, which cannot be compared with that of another run: a checkpoint needs "
            "functions and objects that could be pickled"
        ) from None


def _path(thing: Callable[..., Any] | type) -> str:
    return f"{getattr(thing, '__module__', None)}:{getattr(thing, '__qualname__', None)}"
