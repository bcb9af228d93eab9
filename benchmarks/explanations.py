"""`python -m benchmarks.explanations`: what does an explanation cost beside the probabilities of the same sequence?

`explain` of one position of each sentence against `predict_marginals` of the sentence, `explain_span` of each span of the
best labels against `predict_spans`, and `explain_arc` of one word against `arc_probabilities`: CPU seconds on one thread,
the least of several repeats for each sentence, summed over sentences. Models are those of CoNLL-2000 (chunks, from lists of
strings and from the preset), of CoNLL-2002 (Spanish names) and of a treebank; sentences are training sentences, as
nothing but time is asked. ``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import crfkit
from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.table import grid
from benchmarks.tasks import CHUNK, chunk_features, sentences
from crfkit.data import read_columns, read_conllu

REPEATS = 15


class Row(NamedTuple):
    """A question on some sentences."""

    model: str
    question: str
    n: int
    probabilities: float  # CPU seconds
    explanations: float

    @property
    def ratio(self) -> float:
        """Of both."""
        return self.explanations / self.probabilities


def least(function: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the fastest of some calls."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time_ns()
        function()
        best = min(best, time.process_time_ns() - begin)
    return best / 1e9


def positions(name: str, crf: Any, X: Sequence[Any], repeats: int) -> Row:
    """`explain` of the position in the middle."""
    asked = sum(least(partial(crf.predict_marginals, [x]), repeats) for x in X)
    explained = sum(least(partial(crf.explain, x, len(x) // 2), repeats) for x in X)
    return Row(name, "explain", len(X), asked, explained)


def spans(name: str, crf: Any, X: Sequence[Any], repeats: int) -> Row:
    """`explain_span` of the first span of the best labels."""
    best = zip(X, crf.predict_spans(X, decode="viterbi"), strict=True)
    found = [(x, some[0]) for x, some in best if some]
    asked = sum(least(partial(crf.predict_spans, [x]), repeats) for x, _ in found)
    explained = sum(least(partial(crf.explain_span, x, *span[:3]), repeats) for x, span in found)
    return Row(name, "explain_span", len(found), asked, explained)


def arcs(name: str, parser: Any, trees: Sequence[Any], repeats: int) -> Row:
    """`explain_arc` of the word in the middle."""
    trees = [tree for tree in trees if len(tree.words) > 1]
    asked = sum(least(partial(parser.arc_probabilities, [tree]), repeats) for tree in trees)
    explained = sum(
        least(partial(parser.explain_arc, tree, (len(tree.words) + 1) // 2), repeats) for tree in trees
    )
    return Row(name, "explain_arc", len(trees), asked, explained)


def measure(n_train: int, n_asked: int, repeats: int) -> Iterator[Row]:
    """All rows."""
    quick: Any = {"optimizer": crfkit.AveragedPerceptron(max_iterations=3), "n_threads": 1}
    rows = sentences("train")[:n_train]
    chunks = [[row[CHUNK] for row in some] for some in rows]
    listed, columns = (
        [chunk_features(some) for some in rows],
        [[row[:CHUNK] for row in some] for some in rows],
    )
    crf = crfkit.CRF(**quick).fit(listed, chunks)
    yield positions("CoNLL-2000, lists", crf, listed[:n_asked], repeats)
    yield spans("CoNLL-2000, lists", crf, listed[:n_asked], repeats)
    crf = crfkit.CRF(features="chunks", span_states=False, **quick).fit(columns, chunks)
    yield positions("CoNLL-2000, preset", crf, columns[:n_asked], repeats)
    path = corpus_path("conll2002", "esp.train")
    names = [found.rows for found in islice(read_columns(path, comment=None), n_train)]
    X, y = [[row[:1] for row in some] for some in names], [[row[-1] for row in some] for some in names]
    for title, structure in (
        ("CoNLL-2002, preset", crfkit.Chain()),
        ("CoNLL-2002, bigrams", crfkit.Chain(bigrams="bio")),
        ("CoNLL-2002, patterns", crfkit.Patterns(["B-PER O B-PER", "B-LOC O B-LOC"])),
        ("CoNLL-2002, segments", crfkit.Segments(longest_weighted=6)),
    ):
        crf = crfkit.CRF(structure, features="names", **quick).fit(X, y)
        yield positions(title, crf, X[:n_asked], repeats)
        yield spans(title, crf, X[:n_asked], repeats)
    trees = [*islice(read_conllu(corpus_path("ud_english_ewt", "en_ewt-ud-train.conllu")), n_train // 4)]
    for structure_, order in (("spanning", 1), ("projective", 2)):
        parser = crfkit.Parser(
            structure=structure_, order=order, optimizer=crfkit.AdaGrad(max_iterations=1), n_threads=1
        ).fit(trees)
        yield arcs(f"UD English, {structure_}, order {order}", parser, trees[: n_asked // 2], repeats)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--quick", action="store_true", help="few sentences")
    options = reader.parse_args(arguments)
    sizes = (120, 4, 2) if options.quick else (4000, 100, REPEATS)
    rows = list(measure(*sizes))
    print(machine())
    head = ["model", "question", "sentences", "probabilities, µs", "explanation, µs", "ratio"]
    cells = [
        [
            row.model,
            row.question,
            str(row.n),
            f"{1e6 * row.probabilities / row.n:.0f}",
            f"{1e6 * row.explanations / row.n:.0f}",
            f"{row.ratio:.2f}",
        ]
        for row in rows
    ]
    print(grid(head, cells))


if __name__ == "__main__":
    main()
