"""`python -m benchmarks.column_files`: tagging a column file, beside tagging from Python lists and python-crfsuite.

CoNLL-2000 and the template of CRF++'s example: the same features for all. crfkit reads the file, makes features, tags and
writes in the core; or is given rows as Python lists of tuples; or lists of feature strings that were made before, as
python-crfsuite is. Making these strings is not counted. One thread is timed in CPU seconds, more by the wall clock.

    python -m benchmarks.column_files [--threads 1 2 4] [--copies 4] [--quick]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import machine
from benchmarks.table import grid
from benchmarks.tasks import crfpp_features, sentences
from benchmarks.trees import is_installed
from crfkit import CRF, LBFGS, Template, load
from crfkit.cli.column_tagging import ColumnTagging
from crfkit.cli.model_input import Tagger, load_tagger
from crfkit.data import write_columns
from crfkit.features import ColumnRows
from crfkit.models import ColumnTagger, ConvergenceWarning

HEAD = ("input", "threads", "tokens / s", "times one thread", "times python-crfsuite")
REPEATS = 3
RIVAL = "python-crfsuite, lists of features"


def template_text() -> str:
    """The template whose features are those of `tasks.crfpp_features`."""
    offsets = [(offset,) for offset in range(-2, 3)]
    pairs = [(offset, offset + 1) for offset in range(-2, 2)]
    triples = [(offset, offset + 1, offset + 2) for offset in range(-2, 1)]
    cells = [(0, [*offsets, *pairs[1:3]]), (1, [*offsets, *pairs, *triples])]
    lines = ["/".join(f"%x[{offset},{column}]" for offset in some) for column, all_ in cells for some in all_]
    names = [f"U{n:02d}" for n in (*range(7), *range(10, 19), *range(20, 23))]
    return "\n".join(f"{name}:{line}" for name, line in zip(names, lines, strict=True)) + "\nB\n"


def seconds(work: Callable[[], Any], n_threads: int) -> float:
    """The shortest of several runs: CPU seconds of one thread, else seconds by the wall clock."""
    clock = time.process_time if n_threads == 1 else time.perf_counter
    found = []
    for _ in range(REPEATS):
        start = clock()
        work()
        found.append(clock() - start)
    return min(found)


def train(folder: Path, part: float, iterations: int) -> dict[str, Path]:
    """Models of the training file: by the template, on lists of features, and python-crfsuite's."""
    rows = sentences("train", part)
    options: dict[str, Any] = {"optimizer": LBFGS(max_iterations=iterations, tolerance=0.0, change=0.0)}
    file = folder / "train.txt"
    write_file(file, rows)
    models = {name: folder / f"{name}.model" for name in ("template", "lists", "rival")}
    crf = CRF(features=Template.parse(template_text()), **options).fit(ColumnRows.read(file, label_column=-1))
    crf.save(models["template"], metadata={"label_column": -1, "separator": " "})
    X, y = [crfpp_features(x) for x in rows], [[row[-1] for row in x] for x in rows]
    CRF(**options).fit(X, y).save(models["lists"])
    if is_installed("pycrfsuite"):
        import pycrfsuite

        trainer = pycrfsuite.Trainer("lbfgs", {"c2": 0.5, "max_iterations": iterations}, verbose=False)
        for features, labels in zip(X, y, strict=True):
            trainer.append(features, labels)
        trainer.train(str(models["rival"]))
    return models


def write_file(path: Path, rows: Sequence[Sequence[tuple[str, ...]]], copies: int = 1) -> None:
    """Sentences as a column file."""
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(copies):
            for sentence in rows:
                write_columns(sentence, stream, separator=" ")


def tag_file(tagger: Tagger, file: Path, output: Path, n_threads: int) -> None:
    """What `crfkit tag` does with a model that is loaded."""
    column_tagger = ColumnTagger.of(tagger.crf)
    assert column_tagger is not None
    tagging = ColumnTagging(
        tagger,
        column_tagger,
        file,
        separator=None,
        labels_only=False,
        general=lambda _: b"",
        n_threads=n_threads,
    )
    with output.open("wb") as stream:
        for tagged in tagging.run():
            stream.write(tagged.text)


def measure(
    folder: Path, models: dict[str, Path], rows: list[Any], copies: int, n_threads: int
) -> dict[str, float]:
    """Seconds of each kind of input."""
    file = folder / "test.txt"
    write_file(file, rows, copies)
    X = [[row[:-1] for row in x] for x in rows] * copies
    lists = [crfpp_features(x) for _ in range(copies) for x in rows]
    template, plain = (load(models[name]).set_params(n_threads=n_threads) for name in ("template", "lists"))
    tagger, output = load_tagger(models["template"], n_threads=n_threads), folder / "out.txt"
    found = {
        "crfkit, column file": seconds(lambda: tag_file(tagger, file, output, n_threads), n_threads),
        "crfkit, lists of rows": seconds(lambda: template.predict(X), n_threads),
        "crfkit, lists of features": seconds(lambda: plain.predict(lists), n_threads),
    }
    if n_threads == 1 and models["rival"].exists():
        import pycrfsuite

        rival = pycrfsuite.Tagger()
        rival.open(str(models["rival"]))
        found[RIVAL] = seconds(lambda: [rival.tag(x) for x in lists], 1)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--iterations", type=int, default=15)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    part, copies, iterations = (0.02, 1, 3) if options.quick else (1.0, options.copies, options.iterations)
    rows = sentences("test", part)
    n_tokens = copies * sum(map(len, rows))
    lines = []
    with TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a few iterations are enough to tag
        folder = Path(name)
        models = train(folder, part, iterations)
        first: dict[str, float] = {}
        for n_threads in sorted({1, *options.threads}):
            for kind, found in measure(folder, models, rows, copies, n_threads).items():
                one = first.setdefault(kind, found)
                rival = f"{first[RIVAL] / found:.1f}" if RIVAL in first else ""
                lines.append((kind, str(n_threads), f"{n_tokens / found:,.0f}", f"{one / found:.2f}", rival))
    if RIVAL in first:  # of one thread, before it was measured
        lines = [
            (*line[:4], f"{first[RIVAL] / first[line[0]]:.1f}") if line[1] == "1" else line for line in lines
        ]
    print(f"{machine()}\n{n_tokens:,} tokens\n{grid(HEAD, lines)}")


if __name__ == "__main__":
    main()
