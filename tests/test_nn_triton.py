"""The Triton kernels in Triton's interpreter, which has to be chosen before Triton is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason='needs PyTorch: pip install "crfkit[torch]"')
pytest.importorskip("triton", reason="needs Triton: pip install triton")


@pytest.mark.parametrize(
    "what", ["tests.triton_interpreter", "tests.bounded_interpreter", "tests.tree_interpreter"]
)
def test_kernels_agree_with_what_needs_no_gpu(what: str) -> None:
    program = [sys.executable, "-W", "ignore", "-m", what]
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    project = Path(__file__).resolve().parent.parent
    done = subprocess.run(program, capture_output=True, text=True, env=environment, cwd=project)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "all kernels agree"
