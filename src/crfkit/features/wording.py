"""How values are named in messages."""

from typing import Any

import numpy as np

_LONGEST = 60


def shorten(value: object) -> str:
    """The repr on one line, shortened where it is long."""
    words = " ".join(repr(value).split())
    return words if len(words) <= _LONGEST else words[:_LONGEST] + "…"


def describe_value(value: Any) -> str:
    """What a value is: "the string 'Rome'", "None", "4 (int)", "an array of shape [2, 3]"."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"the string {shorten(value)}"
    if isinstance(value, np.ndarray) or hasattr(value, "tocsr"):
        kind = "an array" if isinstance(value, np.ndarray) else "a sparse matrix"
        return f"{kind} of shape {list(value.shape)}"
    return f"{shorten(value)} ({type(value).__name__})"
