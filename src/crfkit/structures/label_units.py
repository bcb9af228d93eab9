"""Units of a label sequence: spans such as B-NP I-NP I-NP, or runs of one label.

N-grams of units reach further than n-grams of labels: `B-PP|I-PP B-NP I-NP* B-VP` matches a noun phrase of any length
between a preposition and a verb.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from crfkit.arrays import Bools, Int32s, Int64s, offsets
from crfkit.structures.pattern_language import quote

_LETTERS = ("BI", "BIES", "BILU", "BMES")  # begin, inside, end, single
_OUTSIDE = "O"


@dataclass(frozen=True, eq=False)
class LabelUnits:
    """How labels form units of K kinds, and the pattern text of each kind."""

    kinds: Int32s  # [L] of the unit that a label belongs to
    opens: Bools  # [L] the label begins a unit
    closes: Bools  # [L] the label ends one
    inside: Bools  # [L] the label never begins one
    firsts: tuple[str, ...]  # [K] the label that a unit begins with
    lasts: tuple[str, ...]  # [K] the one that it ends with
    wholes: tuple[str, ...]  # [K] the whole unit

    @classmethod
    def of(cls, labels: Sequence[Hashable]) -> "LabelUnits":
        """Spans if all labels follow one scheme, as B-NP, I-NP and O do; runs of equal labels otherwise."""
        names = [str(label) for label in labels]
        roles = _roles(names)
        if roles is None:
            texts = [quote(name) for name in names]
            never = np.zeros(len(names), np.bool_)
            runs = tuple(f"{text}+" for text in texts)
            return cls(np.arange(len(names), dtype=np.int32), never, never, never, (*texts,), (*texts,), runs)
        by_kind: dict[str, dict[str, str]] = {}  # kind → role → text of the label
        for name, role in zip(names, roles, strict=True):
            by_kind.setdefault(_kind(name), {})[role] = quote(name)
        place = {kind: i for i, kind in enumerate(by_kind)}
        texts_of = [
            _span_texts(of_role, closed=not {"E", "S"}.isdisjoint(roles)) for of_role in by_kind.values()
        ]
        firsts, lasts, wholes = zip(*texts_of, strict=True)
        return cls(
            np.array([place[_kind(name)] for name in names], np.int32),
            np.array([role in "BS" for role in roles]),
            np.array([role in "ES" for role in roles]),
            np.array([role in "IE" for role in roles]),
            firsts,
            lasts,
            wholes,
        )

    def split(self, ids: Int32s, ptr: Int64s) -> tuple[Int32s, Int64s]:
        """The kinds of the units of label ids [T], sequence by sequence, and the offset of each sequence.

        −1 is a unit with an invalid beginning: I-NP after O.
        """
        kinds, before = self.kinds[ids], np.roll(ids, 1)
        begins = self.opens[ids] | self.closes[before] | (kinds != np.roll(kinds, 1))
        begins[ptr[:-1][np.diff(ptr) > 0]] = True
        found = np.where(self.inside[ids], np.int32(-1), kinds)[begins]
        return found, offsets(begins)[ptr]

    def text(self, run: Sequence[int]) -> str | None:
        """The pattern of a run of units, from the end of the first to the beginning of the last; None: there is none."""
        parts = [self.lasts[run[0]], *(self.wholes[kind] for kind in run[1:-1]), self.firsts[run[-1]]]
        return " ".join(parts) if all(parts) else None


def _roles(names: Sequence[str]) -> list[str] | None:
    """The role of each label in a scheme of spans: B I E S whatever its letters, or O; None if they follow no scheme."""
    for letters in _LETTERS:
        allowed = dict(zip(letters, "BIES", strict=False))
        heads = [name.partition("-")[0] for name in names]
        if "B" in heads and all(
            head in allowed or name == _OUTSIDE for name, head in zip(names, heads, strict=True)
        ):
            return [
                _OUTSIDE if name == _OUTSIDE else allowed[head]
                for name, head in zip(names, heads, strict=True)
            ]
    return None


def _kind(name: str) -> str:
    """The type of a span; outside is a separate kind."""
    return _OUTSIDE if name == _OUTSIDE else "-" + name.partition("-")[2]


def _span_texts(of_role: dict[str, str], *, closed: bool) -> tuple[str, str, str]:
    """Patterns for the beginning, the end and the whole of a span of one type; '' if the labels do not exist."""
    if _OUTSIDE in of_role:
        text = of_role[_OUTSIDE]
        return text, text, f"{text}+"
    opening, inside, closing, single = (of_role.get(role, "") for role in "BIES")

    def one_of(*texts: str) -> str:
        return "|".join(filter(None, texts))

    middle = f" {inside}*" if inside else ""
    if not closed:
        return opening, one_of(opening, inside), f"{opening}{middle}" if opening else ""
    long = f"({opening}{middle} {closing})" if opening and closing else ""
    return one_of(opening, single), one_of(closing, single), one_of(long, single)
