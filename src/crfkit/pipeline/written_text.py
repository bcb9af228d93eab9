"""Raw text and the tokens of sentences: from one to the other without a loss.

The MISC column of a token says what white space surrounds it, as UDPipe's output does:

    SpaceAfter=No        nothing stands between this token and the next one
    SpacesAfter=\\n\\n     this white space does, where it is not one blank
    SpacesBefore=\\s\\s    white space before the first token of a text
    SpacesInToken=a\\s\\sb the token as it is written, where its form holds other white space

with `\\s` for a blank, `\\t`, `\\n` and `\\r` for tab and line ends, `\\p` for `|`, `\\\\` for a backslash, and
`\\uXXXX` for other white space.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from crfkit.data import Sentence

NOT_SPACED = "SpaceAfter=No"

_ESCAPES = {" ": "\\s", "\t": "\\t", "\n": "\\n", "\r": "\\r", "|": "\\p", "\\": "\\\\"}
_PLAIN = {code: text for text, code in _ESCAPES.items()}
_ESCAPED = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_TO_ESCAPE = re.compile(r"[\s|\\]")
_PARAGRAPH = ("# newpar", "# newdoc")


class Token(NamedTuple):
    """A token of a sentence as it is written: a word, or the multiword token of several."""

    form: str
    misc: str
    first: int  # number of its first word, from 1
    last: int  # of its last one
    is_multiword: bool

    @property
    def written(self) -> str:
        """The characters of the text that it covers."""
        given = misc_value(self.misc, "SpacesInToken")
        return self.form if given is None else unescape(given)

    @property
    def spaces_after(self) -> str:
        """The white space behind it."""
        if (given := misc_value(self.misc, "SpacesAfter")) is not None:
            return unescape(given)
        return "" if misc_value(self.misc, "SpaceAfter") == "No" else " "


def tokens_of(sentence: Sentence) -> Iterator[Token]:
    """The tokens of a sentence, in their order."""
    multiwords = {multiword.first: multiword for multiword in sentence.multiwords}
    number = 1
    while number <= len(sentence.words):
        multiword = multiwords.get(number)
        if multiword is None:
            word = sentence.words[number - 1]
            yield Token(word.form, word.misc, number, number, False)
            number += 1
        else:
            yield Token(multiword.form, multiword.misc, number, multiword.last, True)
            number = multiword.last + 1


def begins_paragraph(sentence: Sentence) -> bool:
    """Whether the sentence is the first of a paragraph or document, by its comments."""
    return any(comment.startswith(_PARAGRAPH) for comment in sentence.comments)


def raw_text(sentences: Iterable[Sentence]) -> str:
    """The text of sentences: tokens with the white space that MISC gives, and a blank line before paragraphs.

    Of sentences that a `Tokenizer` made of a text, it is that text.

    >>> from crfkit.data import Word
    >>> raw_text([Sentence([Word("Go", misc="SpaceAfter=No"), Word("!", misc="SpacesAfter=\\\\n")])])
    'Go!\\n'
    """
    parts: list[str] = []
    for sentence in sentences:
        if parts and begins_paragraph(sentence) and "\n" not in parts[-1]:
            parts[-1] = "\n\n"  # in place of the white space behind the last token
        for token in tokens_of(sentence):
            before = misc_value(token.misc, "SpacesBefore")
            parts += [unescape(before or ""), token.written, token.spaces_after]
    return "".join(parts)


def misc_value(misc: str, name: str) -> str | None:
    """The value of `name=…` in a MISC column; None where it is not there."""
    if name not in misc:
        return None
    for item in misc.split("|"):
        key, equals, value = item.partition("=")
        if equals and key == name:
            return value
    return None


def add_misc(misc: str, *items: str) -> str:
    """A MISC column with further items; one of the same name is replaced."""
    names = {item.partition("=")[0] for item in items}
    kept = [item for item in misc.split("|") if item != "_" and item.partition("=")[0] not in names]
    return "|".join([*kept, *items]) or "_"


def space_items(spaces: str, before: str = "") -> list[str]:
    """The items of MISC for the white space behind and before a token."""
    items = [f"SpacesBefore={escape(before)}"] if before else []
    if not spaces:
        items.append(NOT_SPACED)
    elif spaces != " ":
        items.append(f"SpacesAfter={escape(spaces)}")
    return items


def escape(text: str) -> str:
    """Text as MISC can hold it: no white space, no `|`."""
    return _TO_ESCAPE.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", text)


def unescape(text: str) -> str:
    """The inverse of `escape`."""
    return _ESCAPED.sub(
        lambda found: chr(int(found[0][2:], 16)) if len(found[0]) > 2 else _PLAIN.get(found[0], found[0]),
        text,
    )
