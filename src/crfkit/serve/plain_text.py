"""Plain text cut into sentences and tokens by rules, for models that have no tokenizer of their own.

A token is a run of letters, digits and underscores; inside it hyphens, apostrophes, full stops and commas may stand between
two of these (`well-known`, `don't`, `3.5`, `U.S`). Every other character that is not white space is a token of its own. A
sentence ends at a line break, and behind `.`, `!`, `?` or `…`, with the brackets and quotation marks that close there, where
white space and a capital letter, a digit or an opening mark follow; not behind a single letter (`J. Smith`).
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(r"\w+(?:[-'’.,·]\w+)*|[^\w\s]")
_ENDS = frozenset(".!?…。！？")
_CLOSES = frozenset("\"'’”»)]}›")
_OPENS = frozenset("\"'‘“„«([{‹¿¡")


class Token(NamedTuple):
    """text[start:end]."""

    text: str
    start: int
    end: int


def split_text(text: str) -> list[list[Token]]:
    """The sentences of a text, each a list of tokens with their places.

    >>> [[token.text for token in sentence] for sentence in split_text('Anna left. "Why?" said J. Smith.')]
    [['Anna', 'left', '.'], ['"', 'Why', '?', '"', 'said', 'J', '.', 'Smith', '.']]
    """
    sentences: list[list[Token]] = []
    current: list[Token] = []
    for found in _TOKEN.finditer(text):
        token = Token(found.group(), found.start(), found.end())
        if current and _begins_sentence(text, current, token):
            sentences.append(current)
            current = []
        current.append(token)
    if current:
        sentences.append(current)
    return sentences


def _begins_sentence(text: str, before: list[Token], token: Token) -> bool:
    gap = text[before[-1].end : token.start]
    if "\n" in gap or "\r" in gap:
        return True
    first = token.text[0]
    if not gap or not (first.isupper() or first.isdigit() or first in _OPENS):
        return False
    last = len(before) - 1
    while last >= 0 and before[last].text in _CLOSES:
        last -= 1
    if last < 0 or before[last].text not in _ENDS:
        return False
    initial = before[last].text == "." and last > 0 and len(before[last - 1].text) == 1
    return not (initial and before[last - 1].text.isalpha())
