"""`python -m examples.segmentation`: a noisy picture of four materials, cut into regions by a `GraphCRF` on its pixels.

The pictures are drawn here: regions with straight borders, each of one material and with a shade of its own. Two materials
have the same mean colour and differ in texture; the noise is as large as the differences of colours. A pixel's features are
its colour, the mean and the spread of the colours around it, and how much columns alternate. A factor of two neighbours
knows the contrast between them, so that borders go where colours change.

All factors of a kind have the same weights, wherever they are. So a model can be learned exactly on strips of the pictures,
which are narrow, and asked by messages on whole ones: tree-reweighted ones, and those of belief propagation, which have
several fixed points where couplings are strong, and may end at a poor one.

`--picture FILE.png` draws the first test picture: as it is given, each pixel alone, all pixels together, and the truth.
"""

from __future__ import annotations

import argparse
import math
import struct
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit import LBFGS, GraphCRF
from crfkit.features import GraphInput

Array = npt.NDArray[Any]
MATERIALS = ("water", "grass", "stripes", "sand")
COLOURS = np.array([[0.25, 0.45, 0.70], [0.35, 0.60, 0.35], [0.55, 0.50, 0.45], [0.55, 0.50, 0.45]])
TEXTURE, SHADE, NOISE = 0.16, 0.08, 0.22
SIDE, STRIP, REGIONS = 32, 4, 7
N_TRAIN, N_TEST = 6, 6
CELL, GAP = 6, 12  # pixels of the drawing


class Picture(NamedTuple):
    """Colours of pixels, and their materials."""

    image: Array  # [H, W, 3]
    truth: Array  # [H, W] numbers of materials


def draw(random: np.random.Generator) -> Picture:
    """Each pixel is of the region whose centre is nearest."""
    down, across = np.mgrid[:SIDE, :SIDE]
    centres = random.uniform(0, SIDE, size=(REGIONS, 2))
    distances = (down - centres[:, :1, None]) ** 2 + (across - centres[:, 1:, None]) ** 2  # [R, H, W]
    region = distances.argmin(0)
    truth = random.permutation(np.arange(REGIONS) % len(MATERIALS))[region]
    shade = random.normal(scale=SHADE, size=REGIONS)[region]
    texture = TEXTURE * (-1.0) ** (across + random.integers(2)) * (truth == MATERIALS.index("stripes"))
    noise = random.normal(scale=NOISE, size=(SIDE, SIDE, 3))
    image = COLOURS[truth] + (shade + texture)[:, :, None] + noise
    return Picture(image, truth)


def cut(pictures: Sequence[Picture]) -> list[Picture]:
    """Strips of a few rows."""
    rows = [slice(begin, begin + STRIP) for begin in range(0, SIDE, STRIP)]
    return [Picture(picture.image[some], picture.truth[some]) for picture in pictures for some in rows]


def around(values: Array) -> Array:
    """The values of the 3 × 3 pixels around each [9, H, W, …]; those of the border are repeated outside."""
    H, W = values.shape[:2]
    padded = np.pad(values, [(1, 1), (1, 1)] + [(0, 0)] * (values.ndim - 2), mode="edge")
    return np.stack([padded[i : i + H, j : j + W] for i in range(3) for j in range(3)])


def describe(image: Array) -> Array:
    """The features of each pixel [H, W, F]: colour, colours around it, and the difference of neighbouring columns."""
    near = around(image)
    columns = near.reshape(3, 3, *image.shape).mean((0, -1))  # [3, H, W] brightness of the columns around
    stripes = np.abs(columns[1] - (columns[0] + columns[2]) / 2)
    return np.concatenate([image, near.mean(0), near.std(0), stripes[:, :, None]], axis=2)


NAMES = [f"{what} {c}" for what in ("colour", "mean", "spread") for c in "rgb"] + ["stripes"]


def pixels(image: Array, graph: GraphInput) -> None:
    """Each pixel alone."""
    features = describe(image)
    for i, j in np.ndindex(image.shape[:2]):
        graph.variable((i, j), labels=MATERIALS)
        graph.factor(
            "pixel", [(i, j)], {"bias": 1.0, **dict(zip(NAMES, features[i, j].tolist(), strict=True))}
        )


def grid(image: Array, graph: GraphInput) -> None:
    """Neighbours like to be of one material, less so if the two sides of their border differ."""
    pixels(image, graph)
    padded = np.pad(image, [(2, 1), (2, 1), (0, 0)], mode="edge")
    blocks = (padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]) / 4  # [H + 2, W + 2, 3]
    for i, j in np.ndindex(image.shape[:2]):
        for down, across in ((1, 0), (0, 1)):
            if i >= down and j >= across:
                other = blocks[i + 2 - 2 * down, j + 2 - 2 * across]  # two pixels up, or to the left
                contrast = float(np.square(blocks[i + 2, j + 2] - other).sum())
                features = {"same": 1.0, "smooth": math.exp(-10 * contrast)}
                graph.factor("neighbours", [(i - down, j - across), (i, j)], features, tie="equal")


def labels_of(picture: Picture) -> dict[tuple[int, ...], str]:
    """What a model learns from."""
    return {place: MATERIALS[number] for place, number in np.ndenumerate(picture.truth)}


def predict(model: GraphCRF, picture: Picture) -> Array:
    """The likeliest material of each pixel [H, W], so that as many as possible are right."""
    probabilities = model.predict_marginals([picture.image])[0]
    table = np.array([[of[material] for material in MATERIALS] for of in probabilities.values()])
    return table.argmax(1).reshape(picture.truth.shape)


MODELS: dict[str, dict[str, Any]] = {
    "each pixel alone": {"graph_template": pixels},
    "exact, on strips": {"objective": "likelihood"},
    "tree-reweighted": {"objective": "tree_reweighted"},
    "belief propagation": {"objective": "belief_propagation"},
    "pseudo-likelihood": {"objective": "pseudo_likelihood"},
    "piecewise": {"objective": "piecewise"},
}
DRAWN = ("each pixel alone", "exact, on strips")


def train(name: str, pictures: Sequence[Picture]) -> GraphCRF:
    """One of the models."""
    settings = {
        "graph_template": grid,
        "optimizer": LBFGS(max_iterations=200),
        "l2": 0.1,
        **MODELS[name],
    }
    return GraphCRF(**settings).fit([p.image for p in pictures], [labels_of(p) for p in pictures])


def write_png(path: Path, image: Array) -> None:
    """Colours [H, W, 3] from 0 to 1 as a PNG file."""
    rows = np.round(255 * np.clip(image, 0, 1)).astype(np.uint8)
    data = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows), 9)
    header = struct.pack(">IIBBBBB", rows.shape[1], rows.shape[0], 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, content in chunks:
            check = zlib.crc32(kind + content)
            file.write(struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check))


def panels(picture: Picture, answers: Sequence[Array]) -> Array:
    """The picture, answers and the truth, side by side."""
    paints = np.array([[0.20, 0.42, 0.72], [0.30, 0.62, 0.32], [0.55, 0.35, 0.60], [0.90, 0.78, 0.45]])
    parts = [picture.image, *(paints[answer] for answer in (*answers, picture.truth))]
    large = [part.repeat(CELL, 0).repeat(CELL, 1) for part in parts]
    gap = np.ones((large[0].shape[0], GAP, 3))
    return np.concatenate([piece for part in large for piece in (part, gap)][:-1], axis=1)


def draw_pictures() -> tuple[list[Picture], list[Picture]]:
    """Pictures to learn from, and others."""
    random = np.random.default_rng(0)
    found = [draw(random) for _ in range(N_TRAIN + N_TEST)]
    return found[:N_TRAIN], found[N_TRAIN:]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, compare, and draw."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.segmentation", description="regions of pictures"
    )
    parser.add_argument(
        "--model", action="append", choices=list(MODELS), help="only this one (may be repeated)"
    )
    parser.add_argument("--picture", type=Path, help="draw the first test picture to this PNG file")
    options = parser.parse_args(arguments)
    pictures, others = draw_pictures()
    print(f"{N_TRAIN} pictures of {SIDE} × {SIDE} pixels to learn from, {N_TEST} others to test on")
    answers = {}
    for name in options.model or MODELS:
        begin = time.process_time()
        model = train(name, cut(pictures) if name == "exact, on strips" else pictures)
        line = f"{name:20} learned in {time.process_time() - begin:5.1f} s; right:"
        for method in ("belief_propagation", "tree_reweighted"):
            model.set_params(inference=method)
            answers[name] = [predict(model, picture) for picture in others]
            right = [answer == picture.truth for answer, picture in zip(answers[name], others, strict=True)]
            line += f" {method} {np.mean(right):.1%}, the first {right[0].mean():.1%};"
        print(line, flush=True)
    if options.picture:
        write_png(options.picture, panels(others[0], [answers[name][0] for name in DRAWN if name in answers]))


if __name__ == "__main__":
    main()
