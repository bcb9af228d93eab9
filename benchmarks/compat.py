"""`python -m benchmarks.compat`: python-crfsuite, and the same code with `crfkit.compat.pycrfsuite` in its place.

CoNLL-2000 chunking. Opening: models of python-crfsuite of several sizes, opened by both to tag one token or one
sentence (`benchmarks.opening`). Tagging: one model of python-crfsuite; tokens per second from lists of strings, dicts and
ItemSequences (CPU seconds, one thread), and how much two Python threads at once bring (by the wall clock), beside two
processes at once, which share nothing: what the machine can give. Training: the five algorithms with the same settings;
the final loss, where there is one, and F1. Whatever is measured is measured in turn, and the best of each is kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.machine import machine
from benchmarks.measure import PROJECT
from benchmarks.opening import SIZES, model_of_size
from benchmarks.opening import opening as measured
from benchmarks.table import grid
from benchmarks.tasks import TASKS, Features, Labels, load
from crfkit.compat import pycrfsuite as ours
from crfkit.evaluation import span_report

RESULTS = PROJECT / "benchmarks" / "results"
PARTS = ("opening", "tagging", "training")
OPENINGS = 40  # of each model, where other things are done once
ALGORITHMS: dict[str, dict[str, Any]] = {
    "lbfgs": {"c2": 1.0, "max_iterations": 150},
    "l2sgd": {"c2": 1.0, "max_iterations": 30},
    "ap": {"max_iterations": 15},
    "pa": {"max_iterations": 15},
    "arow": {"max_iterations": 15},
}
FORMS: dict[str, Callable[[ModuleType, Features], list[Any]]] = {
    "lists of strings": lambda module, X: X,
    "dicts": lambda module, X: [[dict.fromkeys(position, 1.0) for position in x] for x in X],
    "ItemSequence": lambda module, X: [module.ItemSequence(x) for x in X],
}


def toolkits() -> dict[str, ModuleType]:
    """The two modules, by the name of their column."""
    import pycrfsuite

    return {"python-crfsuite": pycrfsuite, "crfkit.compat": ours}


def trained(
    module: ModuleType, algorithm: str, params: dict[str, Any], X: Features, y: Labels, path: Path
) -> float | None:
    """Train a model into a file; the loss of the last iteration, where the algorithm tells one."""
    trainer = module.Trainer(algorithm, params, verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    trainer.train(str(path))
    last = trainer.logparser.last_iteration or {}
    return last.get("loss")


def opened(module: ModuleType, path: Path) -> Any:
    """A tagger with the model of a file."""
    tagger = module.Tagger()
    tagger.open(str(path))
    return tagger


def best_of(repeats: int, clock: Callable[[], float], *actions: Callable[[], object]) -> list[float]:
    """The fewest seconds of each action; they take turns."""
    found = [float("inf")] * len(actions)
    for _ in range(repeats):
        for k, action in enumerate(actions):
            begin = clock()
            action()
            found[k] = min(found[k], clock() - begin)
    return found


def tag_all(tagger: Any, X: Sequence[Any]) -> None:
    """Tag sequence by sequence, as code written for python-crfsuite does."""
    for x in X:
        tagger.tag(x)


def tag_halves(taggers: Sequence[Any], X: Sequence[Any]) -> None:
    """Tag one half in each of two threads, with a tagger of its own."""
    with ThreadPoolExecutor(len(taggers)) as pool:
        list(pool.map(lambda k: tag_all(taggers[k], X[k :: len(taggers)]), range(len(taggers))))


class Halves:
    """Two processes, each with a tagger of its own, that tag one half each on command."""

    def __init__(self, taggers: Sequence[Any], X: Sequence[Any]) -> None:
        context = multiprocessing.get_context("fork")
        pipes = [context.Pipe() for _ in taggers]
        self._processes = [
            context.Process(target=self._serve, args=(pipe, tagger, X[k :: len(taggers)]), daemon=True)
            for k, (tagger, (_, pipe)) in enumerate(zip(taggers, pipes, strict=True))
        ]
        self._pipes = [mine for mine, _ in pipes]
        for process in self._processes:
            process.start()

    @staticmethod
    def _serve(pipe: Any, tagger: Any, X: Sequence[Any]) -> None:
        while pipe.recv():
            tag_all(tagger, X)
            pipe.send(True)

    def tag(self) -> None:
        """Tag everything once."""
        self._tell(True)
        for pipe in self._pipes:
            pipe.recv()

    def end(self) -> None:
        """Send the processes home."""
        self._tell(False)
        for process in self._processes:
            process.join()

    def _tell(self, more: bool) -> None:
        for pipe in self._pipes:
            pipe.send(more)


def opening(part: float, repeats: int) -> str:
    """Opening a model, and tagging once."""
    modules = toolkits()
    X, y = load(TASKS["chunk"], "train", part)
    X_test, _ = load(TASKS["chunk"], "test", part)
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for size in SIZES if part == 1.0 else SIZES[:2]:
            paths.append(Path(folder) / str(size))
            model_of_size(
                size,
                partial(trained, modules["python-crfsuite"], "lbfgs", {"max_iterations": 5}),
                X,
                y,
                paths[-1],
            )
        return measured(modules, paths, X_test[0], OPENINGS * repeats)


def tagging(part: float, repeats: int) -> str:
    """Tagging sentence after sentence."""
    modules = toolkits()
    X, y = load(TASKS["chunk"], "train", part)
    X_test, _ = load(TASKS["chunk"], "test", part)
    n_tokens = sum(map(len, X_test))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        trained(modules["python-crfsuite"], "lbfgs", {"max_iterations": 20}, X, y, path)
        rows = []
        taggers = [opened(module, path) for module in modules.values()]
        for name, form in FORMS.items():
            inputs = [form(module, X_test) for module in modules.values()]
            same = all(a.tag(x) == b.tag(z) for a, b in [taggers] for x, z in zip(*inputs, strict=True))
            seconds = best_of(
                repeats,
                time.process_time,
                *(partial(tag_all, tagger, x) for tagger, x in zip(taggers, inputs, strict=True)),
            )
            title = f"tagging {name}, tokens per second{'' if same else ' (LABELS DIFFER)'}"
            rows.append((title, [n_tokens / s for s in seconds], ",.0f", seconds))
        lines = [
            [title, *(format(value, how) for value in values), f"{seconds[0] / seconds[1]:.1f}×"]
            for title, values, how, seconds in rows
        ]
        for name, form in FORMS.items():
            scaling = [_scaling(module, path, form(module, X_test), repeats) for module in modules.values()]
            lines.append([f"two threads (two processes) at once, {name}, times as fast as one", *scaling, ""])
    return grid(["", *modules, "ratio"], lines)


def _scaling(module: ModuleType, path: Path, X: Sequence[Any], repeats: int) -> str:
    """How many times as fast two threads are as one, and two processes."""
    taggers = [opened(module, path) for _ in range(2)]
    tag_halves(taggers, X[:2])
    halves = Halves(taggers, X)
    one, threads, processes = best_of(
        repeats,
        time.perf_counter,
        partial(tag_all, taggers[0], X),
        partial(tag_halves, taggers, X),
        halves.tag,
    )
    halves.end()
    return f"{one / threads:.2f} ({one / processes:.2f})"


def training(part: float) -> str:
    """The five algorithms: loss and F1."""
    modules = toolkits()
    X, y = load(TASKS["chunk"], "train", part)
    X_test, y_test = load(TASKS["chunk"], "test", part)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for algorithm, params in ALGORITHMS.items():
            cells = []
            for name, module in modules.items():
                path = Path(folder) / f"{name}.{algorithm}"
                begin = time.process_time()
                loss = trained(module, algorithm, params, X, y, path)
                seconds = time.process_time() - begin
                tagger = opened(module, path)
                f1 = span_report(y_test, [tagger.tag(x) for x in X_test]).overall.f1
                cells += ["–" if loss is None else f"{loss:,.2f}", f"{100 * f1:.2f}", f"{seconds:.1f}"]
            lines.append([algorithm, *cells])
    head = [f"{name}: {what}" for name in modules for what in ("loss", "F1", "CPU s")]
    return grid(["algorithm", *head], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write to the folder of results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compat", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="only this (repeatable)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a smoke test on a part of the data")
    given = parser.parse_args(arguments)
    share, repeats = (0.02, 1) if given.quick else (1.0, given.repeats)
    parts = {
        "opening": lambda: opening(share, repeats),
        "tagging": lambda: tagging(share, repeats),
        "training": lambda: training(share),
    }
    texts = [" ".join(f"{key} {value}" for key, value in machine().items())]
    texts += [parts[part]() for part in given.part or PARTS]
    text = "\n\n".join(texts)
    print(text)
    if not given.quick:
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "compat.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
