"""A structure of the user's own in a model file: the import path of its class, and its fields.

    {"class": path, "fields": {name: JSON value, …}} beside the settings of its chain, never any code

The names of its weights lie in an array of their own.
"""

import dataclasses
import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crfkit.errors import FileFormatError, NotLoadedError
from crfkit.features import import_path, load_function, placeholder
from crfkit.models.files.file_arrays import path_setting, setting
from crfkit.structures import Arc, Chain, GraphStructure


@dataclass(frozen=True)
class StoredStructure(GraphStructure):
    """Stands for the structure of a model file that was loaded without its class."""

    kind: Callable[..., Any]
    fields: dict[str, Any]
    chain: Chain

    def arcs(self, n_positions: int, labels: Sequence[Hashable]) -> Iterable[Arc]:
        """There are none: the class has to be loaded."""
        raise NotLoadedError(
            f"the structure {import_path(self.kind)} is not loaded: crfkit.load(path, functions=[…]) takes its class, "
            "crfkit.load(path, trust_functions=True) imports it"
        )

    def open(self, given: Any, *, trust: bool) -> GraphStructure:
        """The structure itself, with the class that is given, or with the one that its import path names."""
        if given is None and not trust:
            return self
        try:
            (kind,) = [load_function(self.kind)] if given is None else given
            structure = _make(kind, self.fields, self.chain)
        except (TypeError, ValueError) as error:
            raise NotLoadedError(f"its structure {self.kind!r} cannot be made ({error})") from error
        if not isinstance(structure, GraphStructure):
            raise FileFormatError(f"{kind!r} makes {type(structure).__name__}, expected a GraphStructure")
        return structure


def unsavable(structure: GraphStructure) -> str | None:
    """Why no file can name a structure; None where one can."""
    kind, fields = _parts(structure)
    if import_path(kind) is None:
        return f"the class {kind.__name__} of its structure has no import path, expected one that stands in a module"
    try:
        written = json.loads(json.dumps(fields))
        if isinstance(structure, StoredStructure) or _holds(structure, _make(kind, written, structure.chain)):
            return None
    except (TypeError, ValueError) as error:
        return f"its structure cannot be made again from fields that are JSON values ({error})"
    return (
        f"its structure is another one when {kind.__name__} is made again from fields that are JSON values, which have no "
        "tuples, and keys that are texts only; expected a dataclass whose fields tell all of it"
    )


def to_json(structure: GraphStructure) -> dict[str, Any]:
    """The structure for the settings of a model file."""
    kind, fields = _parts(structure)
    return {"class": import_path(kind), "fields": fields}


def from_json(value: dict[str, Any], chain: Chain) -> StoredStructure:
    """The structure of a file, not loaded."""
    return StoredStructure(placeholder(path_setting(value, "class")), setting(value, "fields", dict), chain)


def kind_of(structure: GraphStructure) -> Callable[..., Any]:
    """The class."""
    return structure.kind if isinstance(structure, StoredStructure) else type(structure)


def _parts(structure: GraphStructure) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The class and its fields, of which `chain` is kept apart."""
    kind = kind_of(structure)
    if isinstance(structure, StoredStructure):
        return kind, structure.fields
    names = [name for name in _fields(kind) if name != "chain"]
    return kind, {name: getattr(structure, name) for name in names}


def _make(kind: Callable[..., Any], fields: dict[str, Any], chain: Chain) -> Any:
    return kind(**fields, **({"chain": chain} if "chain" in _fields(kind) else {}))


def _holds(structure: GraphStructure, made: GraphStructure) -> bool:
    """Whether a structure has all that a new one has; what it has noted since then does not count."""
    names = {*_fields(type(made)), *getattr(made, "__dict__", {}), "chain"}
    return all(bool(getattr(structure, name, None) == getattr(made, name)) for name in names)


def _fields(kind: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
