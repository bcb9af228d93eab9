"""How wide a text may get when it is drawn: no font is at hand, so a little more than common sans-serif fonts need."""

import unicodedata

_NARROW = frozenset("fijlrtIJ.,:;'`|!()[]{}/\\- ")
_WIDE = frozenset("mwMWOQG@%&—…")


def text_width(text: str, font_size: float) -> float:
    """An upper estimate of the width of a text, in the unit of the font size."""
    return font_size * sum(map(_ems, text))


def _ems(character: str) -> float:
    """The width of a character as a multiple of the font size."""
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in _NARROW:
        return 0.42
    if character in _WIDE:
        return 1.0
    if character.isupper():
        return 0.76
    return (
        0.65 if character < "\u0900" else 0.9
    )  # letters of the alphabets; those of India and further on are wider
