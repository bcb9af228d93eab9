"""What the file of a CRF holds, array by array, and the rules that each must keep.

    names     of each vocabulary as UTF-8, one after the other, compressed, and the length of each
    counts    how many labels (or arcs) each feature has weights for; the items are these, ascending
    bigrams   the pairs of labels that exist, where the chain is constrained
    facets    of each label, where labels share weights through these
    dictionary  the labels of its words and endings
    functions the names of the outputs of feature functions, for those that have names
    patterns  runs of labels that have weights
    structure the names of the weights of a structure of the user's own
    weights   [D] in the order of the feature map: state pairs, dense blocks, arcs, arc triples; then feature functions or
              patterns

Integers are stored in the smallest type that holds them. Every rule is checked here, before any of the arrays
reaches the native core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.data import MAX_LABELS, MAX_WEIGHT, InputError, check_labels
from crfkit.features import Facets
from crfkit.models.files.dictionary_file import (
    MAX_FACETS,
    Lists,
    Names,
    StoredDictionary,
    facets_to_json,
    read_facets,
)
from crfkit.models.files.file_arrays import (
    array,
    compact,
    floats,
    integers,
    is_int,
    pack_texts,
    read_history,
    setting,
    unpack_texts,
)
from crfkit.models.files.model_file import Array, ModelFile, compress, decompress
from crfkit.models.files.pattern_file import StoredPatterns

TYPE = "CRF"

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


class Contents(NamedTuple):
    """A CRF as the file holds it."""

    settings: dict[str, Any]  # parameters and such, JSON values
    labels: list[Any]  # [L] JSON values
    state_names: Names
    state_pairs: Lists
    dense_columns: dict[str, int]  # block → number of columns
    arc_before: Int32s  # [A] label, or L for the start of the sequence
    arc_after: Int32s  # [A] label, or L for its end
    arc_names: Names
    arc_triples: Lists
    weights: Float64s  # [D]
    history: Float64s  # [iterations, 5]: iteration, objective, gradient norm, passes, dev score or NaN
    bigrams: tuple[Int32s, Int32s] | None = None  # (before, after) [B], L as in arcs; None: all arcs exist
    facets: Facets | None = None  # then state pairs name facets, and arcs facets too, from L + 1 on
    dictionary: StoredDictionary | None = None
    output_names: Sequence[str] = ()  # of feature functions, one function after the other
    patterns: StoredPatterns | None = None
    structure_names: Sequence[str] = ()  # of the weights of a structure of the user's own


def pack(contents: Contents, *, single_precision: bool = False) -> ModelFile:
    """The model file of a CRF. In single precision the weights take half the bytes."""
    n_labels = len(contents.labels)
    if contents.settings.get("functions") is None:
        check_labels(n_labels, len(contents.weights))
    settings: dict[str, Any] = {
        **contents.settings,
        "labels": contents.labels,
        "dense": [[name, columns] for name, columns in contents.dense_columns.items()],
        "facets": facets_to_json(contents.facets),
        "bytes": {
            "state_features": len(contents.state_names.blob),
            "arc_features": len(contents.arc_names.blob),
        },
    }
    dictionary = contents.dictionary
    if dictionary is not None:
        settings["bytes"] |= {"words": len(dictionary.words.blob), "endings": len(dictionary.endings.blob)}
        settings["word_column"] = dictionary.column
    arrays: dict[str, Array] = {
        "weights": contents.weights.astype(np.float32) if single_precision else contents.weights,
        "history": contents.history,
    }
    arrays["arcs.before"] = compact(contents.arc_before)
    arrays["arcs.after"] = compact(contents.arc_after)
    if contents.bigrams is not None:
        arrays["bigrams.before"], arrays["bigrams.after"] = map(compact, contents.bigrams)
    if contents.output_names:
        settings["bytes"]["functions"] = pack_texts(arrays, "functions", contents.output_names)
    if contents.structure_names:
        settings["bytes"]["structure"] = pack_texts(arrays, "structure", contents.structure_names)
    if contents.patterns is not None:
        settings["patterns"] = contents.patterns.pack(arrays, settings["bytes"])
    if contents.facets is not None:
        arrays["facets.table"] = compact(contents.facets.table.ravel() + 1)
    if dictionary is not None:
        _pack_features(arrays, "words", dictionary.words, dictionary.word_lists, n_labels)
        _pack_features(arrays, "endings", dictionary.endings, dictionary.ending_lists, n_labels)
    n_outcomes = _n_outcomes(n_labels, contents.facets)
    _pack_features(arrays, "state_features", contents.state_names, contents.state_pairs, n_outcomes)
    _pack_features(arrays, "arc_features", contents.arc_names, contents.arc_triples, n_labels**2)
    return ModelFile(TYPE, settings, arrays)


def _n_outcomes(n_labels: int, facets: Facets | None) -> int:
    """What a feature can have weights for: labels, or facets, which are numbered from L + 1 on."""
    return n_labels if facets is None else n_labels + 1 + len(facets)


def unpack(file: ModelFile, source: str) -> Contents:
    """The CRF of a model file; InputError for anything that is not one."""
    try:
        return _unpack(file)
    except InputError as error:
        raise InputError(f"{source}: not a usable model: {error}") from None


def _unpack(file: ModelFile) -> Contents:
    if file.type != TYPE:
        raise InputError(f"its type is {file.type[:40]!r}, expected 'CRF' or 'Parser'")
    settings = dict(file.settings)
    labels = _labels(settings.pop("labels", None))
    dense = _dense(settings.pop("dense", None))
    n_bytes = settings.pop("bytes", None)
    if not isinstance(n_bytes, dict):
        raise InputError("the sizes of its vocabularies are missing")
    n_labels = len(labels)
    table = integers(file, "facets.table", MAX_FACETS + 1) if "facets.table" in file.arrays else None
    facets = read_facets(settings.pop("facets", None), table, n_labels)
    n_outcomes = _n_outcomes(n_labels, facets)
    before = integers(file, "arcs.before", max(n_labels + 1, n_outcomes))
    after = integers(file, "arcs.after", max(n_labels + 1, n_outcomes))
    _check_arcs(before, after, n_labels)
    bigrams = _bigrams(file, before, after, n_labels)
    state_names, state_pairs = _unpack_features(file, "state_features", n_bytes, n_outcomes)
    if facets is not None and np.any(state_pairs.items <= n_labels):
        raise InputError("it has labels with facets, and weights for whole labels")
    arc_names, arc_triples = _unpack_features(file, "arc_features", n_bytes, n_labels**2)
    weights = floats(file, "weights", 1, may_be_single=True)
    if weights.size and float(np.abs(weights).max()) > MAX_WEIGHT:
        raise InputError(f"it has a weight beyond ±{MAX_WEIGHT:g}: sums of such numbers are not finite")
    n_weights = len(state_pairs.items) + n_labels * sum(dense.values())
    n_outputs, n_named = _n_outputs(settings)
    patterns = StoredPatterns.unpack(file, settings.pop("patterns", None), n_bytes, labels)
    n_patterns = 0 if patterns is None else patterns.n_weights
    n_own = len(file.arrays.get("structure.lengths", ()))
    n_weights += len(before) + len(arc_triples.items) + n_outputs + n_patterns + n_own
    if len(weights) != n_weights:
        raise InputError(f"it has {len(weights):,} weights, its features need {n_weights:,}")
    if settings.get("functions") is None:
        check_labels(n_labels, n_weights)
    history = read_history(file)
    return Contents(
        settings,
        labels,
        state_names,
        state_pairs,
        dense,
        before.astype(np.int32),
        after.astype(np.int32),
        arc_names,
        arc_triples,
        weights,
        history,
        bigrams,
        facets,
        _dictionary(file, settings, n_bytes, n_labels),
        unpack_texts(file, "functions", n_bytes, n_named),
        patterns,
        unpack_texts(file, "structure", n_bytes, n_own),
    )


def _pack_features(arrays: dict[str, Array], what: str, names: Names, lists: Lists, n_items: int) -> None:
    """Add names, counts and items; counts and items are left out when every feature has all items."""
    arrays[f"{what}.names"] = compress(names.blob.tobytes())
    arrays[f"{what}.lengths"] = compact(names.lengths)
    n_features = len(names.lengths)
    counts = np.diff(lists.ptr)
    if n_features == 0 or len(lists.items) != n_features * n_items:
        arrays[f"{what}.counts"] = compact(counts)
        arrays[f"{what}.items"] = compact(lists.items)


def _n_outputs(settings: dict[str, Any]) -> tuple[int, int]:
    """How many outputs the feature functions of a file have, and how many of these have names."""
    stored = setting(settings, "functions", (dict, type(None)))
    entries = [] if stored is None else setting(stored, "functions", list)
    total = named = 0
    for entry in entries:
        if not isinstance(entry, dict) or not 0 <= setting(entry, "outputs", int) < 2**31:
            raise InputError("its list of feature functions is damaged")
        total += entry["outputs"]
        named += entry["outputs"] * setting(entry, "named", bool)
    return total, named


def _unpack_features(
    file: ModelFile, what: str, n_bytes: dict[str, Any], n_items: int
) -> tuple[Names, Lists]:
    lengths = integers(file, f"{what}.lengths", 2**32)
    size = n_bytes.get(what)
    if not is_int(size) or size != int(lengths.sum(dtype=np.uint64)):
        raise InputError(f"the lengths of the names of its {what} do not add up to the declared size")
    blob = decompress(array(file, f"{what}.names"), size, f"the names of its {what}")
    names = Names(np.frombuffer(blob, np.uint8), lengths.astype(np.uint32))
    n_features = len(lengths)
    if f"{what}.items" not in file.arrays:  # every feature has all items
        if n_features * n_items > len(array(file, "weights")):
            raise InputError(f"its {what} need {n_features * n_items:,} weights, more than it has")
        items = np.tile(np.arange(n_items, dtype=np.int32), n_features)
        return names, Lists(np.arange(n_features + 1, dtype=np.int64) * n_items, items)
    counts = integers(file, f"{what}.counts", n_items + 1)
    items = integers(file, f"{what}.items", n_items).astype(np.int32)
    if len(counts) != n_features or int(counts.sum(dtype=np.int64)) != len(items):
        raise InputError(f"its {what}, counts and items do not fit together")
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    rises = np.diff(items) > 0
    borders = ptr[(ptr > 0) & (ptr < len(items))]
    rises[borders - 1] = True  # from one feature to the next anything goes
    if not rises.all():
        raise InputError(f"the items of its {what} are not ascending")
    return names, Lists(ptr, items)


def _dictionary(
    file: ModelFile, settings: dict[str, Any], n_bytes: dict[str, Any], n_labels: int
) -> StoredDictionary | None:
    """The tag dictionary, if the file has one."""
    column = settings.pop("word_column", None)
    if column is None and "words.names" not in file.arrays:
        return None
    if not isinstance(column, str) and not (is_int(column) and abs(column) < 2**31):
        raise InputError("the column of its tag dictionary is damaged")
    words, word_lists = _unpack_features(file, "words", n_bytes, n_labels)
    endings, ending_lists = _unpack_features(file, "endings", n_bytes, n_labels)
    return StoredDictionary(words, word_lists, endings, ending_lists, column)


def _check_arcs(before: Array, after: Array, n_labels: int) -> None:
    if len(before) != len(after):
        raise InputError(f"'arcs.before' has {len(before)} entries, 'arcs.after' {len(after)}")
    n_outcomes = int(max(before.max(initial=n_labels), after.max(initial=n_labels))) + 1
    code = before.astype(np.int64) * n_outcomes + after
    if np.any(np.diff(np.sort(code)) == 0) or np.any((before == n_labels) & (after == n_labels)):
        raise InputError("its arcs are not distinct pairs of labels")
    if np.any((before > n_labels) != (after > n_labels)):
        raise InputError("it has an arc between a label and a facet")


def _bigrams(file: ModelFile, before: Array, after: Array, n_labels: int) -> tuple[Int32s, Int32s] | None:
    """The pairs that exist, ascending, if the file has any list of them; all arcs with weights are among them."""
    names = ("bigrams.before", "bigrams.after")
    if not any(name in file.arrays for name in names):
        return None
    first, second = (integers(file, name, n_labels + 1) for name in names)
    if len(first) != len(second):
        raise InputError(f"'{names[0]}' has {len(first)} entries, '{names[1]}' {len(second)}")
    codes = first * (n_labels + 1) + second
    if np.any(np.diff(codes) <= 0):
        raise InputError("its bigrams are not distinct and ascending")
    whole = before <= n_labels  # between labels, not facets
    if not np.isin(before[whole].astype(np.int64) * (n_labels + 1) + after[whole], codes).all():
        raise InputError("it has a weight for an arc that is not among its bigrams")
    return first.astype(np.int32), second.astype(np.int32)


def _dense(value: Any) -> dict[str, int]:
    if not isinstance(value, list):
        raise InputError("the list of its dense blocks is missing")
    blocks = {}
    for entry in value:
        match entry:
            case [str(name), int(columns)] if name not in blocks and 0 < columns < 2**31 and is_int(columns):
                blocks[name] = columns
            case _:
                raise InputError("the list of its dense blocks is damaged")
    return blocks


def _labels(value: Any) -> list[Any]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_LABELS:
        raise InputError(f"it has no list of 1 to {MAX_LABELS} labels")
    return value
