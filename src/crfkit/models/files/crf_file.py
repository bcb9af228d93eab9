"""What the file of a CRF holds, array by array, and the rules that each must keep.

    names     of each vocabulary as UTF-8, one after the other, compressed, and the length of each
    counts    how many labels (or arcs) each feature has weights for; the items are these, ascending
    bigrams   the pairs of labels that exist, where the chain is constrained
    facets    of each label, where labels share weights through these
    dictionary  the labels of its words and endings
    functions the names of the outputs of feature functions, for those that have names
    structure the names of the weights of a structure that names them; others have arrays of their own
    weights   [D] in the order of the feature map: state pairs, dense blocks, arcs, arc triples; then feature functions,
              and those of the structure

Integers are stored in the smallest type that holds them. Every rule is checked here, before any of the arrays
reaches the native core.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Float64s, Int32s, Int64s, offsets
from crfkit.data import MAX_LABELS, check_labels
from crfkit.errors import ArgumentError, FileFormatError
from crfkit.features import (
    FREQUENT_WORD_ARRAYS,
    IOBES,
    Encoder,
    Facets,
    FeatureMap,
    FrequentWords,
    Labels,
    RelatedForms,
    StateLabels,
    TagDictionary,
    Vocabulary,
)
from crfkit.models.files.file_arrays import (
    array,
    compact,
    count_setting,
    flag,
    hash_bits_of,
    integers,
    is_int,
    pack_texts,
    read_history,
    read_weights,
    setting,
    unpack_texts,
)
from crfkit.models.files.model_file import Array, ModelFile, compress, decompress

TYPE = "CRF"
MAX_FACETS = 65_535
_COUNTED = "counted."  # arrays of counts of words, which macros of the template ask for


class Contents(NamedTuple):
    """A CRF as the file holds it."""

    settings: dict[str, Any]  # parameters and such, JSON values
    labels: Labels
    encoder: Encoder  # its template is among the parameters
    feature_map: FeatureMap
    weights: Float64s  # [D]
    history: Float64s  # [iterations, 5]: iteration, objective, gradient norm, passes, dev score or NaN
    dictionary: TagDictionary | None = None
    output_names: Sequence[str] = ()  # of feature functions, one function after the other
    structure_names: Sequence[str] = ()  # of the weights of a structure that names them
    pack_own: Callable[..., dict[str, Any]] | None = (
        None  # adds the arrays of its structure; what joins the settings
    )
    own: Any = None  # the same, unpacked
    counts: FrequentWords | None = None  # which macros of the template ask for


def pack(contents: Contents, *, single_precision: bool = False) -> ModelFile:
    """The model file of a CRF. In single precision the weights take half the bytes."""
    n_labels, encoder, map_ = len(contents.labels), contents.encoder, contents.feature_map
    if contents.settings.get("functions") is None:
        check_labels(n_labels, len(contents.weights))
    n_bytes: dict[str, int] = {}  # of names, which are stored compressed
    settings: dict[str, Any] = {
        **contents.settings,
        "labels": contents.labels.to_json(),
        "dense": [[name, columns] for name, columns in map_.dense.items()],
        "facets": None if map_.facets is None else list(map_.facets.names),
        "bytes": n_bytes,
        **({} if encoder.hash_bits is None else {"hash_bits": encoder.hash_bits}),
        **({"span_states": IOBES} if isinstance(contents.labels, StateLabels) else {}),
    }
    arrays: dict[str, Array] = {
        "weights": contents.weights.astype(np.float32) if single_precision else contents.weights,
        "history": contents.history,
        "arcs.before": compact(map_.arc_before),
        "arcs.after": compact(map_.arc_after),
    }
    of_states = (encoder.vocabulary, map_.pair_ptr, map_.pair_labels)
    of_arcs = (encoder.arc_vocabulary, map_.arc_ptr, map_.arc_triples)
    _pack_features(arrays, n_bytes, "state_features", *of_states, _n_outcomes(n_labels, map_.facets))
    _pack_features(arrays, n_bytes, "arc_features", *of_arcs, n_labels**2)
    if map_.bigrams is not None:
        arrays["bigrams.before"], arrays["bigrams.after"] = map(compact, map_.bigrams)
    if map_.facets is not None:
        arrays["facets.table"] = compact(map_.facets.table.ravel() + 1)
    dictionary = contents.dictionary
    if dictionary is not None:
        settings["word_column"] = dictionary.column
        n_words = len(dictionary.words)
        ptr, items, middle = dictionary.ptr, dictionary.labels, int(dictionary.ptr[n_words])
        words = (_vocabulary(dictionary.words), ptr[: n_words + 1], items[:middle])
        endings = (_vocabulary(dictionary.endings), ptr[n_words:] - middle, items[middle:])
        n_written = len(contents.labels.written)
        _pack_features(arrays, n_bytes, "words", *words, n_written)
        _pack_features(arrays, n_bytes, "endings", *endings, n_written)
        if dictionary.related is not None:
            settings["related_forms"] = _pack_related(arrays, n_bytes, dictionary.related, n_written)
    if contents.output_names:
        n_bytes["functions"] = pack_texts(arrays, "functions", contents.output_names)
    if contents.structure_names:
        n_bytes["structure"] = pack_texts(arrays, "structure", contents.structure_names)
    if encoder.template is not None and encoder.template.counts is not None:
        arrays |= {f"{_COUNTED}{name}": array for name, array in encoder.template.counts.to_arrays().items()}
    if contents.pack_own is not None:
        settings |= contents.pack_own(arrays, n_bytes)
    return ModelFile(TYPE, settings, arrays)


def _n_outcomes(n_labels: int, facets: Facets | None) -> int:
    """What a feature can have weights for: labels, or facets, which are numbered from L + 1 on."""
    return n_labels if facets is None else n_labels + 1 + len(facets)


def unpack(file: ModelFile, key: str = "", unpack_own: Callable[..., Any] | None = None) -> Contents:
    """The CRF of a model file; InputError for anything that is not one.

    `unpack_own` reads what its structure keeps under `key`.
    """
    if file.type != TYPE:
        raise FileFormatError(f"its type is {file.type[:40]!r}, expected 'CRF' or 'Parser'")
    settings = dict(file.settings)
    labels = _labels(settings.pop("labels", None), settings.pop("span_states", None))
    dense = _dense(settings.pop("dense", None))
    n_bytes = settings.pop("bytes", None)
    if not isinstance(n_bytes, dict):
        raise FileFormatError("the sizes of its vocabularies are missing")
    n_labels = len(labels)
    facets = _facets(file, settings.pop("facets", None), n_labels)
    n_outcomes = _n_outcomes(n_labels, facets)
    before = integers(file, "arcs.before", max(n_labels + 1, n_outcomes))
    after = integers(file, "arcs.after", max(n_labels + 1, n_outcomes))
    _check_arcs(before, after, n_labels)
    bigrams = _bigrams(file, before, after, n_labels)
    if isinstance(labels, StateLabels) and (bigrams is None or not labels.are_valid(*bigrams)):
        raise FileFormatError("it has states of spans without the bigrams that go with them")
    vocabulary, pair_ptr, pair_labels = _unpack_features(file, "state_features", n_bytes, n_outcomes)
    if facets is not None and np.any(pair_labels <= n_labels):
        raise FileFormatError("it has labels with facets, and weights for whole labels")
    arc_vocabulary, arc_ptr, arc_triples = _unpack_features(file, "arc_features", n_bytes, n_labels**2)
    n_outputs, n_named = _n_outputs(settings)
    kept = settings.pop(key, None)
    own = None if unpack_own is None or kept is None else unpack_own(file, kept, n_bytes, labels.classes)
    n_own = len(file.arrays.get("structure.lengths", ()))
    n_weights = len(pair_labels) + n_labels * sum(dense.values()) + len(before) + len(arc_triples)
    n_weights += n_outputs + n_own + (0 if own is None else own.n_weights)
    weights = read_weights(file, n_weights)
    if settings.get("functions") is None:
        check_labels(n_labels, n_weights)
    n_columns = setting(settings, "n_columns", (int, type(None)))
    more_columns = flag(settings, "more_columns")
    hash_bits = hash_bits_of(settings)
    structure = setting(setting(settings, "parameters", dict), "structure", dict)
    soft = structure.get("unseen") == "soft"
    arcs = (before.astype(np.int32), after.astype(np.int32), arc_ptr, arc_triples)
    return Contents(
        settings,
        labels,
        Encoder(None, vocabulary, arc_vocabulary, dict(dense), n_columns, more_columns, hash_bits),
        FeatureMap(n_labels, pair_ptr, pair_labels, dense, *arcs, bigrams, soft, facets),
        weights,
        read_history(file),
        _dictionary(file, settings, n_bytes, labels.written),
        unpack_texts(file, "functions", n_bytes, n_named),
        unpack_texts(file, "structure", n_bytes, n_own),
        own=own,
        counts=_counts(file),
    )


def _counts(file: ModelFile) -> FrequentWords | None:
    """The counts of words that macros of the template ask for; None where there are none."""
    arrays = {name: file.arrays.get(f"{_COUNTED}{name}") for name in FREQUENT_WORD_ARRAYS}
    return None if all(array is None for array in arrays.values()) else FrequentWords.from_arrays(arrays)


def _pack_features(
    arrays: dict[str, Array],
    n_bytes: dict[str, int],
    what: str,
    vocabulary: Vocabulary,
    ptr: Int64s,
    items: Int32s,
    n_items: int,
) -> None:
    """Add names, and the items ptr[f]:ptr[f + 1] of each; these are left out when every feature has all items."""
    blob, lengths = vocabulary.to_bytes()
    n_bytes[what] = len(blob)
    arrays[f"{what}.names"] = compress(blob.tobytes())
    arrays[f"{what}.lengths"] = compact(lengths)
    if len(lengths) == 0 or len(items) != len(lengths) * n_items:
        arrays[f"{what}.counts"] = compact(np.diff(ptr))
        arrays[f"{what}.items"] = compact(items)


def _vocabulary(texts: Sequence[str]) -> Vocabulary:
    vocabulary = Vocabulary()
    for text in texts:
        vocabulary.add(text)
    return vocabulary


def _n_outputs(settings: dict[str, Any]) -> tuple[int, int]:
    """How many outputs the feature functions of a file have, and how many of these have names."""
    stored = setting(settings, "functions", (dict, type(None)))
    entries = [] if stored is None else setting(stored, "functions", list)
    total = named = 0
    for entry in entries:
        if not isinstance(entry, dict) or not 0 <= setting(entry, "outputs", int) < 2**31:
            raise FileFormatError("its list of feature functions is damaged")
        total += entry["outputs"]
        named += entry["outputs"] * setting(entry, "named", bool)
    return total, named


def _unpack_features(
    file: ModelFile, what: str, n_bytes: dict[str, Any], n_items: int
) -> tuple[Vocabulary, Int64s, Int32s]:
    """The names of features, words or endings, and the labels, facets or pairs (before · L + after) that each has."""
    lengths = integers(file, f"{what}.lengths", 2**32)
    size = n_bytes.get(what)
    if not is_int(size) or size != int(lengths.sum(dtype=np.uint64)):
        raise FileFormatError(f"the lengths of the names of its {what} do not add up to the declared size")
    blob = decompress(array(file, f"{what}.names"), size, f"the names of its {what}")
    ptr, items = _unpack_items(file, what, len(lengths), n_items)
    try:
        vocabulary = Vocabulary.from_bytes(np.frombuffer(blob, np.uint8), lengths.astype(np.uint32))
    except ValueError as error:
        raise FileFormatError(f"its names of features are damaged ({error})") from None
    return vocabulary, ptr, items


def _unpack_items(file: ModelFile, what: str, n_features: int, n_items: int) -> tuple[Int64s, Int32s]:
    if f"{what}.items" not in file.arrays:  # every feature has all items
        if n_features * n_items > len(array(file, "weights")):
            raise FileFormatError(f"its {what} need {n_features * n_items:,} weights, more than it has")
        items = np.tile(np.arange(n_items, dtype=np.int32), n_features)
        return np.arange(n_features + 1, dtype=np.int64) * n_items, items
    counts = integers(file, f"{what}.counts", n_items + 1)
    items = integers(file, f"{what}.items", n_items).astype(np.int32)
    if len(counts) != n_features or int(counts.sum(dtype=np.int64)) != len(items):
        raise FileFormatError(f"its {what}, counts and items do not fit together")
    ptr = offsets(counts)
    rises = np.diff(items) > 0
    borders = ptr[(ptr > 0) & (ptr < len(items))]
    rises[borders - 1] = True  # from one feature to the next anything goes
    if not rises.all():
        raise FileFormatError(f"the items of its {what} are not ascending")
    return ptr, items


def _dictionary(
    file: ModelFile, settings: dict[str, Any], n_bytes: dict[str, Any], labels: Labels
) -> TagDictionary | None:
    """The tag dictionary, if the file has one."""
    column = settings.pop("word_column", None)
    if column is None and "words.names" not in file.arrays:
        return None
    if not isinstance(column, str) and not (is_int(column) and abs(column) < 2**31):
        raise FileFormatError("the column of its tag dictionary is damaged")
    words, word_ptr, of_words = _unpack_features(file, "words", n_bytes, len(labels))
    endings, ending_ptr, of_endings = _unpack_features(file, "endings", n_bytes, len(labels))
    ptr = np.concatenate([word_ptr, word_ptr[-1] + ending_ptr[1:]])
    texts = (tuple(words.names()), tuple(endings.names()))
    related = _unpack_related(file, settings.pop("related_forms", None), n_bytes, len(labels))
    return TagDictionary(labels.classes, *texts, ptr, np.concatenate([of_words, of_endings]), column, related)


def _pack_related(
    arrays: dict[str, Array], n_bytes: dict[str, int], related: RelatedForms, n_labels: int
) -> dict[str, int]:
    """Add the words and rules of related forms; what the settings say of them."""
    words = (_vocabulary(related.words), related.word_ptr, related.word_labels)
    _pack_features(arrays, n_bytes, "related_words", *words, n_labels)
    n_bytes["related_endings"] = pack_texts(arrays, "related_endings", related.endings)
    arrays["related_rules"] = compact(related.rules.ravel())
    arrays["related_rules.counts"] = compact(np.diff(related.rule_ptr))
    arrays["related_rules.labels"] = compact(related.rule_labels)
    return {"endings": len(related.endings)}


def _unpack_related(
    file: ModelFile, kept: Any, n_bytes: dict[str, Any], n_labels: int
) -> RelatedForms | None:
    """The inverse of `_pack_related`; None where there are none, as in files written before."""
    if kept is None:
        return None
    if not isinstance(kept, dict):
        raise FileFormatError("its related forms are damaged")
    words, word_ptr, word_labels = _unpack_features(file, "related_words", n_bytes, n_labels)
    endings = unpack_texts(file, "related_endings", n_bytes, count_setting(kept, "endings"))
    rules = integers(file, "related_rules", 2**31).astype(np.int32)
    counts = integers(file, "related_rules.counts", n_labels + 1)
    labels = integers(file, "related_rules.labels", n_labels).astype(np.int32)
    if len(rules) % 3 or np.any(rules[1::3] >= n_labels):
        raise FileFormatError("the rules of its related forms are damaged")
    try:
        return RelatedForms(
            tuple(words.names()),
            word_ptr,
            word_labels,
            tuple(endings),
            rules.reshape(-1, 3),
            offsets(counts),
            labels,
        )
    except ArgumentError as error:
        raise FileFormatError(str(error)) from None


def _facets(file: ModelFile, names: object, n_labels: int) -> Facets | None:
    """Facets from their names and their table [L · K], in which 0 says that a label has none of a kind."""
    if names is None and "facets.table" not in file.arrays:
        return None
    table = integers(file, "facets.table", MAX_FACETS + 1)
    named = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not isinstance(names, list) or not named or not 0 < len(names) <= MAX_FACETS:
        raise FileFormatError("its facets are damaged")
    if len(table) == 0 or len(table) % n_labels:
        raise FileFormatError("its facets are damaged")
    return Facets(tuple(names), (table.reshape(n_labels, -1) - 1).astype(np.int32))


def _check_arcs(before: Array, after: Array, n_labels: int) -> None:
    if len(before) != len(after):
        raise FileFormatError(f"'arcs.before' has {len(before)} entries, 'arcs.after' {len(after)}")
    n_outcomes = int(max(before.max(initial=n_labels), after.max(initial=n_labels))) + 1
    code = before.astype(np.int64) * n_outcomes + after
    if np.any(np.diff(np.sort(code)) == 0) or np.any((before == n_labels) & (after == n_labels)):
        raise FileFormatError("its arcs are not distinct pairs of labels")
    if np.any((before > n_labels) != (after > n_labels)):
        raise FileFormatError("it has an arc between a label and a facet")


def _bigrams(file: ModelFile, before: Array, after: Array, n_labels: int) -> tuple[Int32s, Int32s] | None:
    """The pairs that exist, ascending, if the file has any list of them; all arcs with weights are among them."""
    names = ("bigrams.before", "bigrams.after")
    if not any(name in file.arrays for name in names):
        return None
    first, second = (integers(file, name, n_labels + 1) for name in names)
    if len(first) != len(second):
        raise FileFormatError(f"'{names[0]}' has {len(first)} entries, '{names[1]}' {len(second)}")
    codes = first * (n_labels + 1) + second
    if np.any(np.diff(codes) <= 0):
        raise FileFormatError("its bigrams are not distinct and ascending")
    whole = before <= n_labels  # between labels, not facets
    if not np.isin(before[whole].astype(np.int64) * (n_labels + 1) + after[whole], codes).all():
        raise FileFormatError("it has a weight for an arc that is not among its bigrams")
    return first.astype(np.int32), second.astype(np.int32)


def _dense(value: Any) -> dict[str, int]:
    if not isinstance(value, list):
        raise FileFormatError("the list of its dense blocks is missing")
    blocks = {}
    for entry in value:
        match entry:
            case [str(name), int(columns)] if name not in blocks and 0 < columns < 2**31 and is_int(columns):
                blocks[name] = columns
            case _:
                raise FileFormatError("the list of its dense blocks is damaged")
    return blocks


def _labels(value: Any, states: Any) -> Labels:
    """The labels, with their states where the file has weights of these."""
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_LABELS:
        raise FileFormatError(f"it has no list of 1 to {MAX_LABELS} labels")
    labels = Labels.from_json(value)
    if states not in (None, IOBES):
        raise FileFormatError(f"its states are {str(states)[:40]!r}, expected those of {IOBES!r}")
    return labels if states is None else StateLabels(labels)
