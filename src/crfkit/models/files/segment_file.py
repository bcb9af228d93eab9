"""Segments in a model file: what was asked for, and which lengths and features have weights.

    {"max_length": K | [[type, K], …] | null, "scheme", "longest_weighted", "column",
     "features": [column | {"path": import path} | {"path": import path, "matches": unseen} | {"template": text}, …],
     "dictionaries": [name, …], "names": F, "bigrams": "observed" | "listed" | null}, types as numbers

Lengths that have weights, features with their types, the entries of dictionaries, and the types that may follow each other
(C for start and end) lie in arrays of their own. Functions are named by import path.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crfkit.arrays import offsets
from crfkit.errors import FileFormatError
from crfkit.features import SegmentMap, SegmentTemplate, import_path, placeholder
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
from crfkit.structures import OBSERVED, Bigrams, SegmentExtractor, SegmentMatches, Segments, function_name

_LISTED = "listed"  # bigrams that were given
_LONGEST = 2**31 - 1


def pack(segments: SegmentMap, arrays: dict[str, Array], n_bytes: dict[str, int]) -> dict[str, Any]:
    """Adds the arrays; what joins the settings of the file."""
    structure, names = segments.structure, segments.types.names
    arrays["segments.lengths"] = compact(np.array(segments.n_lengths, np.int64))
    if segments.features:
        n_bytes["segment_features"] = pack_texts(arrays, "segment_features", segments.features)
        arrays["segment_features.counts"] = compact(np.diff(segments.pair_ptr))
        arrays["segment_features.types"] = compact(segments.pair_types)
    if structure.dictionaries:
        entries = [entry for given in structure.dictionaries.values() for entry in given]
        n_bytes["dictionaries"] = pack_texts(
            arrays, "dictionaries", [word for entry in entries for word in entry]
        )
        arrays["dictionaries.words"] = compact(np.array([len(entry) for entry in entries], np.int64))
        counts = [len([*given]) for given in structure.dictionaries.values()]
        arrays["dictionaries.entries"] = compact(np.array(counts, np.int64))
    if segments.bigrams is not None:
        arrays["segments.before"], arrays["segments.after"] = map(compact, segments.bigrams.ids(names))
    limits = structure.max_length
    if isinstance(limits, Mapping):
        limited: Any = [[names.index(name), int(k)] for name, k in limits.items()]
    else:
        limited = None if limits is None else int(limits)
    features: Any = structure.segment_features
    settings = {
        "max_length": limited,
        "scheme": structure.scheme,
        "longest_weighted": int(structure.longest_weighted),
        "column": structure.column,
        "features": [_entry(one) for one in features],
        "dictionaries": list(structure.dictionaries),
        "names": len(segments.features),
        "bigrams": _LISTED if isinstance(structure.bigrams, Bigrams) else structure.bigrams,
    }
    return {"segments": settings}


def unpack(file: ModelFile, settings: Any, n_bytes: dict[str, Any], labels: Sequence[Hashable]) -> SegmentMap:
    """The inverse of `pack`; FileFormatError for what cannot be segments. Functions are placeholders."""
    if not isinstance(settings, dict):
        raise FileFormatError("its segments are damaged")
    scheme = setting(settings, "scheme", (str, type(None)))
    limits = setting(settings, "max_length", (int, list, type(None)))
    try:
        names = Segments(scheme=scheme).types(labels).names
        asked, bigrams = _bigrams(file, settings, names)
        structure = Segments(
            dict(_limit(entry, names) for entry in limits) if isinstance(limits, list) else limits,
            scheme,
            count_setting(settings, "longest_weighted"),
            [_feature(entry) for entry in setting(settings, "features", list)],
            _dictionaries(file, setting(settings, "dictionaries", list), n_bytes),
            setting(settings, "column", (int, str)),
            bigrams if asked == _LISTED else asked,
        )
        goes_on = structure.types(labels).goes_on.tolist()
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"its segments are damaged ({str(error).rstrip('.')})") from None
    n_lengths = tuple(integers(file, "segments.lengths", _LONGEST).tolist())
    expected = [structure.limit(name) if several else 1 for name, several in zip(names, goes_on, strict=True)]
    if len(n_lengths) != len(names) or any(
        n < 1 or (k is not None and n > k) for n, k in zip(n_lengths, expected, strict=True)
    ):
        raise FileFormatError("the lengths of its segments are damaged")
    found = SegmentMap(structure, tuple(labels), n_lengths, bigrams=bigrams)
    return _with_features(file, found, settings, n_bytes)


def unsavable(structure: Segments) -> str | None:
    """Why no file can name the functions of these segments; None where one can."""
    return explain_unnamed(
        (f"the segment feature {function_name(function)!r}", import_path(function))
        for function in structure.functions
    )


def with_functions(structure: Segments, given: object, *, trust: bool) -> Segments:
    """The structure of a file with functions, in their order, or with those its import paths name."""
    chosen = choose_functions(structure.functions, given, "segment features", trust=trust)
    features: Any = structure.segment_features
    return replace(
        structure,
        segment_features=[
            replace(feature, function=next(chosen))
            if isinstance(feature, SegmentMatches)
            else next(chosen)
            if callable(feature)
            else feature
            for feature in features
        ],
    )


def _with_features(
    file: ModelFile, segments: SegmentMap, settings: dict[str, Any], n_bytes: dict[str, Any]
) -> SegmentMap:
    n = count_setting(settings, "names")
    if not n:
        return segments
    features = tuple(unpack_texts(file, "segment_features", n_bytes, n))
    n_types = len(segments.types.names)
    counts = integers(file, "segment_features.counts", n_types + 1)
    types = integers(file, "segment_features.types", n_types).astype(np.int32)
    ptr = offsets(counts)
    rises = np.diff(types) > 0
    rises[ptr[1:-1][ptr[1:-1] < len(types)] - 1] = True  # from one feature to the next anything goes
    if len(counts) != n or ptr[-1] != len(types) or len(set(features)) != n or 0 in counts or not rises.all():
        raise FileFormatError("the features of its segments do not add up")
    return replace(segments, features=features, pair_ptr=ptr, pair_types=types)


def _bigrams(
    file: ModelFile, settings: dict[str, Any], names: Sequence[Hashable]
) -> tuple[str | None, Bigrams | None]:
    """What was asked for, and the pairs of types; files written before have none."""
    asked: str | None = setting({"bigrams": None, **settings}, "bigrams", (str, type(None)))
    if asked is None:
        return None, None
    before, after = (integers(file, f"segments.{part}", len(names) + 1) for part in ("before", "after"))
    if asked not in (OBSERVED, _LISTED) or len(before) != len(after):
        raise FileFormatError("the bigrams of its segments are damaged")
    return asked, Bigrams.from_ids(names, before.astype(np.int32), after.astype(np.int32))


def _dictionaries(file: ModelFile, names: list[Any], n_bytes: dict[str, Any]) -> dict[str, Any]:
    if not names:
        return {}
    sizes, entries = (integers(file, f"dictionaries.{part}", _LONGEST) for part in ("words", "entries"))
    texts = unpack_texts(file, "dictionaries", n_bytes, int(sizes.sum()))
    if (
        len(entries) != len(names)
        or entries.sum() != len(sizes)
        or not all(isinstance(name, str) for name in names)
    ):
        raise FileFormatError("its dictionaries are damaged")
    words, first = offsets(sizes).tolist(), offsets(entries).tolist()
    return {
        name: [tuple(texts[words[i] : words[i + 1]]) for i in range(first[d], first[d + 1])]
        for d, name in enumerate(names)
    }


def _entry(feature: Any) -> Any:
    if isinstance(feature, SegmentExtractor):
        return {"template": feature.text}
    if isinstance(feature, SegmentMatches):
        return {"path": import_path(feature.function), "matches": feature.unseen}
    return {"path": import_path(feature)} if callable(feature) else feature


def _feature(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    if "template" in entry:
        return SegmentTemplate(setting(entry, "template", str))
    function = placeholder(path_setting(entry, "path"))
    return SegmentMatches(function, setting(entry, "matches", bool)) if "matches" in entry else function


def _limit(entry: Any, names: Sequence[Hashable]) -> tuple[Hashable, int]:
    match entry:
        case [c, k] if is_int(c) and is_int(k) and 0 <= c < len(names):
            return names[c], k
    raise FileFormatError("the lengths of its segments are damaged")
