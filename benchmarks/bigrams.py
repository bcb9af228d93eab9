"""`python -m benchmarks.bigrams`: what it saves that only some bigrams and some tags exist.

The setting of the BC-LCCRF paper: Ancient Greek (AGDT), all tags, the bigrams seen in training. Counted and timed: the
full chain, the tags of each word only, the bigrams only, and both; how the cost of a position grows with the labels and with
the bigrams; CRFsuite on a part that it can finish; and BIO names, with and without the constraint. One pass is the
value and the gradient of the objective over all sentences, in CPU seconds on one thread.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import crfkit
from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT
from crfkit.data import read_columns, read_conllu
from crfkit.evaluation import span_report
from crfkit.features import Annotation, Dataset, Encoder, FeatureMap, Labels, preset
from crfkit.objective import Objective
from crfkit.structures import AllowedLabels, Bigrams, Chain

RESULTS = PROJECT / "benchmarks" / "results"
Int32s = npt.NDArray[np.int32]
Pairs = tuple[Int32s, Int32s]


class Corpus(NamedTuple):
    """Sentences in numbers."""

    words: list[list[str]]
    tags: list[list[str]]
    dataset: Dataset
    annotation: Annotation
    labels: Labels
    n_features: int

    @property
    def observed(self) -> Pairs:
        """The bigrams of the tags, start and end included."""
        return Bigrams.observed(self.tags).ids(self.labels.classes)

    def of_words(self) -> AllowedLabels:
        """At each position the tags that its word was seen with."""
        seen = defaultdict(set)
        ids = iter(self.annotation.labels.tolist())
        for sentence in self.words:
            for word in sentence:
                seen[word].add(next(ids))
        return AllowedLabels.from_sets([seen[word] for sentence in self.words for word in sentence])


def greek(n_sentences: int | None) -> Corpus:
    """The first sentences of AGDT with their XPOS tags."""
    sentences = list(
        islice(read_conllu(corpus_path("ancient_greek_perseus", "agdt-train.conllu")), n_sentences)
    )
    words = [[word.form for word in sentence.words] for sentence in sentences]
    tags = [[word.xpos for word in sentence.words] for sentence in sentences]
    encoder = Encoder(preset("pos"))
    dataset = encoder.fit_encode(words)
    labels = Labels.learn(tags)
    annotation = labels.encode(tags, np.diff(dataset.sequence_ptr))
    return Corpus(words, tags, dataset, annotation, labels, len(encoder.vocabulary))


def pass_seconds(corpus: Corpus, bigrams: Pairs | None, allowed: AllowedLabels | None, repeats: int) -> float:
    """CPU seconds of one value and gradient, the best of some repeats."""
    dataset = Dataset(corpus.dataset.sequence_ptr, corpus.dataset.states, allowed=allowed)
    feature_map = FeatureMap.build(
        dataset,
        corpus.annotation,
        Chain(),
        n_labels=len(corpus.labels),
        n_features=corpus.n_features,
        bigrams=bigrams,
    )
    objective = Objective(feature_map.loss(dataset, corpus.annotation))
    weights = np.random.default_rng(0).normal(scale=0.1, size=feature_map.n_weights)
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        objective.value_and_gradient(weights)
        best = min(best, time.process_time() - start)
    return best


def arcs_per_position(
    corpus: Corpus, bigrams: Pairs | None, allowed: AllowedLabels | None
) -> tuple[float, float]:
    """m, the possible labels of a position, and the possible bigrams into a position, both on average."""
    n_labels, n_positions = len(corpus.labels), corpus.dataset.n_positions
    exists = np.ones((n_labels, n_labels), dtype=np.float32)
    if bigrams is not None:
        table = np.zeros((n_labels + 1, n_labels + 1), dtype=np.float32)
        table[bigrams] = 1
        exists = table[:-1, :-1]
    if allowed is None:
        linked = float(exists.sum())
        return float(n_labels), linked
    ptr, ids = allowed.position_ptr, allowed.labels
    sets = [ids[ptr[t] : ptr[t + 1]] for t in range(n_positions)]
    starts = set(corpus.dataset.sequence_ptr.tolist())
    arcs = sum(
        float(exists[np.ix_(sets[t - 1], sets[t])].sum()) for t in range(1, n_positions) if t not in starts
    )
    return len(ids) / n_positions, arcs / (n_positions - len(corpus.words))


def four_ways(n_sentences: int | None, dense_sentences: int, repeats: int) -> str:
    """Full chain, tags only, bigrams only, both: counted, and timed per pass.

    The full chain is timed on the first sentences, with all labels, and scaled up by its positions.
    """
    corpus = greek(n_sentences)
    few = Corpus(
        corpus.words[:dense_sentences],
        corpus.tags[:dense_sentences],
        *_first(corpus, dense_sentences),
        corpus.labels,
        corpus.n_features,
    )
    share = corpus.dataset.n_positions / few.dataset.n_positions
    observed, of_words = corpus.observed, corpus.of_words()
    lines = [
        f"Ancient Greek, {len(corpus.words):,} sentences, {corpus.dataset.n_positions:,} tokens, "
        f"{len(corpus.labels):,} tags, "
        f"{len(observed[0]):,} bigrams (start and end included)",
        "",
        "| what exists | tags a position, m | bigrams a position | seconds a pass | times the full chain |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    full = pass_seconds(few, None, None, 1) * share
    for name, bigrams, allowed in (
        ("everything", None, None),
        ("the tags seen with each word", None, of_words),
        ("the bigrams seen", observed, None),
        ("both", observed, of_words),
    ):
        m, arcs = arcs_per_position(corpus, bigrams, allowed)
        seconds = (
            full if bigrams is None and allowed is None else pass_seconds(corpus, bigrams, allowed, repeats)
        )
        lines.append(f"| {name} | {m:,.1f} | {arcs:,.1f} | {seconds:,.2f} | {full / seconds:,.1f}× |")
    lines.append(f"\nThe full chain was timed on {len(few.words):,} sentences and scaled up.")
    return "\n".join(lines)


def _first(corpus: Corpus, n: int) -> tuple[Dataset, Annotation]:
    """The first n sentences."""
    ptr = corpus.dataset.sequence_ptr[: n + 1]
    states, n_positions = corpus.dataset.states, int(ptr[-1])
    position_ptr = states.position_ptr[: n_positions + 1]
    features = type(states)(position_ptr, states.ids[: position_ptr[-1]], None)
    return Dataset(ptr, features), Annotation(corpus.annotation.labels[:n_positions])


def growth(repeats: int) -> str:
    """Microseconds a position on random data, against L at a fixed number of bigrams a label, and against |B|."""
    by_labels = [(n_labels, 30) for n_labels in (128, 256, 512, 1024, 2048)]
    by_bigrams = [(1024, per_label) for per_label in (5, 15, 30, 60, 120)]
    parts = ["Cost of a position (random sequences of 20 positions, 10 features a position):"]
    for settings in (by_labels, by_bigrams):
        seconds = [random_position(n_labels, per_label, repeats) for n_labels, per_label in settings]
        lines = ["| labels L | bigrams in B | microseconds a position | |", "| ---: | ---: | ---: | --- |"]
        for (n_labels, per_label), cost in zip(settings, seconds, strict=True):
            bar = "█" * max(1, round(40 * cost / max(seconds)))
            lines.append(f"| {n_labels:,} | {n_labels * per_label:,} | {cost:.1f} | {bar} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def random_position(n_labels: int, per_label: int, repeats: int) -> float:
    """Microseconds of a pass for each position of random sequences, with so many bigrams out of every label."""
    rng = np.random.default_rng(0)
    n_sentences, length, n_features = 160, 20, 2000
    before = np.repeat(np.arange(n_labels), per_label)
    after = (before + rng.integers(0, n_labels, len(before))) % n_labels
    walk = np.empty((n_sentences, length), dtype=np.int64)
    walk[:, 0] = rng.integers(0, n_labels, n_sentences)
    by_label = after.reshape(n_labels, per_label)
    for t in range(1, length):
        walk[:, t] = by_label[walk[:, t - 1], rng.integers(0, per_label, n_sentences)]
    every = np.arange(n_labels)
    pairs = np.unique(
        np.concatenate(
            [
                np.stack([before, after]),
                np.stack([np.full(n_labels, n_labels), every]),
                np.stack([every, np.full(n_labels, n_labels)]),
            ],
            axis=1,
        ),
        axis=1,
    ).astype(np.int32)
    n_positions = n_sentences * length
    encoder = Encoder(None)
    features = rng.integers(0, n_features, (n_positions, 10))
    X = [
        [[f"f{f}" for f in position] for position in features[n : n + length]]
        for n in range(0, n_positions, length)
    ]
    dataset = encoder.fit_encode(X)
    labels = Labels(range(n_labels))
    annotation = Annotation(walk.reshape(-1).astype(np.int32))
    corpus = Corpus([], [], dataset, annotation, labels, len(encoder.vocabulary))
    return 1e6 * pass_seconds(corpus, (pairs[0], pairs[1]), None, repeats) / n_positions


def beside_crfsuite(n_sentences: int, iterations: int) -> str:
    """CPU seconds an iteration of CRFsuite and crfkit on the first sentences of the same corpus."""
    import pycrfsuite

    corpus = greek(n_sentences)
    X = [[[f"w={w}", *(f"s{k}={w[-k:]}" for k in range(1, 5))] for w in words] for words in corpus.words]
    trainer = pycrfsuite.Trainer("lbfgs", {"c2": 0.5, "max_iterations": iterations}, verbose=False)
    for features, tags in zip(X, corpus.tags, strict=True):
        trainer.append(features, tags)
    start = time.process_time()
    trainer.train("/dev/null")
    rival = (time.process_time() - start) / iterations
    lines = [
        f"CRFsuite on the first {n_sentences:,} sentences ({len(corpus.labels):,} tags), CPU seconds an iteration:",
        "",
        "| CRFsuite | crfkit, all bigrams | crfkit, bigrams seen |",
        "| ---: | ---: | ---: |",
    ]
    ours = []
    for bigrams in (None, "observed"):
        model = crfkit.CRF(
            structure=Chain(bigrams=bigrams),
            optimizer=crfkit.LBFGS(max_iterations=iterations, tolerance=0.0, change=0.0),
            n_threads=1,
        )
        start = time.process_time()
        model.fit(X, corpus.tags)
        ours.append((time.process_time() - start) / iterations)
    lines.append("| " + " | ".join([f"{rival:.2f}", *(f"{s:.2f} ({rival / s:.0f}×)" for s in ours)]) + " |")
    return "\n".join(lines)


def names(language: str, iterations: int) -> str:
    """BIO names of CoNLL-2002: F1 and invalid transitions, with and without the constraint."""
    data: dict[str, Any] = {}
    for split in ("train", "testb"):
        sequences = list(read_columns(corpus_path("conll2002", f"{language}.{split}"), comment=None))
        data[split] = (
            [[row[0] for row in sequence.rows] for sequence in sequences],
            [[row[-1] for row in sequence.rows] for sequence in sequences],
        )
    (X, y), (test, gold) = data["train"], data["testb"]
    bio = Bigrams.scheme("bio", sorted({tag for tags in y for tag in tags}))
    lines = [
        f"CoNLL-2002, {language}, testb:",
        "",
        "| bigrams | F1, % | invalid sequences |",
        "| --- | ---: | ---: |",
    ]
    for name, structure in (("all", Chain()), ("bio", Chain(bigrams="bio", unseen="skip"))):
        model = crfkit.CRF(
            structure=structure, features="names", optimizer=crfkit.LBFGS(max_iterations=iterations)
        )
        predicted = model.fit(X, y).predict(test)
        f1 = span_report(gold, predicted, "IOB2").overall.f1
        invalid = sum(not bio.allows(tags) for tags in predicted)
        lines.append(f"| {name} | {f1:.2%} | {invalid} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write to the folder of results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bigrams", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test on a part of the data")
    parser.add_argument("--out", type=Path, help=f"folder of results (default {RESULTS}; none with --quick)")
    given = parser.parse_args(arguments)
    quick = given.quick
    parts = [
        " ".join(f"{key} {value}" for key, value in machine().items()),
        four_ways(300 if quick else None, 20 if quick else 400, 1 if quick else 2),
        growth(1 if quick else 3),
        beside_crfsuite(30 if quick else 800, 2 if quick else 5),
        *(names(language, 3 if quick else 300) for language in ("esp", "ned")),
    ]
    text = "\n\n".join(parts)
    print(text)
    out = given.out or (None if quick else RESULTS)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "bigrams.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
