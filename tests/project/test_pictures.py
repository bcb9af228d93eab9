"""Pictures of the docs that a script draws are what it draws now."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from examples import segmentation
from tools import benchmark_plots, network_picture, span_pictures

SEGMENTATION = Path(__file__).resolve().parents[2] / "docs" / "images" / "segmentation.png"


def test_the_network() -> None:
    assert network_picture.TARGET.read_text(encoding="utf-8") == network_picture.picture()


@pytest.mark.parametrize("name", benchmark_plots.CHARTS)
def test_plots_have_the_numbers_of_the_tables(name: str) -> None:
    chart = benchmark_plots.CHARTS[name]()
    assert (benchmark_plots.IMAGES / name).read_text(encoding="utf-8") == benchmark_plots.draw(chart)


@pytest.mark.parametrize("name", span_pictures.PICTURES)
def test_spans_are_those_of_the_pages(name: str) -> None:
    drawn = span_pictures.PICTURES[name]()
    assert (span_pictures.DOCS / "images" / name).read_text(encoding="utf-8") == drawn


def read_png(path: Path) -> segmentation.Array:
    """Colours [H, W, 3] of a file that `segmentation.write_png` wrote."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    (length,) = struct.unpack(">I", data[33:37])
    assert data[37:41] == b"IDAT"
    rows = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()  # no filter
    return rows[:, 1:].reshape(height, width, 3)


def test_the_regions() -> None:
    """The picture and the truth; the answers between them take a training run."""
    _, others = segmentation.draw_pictures()
    truth = others[0].truth
    drawn = np.round(255 * np.clip(segmentation.panels(others[0], [truth, truth]), 0, 1))
    found = read_png(SEGMENTATION)
    assert found.shape == drawn.shape
    side = segmentation.SIDE * segmentation.CELL
    for part in (slice(0, side), slice(-side, None)):
        assert (np.abs(found[:, part] - drawn[:, part]) <= 1).all()


def test_png_files(tmp_path: Path) -> None:
    image = np.random.default_rng(0).uniform(size=(5, 7, 3))
    segmentation.write_png(tmp_path / "few.png", image)
    assert (read_png(tmp_path / "few.png") == np.round(255 * image)).all()
