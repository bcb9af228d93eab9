"""Damaged checkpoints: whatever their bytes are, they are refused by one kind of error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, SAG, SGD, TRON, AdaGrad, AveragedPerceptron, Checkpoint, Newton
from crfkit.models import CheckpointError
from crfkit.models.files.model_file import ModelFile, decode, encode
from crfkit.models.training import checkpoint
from crfkit.optimizers import AROW
from tests.cli.commands import columns, complaint, run

OPTIMIZERS: dict[str, Any] = {
    "lbfgs": LBFGS(max_iterations=6, change=0, tolerance=1e-12, memory=3),
    "owlqn": LBFGS(max_iterations=6, change=0, tolerance=1e-12),
    "tron": TRON(max_iterations=6, tolerance=1e-12),
    "newton": Newton(max_iterations=6, tolerance=1e-12, change=0),
    "sgd": SGD(max_iterations=6, rate=0.1),
    "averaged": SGD(max_iterations=6, rate=0.1, average=True),
    "adagrad": AdaGrad(max_iterations=6, rate=0.1),
    "sag": SAG(max_iterations=6, tolerance=1e-12),
    "perceptron": AveragedPerceptron(max_iterations=6),
    "arow": AROW(max_iterations=6),
}
SMALL: tuple[Any, Any] = [[["a"], ["b"]], [["c"], ["a"]], [["b"]]], [["A", "B"], ["B", "A"], ["A"]]


def small(name: str) -> CRF:
    return CRF(optimizer=OPTIMIZERS[name], l1=0.1 if name == "owlqn" else 0.0, n_threads=1)


def small_checkpoint(name: str, path: Path) -> tuple[bytes, bytes]:
    """A checkpoint, and the weights of the whole training run."""
    fit: dict[str, Any] = {"dev": SMALL, "callback": lambda step: step.iteration == 4}
    small(name).fit(*SMALL, checkpoint=Checkpoint(path, every=1), **fit)
    return path.read_bytes(), small(name).fit(*SMALL, dev=SMALL).weights_.tobytes()


def resumed(name: str, path: Path, data: bytes) -> bytes | None:
    """The weights of a training run that goes on from these bytes; None where they are refused."""
    path.write_bytes(data)
    try:
        return (
            small(name)
            .fit(*SMALL, dev=SMALL, checkpoint=Checkpoint(path, every=99, resume=True))
            .weights_.tobytes()
        )
    except CheckpointError:
        return None


def mutant(data: bytes, random: np.random.Generator) -> bytes:
    """The same bytes with a few changed, left out, doubled or put in."""
    found = bytearray(data)
    for _ in range(int(random.integers(1, 4))):
        at, kind = int(random.integers(len(found))), random.integers(5)
        if kind == 0:
            found[at] ^= 1 << int(random.integers(8))
        elif kind == 1:
            found[at] = int(random.integers(256))
        elif kind == 2:
            del found[at : at + int(random.integers(1, 9))]
        elif kind == 3:
            found[at:at] = found[at : at + int(random.integers(1, 9))]
        else:
            del found[at:]
            break
    return bytes(found)


def check_mutants(name: str, path: Path, n: int) -> None:
    data, weights = small_checkpoint(name, path)
    random = np.random.default_rng(0)
    assert resumed(name, path, data) == weights
    found = [resumed(name, path, mutant(data, random)) for _ in range(n)]
    assert set(found) <= {None, weights}  # blanks in the header say nothing
    assert found.count(None) > 0.9 * n


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_checkpoint_with_other_bytes_is_refused(name: str, tmp_path: Path) -> None:
    check_mutants(name, tmp_path / "c", 40)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_thousands_of_checkpoints_with_other_bytes_are_refused(name: str, tmp_path: Path) -> None:
    check_mutants(name, tmp_path / "c", 1000)


VALUES: list[Any] = [None, True, -1, 0, 3, 10**400, 0.5, 1e308, "x", [], [1], ["x"], {}, {"a": 1}]


def changed(value: Any, random: np.random.Generator) -> Any:
    """Something in a tree of JSON values replaced, left out or doubled."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = str(random.choice(list(value)))
        if random.random() < 0.3:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: changed(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.7:
        i = int(random.integers(len(value)))
        replaced = [value[i]] * 2 if random.random() < 0.3 else [changed(value[i], random)]
        return [*value[:i], *(replaced if random.random() < 0.7 else []), *value[i + 1 :]]
    return VALUES[int(random.integers(len(VALUES)))]


def changed_array(array: Any, random: np.random.Generator) -> Any:
    kind = random.integers(6)
    if kind == 0:
        return array.astype(np.float32 if array.dtype == np.float64 else np.float64)
    if kind == 1:
        return array.reshape(-1)[: array.size // 2]
    if kind == 2:
        return np.concatenate([array, array])
    if kind == 3:
        return np.zeros(array.shape, np.int64)
    if kind == 4:
        return array[None]
    spoilt = np.array(array)
    bad: list[Any] = [-1, 2**62, -(2**62)] if spoilt.dtype == np.int64 else [np.nan, np.inf, -np.inf]
    spoilt.reshape(-1)[: 1 + spoilt.size // 9] = random.choice(bad)
    return spoilt


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_a_checkpoint_holds_is_checked_beside_its_checksum(name: str, tmp_path: Path) -> None:
    """As a faulty program might write it: whatever it holds, it is refused, or the training run goes on."""
    path = tmp_path / "c"
    whole = small_checkpoint(name, path)[0]
    assert resumed(name, path, whole) is not None
    file = decode(whole)
    random = np.random.default_rng(1)
    n_refused = 0
    for _ in range(60):
        content, arrays = dict(file.settings), dict(file.arrays)
        if random.random() < 0.5:
            content["numbers"] = changed(content["numbers"], random)
        else:
            key = str(random.choice(list(arrays)))
            arrays[key] = changed_array(arrays[key], random)
        del content["checksum"]
        content["checksum"] = checkpoint._checksum(json.loads(json.dumps(content)), arrays)
        with np.errstate(all="ignore"):
            n_refused += resumed(name, path, encode(ModelFile("checkpoint", content, arrays))) is None
    assert n_refused > 30


def test_the_command_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.txt").write_text(columns(["the D dog N runs V"] * 3, 2), encoding="utf-8")
    command = ("train", "t.txt", "--model", "m", "--checkpoint", "c", "--every", "1", "--quiet")
    run(*command)
    data = Path("c").read_bytes()
    Path("c").write_bytes(data[:-8] + b"\0" * 8)
    assert "c: the checkpoint is damaged: its checksum" in complaint(*command, "--resume")
    Path("c").write_bytes(data[: len(data) // 2])
    assert complaint(*command, "--resume").startswith("crfkit: c: ")
