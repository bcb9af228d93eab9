"""Where tokens stand in a text."""

from collections.abc import Sequence

from crfkit.errors import ShapeError


def token_offsets(text: str, tokens: Sequence[str]) -> list[tuple[int, int]]:
    """(begin, end) of each token in the text it was cut from; between tokens, anything may stand.

    >>> token_offsets("She lives in (New) York.", ["She", "lives", "in", "New", "York", "."])
    [(0, 3), (4, 9), (10, 12), (14, 17), (19, 23), (23, 24)]
    """
    found, at = [], 0
    for i, token in enumerate(tokens):
        begin = text.find(token, at)
        if begin < 0:
            raise ShapeError(f"token {i}, {token!r}, does not stand in the text after character {at}")
        at = begin + len(token)
        found.append((begin, at))
    return found
