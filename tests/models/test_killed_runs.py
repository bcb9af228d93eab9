"""Training runs that SIGKILL ends, and that go on from their checkpoints: every structure and every optimizer once."""

import signal
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from crfkit import Checkpoint
from tests.models.test_every_optimizer import OPTIMIZERS, STRUCTURES, fitted, of, whole

pytestmark = pytest.mark.filterwarnings(
    "ignore::crfkit.models.ConvergenceWarning", "ignore::crfkit.models.UninformativeData"
)

CELLS = list(zip(STRUCTURES, cycle(OPTIMIZERS), strict=False))
KILLED_IN = 3  # iteration; the checkpoint is of the one before
KILLED = f"""
import os, signal, sys, warnings
from pathlib import Path
from crfkit import Checkpoint
from tests.models.test_every_optimizer import fitted, of
from tests.models.test_killed_runs import CELLS

def kill(progress):
    if progress.iteration == {KILLED_IN}:
        os.kill(os.getpid(), signal.SIGKILL)

warnings.simplefilter("ignore")
for number, (structure, optimizer) in enumerate(CELLS):
    child = os.fork()
    if child == 0:
        path = Path(sys.argv[1], str(number), "c")
        path.parent.mkdir()
        fitted(structure, optimizer, dev=of(structure).dev, checkpoint=Checkpoint(path, every=2), callback=kill)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (structure, optimizer, status)
"""


def test_every_optimizer_has_a_cell() -> None:
    assert {optimizer for _, optimizer in CELLS} == set(OPTIMIZERS)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_runs_that_were_killed_go_on_with_the_same_bits(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    for number, (structure, optimizer) in enumerate(CELLS):
        path = tmp_path / str(number) / "c"
        assert list(path.parent.iterdir()) == [path]  # nothing half written is left
        seen: list[int] = []
        again: Any = fitted(
            structure,
            optimizer,
            dev=of(structure).dev,
            checkpoint=Checkpoint(path, resume=True),
            callback=lambda progress, seen=seen: seen.append(progress.iteration),
        )
        assert seen[0] == KILLED_IN, (structure, optimizer)
        expected = whole(structure, optimizer)
        assert again.weights_.tobytes() == expected.weights_.tobytes(), (structure, optimizer)
        assert again.stop_reason_ == expected.stop_reason_, (structure, optimizer)
