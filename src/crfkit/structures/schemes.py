"""Schemes of span labels, as rules for two adjacent labels.

A label is O (outside), or a letter and a type such as `B-PER`, or a letter alone. The role of
a letter within its span:

    scheme              begin   inside    end      single
    bio, iob2           B       I                             I only within a span of its type
    iob1                B       I                             B only right after a span of its type, I anywhere
    iobes, bioes        B       I         E        S          a span is B I* E, or S
    bilou               B       I         L        U
    bmes                B       M         E        S
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from crfkit.errors import ArgumentError, ImpossibleLabelsError, LabelError

Rule = Callable[[Hashable, Hashable], bool]  # may `after` follow `before`?

SCHEMES: Mapping[str, str] = MappingProxyType(
    {
        "bio": "BI",
        "iob2": "BI",
        "iob1": "BI",
        "iobes": "BIES",
        "bioes": "BIES",
        "bilou": "BILU",
        "bmes": "BMES",
    }
)
"""The schemes and their letters: begin, inside, end, single."""

PLAIN = "plain"
"""What plain labels are called beside the schemes: a span is a run of equal labels."""

_FOUND = ("bio", "iobes", "bilou", "bmes")  # schemes that labels are recognised by, in this order


class Place(NamedTuple):
    """A label as a scheme reads it."""

    role: str  # one of B I E S for a letter of the span, whatever the scheme writes; O outside
    type: str


_OUTSIDE = Place("O", "")


def scheme_rule(name: str, labels: Sequence[Hashable], start: Hashable, end: Hashable) -> Rule:
    """The rule of a scheme for these labels; START and END count as outside."""
    scheme = name.lower() if isinstance(name, str) else name
    if scheme not in SCHEMES:
        raise ArgumentError(f"Unknown scheme of span labels {name!r}, expected one of {', '.join(SCHEMES)}.")
    places: dict[Hashable, Place] = dict(zip(labels, label_places(scheme, labels), strict=True))
    places[start] = places[end] = _OUTSIDE
    follows = {"bio": _bio, "iob2": _bio, "iob1": _iob1}.get(scheme, _closed)
    return lambda before, after: follows(places[before], places[after])


def label_places(scheme: str, labels: Sequence[Hashable]) -> list[Place]:
    """The roles of labels; an error names the scheme that all of them are of, if there is one."""
    try:
        return [label_place(scheme, label) for label in labels]
    except LabelError as error:
        found = find_scheme(labels)
        advice = (
            "Labels without these letters have no scheme."
            if found == PLAIN
            else f"The labels are those of {found}."
        )
        raise LabelError(f"{error} {advice}") from None


def label_place(scheme: str, label: Hashable) -> Place:
    """The role of a label, and the type of its span; ValueError where the scheme has no such label."""
    if label == "O":
        return _OUTSIDE
    letters = SCHEMES[scheme]
    if isinstance(label, str):
        letter, _, kind = label.partition("-")
        if len(letter) == 1 and letter in letters:
            return Place("BIES"[letters.index(letter)], kind)
    expected = ", ".join(f"{letter}-type" for letter in letters)
    raise LabelError(f"The label {label!r} is none of the scheme {scheme}: expected O, {expected}.")


def find_scheme(labels: Sequence[Hashable]) -> str:
    """The first scheme that has all these labels, or plain."""
    for scheme in _FOUND if any(label != "O" for label in labels) else ():
        try:
            for label in labels:
                label_place(scheme, label)
        except ValueError:
            continue
        return scheme
    return PLAIN


def iob1_to_bio(labels: Sequence[Hashable]) -> list[Hashable]:
    """The same spans in BIO; LabelError for what is no label of IOB1, ImpossibleLabelsError for B that begins anew."""
    found: list[Hashable] = []
    before = _OUTSIDE
    for i, label in enumerate(labels):
        here = label_place("iob1", label)
        if not _iob1(before, here):
            raise ImpossibleLabelsError(
                f"position {i}: the label {label!r} of the scheme iob1 is only for a span right after another one of its "
                f"type; expected {_with_letter('I', label)!r}, or the scheme bio"
            )
        begins = here.role == "I" and (before.role == "O" or before.type != here.type)
        found.append(_with_letter("B", label) if begins else label)
        before = here
    return found


def bio_to_iob1(labels: Sequence[Hashable]) -> list[Hashable]:
    """The inverse of `iob1_to_bio`."""
    found: list[Hashable] = []
    before = _OUTSIDE
    for label in labels:
        here = label_place("bio", label)
        anew = here.role == "B" and (before.role == "O" or before.type != here.type)
        found.append(_with_letter("I", label) if anew else label)
        before = here
    return found


def _with_letter(letter: str, label: Hashable) -> str:
    return f"{letter}{str(label)[1:]}"


def _bio(before: Place, after: Place) -> bool:
    return after.role != "I" or (before.role != "O" and before.type == after.type)


def _iob1(before: Place, after: Place) -> bool:
    return after.role != "B" or (before.role != "O" and before.type == after.type)


def _closed(before: Place, after: Place) -> bool:
    """An open span continues or ends; otherwise a new one begins, a single one follows, or none."""
    if before.role in "BI":
        return after.role in "IE" and before.type == after.type
    return after.role in "BSO"
