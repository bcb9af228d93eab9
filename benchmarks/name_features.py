"""`python -m benchmarks.name_features`: the preset `names` beside the features of sklearn-crfsuite's tutorial.

Names of CoNLL-2002 (train, testa; words and parts of speech): python-crfsuite with those features, c1 = c2 = 0.1, 100
iterations and all transitions, and `CRF(features="names")`. F1 on the development file, CPU seconds of training, one thread.
``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from benchmarks.corpora import corpus_path
from benchmarks.table import grid
from crfkit import CRF
from crfkit.data import read_columns
from crfkit.evaluation import span_report

LANGUAGES = {"spanish": "esp", "dutch": "ned"}
QUICK = 100  # sentences of each file
SETTINGS = {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "feature.possible_transitions": 1}

Rows = list[list[tuple[str, ...]]]
Labels = list[list[str]]


def read(language: str, part: str, limit: int | None) -> tuple[Rows, Labels]:
    """Words with parts of speech, and labels."""
    path = corpus_path("conll2002", f"{LANGUAGES[language]}.{part}")
    rows = [some.rows for some in islice(read_columns(path, comment=None), limit)]
    return [[row[:-1] for row in some] for some in rows], [[row[-1] for row in some] for some in rows]


def tutorial_features(rows: Sequence[tuple[str, ...]], i: int) -> list[str]:
    """The word, its last letters, capitals and part of speech; the same of its neighbours, without the letters."""
    found = ["bias", f"ends3={rows[i][0][-3:]}", f"ends2={rows[i][0][-2:]}", f"digit={rows[i][0].isdigit()}"]
    for place in (-1, 0, 1):
        if not 0 <= i + place < len(rows):
            found.append(f"{place} outside")
            continue
        word, tag = rows[i + place][:2]
        values = (word.lower(), word.isupper(), word.istitle(), tag, tag[:2])
        found += [f"{place} {k}={value}" for k, value in enumerate(values)]
    return found


def measure(language: str, limit: int | None) -> list[list[str]]:
    """A row for each model."""
    import pycrfsuite

    (X, y), (dev_X, dev_y) = read(language, "train", limit), read(language, "testa", limit)
    began = time.process_time()
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params(SETTINGS)
    for rows, labels in zip(X, y, strict=True):
        trainer.append([tutorial_features(rows, i) for i in range(len(rows))], labels)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        seconds = [time.process_time() - began]
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        theirs = [tagger.tag([tutorial_features(rows, i) for i in range(len(rows))]) for rows in dev_X]
    began = time.process_time()
    crf = CRF(features="names", n_threads=1).fit(X, y)
    seconds.append(time.process_time() - began)
    found = (theirs, crf.predict(dev_X, decode="viterbi"), crf.predict(dev_X))
    names = ("python-crfsuite, tutorial", "crfkit, names, Viterbi", "crfkit, names")
    figures = [f"{100 * span_report(dev_y, labels).overall.f1:.2f}" for labels in found]
    times = [f"{value:.1f}" for value in (*seconds, seconds[1])]
    return [[language, *row] for row in zip(names, figures, times, strict=True)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.name_features", description="features of names"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    given = parser.parse_args(arguments)
    rows = [row for language in LANGUAGES for row in measure(language, QUICK if given.quick else None)]
    print(grid(["development data", "model", "F1", "training CPU s"], rows))


if __name__ == "__main__":
    main()
