"""Feature functions in a model file: by name and import path, never their code.

    {"length": path, "arcs": true, "memory": bytes, "functions": [{"name", "path", "on", "vectorised", "end",
     "outputs": K, "named": whether the outputs have names, "declared": whether the user gave them}, …]}

The names of outputs lie in an array of their own, function after function.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from crfkit.errors import ArgumentError, FileFormatError, InputError, reword
from crfkit.features import FeatureFunction, FeatureFunctions, FunctionMap, Outputs, placeholder
from crfkit.models.files.file_arrays import count_setting, name_damage, path_setting, setting
from crfkit.models.files.function_list import explain_unnamed

_RENAMED_PARTS = {"arcs": "transitions"}  # what functions look at, in files of earlier versions


class StoredFunctions(NamedTuple):
    """Feature functions as a file has them: placeholders, and what training learned of their outputs."""

    functions: FeatureFunctions
    outputs: tuple[Outputs, ...]


def unsavable(functions: FeatureFunctions) -> str | None:
    """Why no file can name these functions; None where one can."""
    paths, length = functions.paths()
    names = (*(function.name for function in functions), "length")
    return explain_unnamed(
        (f"the feature function {name!r}", path) for name, path in zip(names, (*paths, length), strict=True)
    )


def to_json(function_map: FunctionMap) -> dict[str, Any]:
    """The functions for the settings of a model file."""
    functions = function_map.functions
    paths, length = functions.paths()
    return {
        "length": length,
        "arcs": functions.transitions,
        "memory": int(functions.memory),
        "functions": [
            {
                "name": function.name,
                "path": path,
                "on": function.on,
                "vectorised": function.vectorised,
                "end": function.end,
                "outputs": outputs.size or 0,
                "named": outputs.vocabulary is not None,
                "declared": outputs.declared,
            }
            for function, path, outputs in zip(functions, paths, function_map.outputs, strict=True)
        ],
    }


def output_names(function_map: FunctionMap) -> list[str]:
    """The names of all outputs that have one, function after function."""
    return [
        name
        for outputs in function_map.outputs
        if outputs.vocabulary is not None
        for name in outputs.vocabulary.names()
    ]


def read(
    settings: dict[str, Any],
    names: Sequence[str],
    source: str,
    functions: FeatureFunctions | Sequence[Any] | None,
    *,
    trust: bool,
) -> StoredFunctions | None:
    """The functions of a model file: those given, those imported where that is trusted, or placeholders."""
    with name_damage(source):
        stored = from_json(settings, names)
    if stored is None:
        if functions is not None:
            raise ArgumentError(f"{source}: functions were given, but the model has no feature functions")
        return None
    loaded = stored.functions
    try:
        if functions is not None:
            loaded = loaded.with_functions(functions)
        elif trust:
            loaded = loaded.with_imports()
    except InputError as error:
        raise reword(error, f"{source}: {error}") from error
    for outputs, function in zip(stored.outputs, loaded, strict=True):
        outputs.function = function
    return StoredFunctions(loaded, stored.outputs)


def from_json(settings: dict[str, Any], names: Sequence[str]) -> StoredFunctions | None:
    """The functions of a model file, not loaded; InputError for what cannot be functions."""
    stored = setting(settings, "functions", (dict, type(None)))
    if stored is None:
        return None
    functions: list[FeatureFunction] = []
    found: list[Outputs] = []
    begin = 0
    for entry in setting(stored, "functions", list):
        size = count_setting(entry, "outputs")
        own = None
        if setting(entry, "named", bool):
            own, begin = tuple(names[begin : begin + size]), begin + size
            if len(set(own)) != size:
                raise FileFormatError("the names of the outputs of a feature function are not distinct")
        declared = setting(entry, "declared", bool)
        if declared and not size:
            raise FileFormatError("a feature function of it has no outputs")
        on = setting(entry, "on", str)
        function = FeatureFunction(
            placeholder(path_setting(entry, "path")),
            (own if own is not None else size) if declared else None,
            setting(entry, "name", str),
            _RENAMED_PARTS.get(on, on),
            vectorised=setting(entry, "vectorised", bool),
            end=setting(entry, "end", bool),
        )
        outputs = Outputs(function)
        if own is not None:
            outputs.set_names(own)
        elif size:
            outputs.set_size(size)
        functions.append(function)
        found.append(outputs)
    return StoredFunctions(
        FeatureFunctions(
            functions,
            length=placeholder(path_setting(stored, "length")),
            transitions=setting(stored, "arcs", bool),
            memory=count_setting(stored, "memory", 2**63),
        ),
        tuple(found),
    )
