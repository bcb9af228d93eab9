"""Parsers whose answers are exact over all trees."""

from __future__ import annotations

from typing import Any

from crfkit import Parser


def first_order(*args: Any, **settings: Any) -> Parser:
    """A parser with scores of arcs alone, which gives the likeliest of all trees."""
    usual: dict[str, Any] = {"structure": "spanning", "order": 1, "decode": "best"}
    return Parser(*args, **usual | settings)
