"""The Triton kernels in Triton's interpreter, which has to be chosen before Triton is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')
pytest.importorskip("triton", reason="needs Triton: pip install triton")


PROGRAMS = (
    "tests.nn.triton_interpreter",
    "tests.nn.bounded_interpreter",
    "tests.nn.segment_interpreter",
    "tests.nn.tree_interpreter",
    "tests.nn.projective_interpreter",
    "tests.nn.message_interpreter",
)


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All programs at once, as each takes a minute on one core."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    project = Path(__file__).resolve().parents[2]
    found = {
        program: subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=project,
        )
        for program in PROGRAMS
    }
    yield found
    for process in found.values():
        process.kill()


@pytest.mark.parametrize("program", PROGRAMS)
def test_kernels_agree_with_what_needs_no_gpu(
    program: str, running: dict[str, subprocess.Popen[str]]
) -> None:
    output, errors = running[program].communicate()
    assert running[program].returncode == 0, errors[-2000:]
    assert output.strip() == "all kernels agree"
