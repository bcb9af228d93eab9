"""Lists of lists."""

from collections.abc import Iterable
from itertools import chain
from typing import Any


def flatten(sequences: Iterable[Iterable[Any]]) -> list[Any]:
    """The items of all sequences, one after the other.

    >>> flatten([["a", "b"], ["c"]])
    ['a', 'b', 'c']
    """
    return list(chain.from_iterable(sequences))
