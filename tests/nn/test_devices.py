"""Kernels for a GPU that is not the current one; the GPUs are made up."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')
pytest.importorskip("triton", reason="needs Triton: pip install triton")

from crfkit.nn.triton import launch


def test_kernels_are_launched_where_the_scores_are(monkeypatch: pytest.MonkeyPatch) -> None:
    current = [0]

    @contextmanager
    def chosen(place: int) -> Any:
        before, current[0] = current[0], place
        yield
        current[0] = before

    monkeypatch.setattr(torch.cuda, "device", chosen)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: current[0], raising=False)
    answer = launch.on_its_device(lambda self, problem, x, *, y: (current[0], x, y))
    for place, expected in ((0, 0), (1, 1), (-1, 0)):
        scores = SimpleNamespace(get_device=lambda place=place: place)
        assert answer(None, (scores, None), 2, y=3) == (expected, 2, 3)
        assert current == [0]
