"""What may stand in a macro of a template in the place of `x`: functions of the value of a column."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple


def _upper_first(value: str) -> bool:
    return value[:1].isupper() or value[:1].istitle()


def _kind(character: str) -> str:
    """X, x or d for capitals, other letters and digits; any other character stands for itself."""
    if character.isdigit():
        return "d"
    if character.isalpha():
        return "X" if _upper_first(character) else "x"
    return character


def _shape(value: str) -> str:
    return "".join(map(_kind, value))


def _short_shape(value: str) -> str:
    return re.sub(r"(.)\1+", r"\1", _shape(value), flags=re.DOTALL)


def _digits(value: str) -> str:
    return "".join("0" if character.isdigit() else character for character in value)


def _is_title(value: str) -> bool:
    return _upper_first(value) and value[1:] == value[1:].lower()


def _prefix(value: str, length: int) -> str | None:
    return value[:length] if len(value) >= length else None


def _suffix(value: str, length: int) -> str | None:
    return value[-length:] if len(value) >= length else None


@lru_cache(maxsize=1 << 12)  # one word is asked for many prefixes and suffixes in a row
def _bare(value: str) -> str:
    """Lower case without accents, breathings, cedillas …: what combines with a letter is dropped."""
    if value.isascii():
        return value.lower()
    apart = unicodedata.normalize("NFD", value.lower())
    letters = "".join(character for character in apart if not unicodedata.combining(character))
    return unicodedata.normalize("NFC", letters) or value


@lru_cache(maxsize=1 << 12)
def _stripped(value: str) -> str:
    """Lower case without the punctuation at both ends; what is punctuation alone stays."""
    begin, end = 0, len(value)
    while begin < end and _is_punctuation(value[begin]):
        begin += 1
    while begin < end and _is_punctuation(value[end - 1]):
        end -= 1
    return value[begin:end].lower() or value


def _is_punctuation(character: str) -> bool:
    """Whether it is punctuation or a symbol."""
    return unicodedata.category(character)[0] in "PS"


def _is_character(value: str) -> bool:
    """Whether this is one letter of a script without capitals: of text whose tokens are characters."""
    return len(value) == 1 and unicodedata.category(value) == "Lo"


class Function(NamedTuple):
    """What may stand in a macro in the place of `x`."""

    description: str
    apply: Callable[..., str | None]  # of the value, and of n where it takes a length
    has_length: bool = False


def _test(what: str, holds: Callable[[str], bool]) -> Function:
    return Function(f"1 when {what}, otherwise nothing", lambda value: "1" if holds(value) else None)


FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "x": Function("the value itself", lambda value: value),
        "lower": Function("the value in lower case", str.lower),
        "bare": Function("in lower case without accents and other marks on letters: Łódź → łodz", _bare),
        "prefix": Function("its first n characters; nothing when it is shorter", _prefix, True),
        "suffix": Function("its last n characters; nothing when it is shorter", _suffix, True),
        "lower_prefix": Function("the prefix in lower case", lambda x, n: _prefix(x.lower(), n), True),
        "lower_suffix": Function("the suffix in lower case", lambda x, n: _suffix(x.lower(), n), True),
        "bare_prefix": Function("the prefix of the bare value", lambda x, n: _prefix(_bare(x), n), True),
        "bare_suffix": Function("the suffix of the bare value", lambda x, n: _suffix(_bare(x), n), True),
        "stripped": Function("in lower case without punctuation at the ends: (Ave., → ave", _stripped),
        "stripped_prefix": Function(
            "the prefix of the stripped value", lambda x, n: _prefix(_stripped(x), n), True
        ),
        "stripped_suffix": Function(
            "the suffix of the stripped value", lambda x, n: _suffix(_stripped(x), n), True
        ),
        "shape": Function("capitals as X, other letters as x, digits as d: Rome-27 → Xxxx-dd", _shape),
        "short_shape": Function("the shape with runs of one character collapsed: Xx-d", _short_shape),
        "digits": Function("the value with every digit as 0", _digits),
        "length": Function("how many characters it has", lambda value: str(len(value))),
        "has_digit": _test("a digit occurs", lambda value: any(map(str.isdigit, value))),
        "has_hyphen": _test("a hyphen occurs", lambda value: "-" in value),
        "has_upper": _test("a capital letter occurs", lambda value: any(map(_upper_first, value))),
        "is_title": _test("the first letter is a capital and no other is", _is_title),
        "is_upper": _test("it has letters and all of them are capitals", str.isupper),
        "is_character": _test("it is one letter of a script without capitals, such as 漢", _is_character),
        "outside": Function(
            "nothing; rows outside the sequence read _B-1 or _B+1 as ever", lambda value: None
        ),
    }
)
"""The functions that may stand in a macro, and what each gives."""
