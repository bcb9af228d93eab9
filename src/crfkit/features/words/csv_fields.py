"""Fields of words as text: separated by commas, in quotation marks where they have a comma themselves."""

import csv
from collections.abc import Sequence
from typing import Any


def split_fields(text: str) -> tuple[str, ...]:
    """The fields of a text."""
    if '"' not in text:
        return tuple(text.split(","))
    return tuple(next(csv.reader([text])))


def join_fields(fields: Sequence[str]) -> str:
    """The inverse of `split_fields`."""
    return ",".join(
        f'"{field.replace(chr(34), 2 * chr(34))}"' if {",", '"'} & {*field} else field for field in fields
    )


def as_fields(given: Any) -> tuple[str, ...]:
    """Fields as they may be given: a text with commas, or a list."""
    return split_fields(given) if isinstance(given, str) else tuple(map(str, given))
