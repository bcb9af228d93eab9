"""Resources in a model file: by name, kind and digest, and where they are bundled by their bytes.

"resources": {name: {"kind": "lexicon", "digest": 32 hex digits}, …}        among the parameters
"resource.NAME"                                                             the bytes of a bundled one
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features import MissingResource, Resource, check_resources, resource_from_bytes
from crfkit.models.files.file_arrays import setting
from crfkit.models.files.model_file import ModelFile

Resources = Mapping[str, Resource | MissingResource]
_ARRAY = "resource."


def to_json(resources: Resources) -> dict[str, Any]:
    """What the parameters of a model file say of resources."""
    return {
        name: {"kind": resource.KIND, "digest": resource.digest}
        for name, resource in sorted(resources.items())
    }


def bundle(file: ModelFile, resources: Resources) -> ModelFile:
    """The model file with the bytes of resources in it; NotLoadedError where one was not loaded."""
    arrays = dict(file.arrays)
    for name, resource in sorted(resources.items()):
        if isinstance(resource, MissingResource):
            raise resource.complaint(name)
        arrays[f"{_ARRAY}{name}"] = np.frombuffer(resource.to_bytes(), np.uint8)
    return file._replace(arrays=arrays)


def read(file: ModelFile, parameters: dict[str, Any]) -> dict[str, Resource | MissingResource]:
    """The resources that a model needs: bundled ones, and placeholders for others; FileFormatError where damaged."""
    stored = parameters.get("resources")
    if stored is None:
        return {}
    found: dict[str, Resource | MissingResource] = {}
    for name, entry in setting(parameters, "resources", dict).items():
        if not isinstance(entry, dict):
            raise FileFormatError("its list of resources is damaged")
        kind, digest = setting(entry, "kind", str), setting(entry, "digest", str)
        found[name] = MissingResource(kind, digest)
        if (array := file.arrays.get(f"{_ARRAY}{name}")) is not None:
            if array.dtype != np.uint8 or array.ndim != 1:
                raise FileFormatError(f"its resource {name[:40]!r} is damaged")
            resource = resource_from_bytes(array.tobytes(), f"resource {name[:40]!r}")
            if (resource.KIND, resource.digest) != (kind, digest):
                raise FileFormatError(f"its resource {name[:40]!r} is damaged")
            found[name] = resource
    return check_resources(found)


def choose(needed: Resources, given: object, source: str) -> dict[str, Resource | MissingResource]:
    """The resources of a model: those given, which must be the ones that it was trained with, else those of its file."""
    chosen = dict(needed)
    for name, resource in check_resources(given).items():
        if name not in needed:
            known = ", ".join(map(repr, needed)) or "none"
            raise ArgumentError(f"{source}: resources has {name!r}, but the model needs {known}")
        expected = needed[name]
        if (resource.KIND, resource.digest) != (expected.KIND, expected.digest):
            raise ArgumentError(
                f"{source}: {name!r} is not what the model was trained with: {expected.KIND} with digest "
                f"{expected.digest[:8]}…, given {resource.KIND} with digest {resource.digest[:8]}…"
            )
        chosen[name] = resource
    return chosen
