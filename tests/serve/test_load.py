"""The server under load: no error, no growth of memory, and batches nearly as fast as the library's."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")

from benchmarks.serve import measure_batches, measure_library, running

from crfkit.cli.demonstration.sample import draw_names
from tests.serve.models import names


def test_memory_stays(tmp_path: Path) -> None:
    """Requests of all sizes, among them bad ones: after a beginning, memory does not grow."""
    names().save(tmp_path / "m.crf")
    words = draw_names("test").words
    with running(tmp_path / "m.crf") as server:
        bodies = [
            '{"texts": ["Anna lives in Oslo."]}',
            '{"text": 5}',
            '{"text": "' + "Anna moved. " * 3000 + '"}',
        ]
        bodies += ['{"tokens": [["' + '", "'.join(one) + '"]], "probabilities": true}' for one in words[:100]]
        server.load(bodies, 2.0, connections=8)
        before = server.memory()
        seen = server.load(bodies, 4.0, connections=8)
        assert set(seen.statuses) == {"200", "400"}
        assert server.memory() < before + 20  # MB


@pytest.mark.slow
def test_batches_are_nearly_as_fast_as_the_librarys(tmp_path: Path) -> None:
    """By processor time, which does not depend on what else the machine does."""
    names().save(tmp_path / "m.crf")
    words = [
        first + second + third
        for first, second, third in zip(*[iter(draw_names("test").words)] * 3, strict=False)
    ]
    batches = [words * 5] * 4
    _, library = measure_library(names(), batches, 4.0)
    with running(tmp_path / "m.crf") as server:
        _, served, seen = measure_batches(server, batches, 4.0)
    assert set(seen.statuses) == {"200"}
    assert served > 0.6 * library


def test_small_requests_are_answered_beside_large_ones(tmp_path: Path) -> None:
    names().save(tmp_path / "m.crf")
    with running(tmp_path / "m.crf", "--threads", "1") as server:
        large = [json.dumps({"texts": ["Anna lives in Oslo. " * 40] * 200})]
        thread = threading.Thread(target=server.load, args=(large, 3.0), kwargs={"connections": 1})
        thread.start()
        seen = server.load(['{"text": "Anna lives in Oslo."}'], 2.0, connections=1)
        thread.join()
        assert set(seen.statuses) == {"200"}
        assert seen.quantile(0.5) < 0.5
