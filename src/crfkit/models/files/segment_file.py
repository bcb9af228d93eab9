"""Segments in a model file: what was asked for, and the lengths that have weights.

    {"max_length": K | [[type, K], …] | null, "scheme", "longest_weighted"}, types as numbers

The lengths that have weights, of each type, lie in an array of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from crfkit.data import InputError
from crfkit.features import SegmentMap
from crfkit.models.files.file_arrays import compact, count_setting, integers, is_int, setting
from crfkit.models.files.model_file import Array, ModelFile
from crfkit.structures import Segments

_LONGEST = 2**31 - 1


def pack(segments: SegmentMap, arrays: dict[str, Array]) -> dict[str, Any]:
    """Adds the arrays; what the settings of the file have to say."""
    structure, names = segments.structure, segments.types.names
    arrays["segments.lengths"] = compact(np.array(segments.n_lengths, np.int64))
    limits = structure.max_length
    return {
        "max_length": [[names.index(name), int(k)] for name, k in limits.items()]
        if isinstance(limits, Mapping)
        else None
        if limits is None
        else int(limits),
        "scheme": structure.scheme,
        "longest_weighted": int(structure.longest_weighted),
    }


def unpack(file: ModelFile, settings: Any, labels: Sequence[Hashable]) -> SegmentMap | None:
    """The inverse of `pack`; InputError for what cannot be segments."""
    if settings is None:
        return None
    if not isinstance(settings, dict):
        raise InputError("its segments are damaged")
    scheme = setting(settings, "scheme", (str, type(None)))
    limits = setting(settings, "max_length", (int, list, type(None)))
    longest = count_setting(settings, "longest_weighted")
    try:
        names = Segments(scheme=scheme).types(labels).names
        limits = dict(_limit(entry, names) for entry in limits) if isinstance(limits, list) else limits
        structure = Segments(limits, scheme, longest)
        goes_on = structure.types(labels).goes_on.tolist()
    except (TypeError, ValueError) as error:
        raise InputError(f"its segments are damaged ({str(error).rstrip('.')})") from None
    n_lengths = tuple(integers(file, "segments.lengths", _LONGEST).tolist())
    expected = [structure.limit(name) if several else 1 for name, several in zip(names, goes_on, strict=True)]
    if len(n_lengths) != len(names) or any(
        n < 1 or k not in (None, n) for n, k in zip(n_lengths, expected, strict=True)
    ):
        raise InputError("the lengths of its segments are damaged")
    return SegmentMap(structure, tuple(labels), n_lengths)


def _limit(entry: Any, names: Sequence[Hashable]) -> tuple[Hashable, int]:
    match entry:
        case [c, k] if is_int(c) and is_int(k) and 0 <= c < len(names):
            return names[c], k
    raise InputError("the lengths of its segments are damaged")
