"""Patterns in a model file: the list that was asked for, and the runs of labels that training took from data.

    {"list": [{"kind": "pattern", "text", "when", "path", "weight"} | {"kind": "ngrams", …} | {"kind": "affixes", …}
     | {"kind": "function", "path"}, …], "max_states", "grow": {…} or null, "given": K}

Functions are named by import path. Of a list that was given to take affixes from, only these are kept, as label ids.
"""

import dataclasses
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from crfkit.errors import FileFormatError
from crfkit.features import PatternMap, import_path, placeholder
from crfkit.models.files.file_arrays import (
    compact,
    count_setting,
    integers,
    is_int,
    pack_texts,
    path_setting,
    setting,
    unpack_texts,
)
from crfkit.models.files.function_list import choose_functions, explain_unnamed
from crfkit.models.files.model_file import Array, ModelFile
from crfkit.structures import FIRST, LAST, Affixes, Gram, Growth, Ngrams, Pattern, Patterns, function_name


def pack(patterns: PatternMap, arrays: dict[str, Array], n_bytes: dict[str, int]) -> dict[str, Any]:
    """Adds the arrays; what joins the settings of the file."""
    structure, grams = patterns.structure, patterns.grams
    labels = [label for gram in grams for label in gram.labels]
    arrays["grams.where"] = compact(np.array([gram.where for gram in grams], dtype=np.int64))
    arrays["grams.lengths"] = compact(np.array([len(gram.labels) for gram in grams], dtype=np.int64))
    arrays["grams.labels"] = compact(np.array(labels, dtype=np.int64))
    if patterns.given_names:
        n_bytes["patterns"] = pack_texts(arrays, "patterns", patterns.given_names)
    growth = structure.grow
    settings = {
        "list": [entry for spec in structure.patterns for entry in _to_json(spec, patterns.labels)],
        "max_states": int(structure.max_states),
        "grow": dataclasses.asdict(growth) if isinstance(growth, Growth) else None,
        "given": len(patterns.given_names),
        "found": [entry for pattern in patterns.found for entry in _to_json(pattern, patterns.labels)],
    }
    return {"patterns": settings}


def unpack(file: ModelFile, settings: Any, n_bytes: dict[str, Any], labels: Sequence[Hashable]) -> PatternMap:
    """The inverse of `pack`, on a plain chain; InputError for what cannot be patterns. Functions are placeholders."""
    if not isinstance(settings, dict):
        raise FileFormatError("its list of patterns is damaged")
    given = tuple(unpack_texts(file, "patterns", n_bytes, count_setting(settings, "given")))
    lengths = integers(file, "grams.lengths", 2**31).tolist()
    where = integers(file, "grams.where", 3).tolist()
    ids = integers(file, "grams.labels", len(labels)).tolist()
    if len(where) != len(lengths) or sum(lengths) != len(ids) or 0 in lengths:
        raise FileFormatError("its runs of labels do not add up")
    ends = np.cumsum([0, *lengths]).tolist()
    grams = tuple(
        Gram(place, tuple(ids[begin:end]))
        for place, begin, end in zip(where, ends[:-1], ends[1:], strict=True)
    )
    growth = setting(settings, "grow", (dict, type(None)))
    try:
        structure = Patterns(
            [_from_json(entry, labels) for entry in setting(settings, "list", list)],
            max_states=count_setting(settings, "max_states"),
            grow=None if growth is None else Growth(**growth),
        )
        found = [_from_json(entry, labels) for entry in settings.get("found", ())]
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"its patterns are damaged ({str(error).splitlines()[0]})") from None
    if not all(isinstance(pattern, Pattern) and not callable(pattern.when) for pattern in found):
        raise FileFormatError("its patterns that training found are damaged")
    patterns = PatternMap(structure, tuple(labels), grams, given, found=tuple(found))
    patterns.check()
    if len(set(grams)) != len(grams) or not set(given) <= set(patterns.names):
        raise FileFormatError("its patterns are not distinct")
    return patterns


def unsavable(structure: Patterns) -> str | None:
    """Why no file can name the functions of these patterns; None where one can."""
    return explain_unnamed(
        (f"the function {function_name(function)!r} of its patterns", import_path(function))
        for function in functions_of(structure)
    )


def with_functions(structure: Patterns, given: object, *, trust: bool) -> Patterns:
    """The structure of a file with functions, in the order of its list, or with those its import paths name."""
    left = choose_functions(functions_of(structure), given, "patterns", trust=trust)
    specs = [_with(spec, left) for spec in structure.patterns]
    return dataclasses.replace(structure, patterns=specs)


def functions_of(structure: Patterns) -> list[Callable[..., Any]]:
    """The functions in the order of the list: gates, and those that give patterns."""
    found = [spec.when if isinstance(spec, Pattern) else spec for spec in structure.patterns]
    return [function for function in found if callable(function)]


def _with(spec: Any, functions: Any) -> Any:
    if isinstance(spec, Pattern):
        return dataclasses.replace(spec, when=next(functions)) if callable(spec.when) else spec
    return next(functions) if callable(spec) else spec


def _to_json(spec: Any, labels: Sequence[Hashable]) -> list[dict[str, Any]]:
    """An entry of the list, or several that say the same."""
    if isinstance(spec, Pattern):
        written = spec.when if isinstance(spec.when, str) else None
        path = import_path(spec.when) if callable(spec.when) else None
        weight = spec.name if callable(spec.when) else spec.weight
        return [{"kind": "pattern", "text": spec.text, "when": written, "path": path, "weight": weight}]
    if isinstance(spec, Affixes) and spec.of is not None:
        grams = spec.grams(np.zeros(0, np.int32), np.zeros(1, np.int64), labels)
        kinds = sorted({(gram.where, len(gram.labels)) for gram in grams})
        return [
            {
                "kind": "affixes",
                "lengths": [length],
                "prefixes": where == FIRST,
                "suffixes": where == LAST,
                "of": [gram.labels for gram in grams if (gram.where, len(gram.labels)) == (where, length)],
            }
            for where, length in kinds
        ]
    if isinstance(spec, Ngrams | Affixes):
        fields = {name: _plain(value) for name, value in vars(spec).items() if name != "of"}
        return [{"kind": type(spec).__name__.lower(), **fields}]
    return [{"kind": "function", "path": import_path(spec)}]


def _from_json(entry: Any, labels: Sequence[Hashable]) -> Any:
    if not isinstance(entry, dict):
        raise FileFormatError("its list of patterns is damaged")
    kind = setting(entry, "kind", str)
    match kind:
        case "pattern":
            when = setting(entry, "when", (str, type(None)))
            path = setting(entry, "path", (str, type(None)))
            gate = when if path is None else placeholder(path_setting(entry, "path"))
            return Pattern(setting(entry, "text", str), gate, setting(entry, "weight", (str, type(None))))
        case "ngrams" | "affixes":
            fields = {name: _restore(value) for name, value in entry.items() if name not in ("kind", "of")}
            if "of" in entry:
                fields["of"] = [_run(run, labels) for run in setting(entry, "of", list)]
            return Ngrams(**fields) if kind == "ngrams" else Affixes(**fields)
        case "function":
            return placeholder(path_setting(entry, "path"))
    raise FileFormatError(f"its list of patterns has an entry of the kind {kind[:40]!r}")


def _run(ids: Any, labels: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """The labels with these ids."""
    if not isinstance(ids, list) or not all(is_int(i) and 0 <= i < len(labels) for i in ids):
        raise FileFormatError("its affixes are damaged")
    return tuple(labels[i] for i in ids)


def _plain(value: Any) -> Any:
    """Numbers by length as JSON."""
    if isinstance(value, Mapping):
        return {str(length): int(number) for length, number in value.items()}
    if isinstance(value, np.integer):
        return int(value)
    return list(value) if isinstance(value, tuple) else value


def _restore(value: Any) -> Any:
    return {int(length): number for length, number in value.items()} if isinstance(value, dict) else value
