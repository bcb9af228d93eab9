"""`python -m benchmarks.unlabelled`: few labelled sentences, and many without labels.

CoNLL-2002, preset `names`: the first sentences of `train` with their labels, the next ones without; F1 on `testa`, the
development data. A model of the labelled ones alone, the mean of three such models of samples with replacement, self-
training and tri-training by partial labels. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.span_probabilities import LANGUAGES, Data, read
from benchmarks.table import grid
from crfkit import CRF
from crfkit.models import average_models, self_train, tri_train

LABELLED = (100, 400)
UNLABELLED = 3000


def bagged(crf: CRF, some: Data) -> CRF:
    """The mean of three models of samples."""
    random, n = np.random.default_rng(0), len(some.y)
    models = []
    for _ in range(3):
        drawn = random.integers(n, size=n).tolist()
        model: CRF = CRF(**crf.get_params(deep=False))
        models.append(model.fit([some.X[i] for i in drawn], [some.y[i] for i in drawn]))
    return average_models(models)


def rows_of(language: str, n_labelled: Sequence[int], n_unlabelled: int) -> list[list[str]]:
    """A row for each number of labelled sentences and each method."""
    dev, rows = read(language, "testa", None), []
    for n in n_labelled:
        train = read(language, "train", n + n_unlabelled)
        some, more = Data(train.X[:n], train.y[:n]), train.X[n:]
        crf: CRF = CRF(features="names", n_threads=1)
        methods: dict[str, Callable[[], CRF]] = {
            "labelled sentences alone": lambda: CRF(**crf.get_params(deep=False)).fit(*some),  # noqa: B023
            "mean of three samples": lambda: bagged(crf, some),  # noqa: B023
            "self_train": lambda: self_train(crf, *some, more),  # noqa: B023
            "tri_train": lambda: tri_train(crf, *some, more),  # noqa: B023
        }
        for name, train_model in methods.items():
            print(f"{language}, {n}, {name} …", file=sys.stderr, flush=True)
            start = time.process_time()
            model = train_model()
            seconds = time.process_time() - start
            f1 = [f"{100 * model.score(*dev, decode=decode):.2f}" for decode in ("viterbi", "f1")]
            rows.append([language, str(n), name, *f1, f"{seconds:.1f}"])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unlabelled", description="few labels")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument("--language", action="append", choices=list(LANGUAGES), help="only this one")
    given = parser.parse_args(arguments)
    sizes = ((60,), 100) if given.quick else (LABELLED, UNLABELLED)
    rows = [row for name in given.language or LANGUAGES for row in rows_of(name, *sizes)]
    print(grid(["testa", "labelled", "method", "F1", 'F1, decode="f1"', "CPU s"], rows))


if __name__ == "__main__":
    main()
