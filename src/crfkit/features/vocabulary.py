"""Names of features: their ids, and the blocks they belong to."""

from __future__ import annotations

import re

from crfkit._core import Vocabulary

__all__ = ["Vocabulary", "block_of"]

_BLOCK_END = re.compile("[:=]")


def block_of(feature: str) -> str:
    """The block of a feature, by which penalties can differ: "w:Rome" → "w", "suffix=me" → "suffix", "bias" → "bias"."""
    return _BLOCK_END.split(feature, maxsplit=1)[0]
