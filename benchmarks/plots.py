"""Line plots as SVG text, with logarithmic axes and the name of each line at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 34, 46
COLOURS = ("#1b6ca8", "#d1495b", "#2e933c", "#8f5fb0", "#e08e1b", "#13969a", "#7a5230", "#c2348f", "#5a6b7b")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis: its title and the range of numbers that it shows."""

    title: str
    low: float
    high: float

    def place(self, value: float) -> float:
        """0 at the low end, 1 at the high end; what lies outside is moved to the ends."""
        value = min(max(value, self.low), self.high)
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        """The powers of ten in between; in a short range some of their multiples too."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        powers = [10.0**k for k in range(first, last + 1)]
        if len(powers) > 1:
            return powers
        steps = [m * 10.0**k for k in range(first - 2, last + 2) for m in (1, 2, 3, 5, 7)]
        return [step for step in steps if self.low <= step <= self.high]


def line_plot(title: str, x: Axis, y: Axis, lines: Mapping[str, Points], dashed: frozenset[str]) -> str:
    """An SVG picture of some lines; those in `dashed` are drawn with gaps."""

    def across(value: float) -> float:
        return LEFT + x.place(value) * (WIDTH - LEFT - RIGHT)

    def down(value: float) -> float:
        return HEIGHT - BOTTOM - y.place(value) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 20, title, "middle", size=14),
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x.title, "middle"),
        _text(16, (TOP + HEIGHT - BOTTOM) / 2, y.title, "middle", turned=True),
    ]
    for tick in x.ticks():
        parts.append(_rule(across(tick), TOP, across(tick), HEIGHT - BOTTOM))
        parts.append(_text(across(tick), HEIGHT - BOTTOM + 16, f"{tick:g}", "middle"))
    for tick in y.ticks():
        parts.append(_rule(LEFT, down(tick), WIDTH - RIGHT, down(tick)))
        parts.append(_text(LEFT - 6, down(tick) + 4, f"{tick:g}" if tick > 1e-3 else f"{tick:.0e}", "end"))
    ends = _apart({name: down(points[-1][1]) for name, points in lines.items() if points})
    for number, (name, points) in enumerate(lines.items()):
        if not points:
            continue
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across(a):.1f},{down(b):.1f}" for a, b in points)
        dash = ' stroke-dasharray="5 3"' if name in dashed else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>')
        end = across(points[-1][0])
        parts.append(_text(max(end, WIDTH - RIGHT) + 6, ends[name] + 4, name, "start", colour=colour))
    return "\n".join([*parts, "</svg>", ""])


def _apart(heights: Mapping[str, float], least: float = 14.0) -> dict[str, float]:
    """The same places, moved until none lies on another."""
    found: dict[str, float] = {}
    last = -math.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        last = found[name] = max(height, last + least)
    overhang = max(last - (HEIGHT - BOTTOM), 0.0)
    return {name: height - overhang for name, height in found.items()}


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str,
    *,
    size: int = 12,
    colour: str = "#333333",
    turned: bool = False,
) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}'
    return f'<text {place} font-size="{size}" fill="{colour}">{escape(text)}</text>'
