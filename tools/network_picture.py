"""`python tools/network_picture.py`: draw docs/images/network.svg, the small Bayesian network of docs/factor-graphs.md."""

from __future__ import annotations

import math
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "network.svg"
WIDTH, HEIGHT = 420, 250
RADII = 58, 20  # of a node
NODES = {  # name → centre, whether it is observed
    "burglary": ((110, 40), False),
    "earthquake": ((310, 40), False),
    "alarm": ((210, 125), False),
    "john": ((110, 210), True),
    "mary": ((310, 210), True),
}
ARROWS = [("burglary", "alarm"), ("earthquake", "alarm"), ("alarm", "john"), ("alarm", "mary")]


def border(centre: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
    """Where the line from a centre to another leaves the ellipse."""
    across, down = other[0] - centre[0], other[1] - centre[1]
    share = 1 / math.hypot(across / RADII[0], down / RADII[1])
    return centre[0] + share * across, centre[1] + share * down


def picture() -> str:
    """The SVG text."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="14">',
        '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0,0 L9,4 L0,8 z" fill="#444"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for parent, child in ARROWS:
        (x1, y1), (x2, y2) = (border(NODES[a][0], NODES[b][0]) for a, b in ((parent, child), (child, parent)))
        parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#444" stroke-width="1.5" '
            'marker-end="url(#head)"/>'
        )
    for name, ((x, y), observed) in NODES.items():
        fill = "#cfe3f3" if observed else "#f6f6f6"
        parts.append(
            f'<ellipse cx="{x}" cy="{y}" rx="{RADII[0]}" ry="{RADII[1]}" fill="{fill}" stroke="#444" stroke-width="1.5"/>'
        )
        parts.append(f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="#222">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
