"""`python tools/denoising_picture.py`: draw docs/images/denoising.svg, the noisy picture of docs/graph-crfs.md."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crfkit import GraphCRF
from crfkit.features import GraphInput

TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "denoising.svg"
SIZE, CELL, GAP, TOP = 24, 7, 18, 24
Picture = npt.NDArray[np.float64]


def blobs(random: np.random.Generator) -> Picture:
    """A picture of discs, 0 or 1."""
    down, across = np.mgrid[:SIZE, :SIZE]
    picture = np.zeros((SIZE, SIZE), dtype=bool)
    for _ in range(4):
        y, x, radius = *random.uniform(0, SIZE, size=2), random.uniform(SIZE / 7, SIZE / 3)
        picture ^= (down - y) ** 2 + (across - x) ** 2 < radius**2
    return picture.astype(np.float64)


def grid(image: Picture, graph: GraphInput) -> None:
    """A variable for each pixel, and factors of neighbours."""
    for i, j in np.ndindex(image.shape):
        graph.variable((i, j), labels=[0, 1])
        graph.factor("pixel", [(i, j)], {"bias": 1.0, "brightness": image[i, j]})
        if i > 0:
            graph.factor("vertical", [(i - 1, j), (i, j)], tie="equal")
        if j > 0:
            graph.factor("horizontal", [(i, j - 1), (i, j)], tie="equal")


def pictures() -> dict[str, Picture]:
    """What is drawn: the true picture, the noisy one, and two ways to restore it."""
    random = np.random.default_rng(4)
    true = [blobs(random) for _ in range(9)]
    noisy = [picture + random.normal(scale=0.6, size=picture.shape) for picture in true]
    y = [{place: int(value) for place, value in np.ndenumerate(picture)} for picture in true]
    model = GraphCRF(grid, objective="belief_propagation", inference="belief_propagation", l2=0.1)
    model.fit(noisy[1:], y[1:])
    restored = np.zeros_like(true[0])
    for place, value in model.predict(noisy[:1])[0].items():
        restored[place] = value  # type: ignore[call-overload]
    alone = (noisy[0] > 0.5).astype(np.float64)

    def right(picture: Picture) -> str:
        return f"{(picture == true[0]).mean():.1%} right"

    return {
        "true": true[0],
        "observed": noisy[0],
        f"each pixel alone: {right(alone)}": alone,
        f"GraphCRF: {right(restored)}": restored,
    }


def draw(panels: dict[str, Picture]) -> str:
    """The SVG text."""
    width = len(panels) * (SIZE * CELL + GAP) - GAP
    height = SIZE * CELL + TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="11" shape-rendering="crispEdges">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, (name, panel) in enumerate(panels.items()):
        left = number * (SIZE * CELL + GAP)
        parts.append(f'<text x="{left}" y="15" fill="#222">{name}</text>')
        shades = np.round(15 * np.clip(0.2 + 0.6 * panel, 0, 1)).astype(int)
        for i, row in enumerate(shades.tolist()):
            begin = left
            for shade, cells in itertools.groupby(row):
                width_here = CELL * len(list(cells))
                parts.append(
                    f'<rect x="{begin}" y="{TOP + i * CELL}" width="{width_here}" height="{CELL}" '
                    f'fill="#{3 * format(shade, "x")}"/>'
                )
                begin += width_here
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    TARGET.write_text(draw(pictures()), encoding="utf-8")
