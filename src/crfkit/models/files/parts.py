"""Model files made of parts: each part is a model file of its own, its arrays under `part/…`.

settings "parts": {name of the part: {"type": …, "settings": …}}
"""

from collections.abc import Mapping
from typing import Any

from crfkit.errors import FileFormatError
from crfkit.models.files.file_arrays import setting
from crfkit.models.files.model_file import Array, ModelFile

_MOST_PARTS = 100


def join_parts(
    kind: str,
    settings: Mapping[str, Any],
    parts: Mapping[str, ModelFile],
    arrays: Mapping[str, Array] | None = None,
) -> ModelFile:
    """One model file of type `kind` with settings and arrays of its own, and parts, whose names hold no `/`."""
    described = {name: {"type": part.type, "settings": part.settings} for name, part in parts.items()}
    held = dict(arrays or {})
    for name, part in parts.items():
        held |= {f"{name}/{inner}": array for inner, array in part.arrays.items()}
    return ModelFile(kind, {**settings, "parts": described}, held)


def split_parts(file: ModelFile) -> dict[str, ModelFile]:
    """The parts of a model file that `join_parts` made; FileFormatError where they are damaged."""
    described = setting(file.settings, "parts", dict)
    if len(described) > _MOST_PARTS:
        raise FileFormatError(f"it has {len(described):,} parts, expected {_MOST_PARTS} at most")
    found = {}
    for name, part in described.items():
        if not isinstance(part, dict) or "/" in name:
            raise FileFormatError(f"its part {name[:40]!r} is damaged")
        arrays = {
            inner.removeprefix(f"{name}/"): array
            for inner, array in file.arrays.items()
            if inner.startswith(f"{name}/")
        }
        found[name] = ModelFile(setting(part, "type", str), setting(part, "settings", dict), arrays)
    return found
