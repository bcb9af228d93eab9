"""`python -m benchmarks.decoding`: labels for a metric: Viterbi, marginals, likely spans, expected F1.

Names of CoNLL-2002 (train, testa), of MSRA and chunks of CoNLL-2000 (blocks of the training files) with the preset
`names`, and parts of speech of the treebank EWT (train, dev) with the preset `pos`: accuracy and F1 as the model expects
them and as they are, on development data. "f1, one by one" asks a sentence at a time. ``--quick`` is a smoke test.
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
from crfkit.data import read_columns, read_conllu
from crfkit.evaluation import accuracy, span_report, spans

COLUMN_FILES = {"chunks": ("conll2000", "train.txt"), "chinese": ("msra", "msra_train.txt")}
TASKS = ("spanish", "dutch", *COLUMN_FILES, "english")
DECODINGS = ("viterbi", "marginal", "spans", "f1")
ALONE = "f1, one by one"
PART, OF = 2_000, 10_000  # of so many sentences of a training file so many are development data
QUICK = 200  # sentences of each file
LEAST = 0.001  # probability of the spans that are counted


def read_task(task: str, part: str, limit: int | None) -> Data:
    """Words and labels of the training or the development data."""
    if task in COLUMN_FILES:
        rows = [some.rows for some in islice(read_columns(corpus_path(*COLUMN_FILES[task])), limit or OF)]
        cut = len(rows) - min(PART, len(rows) // 4)
        rows = rows[:cut] if part == "train" else rows[cut:]
        return Data(
            [[row[:1] for row in some] for some in rows], [[row[-1] for row in some] for some in rows]
        )
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
    for decode in (*DECODINGS, ALONE) if has_spans else DECODINGS[:2]:
        start = time.process_time()
        if decode == ALONE:
            labels = [crf.predict([x], decode="f1")[0] for x in dev.X]
        else:
            labels = crf.predict(dev.X, decode=decode)
        seconds = time.process_time() - start
        figures = [expected_accuracy(crf, dev.X, labels), accuracy(dev.y, labels)]
        if has_spans:
            figures += [expected_f1(crf, dev.X, labels), span_report(dev.y, labels).overall.f1]
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
