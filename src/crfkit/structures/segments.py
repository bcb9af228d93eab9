"""Semi-Markov chains: a sequence is cut into segments, each with a type, and scores are those of whole segments.

    score(y) = Σ over segments (start, end, type):
                 Σ_t features of position t and of its label + transition(type before, type) + length(type, end − start)
                 + features of the segment and of its type

Position labels say the same: a scheme gives each position of a segment its label (`B-PER I-PER`), or the label is the type
and segments are runs of equal labels. Label sequences that keep the scheme are segmentations, one to one.

Letters: T positions, L labels, C types, K lengths.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from crfkit.arrays import Bools, Int32s, Int64s
from crfkit.counts import check_count
from crfkit.errors import ArgumentError, LabelError
from crfkit.structures.bigrams import Bigrams
from crfkit.structures.chain import OBSERVED, Chain
from crfkit.structures.schemes import PLAIN, SCHEMES, find_scheme, label_places

SegmentFeature = Callable[[Any, int, int], Any]
"""A function of (x, start, end) that gives names of features, or {name: value}."""
SegmentNames = Callable[[int, int], Iterable[tuple[str, float]]]
"""A function of (start, end) that gives names and values of features, of the segments of one input."""
_CHAIN = Chain()
IOB1_HINT = "; labels of IOB1 are read by Segments(scheme='iob1')"
"""The end of an error message for labels that look like IOB1."""


@dataclass(frozen=True)
class SegmentMatches:
    """Features of the few segments that have some: a function of x that yields (start, end, names).

    It takes the place of a function of (x, start, end), which is called for every segment. Names may be {name: value}.
    `unseen`: its names have weights also where no segment of the training data has them, so that a weight can say that
    such segments do not exist.
    """

    function: Callable[[Any], Iterable[tuple[int, int, Any]]]
    unseen: bool = False

    def __post_init__(self) -> None:
        """Check the argument."""
        if not callable(self.function):
            raise ArgumentError(f"SegmentMatches.function is {self.function!r}, expected a function of x.")


class SegmentExtractor(ABC):
    """Features of segments that a model file holds as a text: a `SegmentTemplate`."""

    text: str

    @property
    @abstractmethod
    def columns(self) -> Collection[int | str]:
        """The columns that it reads."""

    @abstractmethod
    def open(self, n: int, x: Any) -> SegmentNames:
        """What gives the features of the segments of input n."""

    @abstractmethod
    def check_resources(self) -> None:
        """Raise InputError where it reads a lexicon, clusters or word vectors that it was not given."""


@dataclass(frozen=True)
class Segments:
    """Segmentations: every position belongs to one segment, and segments have scores as a whole.

    `max_length` is the highest number of positions of a segment, for all types or by type ({"PER": 6}; other types have no
    limit); None: no limit. `scheme` says what position labels mean: "bio", "iob1", "iobes", "bilou", "bmes", or "plain" for
    runs of equal labels; None: the scheme that the training labels have, never "iob1". A position outside (`O`) is a segment
    of one position. With "iob1" the model itself has labels of "bio": outputs are written in IOB1.

    Lengths have weights of their own up to `max_length`, or up to the longest training sequence where that is shorter. Where
    there is no limit, they have weights up to the longest segment of the type in the training data, at most
    `longest_weighted`; a longer segment is still possible, and each position beyond adds one further weight.

    `segment_features` are features of whole segments: a function of (x, start, end), x an input as it was given, that gives
    a name, several names, or {name: value}; `SegmentMatches`, where few segments have some; a `SegmentTemplate`; the number
    or the key of a column, for its texts, joined; or a list of these.
    `dictionaries` ({"cities": ["Paris", "New York", ("Rio", "Branco")]}) have a feature where all words of a segment are an
    entry: texts are split at blanks, words are those of `column`. Only segments whose length has a weight have features.

    `bigrams` says which types may follow each other, START and END included: a `Bigrams` of types, "observed" (those of the
    training data), or None: all.

    >>> Segments(max_length=8)
    Segments(max_length=8, scheme=None, longest_weighted=20, bigrams=None)
    """

    max_length: int | Mapping[Hashable, int] | None = None
    scheme: str | None = None
    longest_weighted: int = 20
    segment_features: SegmentFeature | SegmentMatches | SegmentExtractor | int | str | Sequence[Any] = field(
        default=(), repr=False
    )
    dictionaries: Mapping[str, Iterable[str | Sequence[str]]] = field(default_factory=dict, repr=False)
    column: int | str = field(default=0, repr=False)
    bigrams: Bigrams | str | None = None

    def __post_init__(self) -> None:
        """Check the arguments."""
        scheme = self.scheme
        known = isinstance(scheme, str) and scheme.lower() in {*SCHEMES, PLAIN}
        if not (scheme is None or known):
            names = ", ".join(SCHEMES)
            raise ArgumentError(f"Segments.scheme is {scheme!r}, expected None, {PLAIN} or one of {names}.")
        limits = self.max_length
        by_type = limits.values() if isinstance(limits, Mapping) else [1 if limits is None else limits]
        for name, value in [("max_length", n) for n in by_type] + [
            ("longest_weighted", self.longest_weighted)
        ]:
            check_count(f"Segments.{name}", value, most=float("inf"))
        listed = isinstance(self.segment_features, Iterable) and not isinstance(self.segment_features, str)
        features = tuple(self.segment_features) if listed else (self.segment_features,)  # type: ignore[arg-type]
        for feature in features:
            known = callable(feature) or isinstance(feature, SegmentMatches | SegmentExtractor | int | str)
            if isinstance(feature, bool) or not known:
                raise ArgumentError(
                    f"Segments.segment_features has {feature!r}, expected functions of (x, start, end), templates "
                    "and columns."
                )
        if not (self.bigrams is None or self.bigrams == OBSERVED or isinstance(self.bigrams, Bigrams)):
            raise ArgumentError(
                f"Segments.bigrams is {self.bigrams!r}, expected None, {OBSERVED!r} or a Bigrams(…) of types."
            )
        object.__setattr__(self, "segment_features", features)
        object.__setattr__(self, "dictionaries", _entries(self.dictionaries))

    @property
    def chain(self) -> Chain:
        """All labels may follow each other, and those at the start and at the end have weights too."""
        return _CHAIN

    def limit(self, name: Hashable) -> int | None:
        """The highest number of positions of a segment of this type."""
        found = self.max_length.get(name) if isinstance(self.max_length, Mapping) else self.max_length
        return None if found is None else int(found)

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The functions of segment features."""
        given = [
            feature.function if isinstance(feature, SegmentMatches) else feature
            for feature in self.segment_features  # type: ignore[union-attr]
        ]
        return [feature for feature in given if callable(feature)]

    @property
    def reads_iob1(self) -> bool:
        """Whether labels of the user are those of IOB1."""
        return self.scheme is not None and self.scheme.lower() == "iob1"

    def types(self, labels: Sequence[Hashable]) -> "SegmentTypes":
        """The types of segments that these labels make; ValueError for labels that are none of the scheme."""
        scheme = "bio" if self.reads_iob1 else (self.scheme or find_scheme(labels)).lower()
        found = _plain_types(labels) if scheme == PLAIN else _scheme_types(scheme, labels)
        unknown = (
            [] if not isinstance(self.max_length, Mapping) else [*self.max_length.keys() - {*found.names}]
        )
        if unknown:
            known = ", ".join(repr(name) for name in found.names)
            raise ArgumentError(f"Segments.max_length has the type {unknown[0]!r}; the types are {known}.")
        return found


class SegmentTypes(NamedTuple):
    """The types of segments, and the label of each of their positions; −1: no such label."""

    scheme: str
    names: tuple[Hashable, ...]  # [C]
    first: Int32s  # [C] of the first of several positions
    inside: Int32s  # [C]
    last: Int32s  # [C]
    single: Int32s  # [C] of the only position
    type_of: Int32s  # [L] the type of each label
    begins: Bools  # [L] whether a segment begins with the label

    @property
    def repeats(self) -> bool:
        """Whether a segment of the same type may follow."""
        return self.scheme != PLAIN

    @property
    def transition(self) -> Int32s:
        """The label of each type [C] between which transitions have weights."""
        return np.where(self.first >= 0, self.first, self.single)

    @property
    def goes_on(self) -> Bools:
        """Whether segments of each type [C] may have several positions."""
        return (self.first >= 0) & (self.last >= 0)

    def starts(self, labels: Int32s, ptr: Int64s) -> Int64s:
        """The positions at which a segment begins, or a run of unknown labels (−1) goes on."""
        begins = np.ones(len(labels), np.bool_)
        if self.repeats:
            begins = (labels < 0) | self.begins[labels]
            begins[1:] |= labels[:-1] < 0
        else:
            begins[1:] = (labels[1:] < 0) | (labels[1:] != labels[:-1])
        begins[ptr[:-1][ptr[:-1] < len(labels)]] = True
        return np.flatnonzero(begins)


def segment_labels(kind: Hashable, length: int, scheme: str) -> list[Hashable]:
    """The labels that a scheme gives the positions of a segment."""
    if scheme == PLAIN:
        return [kind] * length
    letter = dict(zip("BIES", SCHEMES[scheme], strict=False))
    begin, inside = letter["B"], letter["I"]
    roles = [begin, *inside * (length - 2), letter.get("E", inside)]
    letters = [letter.get("S", begin)] if length == 1 else roles
    return [f"{role}-{kind}" if kind != "" else role for role in letters]


def _entries(given: Any) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Dictionaries as sorted entries of one word or more."""
    if not isinstance(given, Mapping) or any(
        isinstance(entries, str) or not isinstance(entries, Iterable) for entries in given.values()
    ):
        raise ArgumentError(
            "Segments.dictionaries: expected {name: entries}, entries being texts or lists of words."
        )
    found = {str(name): {_words(entry) for entry in entries} for name, entries in given.items()}
    for name, entries in found.items():
        for entry in entries:
            if not entry or not all(isinstance(word, str) for word in entry):
                raise ArgumentError(
                    f"Segments.dictionaries: {name!r} has the entry {entry!r}, expected words."
                )
    return {name: tuple(sorted(entries)) for name, entries in found.items()}


def _words(entry: Any) -> tuple[Any, ...]:
    if isinstance(entry, str):
        return tuple(entry.split())
    return tuple(entry) if isinstance(entry, Iterable) else (entry,)


def _plain_types(labels: Sequence[Hashable]) -> SegmentTypes:
    ids = np.arange(len(labels), dtype=np.int32)
    return SegmentTypes(PLAIN, tuple(labels), ids, ids, ids, ids, ids, np.ones(len(labels), np.bool_))


def _scheme_types(scheme: str, labels: Sequence[Hashable]) -> SegmentTypes:
    """The types by the roles B I E S of their labels. A scheme without E and S writes I and B for them."""
    places = label_places(scheme, labels)
    names = tuple(sorted({("O" if role == "O" else kind, role == "O") for role, kind in places}))
    if ("O", False) in names and ("O", True) in names:
        label = next(
            label for label, (role, kind) in zip(labels, places, strict=True) if role != "O" and kind == "O"
        )
        raise LabelError(f"The type of the label {label!r} is O, which is what positions outside are called.")
    number = {name: c for c, name in enumerate(names)}
    ids = np.full((len(names), 5), -1, np.int32)
    for b, (role, kind) in enumerate(places):
        ids[number["O" if role == "O" else kind, role == "O"], "BIESO".index(role)] = b
    open_ended = len(set(SCHEMES[scheme])) == 2
    begin, inside, end, single = ids.T[:4]
    first, last = begin.copy(), inside if open_ended else end
    single = np.where(ids.T[4] >= 0, ids.T[4], begin if open_ended else single)
    first[last < 0] = -1  # nothing could end it
    for c, (name, _) in enumerate(names):
        if first[c] < 0 and single[c] < 0:
            letter = SCHEMES[scheme][0]
            raise LabelError(
                f"The labels of type {name!r} have none that a segment of the scheme {scheme} begins with, such as "
                f"'{letter}-{name}'{IOB1_HINT * (scheme == 'bio')}."
            )
    type_of = np.array([number["O" if role == "O" else kind, role == "O"] for role, kind in places], np.int32)
    begins = np.array([role in "BSO" for role, _ in places], np.bool_)
    return SegmentTypes(
        scheme, tuple(name for name, _ in names), first, inside, last, single, type_of, begins
    )
