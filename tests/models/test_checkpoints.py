"""Checkpoints of other functions, metrics and data are refused, in other processes as in this one; so are damaged ones."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Checkpoint, FeatureFunctions, Pattern, Patterns
from crfkit.errors import UnsavableError
from crfkit.models import CheckpointMismatchError
from crfkit.models.training.fingerprint import NoFingerprintError, fingerprint

ROOT = Path(__file__).parents[2]
SLOW_STEPS = LBFGS(max_iterations=50, change=0, tolerance=1e-12)
X1, X2 = [[1.0, 2.0], [0.5, -1.0]], [[-3.0, 9.0], [7.0, 4.0]]
Y = [["A", "B"], ["B", "A"]]


def begun(path: Path, model: CRF, X: Any, y: Any = Y, **options: Any) -> None:
    """Train for three iterations, with a checkpoint after each."""
    model.fit(
        X, y, checkpoint=Checkpoint(path, every=1), callback=lambda step: step.iteration == 3, **options
    )


def with_functions(*functions: Any, **options: Any) -> CRF:
    return CRF(features=FeatureFunctions(functions, **options), optimizer=SLOW_STEPS)


def times(k: float) -> Callable[..., float]:
    def f(x: Any, label: str, i: int) -> float:
        return k * float(x[i]) * (label == "A")

    return f


def plain(x: Any, label: str, i: int) -> float:
    return float(x[i]) * (label == "A")


def with_default(x: Any, label: str, i: int, k: float = 1.0) -> float:
    return k * float(x[i]) * (label == "A")


class Scaled:
    """A function with state."""

    def __init__(self, k: float) -> None:
        self.k = k

    def __call__(self, x: Any, label: str, i: int) -> float:
        return self.k * float(x[i]) * (label == "A")


def with_lock(k: float) -> Callable[..., float]:
    """A function that holds what cannot be compared."""
    lock = threading.Lock()

    def f(x: Any, label: str, i: int) -> float:
        with lock:
            return k * float(x[i]) * (label == "A")

    return f


def with_cache() -> Callable[..., float]:
    """A function whose closure changes as it runs."""
    seen: dict[Any, float] = {}

    def f(x: Any, label: str, i: int) -> float:
        return seen.setdefault((tuple(x), label, i), float(x[i]) * (label == "A"))

    return f


FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "another name": (plain, with_default),
    "closure": (times(1.0), times(2.0)),
    "state": (Scaled(1.0), Scaled(2.0)),
    "code": (lambda x, label, i: x[i] * (label == "A"), lambda x, label, i: x[i] * (label == "B")),
    "constant": (lambda x, label, i: 1.0 * x[i], lambda x, label, i: 2.0 * x[i]),
    "no fingerprint": (with_lock(1.0), with_lock(2.0)),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::crfkit.models.UnsavableModel")
def test_a_checkpoint_of_other_functions_is_refused(kind: str, tmp_path: Path) -> None:
    one, other = FUNCTIONS[kind]
    begun(tmp_path / "c", with_functions(one), X1)
    with pytest.raises(CheckpointMismatchError):
        with_functions(other).fit(X1, Y, checkpoint=Checkpoint(tmp_path / "c", resume=True))
    whole = with_functions(one).fit(X1, Y)
    again = with_functions(one, memory=0).fit(X1, Y, checkpoint=Checkpoint(tmp_path / "c", resume=True))
    assert again.weights_.tobytes() == whole.weights_.tobytes()


@pytest.mark.filterwarnings("ignore::crfkit.models.UnsavableModel")
def test_functions_that_keep_what_they_saw_can_be_resumed(tmp_path: Path) -> None:
    model = with_functions(with_cache())
    begun(tmp_path / "c", model, X1)
    whole = with_functions(plain).fit(X1, Y)
    assert model.fit(X1, Y, checkpoint=Checkpoint(tmp_path / "c", resume=True)).weights_ == pytest.approx(
        whole.weights_
    )


def test_a_checkpoint_of_other_inputs_of_functions_is_refused(tmp_path: Path) -> None:
    path, model = tmp_path / "c", with_functions(plain)
    begun(path, model, X1)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "data"):
        model.fit(X2, Y, checkpoint=Checkpoint(path, resume=True))
    begun(path, model, X1, dev=(X1, Y))
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "dev data"):
        model.fit(X1, Y, dev=(X2, Y), checkpoint=Checkpoint(path, resume=True))
    model.fit(X1, Y, dev=(X1, Y), checkpoint=Checkpoint(path, resume=True))


def errors(gold: Any, predicted: Any) -> float:
    return -float(
        np.sum([a != b for g, p in zip(gold, predicted, strict=True) for a, b in zip(g, p, strict=True)])
    )


def helped(gold: Any, predicted: Any) -> float:
    return errors(gold, predicted)


def weighted(gold: Any, predicted: Any, weight: float) -> float:
    return weight * errors(gold, predicted)


def test_the_decoding_does_not_count_and_the_margin_does(tmp_path: Path) -> None:
    X, checkpoint = [[["a"], ["b"]], [["c"], ["a"]]], Checkpoint(tmp_path / "c", every=1, resume=True)
    crf = CRF(l2=0.1, margin=0, optimizer=LBFGS(max_iterations=2)).fit(X, Y, checkpoint=checkpoint)
    again = CRF(l2=0.1, decode="spans", optimizer=LBFGS(max_iterations=2)).fit(X, Y, checkpoint=checkpoint)
    assert (again.weights_ == crf.weights_).all()
    with pytest.raises(CheckpointMismatchError, match=r"was written with margin 0\.0, but it is 1\.0 now"):
        CRF(l2=0.1, margin=1.0, optimizer=LBFGS(max_iterations=2)).fit(X, Y, checkpoint=checkpoint)


def test_a_checkpoint_of_another_metric_is_refused(tmp_path: Path) -> None:
    X, path = [[["a"], ["b"]], [["c"], ["a"]]], tmp_path / "c"
    model = CRF(optimizer=SLOW_STEPS)
    metrics = [None, errors, helped, partial(weighted, weight=1.0), partial(weighted, weight=2.0)]
    for metric in metrics:
        begun(path, model, X, dev=(X, Y), metric=metric)
        for other in metrics:
            if other is metric:
                model.fit(X, Y, dev=(X, Y), metric=other, checkpoint=Checkpoint(path, resume=True))
                begun(path, model, X, dev=(X, Y), metric=metric)
            else:
                with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "metric"):
                    model.fit(X, Y, dev=(X, Y), metric=other, checkpoint=Checkpoint(path, resume=True))
    lock = threading.Lock()
    with pytest.raises(UnsavableError):
        model.fit(
            X, Y, dev=(X, Y), metric=lambda gold, predicted: float(lock.locked()), checkpoint=Checkpoint(path)
        )


PROGRAM = """
import functools, sys, warnings
warnings.simplefilter("ignore")
from crfkit import CRF, LBFGS, Checkpoint, FeatureFunctions, Pattern, Patterns

def kinds(label): return {"k": label[0]}
def upper(x, i): return x[i][0] == "a"
def spans(x): return [(i, ["B"], "a") for i, position in enumerate(x) if position == ["a"]]
def same(x, label, i): return {f"{x[i]} {label}": 1.0}
def right(gold, predicted): return sum(a == b for g, p in zip(gold, predicted) for a, b in zip(g, p))
class Metric:
    def __init__(self): self.names = {"x", "y", "z"}
    def __call__(self, gold, predicted): return right(gold, predicted)

X, y = [[["a"], ["b"]], [["c"], ["a"]]], [["B", "O"], ["O", "B"]]
few = LBFGS(max_iterations=12, change=0, tolerance=1e-12)
models = {
    "facets": CRF(facets=kinds, optimizer=few),
    "lambda": CRF(facets=lambda label: {"k": label}, optimizer=few),
    "partial": CRF(facets=functools.partial(lambda k, label: {k: label}, "k"), optimizer=few),
    "patterns": CRF(Patterns([Pattern("B O", when=upper), spans]), optimizer=few),
    "functions": CRF(features=FeatureFunctions([same]), optimizer=few),
}
step = int(sys.argv[2])
for name, model in models.items():
    model.fit(X, y, dev=(X, y), metric=Metric() if name == "facets" else right,
              checkpoint=Checkpoint(f"{sys.argv[1]}/{name}", every=1, resume=step > 0),
              callback=lambda progress: step == 0 and progress.iteration == 3)
    print(name, len(model.history_))
"""


def test_functions_of_all_kinds_can_be_resumed_by_another_process(tmp_path: Path) -> None:
    def output(step: int) -> str:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(step)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert set(output(0).split()[1::2]) == {"4"}
    assert all(int(n) > 4 for n in output(1).split()[1::2])


def test_fingerprints_tell_values_apart() -> None:
    things: list[Any] = [
        None, 0, 0.0, False, "", b"", "0", (), [], {}, set(), frozenset(), [[]], [()], ([],), [1, [2]], [[1], 2],
        np.zeros(2), np.zeros((2, 1)), np.zeros(2, np.float32), np.float32(1), np.float64(1), 1.0, np.int64(1), 1, True,
        {"a": 1}, {"a": 2}, {1: "a"}, {"a": {"b": 1}}, plain, with_default, times(1.0), times(2.0), len, abs, np.add,
        np.multiply, Scaled, Scaled(1.0), Scaled(2.0), Scaled(1.0).__call__, partial(plain, 1), partial(plain, 2),
        Pattern("A"), Pattern("B"), Pattern("A", when=first_is_a), np.array([1, "a"], dtype=object), "".join, "a".join,
    ]  # fmt: skip
    prints = [fingerprint(thing) for thing in things]
    assert len(set(prints)) == len(things)
    assert [fingerprint(thing) for thing in things] == prints
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    holds_itself: list[Any] = [1]
    holds_itself.append(holds_itself)
    assert fingerprint(holds_itself) == fingerprint(holds_itself)
    for thing in (threading.Lock(), (n for n in "ab"), [threading.Lock()]):
        with pytest.raises(NoFingerprintError):
            fingerprint(thing)


def test_comments_docstrings_and_places_do_not_count() -> None:
    def made(text: str) -> Any:
        names: dict[str, Any] = {"__name__": "somewhere"}
        exec(text, names)
        return names["f"]

    one = made("def g(x): return x\ndef f(x):\n    'Words.'\n    return g(x) + 1")
    same = made("\n\ndef g(x): return x\ndef f(x):\n    'Other words.'  # and more\n\n    return g(x) + 1")
    other = made("def g(x): return -x\ndef f(x):\n    'Words.'\n    return g(x) + 1")
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


def test_patterns_with_other_functions_are_refused(tmp_path: Path) -> None:
    X = [[["a"], ["b"]], [["c"], ["a"]]]
    begun(tmp_path / "c", CRF(Patterns([Pattern("A B", when=first_is_a)]), optimizer=SLOW_STEPS), X)
    other = CRF(Patterns([Pattern("A B", when=first_is_b)]), optimizer=SLOW_STEPS)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "structure"):
        other.fit(X, Y, checkpoint=Checkpoint(tmp_path / "c", resume=True))


def first_is_a(x: Any, i: int) -> bool:
    return bool(x[i] == ["a"])


def first_is_b(x: Any, i: int) -> bool:
    return bool(x[i] == ["b"])
