"""`python -m benchmarks.decoding`: labels for a metric: Viterbi, marginals, expected F1.

Names of CoNLL-2002 (train, testa) with the preset `names`, and parts of speech of the treebank EWT (train, dev) with the
preset `pos`: accuracy and F1 as the model expects them and as they are, on development data. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import islice

from benchmarks.corpora import corpus_path
from benchmarks.span_probabilities import Data, read
from benchmarks.table import grid
from crfkit import CRF
from crfkit.data import read_conllu
from crfkit.evaluation import spans

TASKS = ("spanish", "dutch", "english")
DECODINGS = ("viterbi", "marginal", "f1")
QUICK = 200  # sentences of each file
LEAST = 0.001  # probability of the spans that are counted


def read_task(task: str, part: str, limit: int | None) -> Data:
    """Words and labels of the training or the development data."""
    if task != "english":
        return read(task, {"train": "train", "dev": "testa"}[part], limit)
    treebank = read_conllu(corpus_path("ud_english_ewt", f"en_ewt-ud-{part}.conllu"))
    sentences = list(islice(treebank, limit))
    words: list[list[tuple[str, ...]]] = [[(word.form,) for word in sentence.words] for sentence in sentences]
    return Data(words, [[word.upos for word in sentence.words] for sentence in sentences])


def expected_accuracy(crf: CRF, X: Sequence[object], labels: list[list[str]]) -> float:
    """The mean probability of these labels."""
    column = {label: b for b, label in enumerate(crf.classes_)}
    chosen = [
        row[column[label]]
        for marginals, y in zip(crf.predict_marginals(X), labels, strict=True)
        for row, label in zip(marginals, y, strict=True)
    ]
    return float(sum(chosen) / len(chosen))


def expected_f1(crf: CRF, X: Sequence[object], labels: list[list[str]]) -> float:
    """2 E[correct] / (predicted + E[gold]) of the spans of these labels."""
    every = crf.predict_spans(X, LEAST)
    n_gold = sum(span.probability for some in every for span in some)
    n_found, correct = 0, 0.0
    for some, y in zip(every, labels, strict=True):
        known = {span[:3]: span.probability for span in some}
        found = [tuple(span)[:3] for span in spans(y)]
        n_found += len(found)
        correct += sum(known.get(span, 0.0) for span in found)
    return 2 * correct / (n_found + n_gold)


def rows_of(task: str, limit: int | None) -> list[list[str]]:
    """A row for each decoding."""
    train, dev = read_task(task, "train", limit), read_task(task, "dev", limit)
    has_spans = task != "english"
    crf = CRF(features="names" if has_spans else "pos", n_threads=1).fit(*train)
    rows = []
    for decode in DECODINGS if has_spans else DECODINGS[:2]:
        start = time.process_time()
        labels = crf.predict(dev.X, decode=decode)
        seconds = time.process_time() - start
        figures = [expected_accuracy(crf, dev.X, labels), crf.score(*dev, decode=decode, metric="accuracy")]
        if has_spans:
            figures += [expected_f1(crf, dev.X, labels), crf.score(*dev, decode=decode)]
        cells = [f"{100 * figure:.2f}" for figure in figures] + ["–"] * (4 - len(figures))
        rows.append([task, decode, *cells, f"{seconds:.2f}"])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoding", description="labels for a metric")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument("--task", action="append", choices=TASKS, help="only this one")
    given = parser.parse_args(arguments)
    head = ["development data", "decode", "expected accuracy", "accuracy", "expected F1", "F1", "CPU s"]
    rows = [row for task in given.task or TASKS for row in rows_of(task, QUICK if given.quick else None)]
    print(grid(head, rows))


if __name__ == "__main__":
    main()
