"""Spans of label sequences as conlleval reads them, and their probabilities by summing over all label sequences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import cycle, islice

Found = tuple[int, int, Hashable]  # start, end, type

LETTERS = {"bio": "BI", "iob1": "IB", "iobes": "BIES", "bilou": "BILU", "bmes": "BMES"}
SAME = {"M": "I", "L": "E", "U": "S"}


def names(scheme: str, n_labels: int) -> list[str]:
    """So many labels of a scheme, or plain ones; where there are more than the scheme has, some are equal."""
    distinct = [f"{letter}-{kind}" for kind in "XYZ" for letter in LETTERS.get(scheme, ())] or [*"XYZ"]
    return list(islice(cycle(["O", *distinct]), n_labels))


def read(labels: Sequence[str], scheme: str) -> list[Found]:
    """The rules startOfChunk and endOfChunk of conlleval, with S as a chunk of one token."""
    if scheme == "plain":
        labels = [label if label == "O" else f"R-{label}" for label in labels]
    found, start, before, kind_before = list[Found](), 0, "O", ""
    for i, label in enumerate([*labels, "O"]):
        letter, _, kind = label.partition("-")
        letter = SAME.get(letter, letter)
        pair = before + letter
        ends = pair in {"BB", "BO", "BS", "IB", "IO", "IS", "RO"} or before in "ES"
        ends |= before != "O" and kind != kind_before
        begins = letter in "BS" or pair in {"OI", "OE", "OR", "EI", "EE", "SI", "SE"}
        begins |= letter != "O" and kind != kind_before
        if ends:
            found.append((start, i, kind_before))
        if begins:
            start = i
        before, kind_before = letter, kind
    return found


def probabilities(outputs: Iterable[tuple[Sequence[str], float]], scheme: str) -> dict[Found, float]:
    """P(start, end, type), from every label sequence and its probability."""
    total: dict[Found, float] = defaultdict(float)
    for labels, p in outputs:
        for span in read(labels, scheme):
            total[span] += p
    return dict(total)
