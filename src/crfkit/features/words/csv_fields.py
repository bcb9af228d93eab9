"""Fields of words as text: separated by commas, in quotation marks where they have a comma themselves."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from crfkit.errors import ArgumentError, reword

_FIELD = re.compile(r'(?:"((?:[^"]|"")*+)"?)?([^,]*)')  # what stands in quotation marks, and what follows it


def split_fields(text: str) -> tuple[str, ...]:
    """The fields of a text."""
    if '"' not in text:
        return tuple(text.split(","))
    fields, at = [], 0
    while at <= len(text):
        found = _FIELD.match(text, at)
        assert found is not None  # it matches every text
        fields.append((found[1] or "").replace('""', '"') + found[2])
        at = found.end() + 1
    return tuple(fields)


def join_fields(fields: Sequence[str]) -> str:
    """The inverse of `split_fields`."""
    return ",".join(
        f'"{field.replace(chr(34), 2 * chr(34))}"' if {",", '"'} & {*field} else field for field in fields
    )


def as_fields(given: Any) -> tuple[str, ...]:
    """Fields as they may be given: a text with commas, or a list; ArgumentError for anything else."""
    if isinstance(given, str):
        return split_fields(given)
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise ArgumentError(f"fields are {given!r}, expected a text with commas or a list of texts")
    return tuple(map(str, given))


def read_word(given: Any, where: str) -> tuple[str, tuple[str, ...]]:
    """A word as it may be given, (form, fields); ArgumentError for anything else."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or len(given) != 2:
        raise ArgumentError(f"{where} is {given!r}, expected (form, fields)")
    form, fields = given
    if not isinstance(form, str) or not form:
        raise ArgumentError(f"{where} has the form {form!r}, expected a text that is not empty")
    try:
        return form, as_fields(fields)
    except ArgumentError as error:
        raise reword(error, f"{where}, {form!r}: {error}") from None
