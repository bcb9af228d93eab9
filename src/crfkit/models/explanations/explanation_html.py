"""Explanations as HTML: a table whose bars go to the right for what speaks for the answer, and to the left otherwise.

Colours are half transparent and text has the colour of the page around it, so that it reads in light and in dark.
"""

import html
import math
from collections.abc import Sequence

from crfkit.models.explanations.explanation_text import Part, largest, signed, total

FOR, AGAINST = "rgba(46, 160, 67, 0.55)", "rgba(248, 81, 73, 0.55)"
_BORDER = "rgba(128, 128, 128, 0.35)"
_FONT = "font: 0.9rem/1.5 system-ui, sans-serif"
_CELL = "padding: 0 0.5em; border: 0; text-align: {}; white-space: nowrap; background: none"


def as_html(title: str, log_odds: float, parts: Sequence[Part], limit: int | None) -> str:
    """A fragment of HTML."""
    shown, others = largest(parts, limit)
    if others:
        shown = [*shown, (f"{len(others)} smaller parts", total(others), "")]
    longest = max((abs(value) for _, value, _ in shown if math.isfinite(value)), default=0.0) or 1.0
    rows = "".join(_row(name, value, group, longest) for name, value, group in shown)
    caption = (
        f'<caption style="caption-side: top; text-align: left; padding: 0 0.5em 0.4em; color: inherit">'
        f"<strong>{html.escape(title)}</strong>; log-odds {signed(log_odds)}</caption>"
    )
    head = "".join(
        f'<th scope="col" style="{_CELL.format(side)}; border-bottom: 1px solid {_BORDER}">{name}</th>'
        for name, side in (("part", "left"), ("group", "left"), ("value", "right"), ("", "left"))
    )
    return (
        f'<table class="crfkit-explanation" style="{_FONT}; border-collapse: collapse; color: inherit">'
        f"{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _row(name: str, value: float, group: str, longest: float) -> str:
    cells = (
        (html.escape(name), "left; max-width: 28em; overflow: hidden; text-overflow: ellipsis"),
        (html.escape(group), "left; opacity: 0.75"),
        (signed(value), "right; font-variant-numeric: tabular-nums"),
        (_bar(value, longest), "left"),
    )
    return (
        "<tr>"
        + "".join(f'<td style="{_CELL.format(style)}">{content}</td>' for content, style in cells)
        + "</tr>"
    )


def _bar(value: float, longest: float) -> str:
    """A bar from the middle of its cell."""
    width = 50.0 if math.isinf(value) else 50.0 * abs(value) / longest
    side, colour = ("left", FOR) if value > 0 else ("right", AGAINST)
    return (
        '<span aria-hidden="true" style="position: relative; display: inline-block; width: 10em; height: 0.8em; '
        f'border-left: 0; background: linear-gradient({_BORDER}, {_BORDER}) center/1px 100% no-repeat">'
        f'<span style="position: absolute; top: 0; bottom: 0; {side}: 50%; width: {width:.1f}%; '
        f'background: {colour}"></span></span>'
    )
