"""`python -m benchmarks.projectivity`: what trees with crossing arcs are worth.

A parser is trained on a language with free word order; then the same arc scores are decoded twice: over all trees with one
root (`Parser.predict`), and over the projective ones alone (Eisner's algorithm). Ancient Greek is trained on the dev file of
UD and tested on its test file, Latin on its own training file. One thread, CPU seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from crfkit import Parser, ProjectiveTree
from crfkit.data import Sentence, read_conllu
from crfkit.evaluation import TreeReport, evaluate_trees
from crfkit.inference import TreeBatch
from crfkit.structures import is_projective


class Language(NamedTuple):
    """A treebank to learn from and one to be tested on."""

    name: str
    folder: str
    train: str
    test: str


LANGUAGES = {
    "grc": Language(
        "Ancient Greek", "ancient_greek_perseus", "grc_perseus-ud-dev.conllu", "grc_perseus-ud-test.conllu"
    ),
    "la": Language("Latin", "ud_latin_perseus", "la_perseus-ud-train.conllu", "la_perseus-ud-test.conllu"),
}


class Outcome(NamedTuple):
    """Trees of the test sentences by one way to decode."""

    way: str
    trees: list[Sentence]
    cpu: float  # seconds


def projective_trees(parser: Parser, sentences: Sequence[Sentence]) -> list[Sentence]:
    """The best projective trees under the scores of the parser."""
    found = []
    trees = TreeBatch(ProjectiveTree(), parser.arc_scores(sentences)).decode()
    for sentence, tree in zip(sentences, trees, strict=True):
        words = [
            word._replace(head=head, deprel=parser.classes_[label])
            for word, (head, label) in zip(sentence.words, tree.output.tolist(), strict=True)
        ]
        found.append(replace(sentence, words=words))
    return found


def outcomes(parser: Parser, gold: Sequence[Sentence]) -> list[Outcome]:
    """The test sentences parsed both ways."""
    ways: dict[str, Callable[[], list[Sentence]]] = {
        "all trees": lambda: parser.predict(gold),
        "projective trees": lambda: projective_trees(parser, gold),
    }
    found = []
    for way, decode in ways.items():
        start = time.process_time()
        trees = decode()
        found.append(Outcome(way, trees, time.process_time() - start))
    return found


def is_projective_sentence(sentence: Sentence) -> bool:
    return is_projective(np.array([word.head or 0 for word in sentence.words], dtype=np.int32))


def report_on(outcome: Outcome, gold: Sequence[Sentence], *, projective: bool | None = None) -> TreeReport:
    """Of all sentences, or of those whose gold tree is projective, or is not."""
    pairs = [
        (right, found)
        for right, found in zip(gold, outcome.trees, strict=True)
        if projective is None or is_projective_sentence(right) == projective
    ]
    return evaluate_trees([right for right, _ in pairs], [found for _, found in pairs])


def table(found: Sequence[Outcome], gold: Sequence[Sentence]) -> str:
    """UAS and LAS as Markdown: of all sentences, of projective and of other ones."""
    head = "| decoded over | UAS | LAS | projective sentences: UAS | LAS | others: UAS | LAS | CPU s | non-projective |"
    rows = [head, "| --- |" + " ---: |" * 8]
    for outcome in found:
        reports = (report_on(outcome, gold, projective=kind) for kind in (None, True, False))
        figures = [f"{100 * share:.2f}" for report in reports for share in (report.uas, report.las)]
        crossing = sum(not is_projective_sentence(tree) for tree in outcome.trees) / len(outcome.trees)
        rows.append(f"| {outcome.way} | {' | '.join(figures)} | {outcome.cpu:.1f} | {100 * crossing:.1f} % |")
    return "\n".join(rows)


def measure(language: Language, limit: int | None, max_iterations: int | None) -> None:
    """Train, decode both ways, print."""
    train = list(islice(read_conllu(corpus_path(language.folder, language.train)), limit))
    gold = list(islice(read_conllu(corpus_path(language.folder, language.test)), limit))
    parser = Parser(structure="spanning", order=1, n_threads=1)
    if max_iterations is not None:
        parser.set_params(optimizer=replace(parser.optimizer, max_iterations=max_iterations))  # type: ignore[type-var]
    start = time.process_time()
    parser.fit(train)
    cpu = time.process_time() - start
    crossing = sum(not is_projective_sentence(sentence) for sentence in gold)
    print(
        f"\n{language.name}: {len(train)} training sentences ({cpu:.1f} CPU s), {len(gold)} test sentences, "
        f"{crossing} of them not projective ({100 * crossing / len(gold):.1f} %)\n"
    )
    print(table(outcomes(parser, gold), gold))


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="only this one; repeatable")
    parser.add_argument("--quick", action="store_true", help="few sentences, two iterations")
    options = parser.parse_args(arguments)
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    for name in options.language or LANGUAGES:
        measure(LANGUAGES[name], *((30, 2) if options.quick else (None, None)))


if __name__ == "__main__":
    main()
