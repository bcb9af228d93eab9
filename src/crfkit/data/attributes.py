r"""CRFsuite's attribute files: one item a line, its label first and then its attributes, a blank line after each sequence.

    B-NP<TAB>w=the<TAB>len:3<TAB>url=http\://x

Fields are separated by tabs. An attribute may have a value after a colon, 1 otherwise. In names, `\:` is a colon and `\\` a
backslash; before any other character a backslash is itself, as in `1\/2`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, ClassVar

from crfkit.data.files import Source, number_lines, source_name
from crfkit.errors import FileFormatError, UnsavableError

Item = list[str] | dict[str, float]  # names, or names with values where one is not 1

_FIELD = re.compile(r"((?:[^:\\]|\\[:\\]?)*+)(?::(.*))?", re.DOTALL)  # matches every text
_ESCAPED = re.compile(r"\\([:\\])")
_LARGEST = 1e20  # of a value; beyond it sums overflow in single precision


@dataclass(frozen=True, slots=True)
class AttributeSequence:
    """One sequence of an attribute file."""

    items: list[Item]  # [T]
    labels: list[str]  # [T]
    line: int  # number of the line of its first item, counted from 1
    source: str = "<stream>"

    rows: ClassVar[Sequence[tuple[str, ...]]] = ()  # it has no columns, and no comments
    lines: ClassVar[Sequence[str]] = ()
    comments: ClassVar[Sequence[str]] = ()
    separator: ClassVar[str] = "\t"

    def place(self, position: int) -> str:
        """Where a position was read, as `file:line`."""
        return f"{self.source}:{self.line + position}"


def read_attributes(source: Source) -> Iterator[AttributeSequence]:
    r"""Read an attribute file, one sequence at a time; a path (also .gz, .xz, .bz2) or a stream.

    >>> import io
    >>> for sequence in read_attributes(io.StringIO("D\tw=the\tlen:3\nN\tw=a\\:b\n\n")):
    ...     print(sequence.labels, sequence.items)
    ['D', 'N'] [{'w=the': 1.0, 'len': 3.0}, ['w=a:b']]
    """
    name = source_name(source)
    items: list[Item] = []
    labels: list[str] = []
    first = 1
    for number, line in number_lines(source):
        if line:
            if not items:
                first = number
            label, *fields = line.split("\t")
            labels.append(_unescape(label))
            items.append(_item(fields, f"{name}:{number}"))
        elif items:
            yield AttributeSequence(items, labels, first, name)
            items, labels = [], []
    if items:
        yield AttributeSequence(items, labels, first, name)


def write_attributes(items: Iterable[Item], labels: Sequence[str], stream: IO[str]) -> None:
    """Write one sequence as `read_attributes` reads it, and the blank line that ends it."""
    for item, label in zip(items, labels, strict=True):
        fields = [_escape(label)]
        if isinstance(item, dict):
            fields += (
                _escape(name) + ("" if value == 1.0 else f":{value!r}") for name, value in item.items()
            )
        else:
            fields += map(_escape, item)
        stream.write("\t".join(fields) + "\n")
    stream.write("\n")


def _item(fields: list[str], place: str) -> Item:
    """The attributes of one line."""
    if not any(":" in field or "\\" in field for field in fields):
        return [field for field in fields if field]
    return item_of([_attribute(field, place) for field in fields if field])


def item_of(attributes: Sequence[tuple[str, float]]) -> Item:
    """An item with these attributes; the values of one that is there twice are added up.

    >>> item_of([("a", 1.0), ("b", 0.5), ("a", 1.0)])
    {'a': 2.0, 'b': 0.5}
    >>> item_of([("a", 1.0), ("a", 1.0)])
    ['a', 'a']
    """
    if all(value == 1.0 for _, value in attributes):
        return [name for name, _ in attributes]
    item: dict[str, float] = {}
    for name, value in attributes:
        item[name] = item.get(name, 0.0) + value
    return item


def _attribute(field: str, place: str) -> tuple[str, float]:
    parts = _FIELD.fullmatch(field)
    assert parts is not None
    name, text = _unescape(parts[1]), parts[2]
    if not text:
        return name, 1.0
    try:
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= _LARGEST:
        raise FileFormatError(
            f"{place}: attribute {name[:40]!r} has the value {text[:40]!r}, expected a number of at most 1e20 in size "
            "(a colon in a name is written \\:)"
        )
    return name, value


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def _escape(text: str) -> str:
    if "\t" in text or "\n" in text or "\r" in text:
        raise UnsavableError(f"{text[:40]!r} has a tab or a line end, which an attribute file cannot hold")
    return text.replace("\\", "\\\\").replace(":", "\\:")
