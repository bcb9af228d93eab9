"""The structure of word lattices in a model file.

    {"lattice": {"transitions": "labels", null or [template, …], "crossed": bool, "boundary": label}}

The names of the weights of transitions lie in an array of their own.
"""

from typing import Any

from crfkit.errors import FileFormatError
from crfkit.features import Labels
from crfkit.models.files.file_arrays import setting
from crfkit.structures import CostMatrix, Lattice


def to_json(structure: Lattice) -> dict[str, Any]:
    """The structure for the settings of a model file."""
    transitions = structure.transitions
    assert not isinstance(transitions, CostMatrix)  # which no file holds
    return {
        "lattice": {
            "transitions": transitions
            if transitions is None or isinstance(transitions, str)
            else list(transitions),
            "crossed": bool(structure.crossed),
            "boundary": Labels([structure.boundary]).to_json(),
        }
    }


def from_json(value: dict[str, Any]) -> Lattice | None:
    """The structure of a file; None where it is another one."""
    if "lattice" not in value:
        return None
    found = setting(value, "lattice", dict)
    try:
        (boundary,) = Labels.from_json(setting(found, "boundary", list)).classes
        transitions = setting(found, "transitions", (str, list, type(None)))
        return Lattice(transitions, setting(found, "crossed", bool), boundary)
    except ValueError as error:
        raise FileFormatError(f"its structure is damaged ({str(error).rstrip('.')})") from None
