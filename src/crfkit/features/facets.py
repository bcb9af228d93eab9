"""What labels are made of, so that labels share weights.

A morphological tag such as `n-s---mn-` says part of speech, number, gender, case. With facets a feature has a weight for
each of these instead of one for each whole tag, and arcs link facets of the same kind (case with case) beside whole
labels. So tags that were seen rarely, or never with a feature, profit from what their facets were seen with.

Shapes: L labels, K kinds of facets.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from crfkit.arrays import Int32s, Int64s, offsets
from crfkit.errors import ArgumentError, LabelError
from crfkit.features.wording import shorten

NOTHING = "-_."  # characters of a positional tag that say nothing
AUTO = "auto"  # by the look of the labels
WITH_LABELS = "+labels"
"""Behind the name of facets: the label itself is one more facet."""
LABEL_KIND = "whole label"
"""The kind of this facet."""
SHORTEST = 3  # characters of tags that are taken for positional ones
_BETWEEN_PARTS = re.compile(r"[:|]")

# From a label to its facets, by kind: {"case": "n", …}
FacetsOf = Callable[[Any], Mapping[str, str]]
"""A function from a label to its facets: {kind: value}."""


@dataclass(frozen=True, eq=False)
class Facets:
    """The facets of L labels; a facet is a kind and a value, and its id its place in `names`."""

    names: tuple[str, ...]  # "kind=value"
    table: Int32s  # [L, K] the facet of each label for each kind, −1 where it has none

    def __post_init__(self) -> None:
        """Refuse tables that name facets which do not exist."""
        if self.table.ndim != 2 or self.table.size == 0 or not self.names:
            raise ArgumentError("the labels have no facets")
        if self.table.min() < -1 or self.table.max() >= len(self.names):
            raise ArgumentError("a label names a facet that does not exist")
        if len(set(self.names)) != len(self.names):
            raise ArgumentError("two facets have the same name")

    @classmethod
    def build(
        cls, labels: Iterable[Hashable], how: str | Mapping[Any, Mapping[str, str]] | FacetsOf
    ) -> "Facets":
        """The facets of labels.

        `how` is "characters" (one kind for each place of a positional tag; `-`, `_` and `.` say nothing), "features"
        (`Case=Nom|Number=Sing`), "parts" (`subst:sg:nom`; one kind for each place), one of these with "+labels" behind it
        (the label itself is one more facet), a function that gives {kind: value} for a label, or {label: {kind: value}}.

        >>> Facets.build(["n-s", "v-p"], "characters").names
        ('0=n', '0=v', '2=p', '2=s')
        """
        facets_of = _maker(how)
        labels = list(labels)
        found = [facets_of(label) for label in labels]
        for label, given in zip(labels, cast(list[object], found), strict=True):
            if not isinstance(given, Mapping):
                shown = f"{given!r}"[:60]
                raise ArgumentError(f"the facets of label {label!r} are {shown}, expected {{kind: value}}")
        if any("=" in kind for facets in found for kind in facets):
            raise ArgumentError("a kind of facets has = in its name")
        kinds = sorted({kind for facets in found for kind in facets})
        names = sorted({f"{kind}={value}" for facets in found for kind, value in facets.items()})
        if not names:
            raise LabelError("no label has any facet")
        ids = {name: i for i, name in enumerate(names)}
        table = [
            [ids[f"{kind}={facets[kind]}"] if kind in facets else -1 for kind in kinds] for facets in found
        ]
        return cls(tuple(names), np.array(table, dtype=np.int32))

    @classmethod
    def find(cls, labels: Iterable[Hashable], how: object) -> "Facets | None":
        """The facets of labels, as `build` makes them; None where `how` is None or False, or "auto" finds none."""
        labels = list(labels)
        chosen: Any = how
        if isinstance(how, str) and how.removesuffix(WITH_LABELS) == AUTO:
            guessed = guess_facets(labels)
            chosen = None if guessed is None else guessed + how.removeprefix(AUTO)
        return None if chosen is None or chosen is False else cls.build(labels, chosen)

    def of(self, labels: Sequence[Hashable]) -> dict[Hashable, dict[str, str]]:
        """The facets of each label by kind: what `build` makes the same facets of."""
        pairs = [name.partition("=")[::2] for name in self.names]
        return {
            label: dict(pairs[facet] for facet in row if facet >= 0)
            for label, row in zip(labels, self.table.tolist(), strict=True)
        }

    def __len__(self) -> int:
        return len(self.names)

    def with_labels(self) -> "Facets":
        """With one more facet for each label, that label itself: the last L of all, in the order of the labels."""
        n_labels = len(self.table)
        own = len(self) + np.arange(n_labels, dtype=np.int32)
        taken = "label" + "=" * max(len(name) for name in self.names)  # a name that no facet has
        names = (*self.names, *(f"{taken}{b}" for b in range(n_labels)))
        return Facets(names, np.concatenate([self.table, own[:, None]], axis=1))

    def ids_of(self, label: int) -> list[int]:
        """The facets of a label, numbered from L + 1 on."""
        return [facet + len(self.table) + 1 for facet in self.table[label].tolist() if facet >= 0]

    def lists(self) -> tuple[Int64s, Int32s]:
        """The facets of label b as ids[ptr[b]:ptr[b + 1]], ascending and distinct, numbered from L + 1 on."""
        n_labels = len(self.table)
        rows = [np.unique(row[row >= 0]) for row in self.table]
        ptr = offsets([len(row) for row in rows])
        return ptr, (np.concatenate(rows) + n_labels + 1).astype(np.int32)

    def find_arcs(self, before: Int32s, after: Int32s) -> tuple[Int32s, Int32s]:
        """The pairs of facets of one kind that occur in these pairs of labels, numbered from L + 1 on."""
        n = len(self)
        codes = [np.zeros(0, np.int64)]
        for kind in range(self.table.shape[1]):
            a, b = self.table[before, kind].astype(np.int64), self.table[after, kind]
            both = (a >= 0) & (b >= 0)
            codes.append(np.unique(a[both] * n + b[both]))
        first, second = np.divmod(np.concatenate(codes), n)
        shift = len(self.table) + 1
        return (first + shift).astype(np.int32), (second + shift).astype(np.int32)


def _maker(how: str | Mapping[Any, Mapping[str, str]] | FacetsOf) -> FacetsOf:
    if isinstance(how, Mapping):
        return lambda label: how.get(label, {})
    if callable(how):
        return how
    components = NAMED_FACETS.get(how.removesuffix(WITH_LABELS)) if isinstance(how, str) else None
    if components is None:
        raise ArgumentError(
            f"facets is {shorten(how)}, expected {list_facet_names(auto=False)}, a function of a label or a dict"
        )
    return components if how in NAMED_FACETS else lambda label: {**components(label), LABEL_KIND: label}


def _characters(label: Hashable) -> dict[str, str]:
    if not isinstance(label, str):
        raise ArgumentError(
            f'the label {shorten(label)} has no characters: facets="characters" needs strings'
        )
    return {str(place): character for place, character in enumerate(label) if character not in NOTHING}


def _features(label: Hashable) -> dict[str, str]:
    if not isinstance(label, str):
        raise ArgumentError(f'the label {shorten(label)} is no string: facets="features" needs strings')
    pairs: list[Sequence[str]] = [part.partition("=") for part in label.split("|") if part not in NOTHING]
    return {kind if equals else "": value if equals else kind for kind, equals, value in pairs}


def _parts(label: Hashable) -> dict[str, str]:
    if not isinstance(label, str):
        raise ArgumentError(f'the label {shorten(label)} is no string: facets="parts" needs strings')
    return {str(place): part for place, part in enumerate(_BETWEEN_PARTS.split(label)) if part not in NOTHING}


NAMED_FACETS: Mapping[str, FacetsOf] = MappingProxyType(
    {"characters": _characters, "features": _features, "parts": _parts}
)
"""Functions that read the facets off a label, by name."""


def is_facet_name(how: object) -> bool:
    """Whether it names facets: one of `NAMED_FACETS` or "auto", with "+labels" behind it or without."""
    return isinstance(how, str) and how.removesuffix(WITH_LABELS) in (*NAMED_FACETS, AUTO)


def list_facet_names(*, auto: bool = True) -> str:
    """The names for an error message."""
    names = ", ".join(f'"{name}"' for name in (*NAMED_FACETS, *([AUTO] if auto else [])))
    return f'{names} (each also with "{WITH_LABELS}" behind it)'


def guess_facets(labels: Sequence[Hashable]) -> str | None:
    """Which of the named facets most labels look like; None where they look like none.

    Features have `=`, parts `:` or `|`, in at least half of the labels. Positional tags have one length, and half of them a
    character that says nothing.

    >>> guess_facets(["n-s---mn-", "v3spia---"]), guess_facets(["subst:sg:nom", "interp"]), guess_facets(["NN", "VB"])
    ('characters', 'parts', None)
    """
    texts = [label for label in labels if isinstance(label, str)]
    if not texts or len(texts) < len(labels):
        return None

    def most(looks: Callable[[str], object]) -> bool:
        return 2 * sum(bool(looks(text)) for text in texts) >= len(texts)

    if most(lambda text: "=" in text):
        return "features"
    if most(_BETWEEN_PARTS.search):
        return "parts"
    [(length, n)] = Counter(map(len, texts)).most_common(1)
    positional = length >= SHORTEST and 20 * n >= 19 * len(texts)
    return "characters" if positional and most(lambda text: set(NOTHING) & set(text)) else None
