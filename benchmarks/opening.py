"""Opening a model of CRFsuite and tagging for the first time, as programs do that open a model for each call.

Models of python-crfsuite, trained on as many tokens of CoNLL-2000 as it takes to reach each size. Both toolkits open
the same file in turn and tag one token or one sentence; the fewest microseconds of the wall clock are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.table import grid
from benchmarks.tasks import Features, Labels

SIZES = (10_000, 100_000, 1_500_000, 30_000_000)  # bytes
TRIES = 6  # of numbers of tokens for one size


def first_tokens(X: Features, y: Labels, n: int) -> tuple[Features, Labels]:
    """The first n tokens of the sentences, the last of which may be cut."""
    taken = 0
    cut_X, cut_y = [], []
    for x, labels in zip(X, y, strict=True):
        if taken < n:
            cut_X.append(x[: n - taken])
            cut_y.append(labels[: n - taken])
            taken += len(cut_X[-1])
    return cut_X, cut_y


def model_of_size(
    size: int, train: Callable[[Features, Labels, Path], object], X: Features, y: Labels, path: Path
) -> None:
    """Train on as many tokens as give a file of about this size."""
    all_tokens = sum(map(len, X))
    n, best = max(1, all_tokens * size // SIZES[-1]), (float("inf"), 0)
    for _ in range(TRIES):
        train(*first_tokens(X, y, n), path)
        found = path.stat().st_size
        best = min(best, (abs(found - size), n))
        wanted = min(all_tokens, max(1, round(n * size / found)))
        if abs(found - size) < 0.05 * size or wanted == n:
            break
        n = wanted
    if best[1] != n:
        train(*first_tokens(X, y, best[1]), path)


def opened_and_tagged(module: ModuleType, path: str, x: Any) -> list[str]:
    """The labels of a sequence, by a tagger that is opened for it."""
    tagger = module.Tagger()
    tagger.open(path)
    labels: list[str] = tagger.tag(x)
    return labels


def fewest(repeats: int, actions: Sequence[Callable[[], object]]) -> list[float]:
    """The fewest microseconds of each action; they take turns."""
    found = [float("inf")] * len(actions)
    for _ in range(repeats):
        for k, action in enumerate(actions):
            begin = time.perf_counter()
            action()
            found[k] = min(found[k], 1e6 * (time.perf_counter() - begin))
    return found


def opening(modules: dict[str, ModuleType], paths: Sequence[Path], sentence: Any, repeats: int) -> str:
    """One row for each file and one token, and for each file and one sentence."""
    lines = []
    for path in map(str, paths):
        size = f"{Path(path).stat().st_size / 1000:,.0f} kB"
        rows = {}
        for title, x in (("a token", sentence[:1]), (f"{len(sentence)} tokens", sentence)):
            answers = [opened_and_tagged(module, path, x) for module in modules.values()]
            note = "" if answers[0] == answers[1] else " (LABELS DIFFER)"
            rows[f"{size}, {title}{note}"] = fewest(
                repeats, [partial(opened_and_tagged, module, path, x) for module in modules.values()]
            )
        lines += [
            [title, *(f"{value:,.0f}" for value in values), f"{values[0] / values[1]:.1f}×"]
            for title, values in rows.items()
        ]
    return grid(["opening a model and tagging, µs", *modules, "ratio"], lines)
