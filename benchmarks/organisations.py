"""`python -m benchmarks.organisations`: Chinese organisation names, first order, reranked and with patterns or segments.

The setting of the SHO-CRF paper, Table 4, on the files at hand: MSRA (SIGHAN 2006) instead of the paper's year, ORG only,
one label B I E S O for each character, characters and pairs of characters in a window of 5, F1 of exact spans. Side by
side: a first-order chain; the same given the matches of the gazetteers as local features, and the 10, 20, 50 and 100 best
label sequences of this one reranked by an averaged perceptron over higher-order features; the first chain with these
features as patterns, whose training begins with its weights; and segments, with those that look at one span. `--part types`
trains segments on persons, places and organisations, and counts organisations; `--part names` counts all three.

Held out of the training data are either blocks of neighbouring sentences (`--held-out blocks`), whose articles are learned
from in part, or its last sentences (`--held-out end`), whose articles are new, as those of the test set are. `--part
penalties` and `--part families` measure what there is to choose.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from benchmarks.gazetteers import KINDS, Gazetteers, columns
from benchmarks.machine import machine
from benchmarks.measure import PROJECT
from benchmarks.memory import peak_mb
from benchmarks.msra import BLOCK, END, QUICK, TEST, Corpus, corpora
from benchmarks.name_patterns import NamePatterns, Row
from benchmarks.name_segments import NameSegments
from benchmarks.name_types import choose, only_organisations, span_labels, without_marks
from benchmarks.reranking import Candidates, Reranker
from benchmarks.scored_labels import ScoredLabels, active, runs_of
from benchmarks.use_log import log_test
from crfkit import CRF, LBFGS, Chain, Patterns, SegmentMatches, Segments
from crfkit.evaluation import SpanCounts, span_report
from crfkit.models import UnreadColumns, UnsavableModel

RESULTS = PROJECT / "benchmarks" / "results"
PARTS = ("table", "penalties", "families", "segments", "types", "names")
N_BEST = (10, 20, 50, 100)
SURE = 0.99  # a list whose first label sequence is right and at least so probable teaches a reranker nothing
EPOCHS = 5
PORTION = 2_000  # sentences whose lists are in memory at a time
ITERATIONS, TOLERANCE = 250, 3e-4  # fewer iterations cost the chains with matches several points
PATTERN_ITERATIONS = 60  # that begin with the weights of a chain
L2 = {"patterns": 1.0, "default": 1.0}
SEGMENT_ITERATIONS = 80
SEGMENT_L2 = {"segments": 3.0, "default": 1.0}
TYPES = LBFGS(max_iterations=150, tolerance=1e-4)  # of segments of three types
LEAST, CHOSEN = 0.02, 0.35  # probabilities: of spans that are asked for, and of those that are chosen
PENALTIES = (0.3, 1.0, 3.0)

WINDOW = [
    *(f"U{i}:%x[{offset},0]" for i, offset in enumerate(range(-2, 3))),
    *(f"U1{i}:%x[{offset},0]/%x[{offset + 1},0]" for i, offset in enumerate(range(-2, 2))),
    "B",
]
MATCHES = [
    line
    for c in range(1, len(KINDS) + 1)
    for line in (
        *(f"U{c + 1}{i}:%x[{offset},{c}]" for i, offset in enumerate(range(-2, 3))),
        f"U{c + 1}5:%x[-1,{c}]/%x[0,{c}]",
        f"U{c + 1}6:%x[0,{c}]/%x[1,{c}]",
        f"U{c + 1}7:%x[0,{c}]/%x[0,0]",
    )
] + ["U90:" + "/".join(f"%x[0,{c}]" for c in range(1, len(KINDS) + 1))]


class Outcome(NamedTuple):
    """How one model did."""

    name: str
    counts: SpanCounts
    seconds: float  # of training, in CPU seconds

    def row(self) -> str:
        """Of a table."""
        figures = (
            f"{100 * figure:.2f}" for figure in (self.counts.precision, self.counts.recall, self.counts.f1)
        )
        return f"| {self.name} | {' | '.join(figures)} | {self.seconds:,.0f} |"


def rows(texts: Sequence[str], gazetteers: Gazetteers) -> list[list[Row]]:
    """The characters of each sentence, with the columns of the gazetteers."""
    return [
        [
            (character, *position)
            for character, position in zip(text, columns(text, gazetteers.matches(text)), strict=True)
        ]
        for text in texts
    ]


def first_order(*, matches: bool, l2: float = L2["default"]) -> CRF:
    """A chain over characters, and over what the gazetteers say of each position."""
    return _model(Chain(), [*(MATCHES if matches else ()), *WINDOW], l2)


def higher_order(
    gazetteers: Gazetteers,
    families: Sequence[str] = NamePatterns.FAMILIES,
    l2: float = L2["patterns"],
) -> CRF:
    """The chain over characters, and patterns, whose penalty is given."""
    structure = Patterns([NamePatterns(gazetteers, families)])
    return _model(structure, WINDOW, {**L2, "patterns": l2})


def semi_markov(
    gazetteers: Gazetteers | None,
    families: Sequence[str] = NameSegments.FAMILIES,
    l2: Mapping[str, float] = SEGMENT_L2,
) -> CRF:
    """Segments over characters, with the rules of the gazetteers as features of whole segments if they are given."""
    rules = () if gazetteers is None else SegmentMatches(NameSegments(gazetteers, families), unseen=True)
    return _model(Segments(scheme="iobes", segment_features=rules), WINDOW, dict(l2))


def _model(
    structure: Chain | Patterns | Segments, template: Sequence[str], l2: float | dict[str, float]
) -> CRF:
    iterations = {Patterns: PATTERN_ITERATIONS, Segments: SEGMENT_ITERATIONS}.get(type(structure), ITERATIONS)
    optimizer = LBFGS(max_iterations=iterations, tolerance=TOLERANCE)
    return CRF(structure, "\n".join(template), optimizer, l2=l2)


class Experiment:
    """Training data and data to test on, as the models see them."""

    def __init__(self, train: Corpus, test: Corpus, asked: str | None = None) -> None:
        """Only the training data make the gazetteers; `asked` is the test file, where it is one, for the log."""
        self.asked = asked
        self.gazetteers = train.gazetteers()
        self.patterns = NamePatterns(self.gazetteers)
        self.X, self.y, self.types = rows(train.texts, self.gazetteers), train.labels, train.types
        self.test, self.gold = rows(test.texts, self.gazetteers), test.labels
        self.gold_types = [without_marks(labels) for labels in test.types]

    def outcome(self, name: str, model: CRF, start: CRF | None = None) -> Outcome:
        """Train and test a model, beginning with the weights of another one."""
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsavableModel)  # patterns hold gazetteers, which no file does
            model.fit(self.X, self.y, start=start)
        seconds = time.process_time() - began
        return self._outcome(name, model.predict(self.test), seconds)

    def segment_outcomes(self, name: str, model: CRF) -> list[Outcome]:
        """Train segments; test the best labels, and the spans of the highest expected F1."""
        best = self.outcome(name, model)
        found = model.predict_spans(self.test, decode="f1")
        predicted = [span_labels(len(x), spans) for x, spans in zip(self.test, found, strict=True)]
        return [best, self._outcome(f"{name}, highest expected F1", predicted, best.seconds)]

    def typed_outcomes(self) -> list[Outcome]:
        """Train segments on organisations and on all names; test both, and the mean of their probabilities."""
        plain, typed = semi_markov(self.gazetteers), semi_markov(self.gazetteers).set_params(optimizer=TYPES)
        outcomes = [self.outcome("segments", plain)]
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsavableModel)
            typed.fit(self.X, self.types)
        seconds = time.process_time() - began
        best = [only_organisations(labels) for labels in typed.predict(self.test)]
        outcomes.append(self._outcome("segments, three types", best, seconds))
        probabilities = [model.predict_spans(self.test, LEAST) for model in (plain, typed)]
        both = seconds + outcomes[0].seconds
        for name, found, cost in (
            ("segments, three types", probabilities[1:], seconds),
            ("mean of both", probabilities, both),
        ):
            sure = [choose(some, CHOSEN) for some in zip(*found, strict=True)]
            labels = [span_labels(len(x), chosen) for x, chosen in zip(self.test, sure, strict=True)]
            outcomes.append(self._outcome(f"{name}, from {CHOSEN} on", labels, cost))
        return outcomes

    def name_outcomes(self) -> list[Outcome]:
        """Train segments on all names; test them by best labels, and by the spans of the highest expected F1."""
        model = semi_markov(self.gazetteers).set_params(optimizer=TYPES)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsavableModel)
            model.fit(self.X, self.types)
        seconds = time.process_time() - began
        outcomes = []
        for name, decode in (("best labels", "viterbi"), ("highest expected F1", "f1")):
            labels = [without_marks(found) for found in model.predict(self.test, decode=decode)]
            report = span_report(self.gold_types, labels, "IOBES")
            counted = {"all names": report.overall, **report.types}
            outcomes += [Outcome(f"{kind}, {name}", counts, seconds) for kind, counts in counted.items()]
            print(outcomes[-len(counted)].row(), file=sys.stderr, flush=True)
            if self.asked is not None:
                log_test(self.asked, f"organisations --part names, {name}", report.overall.f1)
        return outcomes

    def _outcome(self, name: str, predicted: Sequence[Sequence[Hashable]], seconds: float) -> Outcome:
        outcome = Outcome(name, span_report(self.gold, predicted, "IOBES").overall, seconds)
        print(outcome.row(), file=sys.stderr, flush=True)
        return outcome

    def reranked(self, base: CRF) -> list[Outcome]:
        """The best label sequences of a trained chain, reranked.

        Each half of the training data is labelled by a chain that learned from the other: of its own, it would be too sure,
        and nearly so of the articles that it has read in part. Hence the halves are made of blocks.
        """
        start = time.process_time()
        halves = [[n for n in range(len(self.X)) if n // BLOCK % 2 == half] for half in (0, 1)]
        lists: list[tuple[Candidates, list[str]]] = []
        for learned, labelled in (halves, reversed(halves)):
            chain = first_order(matches=True).fit([self.X[n] for n in learned], [self.y[n] for n in learned])
            lists += self.lists(chain, labelled)
        seconds = time.process_time() - start
        asked = [self.candidates(x, best) for x, best in self.n_best(base, self.test)]
        outcomes = []
        for n_best in N_BEST:
            start = time.process_time()
            reranker = Reranker(active, EPOCHS)
            reranker.fit([(candidates[:n_best], labels) for candidates, labels in lists])
            taken = seconds + time.process_time() - start
            predicted = [reranker.best(candidates[:n_best]) for candidates in asked]
            outcomes.append(self._outcome(f"{n_best}-best reranking", predicted, taken))
        return outcomes

    def lists(self, chain: CRF, sentences: Sequence[int]) -> Iterator[tuple[Candidates, list[str]]]:
        """Of sentences of the training data, the best label sequences and the right one, where there is something to
        learn.
        """
        found = self.n_best(chain, [self.X[n] for n in sentences])
        for n, (x, best) in zip(sentences, found, strict=True):
            if best[0][0] < SURE or best[0][1] != self.y[n]:
                yield self.candidates(x, best), self.y[n]

    def n_best(self, chain: CRF, X: Sequence[list[Row]]) -> Iterator[tuple[list[Row], Candidates]]:
        """Each sentence with its best label sequences, asked for in portions: the lists are long."""
        for begin in range(0, len(X), PORTION):
            portion = X[begin : begin + PORTION]
            yield from zip(portion, chain.predict_nbest(portion, max(N_BEST)), strict=True)

    def candidates(self, x: list[Row], best: Candidates) -> Candidates:
        """The best label sequences of a sentence, with what is seen in them."""
        runs = runs_of(self.patterns(x))
        return [(probability, ScoredLabels(labels, runs)) for probability, labels in best]


def table(experiment: Experiment) -> str:
    """All ways side by side."""
    plain, matched = first_order(matches=False), first_order(matches=True)
    chains = [
        experiment.outcome("first order", plain),
        experiment.outcome("first order, matches as local features", matched),
    ]
    patterns = experiment.outcome("higher order: patterns", higher_order(experiment.gazetteers), plain)
    cut = experiment.segment_outcomes("segments", semi_markov(experiment.gazetteers))
    return _markdown([*chains, *experiment.reranked(matched), patterns, *cut])


def segments(experiment: Experiment) -> str:
    """Segments without and with the rules."""
    return _markdown(
        [
            *experiment.segment_outcomes("segments without rules", semi_markov(None)),
            *experiment.segment_outcomes("segments", semi_markov(experiment.gazetteers)),
        ]
    )


def types(experiment: Experiment) -> str:
    """Segments that learn from persons and places too."""
    return _markdown(experiment.typed_outcomes())


def names(experiment: Experiment) -> str:
    """Segments that learn from all names, counted by type."""
    return _markdown(experiment.name_outcomes())


def penalties(experiment: Experiment) -> str:
    """What penalties do to the chains and to patterns."""
    outcomes = []
    for l2 in PENALTIES:
        for matches, name in ((False, "first order"), (True, "first order, matches as local features")):
            model = first_order(matches=matches, l2=l2)
            outcomes.append(experiment.outcome(f"{name}, l2 = {l2}", model))
    base = first_order(matches=False).fit(experiment.X, experiment.y)
    for l2 in PENALTIES:
        model = higher_order(experiment.gazetteers, l2=l2)
        outcomes.append(experiment.outcome(f"higher order, l2 of patterns = {l2}", model, base))
    for l2, of_rules in product(PENALTIES[1:], repeat=2):
        model = semi_markov(experiment.gazetteers, l2={"default": l2, "segments": of_rules})
        outcomes += experiment.segment_outcomes(f"segments, l2 = {l2}, of rules {of_rules}", model)
    return _markdown(outcomes)


def families(experiment: Experiment) -> str:
    """What each family of patterns brings alone."""
    base = first_order(matches=False)
    outcomes = [experiment.outcome("no patterns", base)]
    for family in NamePatterns.FAMILIES:
        model = higher_order(experiment.gazetteers, [family])
        outcomes.append(experiment.outcome(f"only {family}", model, base))
    return _markdown(outcomes)


def _markdown(outcomes: Sequence[Outcome]) -> str:
    lines = [
        "| | precision, % | recall, % | F1, % | training, CPU seconds |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    return "\n".join([*lines, *(outcome.row() for outcome in outcomes)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write to the folder of results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.organisations", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="a smoke test on a part of the data")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this (repeatable)")
    parser.add_argument("--share", type=int, help="only so many training sentences, the first ones")
    parser.add_argument("--held-out", choices=("blocks", "end"), help="test on a part of the training data")
    parser.add_argument("--last", type=int, default=END, help=f"sentences of --held-out end ({END:,})")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    given = parser.parse_args(arguments)
    share = QUICK if given.quick else given.share
    train, test = corpora(share, given.held_out, last=given.last, quick=given.quick)
    asked = TEST if given.held_out is None and not given.quick else None
    experiment = Experiment(train, test, asked)
    warnings.simplefilter("ignore", UnreadColumns)  # only patterns read the columns of gazetteers
    measured = {
        "table": table,
        "penalties": penalties,
        "families": families,
        "segments": segments,
        "types": types,
        "names": names,
    }
    texts = [
        " ".join(f"{key} {value}" for key, value in machine().items()),
        f"{len(train.texts):,} sentences to learn from, {len(test.texts):,} "
        f"{'of the training data held out' if given.held_out else 'of the test set'}",
        *(measured[part](experiment) for part in given.part or ("table",)),
        f"most memory: {peak_mb():,.0f} MB",
    ]
    text = "\n\n".join(texts)
    print(text)
    out = given.out or (None if given.quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "organisations.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
