"""Fields of words as text: separated by commas, in quotation marks where they have a comma themselves."""

import csv
from collections.abc import Sequence


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
