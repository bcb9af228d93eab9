"""Sets of label pairs: which labels may be adjacent, which may begin a sequence, which may end it.

A label sequence y_1 … y_T has the bigrams (START, y_1), (y_1, y_2), …, (y_T, END); the empty one has only
(START, END). A set B allows the sequence if it contains all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from crfkit.arrays import Int32s
from crfkit.errors import ArgumentError, LabelError
from crfkit.structures.bigram_picture import as_html, as_text
from crfkit.structures.schemes import scheme_rule

Pair = tuple[Hashable, Hashable]  # (before, after)


class Boundary(Enum):
    """Stands for the position before the first label or after the last one; equal to no label."""

    START = "START"
    END = "END"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


START: Final = Boundary.START
"""What comes before the first label: (START, label) is a bigram."""
END: Final = Boundary.END
"""What comes after the last label: (label, END) is a bigram."""

_NOTHING: frozenset[Hashable] = frozenset()


class Missing(NamedTuple):
    """A bigram of a label sequence that is not in a set: of the labels at `position` − 1 and at `position` (START at
    −1, END at T).
    """

    position: int
    before: Hashable
    after: Hashable


class Bigrams(Set[Pair]):
    """A set of label pairs (before, after), where START and END count as labels. Immutable.

    `in`, `after` and `before` take constant time; |, &, − and ^ give new sets. Pairs into START or out of END may
    be members, but no label sequence has them.

    >>> B = Bigrams.scheme("bio", ["B-PER", "I-PER", "O"])
    >>> ("O", "I-PER") in B, (START, "O") in B, len(B)
    (False, True, 14)
    >>> sorted(B.before("I-PER"))
    ['B-PER', 'I-PER']
    >>> (B - {("O", "O")}).allows(["O", "B-PER", "O"])
    True
    """

    __slots__ = ("_after", "_before", "_hashed", "_labels")

    _after: Mapping[Hashable, frozenset[Hashable]]  # label → the labels that may follow it
    _before: Mapping[Hashable, frozenset[Hashable]] | None  # the same by second label, made on first use
    _hashed: int | None
    _labels: tuple[Hashable, ...] | None

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        after: dict[Hashable, set[Hashable]] = {}
        for pair in pairs:
            first, second = _check_pair(pair)
            after.setdefault(first, set()).add(second)
        self._set_rows({label: frozenset(row) for label, row in after.items()})

    def _set_rows(self, after: Mapping[Hashable, frozenset[Hashable]]) -> None:
        self._after = after
        self._before = self._hashed = self._labels = None

    @classmethod
    def _from_rows(cls, after: Mapping[Hashable, frozenset[Hashable]]) -> Bigrams:
        bigrams = cls.__new__(cls)
        bigrams._set_rows(after)
        return bigrams

    # ---- constructors

    @classmethod
    def observed(cls, y: Iterable[Sequence[Any]]) -> Bigrams:
        """The bigrams of label sequences.

        A set of labels stands for each of its labels; an unknown label (None) gives no bigrams.

        >>> list(Bigrams.observed([["a", "b"], ["b"]]))
        [(START, 'a'), (START, 'b'), ('a', 'b'), ('b', END)]
        """
        seen: set[Pair] = set()
        for n, labels in enumerate(y):
            if isinstance(labels, str) or not isinstance(labels, Iterable):
                raise ArgumentError(
                    f"Bigrams.observed: sequence {n} is {labels!r}, expected a list of labels."
                )
            path = (START, *labels, END)
            if any(label is None or isinstance(label, set | frozenset) for label in labels):
                for before, after in pairwise(map(_alternatives, path)):
                    seen.update(product(before, after))
            else:
                seen.update(pairwise(path))
        return cls(seen)

    @classmethod
    def scheme(cls, name: str, labels: Iterable[Hashable]) -> Bigrams:
        """The pairs that a scheme of span labels allows: `bio` (= `iob2`), `iob1`, `iobes` (= `bioes`), `bilou` or `bmes`.

        A label is O, or a letter, a dash and a type (`B-PER`), or a letter alone; others raise an error.
        """
        known = tuple(labels)
        return cls.where(scheme_rule(name, known, START, END), known)

    @classmethod
    def where(cls, predicate: Callable[[Any, Any], bool], labels: Iterable[Hashable]) -> Bigrams:
        """The pairs of these labels, START and END for which `predicate(before, after)` is true.

        >>> len(Bigrams.where(lambda before, after: before != after, "ab"))
        7
        """
        known = _distinct(labels)
        rows = {
            before: frozenset(after for after in (*known, END) if predicate(before, after))
            for before in (START, *known)
        }
        return cls._from_rows({before: row for before, row in rows.items() if row})

    @classmethod
    def all(cls, labels: Iterable[Hashable]) -> Bigrams:
        """Every pair of these labels, START and END: a chain without constraints."""
        known = _distinct(labels)
        row = frozenset((*known, END))  # one row that all labels share
        return cls._from_rows(dict.fromkeys((START, *known), row))

    @classmethod
    def from_ids(cls, labels: Sequence[Hashable], before: Int32s, after: Int32s) -> Bigrams:
        """The inverse of `ids`."""
        seconds = (*labels, END)
        rows: dict[Hashable, frozenset[Hashable]] = {}
        order = np.argsort(before, kind="stable")
        firsts, begins = np.unique(before[order], return_index=True)
        for first, row in zip(firsts.tolist(), np.split(after[order], begins[1:]), strict=False):
            rows[START if first == len(labels) else labels[first]] = frozenset(
                seconds[i] for i in row.tolist()
            )
        return cls._from_rows(rows)

    # ---- queries

    def ids(self, labels: Sequence[Hashable]) -> tuple[Int32s, Int32s]:
        """The pairs as label ids (before [n], after [n]), ascending; L is START in `before` and END in `after`.

        Pairs with a label that is not listed are dropped.
        """
        n_labels = len(labels)
        number = {label: i for i, label in enumerate(labels)}
        number_after = {**number, END: n_labels}
        codes = [
            i * (n_labels + 1) + number_after[after]
            for before, i in (*number.items(), (START, n_labels))
            for after in self.after(before)
            if after in number_after
        ]
        first, second = np.divmod(np.sort(np.array(codes, dtype=np.int64)), n_labels + 1)
        return first.astype(np.int32), second.astype(np.int32)

    def after(self, label: Hashable) -> frozenset[Hashable]:
        """The labels that may follow this one."""
        return self._after.get(label, _NOTHING)

    def before(self, label: Hashable) -> frozenset[Hashable]:
        """The labels that may precede this one."""
        if self._before is None:
            turned: dict[Hashable, set[Hashable]] = {}
            for first, row in self._after.items():
                for second in row:
                    turned.setdefault(second, set()).add(first)
            self._before = {second: frozenset(column) for second, column in turned.items()}
        return self._before.get(label, _NOTHING)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The labels that occur, without START and END, sorted if they can be compared."""
        if self._labels is None:
            named = {*self._after, *(label for row in set(self._after.values()) for label in row)}
            self._labels = _sort_labels(named - {START, END})
        return self._labels

    def missing(self, labels: Sequence[Hashable]) -> Iterator[Missing]:
        """The bigrams of a label sequence that are not in this set, from first to last."""
        for position, (before, after) in enumerate(pairwise((START, *labels, END))):
            if after not in self.after(before):
                yield Missing(position, before, after)

    def allows(self, labels: Sequence[Hashable]) -> bool:
        """Whether all bigrams of a label sequence are in this set."""
        return next(self.missing(labels), None) is None

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and len(pair) == 2 and pair[1] in self.after(pair[0])

    def __len__(self) -> int:
        return sum(map(len, self._after.values()))

    def __iter__(self) -> Iterator[Pair]:
        """The pairs, by first and by second label: START, the labels as in `labels`, END."""
        rank = {label: i for i, label in enumerate((START, *self.labels, END))}
        for before in rank:
            yield from ((before, after) for after in sorted(self.after(before), key=rank.__getitem__))

    if TYPE_CHECKING:  # the operators of Set give sets of the same class

        def __or__(self, other: Set[Any]) -> Bigrams: ...
        def __and__(self, other: Set[Any]) -> Bigrams: ...
        def __sub__(self, other: Set[Any]) -> Bigrams: ...
        def __xor__(self, other: Set[Any]) -> Bigrams: ...

    def __hash__(self) -> int:
        if self._hashed is None:
            self._hashed = hash(
                frozenset((first, second) for first, row in self._after.items() for second in row)
            )
        return self._hashed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self),)

    def __repr__(self) -> str:
        return f"<Bigrams: {len(self):,} pairs of {len(self.labels):,} labels>"

    def __str__(self) -> str:
        return as_text((START, *self.labels), (*self.labels, END), self.after)

    def _repr_html_(self) -> str:
        """The picture that a notebook shows."""
        return as_html((START, *self.labels), (*self.labels, END), self.after)


def _check_pair(pair: object) -> Pair:
    """The given pair, if it is a pair of labels; raises an error otherwise."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ArgumentError(f"Bigrams: got {pair!r}, expected pairs of labels (before, after).")
    for label in pair:
        if label is None or isinstance(label, set | frozenset):
            raise LabelError(f"Bigrams: {label!r} in {pair!r} is not a label.")
        try:
            hash(label)
        except TypeError:
            raise LabelError(f"Bigrams: the label {label!r} in {pair!r} is not hashable.") from None
    return pair[0], pair[1]


def _alternatives(entry: Any) -> Iterable[Hashable]:
    """The labels of an entry of y: one, several for a set, none for None."""
    if entry is None:
        return ()
    return entry if isinstance(entry, set | frozenset) else (entry,)


def _distinct(labels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    return tuple(label for label in dict.fromkeys(labels) if label not in (START, END))


def _sort_labels(labels: Iterable[Any]) -> tuple[Hashable, ...]:
    """A sort key with the same order in every run, also for labels that cannot be compared."""
    try:
        return tuple(sorted(labels))
    except TypeError:
        return tuple(sorted(labels, key=lambda label: (type(label).__name__, repr(label))))
