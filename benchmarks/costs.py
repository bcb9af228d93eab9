"""`python -m benchmarks.costs`: precision against recall of names, moved by costs of mistakes.

CoNLL-2002, first-order chains on the preset `names`: trained on `train`, measured on `testa`, the development data; testb is
not read. A number c is what `CRF.fit(costs=c)` takes: from 0 on, missing a name costs c at each of its words, below 0,
inventing one costs −c. Beside Viterbi's labels: the spans with the highest expected F1. The rival of a cost is a threshold
on the probabilities of spans, without costs: the one that gives the same number of spans. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.measure import PROJECT, Outcome
from benchmarks.span_probabilities import LANGUAGES, Data, read
from benchmarks.table import grid
from crfkit import CRF, Span
from crfkit.evaluation import span_precision_recall

RESULTS = PROJECT / "benchmarks" / "results"
COSTS = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)
QUICK = 400  # sentences of each file
LEAST = 0.001  # probability of the spans that thresholds choose from

Figures = dict[str, float]


def rate(dev: Data, found: list[list[Span]]) -> Figures:
    """Precision, recall and F1 of predicted spans."""
    point = span_precision_recall(dev.y, found).at(0.0)
    return {"precision": point.precision, "recall": point.recall, "f1": point.f1}


def as_many(plain: CRF, dev: Data, n: int) -> list[list[Span]]:
    """The n likeliest spans of a model."""
    every = plain.predict_spans(dev.X, LEAST)
    ranked = sorted((span.probability for some in every for span in some), reverse=True)
    least = ranked[min(n, len(ranked)) - 1] if ranked and n else 2.0
    return [[span for span in some if span.probability >= least] for some in every]


def measure(language: str, limit: int | None) -> list[Outcome]:
    """A row for each cost, from the one without."""
    train, dev = read(language, "train", limit), read(language, "testa", limit)
    plain = CRF(features="names", n_threads=1).fit(*train)
    rows: list[Any] = []
    for cost in COSTS:
        print(f"{language}, cost {cost:g} …", file=sys.stderr, flush=True)
        start = time.process_time()
        crf = CRF(features="names", n_threads=1).fit(*train, costs=cost, start=plain)
        seconds = time.process_time() - start
        viterbi = crf.predict_spans(dev.X, decode="viterbi")
        rows.append(
            {
                "cost": cost,
                "seconds": seconds,
                "viterbi": rate(dev, viterbi),
                "f1": rate(dev, crf.predict_spans(dev.X, decode="f1")),
                "threshold": rate(dev, as_many(plain, dev, sum(map(len, viterbi)))),
            }
        )
    return rows


def markdown(results: Outcome) -> str:
    """A table for each language."""
    blocks = [
        f"{results['machine']['processor']}, Python {results['machine']['python']}; one thread, CPU seconds."
    ]
    for language, rows in results["languages"].items():
        head = [f"{language}, testa: cost", "precision", "recall", "F1", "F1, spans of highest expected F1"]
        head += ["precision, recall of as many spans without costs", "seconds"]
        table = []
        for row in rows:
            viterbi, rival = row["viterbi"], row["threshold"]
            cells = [f"{row['cost']:+g}" if row["cost"] else "0"]
            cells += [f"{100 * viterbi[name]:.2f}" for name in ("precision", "recall", "f1")]
            cells += [
                f"{100 * row['f1']['f1']:.2f}",
                f"{100 * rival['precision']:.2f}, {100 * rival['recall']:.2f}",
            ]
            table.append([*cells, f"{row['seconds']:.1f}"])
        blocks.append(grid(head, table))
    return "\n\n".join(blocks)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print the tables, and write them with all figures to the folder of results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description="costs of mistakes")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument("--language", action="append", choices=list(LANGUAGES), help="only this one")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    given = parser.parse_args(arguments)
    found = {name: measure(name, QUICK if given.quick else None) for name in given.language or ["spanish"]}
    results = {"machine": machine(), "languages": found}
    text = markdown(results)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "costs.md").write_text(text + "\n", encoding="utf-8")
        (out / "costs.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
