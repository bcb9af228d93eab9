"""Shards of a function that is easy to check, as slow and as faulty as a test wants."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.errors import MissingFileError
from crfkit.objective import Loss, add_in_tree, python_loss


@dataclass
class Quadratic:
    """½ Σ a_d w_d², with a pause before each answer and a note that it has begun."""

    scale: Float64s  # [D]
    pause: float = 0.0
    started: Path | None = None  # a folder: a file named by the process that computes

    def evaluate(self, w: Float64s) -> tuple[float, Float64s]:
        if self.started is not None:
            (self.started / str(os.getpid())).touch()
        time.sleep(self.pause)
        return 0.5 * float((w * w * self.scale).sum()), w * self.scale

    def hessian_vector(self, w: Float64s, v: Float64s) -> Float64s:
        return v * self.scale

    def refine(self) -> bool:
        return True

    def __call__(self, context: Any, n_threads: int) -> tuple[Loss, int]:
        return python_loss(self, n_weights=len(self.scale), n_sequences=1), self.scale.nbytes


@dataclass
class Faulty(Quadratic):
    """Cannot be loaded where there is a file "bad" in the folder of the process, or anywhere if `always`."""

    always: bool = False
    missing: bool = False

    def __call__(self, context: Any, n_threads: int) -> tuple[Loss, int]:
        if self.always or Path("bad").exists():
            if self.missing:
                raise MissingFileError("/data/part-7.txt: there is no such file")
            raise RuntimeError("out of order")
        return super().__call__(context, n_threads)


class NoCopyError(Exception):
    """An error that cannot be sent."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)
        self.second = second


@dataclass
class Unanswered(Quadratic):
    """Raises an error that cannot be sent, where there is a file "bad" in the folder of the process."""

    def evaluate(self, w: Float64s) -> tuple[float, Float64s]:
        if Path("bad").exists():
            raise NoCopyError("no answer", "here")
        return super().evaluate(w)


@dataclass
class Slow(Quadratic):
    """Takes a while to load; kills a process in whose folder there is a file "bad"."""

    def __call__(self, context: Any, n_threads: int) -> tuple[Loss, int]:
        if Path("bad").exists():
            os.kill(os.getpid(), 9)
        time.sleep(1.0)
        return super().__call__(context, n_threads)


@dataclass
class Source:
    """n shards over D weights, of one kind."""

    n: int = 8
    n_weights: int = 1000
    kind: type[Quadratic] = Quadratic
    options: dict[str, Any] = field(default_factory=dict)
    context: None = None

    @property
    def costs(self) -> list[float]:
        return [1.0] * self.n

    def scale(self, shard: int) -> Float64s:
        return np.random.default_rng(shard).standard_normal(self.n_weights)

    def recipe(self, shard: int) -> Quadratic:
        return self.kind(self.scale(shard), **self.options)

    def release(self) -> None:
        pass

    def expect(self, w: Float64s) -> tuple[float, Float64s]:
        """The sums in the order of the tree."""
        values = [0.5 * float((w * w * self.scale(i)).sum()) for i in range(self.n)]
        return add_in_tree(values), add_in_tree([w * self.scale(i) for i in range(self.n)])
