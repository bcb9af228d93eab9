"""Constraints in column files: where labels leave the bigrams, and the column of allowed labels.

A file may have a column that holds, for each word, `*` or `_` where all labels are allowed, else labels joined by `|`.
"""

from collections.abc import Container, Hashable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import click

from crfkit.cli.columns import Allowed, Example
from crfkit.errors import InputError

if TYPE_CHECKING:
    from crfkit.structures import Bigrams

ALL = ("*", "_")
MANY_LABELS = 64

allowed_column_option = click.option(
    "--allowed-column",
    type=int,
    metavar="N",
    help="Column of the labels allowed, joined by |, * for all; from 0, -1 is the last.",
)


def take_allowed(
    examples: Iterable[Example], column: int, label_column: int, *, training: bool = False
) -> Iterator[Example]:
    """Examples whose inputs include a column of allowed labels, with this column taken out of them.

    Both columns are counted as in the file. In training, every label must be allowed where it stands.
    """
    seen: dict[str, frozenset[str] | None] = dict.fromkeys(ALL)
    for example in examples:
        at = _place_among_inputs(example, column, label_column)
        cells = [row[at] for row in example.inputs]
        for position, cell in enumerate(cells):
            if cell not in seen:
                seen[cell] = frozenset(cell.split("|"))
            if "" in (seen[cell] or ()):
                raise InputError(
                    f"{example.origin.place(position)}: the allowed labels are {cell!r}, "
                    "expected labels joined by |, or * for all"
                )
        allowed = [seen[cell] for cell in cells]
        if training:
            _check_gold(example, allowed)
        yield example._replace(inputs=[row[:at] + row[at + 1 :] for row in example.inputs], allowed=allowed)


def _place_among_inputs(example: Example, column: int, label_column: int) -> int:
    found = len(example.origin.rows[0])
    where = f"{example.origin.place(0)}: "
    if not -found <= column < found:
        raise InputError(f"{where}there is no column {column} of allowed labels, found {found} columns")
    if len(example.inputs[0]) == 1:
        raise InputError(f"{where}found no input column beside the label and the allowed labels")
    at = column % found
    if example.labels is None:
        return at
    label_at = label_column % found
    if at == label_at:
        raise InputError(
            f"{where}column {column} is the label column, expected another one for allowed labels"
        )
    return at - (at > label_at)


def _check_gold(example: Example, allowed: Allowed) -> None:
    for position, (label, labels) in enumerate(zip(example.labels or (), allowed, strict=True)):
        if labels is not None and label not in labels:
            raise InputError(
                f"{example.origin.place(position)}: the label is {label!r}, the allowed ones are {', '.join(sorted(labels))}"
            )


def label_column_beside(column: int, label_column: int, n_columns: int) -> int:
    """Where the label stands once the column of allowed labels is taken out of a file of so many columns."""
    at = label_column % n_columns
    return at - (column % n_columns < at)


def label_column_among(column: int, label_column: int, n_columns: int) -> int:
    """The inverse: where the label stands in a file of so many columns, one of which holds allowed labels."""
    at = label_column % (n_columns - 1)
    return at + (column % n_columns <= at)


def check_known(examples: Iterable[Example], known: Container[str]) -> Iterator[Example]:
    """The examples, if all the labels that they allow are known."""
    for example in examples:
        for position, labels in enumerate(example.allowed or ()):
            strange = sorted(label for label in labels or () if label not in known)
            if strange:
                raise InputError(
                    f"{example.origin.place(position)}: the allowed label {strange[0]!r} is none that the model knows"
                )
        yield example


def allowing_known(examples: Iterable[Example], known: Set[str]) -> Iterator[Example]:
    """The examples without allowed labels that are not known; a position that allowed only such labels allows all."""
    for example in examples:
        if example.allowed is None:
            yield example
        else:
            allowed = [names and (names & known or None) for names in example.allowed]
            yield example._replace(allowed=allowed)


def is_possible(example: Example, states: Sequence[Hashable] | None, bigrams: "Bigrams | None") -> bool:
    """Whether the labels of an example, and their states, lie within the allowed labels of its positions and the bigrams."""
    labels = example.labels or []
    allowed = example.allowed or [None] * len(labels)
    if not all(names is None or label in names for label, names in zip(labels, allowed, strict=True)):
        return False
    return states is not None and (bigrams is None or bigrams.allows(states))


@contextmanager
def name_places(examples: Sequence[Example]) -> Iterator[None]:
    """A sequence that has no possible label sequence is named by its place in the file."""
    from crfkit.models import ImpossibleSequenceError

    try:
        yield
    except ImpossibleSequenceError as error:
        raise InputError(f"{examples[error.sequence].origin.place(0)}: {error.reason}") from None


def check_bigrams(examples: Sequence[Example], name: str | None, unseen: str) -> str | None:
    """Refuse labels that leave the bigrams of this name, unless `unseen` says what is done with them; a note for `skip`."""
    from crfkit.structures import Bigrams, Chain

    try:
        Chain(bigrams=name, unseen=unseen)
        if name is None or name == "observed":
            return None
        bigrams = Bigrams.scheme(name, {label for example in examples for label in example.labels or ()})
    except ValueError as error:
        raise InputError(str(error).rstrip(".")) from None
    first = [(example, next(bigrams.missing(example.labels or ()), None)) for example in examples]
    outside = [(example, missing) for example, missing in first if missing is not None]
    if not outside or unseen not in ("error", "skip"):
        return None
    count = f"{len(outside):,} of {len(examples):,} sequences lie outside the bigrams"
    if unseen == "skip":
        return f"{count} and are left out"
    example, (position, before, after) = outside[0]
    raise InputError(
        f"{example.origin.place(min(position, len(example.inputs) - 1))}: {after} after {before} is not allowed by {name}; "
        f"{count} (--unseen extend, skip or soft says what to do with them)"
    )


def suggest_bigrams(examples: Sequence[Example], bigrams: object) -> str | None:
    """A hint where many labels without constraints make training slow: its time grows with the pairs of labels."""
    labels = {label for example in examples for label in example.labels or ()}
    if bigrams is not None or len(labels) <= MANY_LABELS or examples[0].allowed is not None:
        return None
    pairs = {pair for example in examples for pair in pairwise(example.labels or ())}
    n_all = len(labels) ** 2
    if 2 * len(pairs) > n_all:
        return None
    return (
        f"{len(labels):,} labels without constraints: each word looks at all {n_all:,} pairs of them, of which the file has "
        f"{len(pairs):,}; --bigrams observed trains on these alone, and is much faster"
    )


def allowed_of(
    examples: Sequence[Example], classes: Iterable[Hashable]
) -> list[list[frozenset[Hashable] | None] | None] | None:
    """What the examples allow, as a model with these labels asks for it."""
    if all(example.allowed is None for example in examples):
        return None
    by_name: dict[str, set[Hashable]] = {}
    for label in classes:
        by_name.setdefault(str(label), set()).add(label)
    seen: dict[frozenset[str] | None, frozenset[Hashable] | None] = {None: None}
    for names in {names for example in examples for names in example.allowed or ()} - {None}:
        seen[names] = frozenset(label for name in names or () for label in by_name[name])
    return [
        None if example.allowed is None else [seen[names] for names in example.allowed]
        for example in examples
    ]
