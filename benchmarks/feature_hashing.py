"""`python -m benchmarks.feature_hashing`: what sharing weights by feature hashing costs.

CoNLL-2000, features of the preset `chunks`. The last tenth of the training sentences is held out; the test file is not
read. Models are trained on the others with features known by their names, and by buckets of their names.

    python -m benchmarks.feature_hashing [--bits 20 18 16 14 12] [--iterations 100] [--threads 1] [--quick]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.table import grid
from crfkit import CRF, LBFGS
from crfkit.data import read_pairs
from crfkit.evaluation import accuracy, span_report
from crfkit.models import ConvergenceWarning

CORPUS = ("conll2000", "train.txt")
HEAD = (
    "features known by",
    "of the data",
    "weights",
    "held-out F1",
    "accuracy",
    "model MB",
    "CPU s / iteration",
)


def measure(train: list[Any], held_out: list[Any], bits: int | None, options: Any, folder: Path) -> list[str]:
    """The row of a model."""
    optimizer = LBFGS(max_iterations=options.iterations)
    crf: CRF[str] = CRF(
        features="chunks", span_states=False, hash_bits=bits, optimizer=optimizer, n_threads=options.threads
    )
    cpu = time.process_time()
    crf.fit([x for x, _ in train], [y for _, y in train])
    cpu = time.process_time() - cpu
    gold = [y for _, y in held_out]
    found = crf.predict([x for x, _ in held_out])
    crf.save(folder / "model", single_precision=True)
    return [
        "names" if bits is None else f"2^{bits} buckets",
        f"{len(crf.encoder_.vocabulary):,}",
        f"{len(crf.weights_):,}",
        f"{100 * span_report(gold, found).overall.f1:.2f}",
        f"{100 * accuracy(gold, found):.2f}",
        f"{(folder / 'model').stat().st_size / 1e6:.1f}",
        f"{cpu / max(crf.n_iter_, 1):.2f}",
    ]


def main(given: list[str] | None = None) -> None:
    """Train, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bits", type=int, nargs="+", default=[20, 18, 16, 14, 12])
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(given)
    pairs = list(read_pairs(corpus_path(*CORPUS)))
    if options.quick:
        pairs, options.iterations = pairs[:200], 5
    cut = len(pairs) - len(pairs) // 10
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        sizes = [None, *options.bits]
        rows = [measure(pairs[:cut], pairs[cut:], bits, options, Path(folder)) for bits in sizes]
    print(f"{machine()}\n\n{grid(HEAD, rows)}")


if __name__ == "__main__":
    main()
