"""Tokens and labels of references: words and numbers, and each mark of punctuation by itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.reference_styles import OTHER, Rendered

TOKEN = re.compile(
    r"""(?:https?://|www\.)[^\s<>"]+[^\s<>".,;:)\]]   # an address
    | \b10\.\d{4,9}/[^\s<>"]*[^\s<>".,;:)\]]           # a DOI
    | \w+(?:[-–'’]\w+)*                                # a word, a number, a range of pages
    | \S                                               # a mark of punctuation
    """,
    re.VERBOSE,
)


class Reference(NamedTuple):
    """Tokens with their fields in BIO."""

    tokens: list[str]
    labels: list[str]


def tokenize(text: str) -> list[str]:
    """The tokens of a reference."""
    return TOKEN.findall(text)


def label_tokens(rendered: Rendered) -> Reference:
    """Tokens, with the field that most of their characters are in.

    A field begins and ends with a word or a number: punctuation at its ends is outside. Punctuation within it is inside.
    """
    tokens, fields = [], []
    for found in TOKEN.finditer(rendered.text):
        tokens.append(found[0])
        fields.append(Counter(rendered.fields[found.start() : found.end()]).most_common(1)[0][0])
    return Reference(tokens, bio(tokens, fields))


def bio(tokens: Sequence[str], fields: Sequence[str]) -> list[str]:
    """Labels in BIO of the runs of equal fields, without the punctuation at their ends."""
    labels = [OTHER] * len(tokens)
    begin = 0
    while begin < len(tokens):
        end = begin
        while end < len(tokens) and fields[end] == fields[begin]:
            end += 1
        inner = [i for i in range(begin, end) if any(map(str.isalnum, tokens[i]))]
        if fields[begin] != OTHER and inner:
            labels[inner[0]] = f"B-{fields[begin]}"
            for i in range(inner[0] + 1, inner[-1] + 1):
                labels[i] = f"I-{fields[begin]}"
        begin = end
    return labels


def mixed_blanks(rendered: Rendered) -> tuple[int, int]:
    """How many tokens between blanks there are, and how many of them hold letters or digits of two fields."""
    pieces = [m.span() for m in re.finditer(r"\S+", rendered.text)]
    mixed = 0
    for begin, end in pieces:
        inside = {rendered.fields[i] for i in range(begin, end) if rendered.text[i].isalnum()}
        mixed += len(inside) > 1
    return len(pieces), mixed
