"""Line plots as SVG, without a plotting library: one line on an axis at the left, one on an axis at the right."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from crfkit.markup.html import Html, escape, tag

WIDTH, HEIGHT = 520.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 52.0, 22.0, 34.0  # around the plot
COLOURS = ("#3b82d6", "#d97a1a")  # which can be seen on white and on black
_MOST_POINTS = 400


class Line(NamedTuple):
    """One line: its name and its values, None or NaN where it has none."""

    name: str
    values: Sequence[float | None]


def line_plot(x: Sequence[float], lines: Sequence[Line], x_name: str) -> Html:
    """Up to two lines over x; an empty text where there are fewer than two points."""
    lines = [line for line in lines if any(map(_is_number, line.values))]
    if len(x) < 2 or not lines:
        return Html()
    across = _Axis.of(x, LEFT, WIDTH - RIGHT)
    parts = [_horizontal_axis(across, x_name)]
    for k, line in enumerate(lines[:2]):
        up = _Axis.of([value for value in line.values if _is_number(value)], HEIGHT - BOTTOM, TOP)
        parts.append(_vertical_axis(up, line.name, COLOURS[k], at_left=k == 0))
        parts.append(_path(across, up, x, line.values, COLOURS[k]))
    names = " and ".join(line.name for line in lines)
    return Html(
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" font-size="11" font-family="sans-serif" '
        f'fill="currentColor" role="img" aria-label="{escape(f"{names} by {x_name}")}">{"".join(parts)}</svg>'
    )


class _Axis(NamedTuple):
    """Values from `low` to `high` are drawn from `begin` to `end`."""

    low: float
    high: float
    begin: float
    end: float
    ticks: list[float]

    @classmethod
    def of(cls, values: Sequence[float | None], begin: float, end: float) -> "_Axis":
        known = [value for value in values if value is not None and math.isfinite(value)]
        low, high = min(known), max(known)
        if low == high:
            margin = abs(low) * 0.05 or 1.0
            low, high = low - margin, high + margin
        return cls(low, high, begin, end, _ticks(low, high))

    def place(self, value: float) -> float:
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers between the two."""
    size = 10.0 ** math.floor(math.log10((high - low) / 3))
    step = max((size * k for k in (1, 2, 5) if (high - low) / (size * k) >= 3), default=size)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _horizontal_axis(axis: _Axis, name: str) -> str:
    y = HEIGHT - BOTTOM
    marks = "".join(
        f'<path d="M{axis.place(tick):.1f} {y}v4" stroke="currentColor"/>'
        f'<text x="{axis.place(tick):.1f}" y="{y + 15:g}" text-anchor="middle">{_number(tick)}</text>'
        for tick in axis.ticks
    )
    middle = (axis.begin + axis.end) / 2
    line = f'<path d="M{axis.begin} {y}H{axis.end}" stroke="currentColor" opacity=".5"/>'
    return f'{line}{marks}<text x="{middle:g}" y="{HEIGHT - 4:g}" text-anchor="middle">{escape(name)}</text>'


def _vertical_axis(axis: _Axis, name: str, colour: str, *, at_left: bool) -> str:
    x = LEFT if at_left else WIDTH - RIGHT
    side, anchor = (-1, "end") if at_left else (1, "start")
    marks = "".join(
        f'<path d="M{x} {axis.place(tick):.1f}h{4 * side}" stroke="{colour}"/>'
        f'<text x="{x + 7 * side:g}" y="{axis.place(tick) + 4:.1f}" text-anchor="{anchor}">{_number(tick)}</text>'
        for tick in axis.ticks
    )
    name_anchor = "start" if at_left else "end"
    title = f'<text x="{0 if at_left else WIDTH:g}" y="11" text-anchor="{name_anchor}" fill="{colour}">{escape(name)}</text>'
    return f'<path d="M{x} {axis.begin}V{axis.end}" stroke="{colour}"/>{marks}{title}'


def _path(across: _Axis, up: _Axis, x: Sequence[float], values: Sequence[float | None], colour: str) -> str:
    """The line itself; where a value is missing it goes on to the next one."""
    every = max(1, len(x) // _MOST_POINTS)
    points = [
        (across.place(at), up.place(value))
        for i, (at, value) in enumerate(zip(x, values, strict=True))
        if value is not None and math.isfinite(value) and (i % every == 0 or i == len(x) - 1)
    ]
    steps = "L".join(f"{at:.1f} {y:.1f}" for at, y in points)
    return str(tag("path", d=f"M{steps}", fill="none", stroke=colour, stroke_width="1.6"))


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
