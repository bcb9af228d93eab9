"""`python -m benchmarks.l1`: L1-regularised training beside python-crfsuite, on six corpora, for three values of c1.

Both are called through python-crfsuite's own interface with the same data and settings (c2 = 0.1, one thread), each in a
process of its own. Shown are the objective after some iterations, and the CPU seconds to some relative gaps
(F − F*) / F*, where F* is the lowest objective seen (crfkit goes on for 600 iterations). A second table has the
settings of sklearn-crfsuite's tutorial (c1 = c2 = 0.1, 100 iterations): objective, seconds, and the score on held-out
sentences, which come from development parts or from the training files. ``--jobs N`` runs N processes at once; ``--quick``
is a smoke test on a part of the data that writes no table.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT, run_module
from benchmarks.problems import Data, ocr
from benchmarks.racing import Mark
from benchmarks.table import grid
from benchmarks.tasks import TASKS, Features, Labels, load, tag_features
from crfkit.data import read_columns, read_conllu
from crfkit.evaluation import metric_for

RESULTS = PROJECT / "benchmarks" / "results"
TOOLKITS = ("python-crfsuite", "crfkit")
C1 = (0.01, 0.1, 1.0)
C2 = 0.1
MARKS = (10, 30, 100, 300)  # iterations
GAPS = (1e-2, 1e-3, 1e-4)
TUTORIAL = {"c1": 0.1, "c2": 0.1, "max_iterations": 100}
MSRA_SENTENCES = 8000


def columns(corpus: str, file: str, label: int, n: int | None = None) -> tuple[Features, Labels]:
    """Words, shapes and affixes of each word and its neighbours, from a column file."""
    found = islice(read_columns(corpus_path(corpus, file), comment=None), n)
    rows = [sequence.rows for sequence in found]
    return [tag_features(sentence) for sentence in rows], [[row[label] for row in r] for r in rows]


def spanish() -> Data:
    """Spanish names of CoNLL-2002; held out: testa."""
    return Data(*columns("conll2002", "esp.train", 2), *columns("conll2002", "esp.testa", 2))


def dutch() -> Data:
    """Dutch names of CoNLL-2002; held out: testa."""
    return Data(*columns("conll2002", "ned.train", 2), *columns("conll2002", "ned.testa", 2))


def chinese() -> Data:
    """Chinese names of MSRA, by characters; held out: the sentences of the training file behind the first."""
    n = MSRA_SENTENCES
    X, y = columns("msra", "msra_train.txt", 1, n + n // 4)
    return Data(X[:n], y[:n], X[n:], y[n:])


def chunks() -> Data:
    """CoNLL-2000 with the features of CRFsuite's example; held out: the last tenth of the training file."""
    X, y = load(TASKS["chunk"], "train")
    n = len(X) * 9 // 10
    return Data(X[:n], y[:n], X[n:], y[n:])


def english() -> Data:
    """Universal tags of English EWT; held out: dev."""

    def part(name: str) -> tuple[Features, Labels]:
        sentences = list(read_conllu(corpus_path("ud_english_ewt", f"en_ewt-ud-{name}.conllu")))
        X = [tag_features([(word.form,) for word in sentence.words]) for sentence in sentences]
        return X, [[word.upos for word in sentence.words] for sentence in sentences]

    return Data(*part("train"), *part("dev"))


PROBLEMS: dict[str, tuple[str, Callable[[], Data]]] = {
    "spanish": ("Spanish names", spanish),
    "dutch": ("Dutch names", dutch),
    "chinese": (f"Chinese names, {MSRA_SENTENCES:,} sentences", chinese),
    "chunks": ("English chunks", chunks),
    "english": ("English parts of speech", english),
    "letters": ("OCR letters", ocr),
}


@dataclass(frozen=True)
class Run:
    """One training run: a corpus, a toolkit and the settings of its L-BFGS."""

    problem: str
    toolkit: str
    settings: dict[str, Any]
    part: float = 1.0  # share of the sequences
    scored: bool = False  # whether the held-out part is tagged


class Outcome(NamedTuple):
    """What a run gave."""

    marks: list[Mark]  # one for each iteration
    score: float | None  # on the held-out part, in percent: span F1 where labels are spans, else accuracy


def train(run: Run) -> Outcome:
    """Train in this process."""
    from benchmarks.rival_methods import LoggedStandIn, LoggedTrainer

    data = PROBLEMS[run.problem][1]().first(run.part)
    trainer = (LoggedStandIn if run.toolkit == "crfkit" else LoggedTrainer)("lbfgs", run.settings)
    for features, labels in zip(data.X, data.y, strict=True):
        trainer.append(features, labels)
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        score = held_out_score(run.toolkit, path, data) if run.scored else None
    return Outcome([Mark(*mark) for mark in trainer.marks], score)


def held_out_score(toolkit: str, path: str, data: Data) -> float:
    """Tag the held-out part with the model file."""
    module = import_module("crfkit.compat.pycrfsuite" if toolkit == "crfkit" else "pycrfsuite")
    tagger = module.Tagger()
    tagger.open(path)
    predicted = [tagger.tag(features) for features in data.X_test]
    metric = metric_for((), data.y_test)
    return 100 * metric(data.y_test, predicted)


def run_all(runs: Sequence[Run], n_jobs: int) -> list[Outcome]:
    """Each run in a process of its own, some at once."""

    def one(run: Run) -> Outcome:
        marks, score = run_module("l1", "--run", json.dumps(asdict(run)), n_threads=1)
        print(f"{run.problem} {run.toolkit} {run.settings}: {marks[-1]}", file=sys.stderr, flush=True)
        return Outcome([Mark(*mark) for mark in marks], score)

    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(one, runs))


def reached(marks: Sequence[Mark], level: float) -> float | None:
    """The seconds after which the objective is no higher than `level`; None where it never is."""
    return next((mark.seconds for mark in marks if (mark.objective or 0.0) <= level), None)


def objective_rows(title: str, c1: float, theirs: Sequence[Mark], ours: Sequence[Mark]) -> list[str]:
    """A row of the first table: objectives after some iterations (theirs, ours), seconds to some gaps and their ratio."""
    cells = [title, f"{c1:g}"]
    for iteration in MARKS:
        both = [marks[min(iteration, len(marks)) - 1].objective or 0.0 for marks in (theirs, ours)]
        cells.append(f"{both[0]:,.1f} · {both[1]:,.1f}" + (" ▲" if both[1] > both[0] else ""))
    lowest = min(mark.objective or 0.0 for mark in (*theirs, *ours))
    for gap in GAPS:
        first, second = (reached(marks, lowest * (1 + gap)) for marks in (theirs, ours))
        if second is None:
            cells.append("–")
        elif first is None:
            cells.append(f"> {theirs[-1].seconds:.1f} · {second:.2f}: > {theirs[-1].seconds / second:.1f}×")
        else:
            cells.append(f"{first:.1f} · {second:.2f}: {first / second:.1f}×")
    return cells


def tutorial_rows(title: str, theirs: Outcome, ours: Outcome) -> list[str]:
    """A row of the second table: objective, seconds and score, theirs and ours."""
    last = [outcome.marks[-1] for outcome in (theirs, ours)]
    return [
        title,
        f"{last[0].objective:,.1f} · {last[1].objective:,.1f}",
        f"{last[0].seconds:.1f} · {last[1].seconds:.2f}: {last[0].seconds / last[1].seconds:.1f}×",
        f"{theirs.score:.2f} · {ours.score:.2f}",
    ]


def settings_of(toolkit: str, c1: float, *, quick: bool) -> dict[str, Any]:
    """No early stop; crfkit goes on to find F*."""
    most = 600 if toolkit == "crfkit" else MARKS[-1]
    return {"c1": c1, "c2": C2, "delta": 0.0, "epsilon": 0.0, "max_iterations": 5 if quick else most}


def report(problems: Sequence[str], strengths: Sequence[float], n_jobs: int, *, quick: bool) -> str:
    """Run everything; the tables."""
    part = 0.02 if quick else 1.0
    runs = [
        Run(problem, toolkit, settings_of(toolkit, c1, quick=quick), part)
        for problem in problems
        for c1 in strengths
        for toolkit in TOOLKITS
    ]
    tutorial = {**TUTORIAL, "max_iterations": 5} if quick else TUTORIAL
    runs += [
        Run(problem, toolkit, tutorial, part, scored=True) for problem in problems for toolkit in TOOLKITS
    ]
    outcomes = run_all(runs, n_jobs)
    rows, scores = [], []
    for i, run in enumerate(runs[::2]):
        title, (theirs, ours) = PROBLEMS[run.problem][0], outcomes[2 * i : 2 * i + 2]
        if run.scored:
            scores.append(tutorial_rows(title, theirs, ours))
        else:
            rows.append(objective_rows(title, run.settings["c1"], theirs.marks, ours.marks))
    found = machine()
    head = ["corpus", "c1", *(f"after {k}" for k in MARKS), *(f"s to {gap:.0e}" for gap in GAPS)]
    return "\n\n".join(
        [
            f"{found['processor']}, {found['cores']} cores, {n_jobs} processes at once; CPU seconds of one thread; "
            "python-crfsuite · crfkit.",
            grid(head, rows),
            grid(["corpus", "objective", "seconds", "held-out score, %"], scores),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is asked for, and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.l1", description=__doc__)
    parser.add_argument("--problem", action="append", choices=list(PROBLEMS), help="default: all")
    parser.add_argument("--c1", action="append", type=float, help="default: 0.01, 0.1 and 1")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        print(json.dumps(train(Run(**json.loads(options.run)))))
        return
    text = report(options.problem or list(PROBLEMS), options.c1 or C1, options.jobs, quick=options.quick)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "l1.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
