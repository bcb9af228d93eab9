"""Tags and noun-phrase chunks together, by a factorial conditional random field, against one chain after the other.

Sutton, Rohanimanesh and McCallum (2004) report that a factorial CRF needs half of the training sentences for the accuracy
of two chains in a row. Here: CoNLL-2000, the first n sentences of the training file.

    tags then chunks   a chain for the tags; a chain for the chunks that reads tags: gold ones in training, then predicted
    factorial          one graph: tags and chunks of a sentence are two chains, whose labels are joined at each position
    wider factorial    the same, and a chunk is joined with the tags before and after it as well
    chunks alone       a chain for the chunks that knows no tags

All have the same features of words. The penalty is chosen among three on held-out sentences, the last 500 of the training
file; the test file is read once, with `--test`.

    python -m benchmarks.factorial_crf [--sizes 50 100 …] [--model factorial] [--threads 1] [--jobs 3] [--test]

`--jobs` trains the penalties of a row in as many processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

from benchmarks.tasks import sentences
from crfkit import CRF, LBFGS, GraphCRF
from crfkit.evaluation import span_report
from crfkit.features import GraphInput

SIZES = (50, 100, 200, 400, 800)
STRENGTHS = (0.03, 0.1, 0.3)
OPTIMIZER = LBFGS(max_iterations=100)
HELD_OUT = 500


class Sentences(NamedTuple):
    """Words, tags and chunks."""

    words: list[list[str]]
    tags: list[list[str]]
    chunks: list[list[str]]

    def part(self, begin: int, end: int) -> Sentences:
        """Some of the sentences."""
        return Sentences(self.words[begin:end], self.tags[begin:end], self.chunks[begin:end])


class Scores(NamedTuple):
    """On some sentences."""

    tags: float  # accuracy
    chunks: float  # F1 of noun phrases


def read(split: str) -> Sentences:
    """A file of CoNLL-2000, of whose chunks noun phrases stay."""
    rows = sentences(split)
    return Sentences(
        [[row[0] for row in sentence] for sentence in rows],
        [[row[1] for row in sentence] for sentence in rows],
        [[row[2] if row[2].endswith("-NP") else "O" for row in sentence] for sentence in rows],
    )


def word_features(words: Sequence[str], i: int) -> list[str]:
    """What a position's words say: itself, its affixes and form, and its neighbours."""
    word = words[i]
    found = [
        f"w={word}",
        f"l={word.lower()}",
        f"upper={word[0].isupper()}",
        f"digit={any(map(str.isdigit, word))}",
    ]
    found += [f"s{k}={word[-k:].lower()}" for k in (1, 2, 3)] + [
        f"p{k}={word[:k].lower()}" for k in (1, 2, 3)
    ]
    for offset in (-2, -1, 1, 2):
        near = words[i + offset].lower() if 0 <= i + offset < len(words) else "none"
        found.append(f"w{offset}={near}")
    return found


def factorial(words: Sequence[str], graph: GraphInput) -> None:
    """Two chains, joined at each position."""
    for i in range(len(words)):
        features = word_features(words, i)
        graph.variable(("tag", i), "tag")
        graph.variable(("chunk", i), "chunk")
        graph.factor("tag", [("tag", i)], features)
        graph.factor("chunk", [("chunk", i)], features)
        graph.factor("tag and chunk", [("tag", i), ("chunk", i)])
        if i > 0:
            graph.factor("tags", [("tag", i - 1), ("tag", i)])
            graph.factor("chunks", [("chunk", i - 1), ("chunk", i)])


def wider_factorial(words: Sequence[str], graph: GraphInput) -> None:
    """Two chains; each chunk is joined with the tags of three positions."""
    factorial(words, graph)
    for i in range(1, len(words)):
        graph.factor("tag before", [("tag", i - 1), ("chunk", i)])
        graph.factor("tag after", [("tag", i), ("chunk", i - 1)])
        graph.factor("two tags", [("tag", i - 1), ("tag", i), ("chunk", i)])


def chain_features(words: Sequence[str], tags: Sequence[str] | None = None) -> list[list[str]]:
    """The features of a chain, with those of tags where it reads them."""
    found = [word_features(words, i) for i in range(len(words))]
    if tags is not None:
        padded = ["none", "none", *tags, "none", "none"]
        for i, features in enumerate(found):
            features += [f"t{k}={padded[i + 2 + k]}" for k in (-2, -1, 0, 1, 2)]
            features.append(f"tt={padded[i + 1]} {padded[i + 2]}")
    return found


def evaluate(
    data: Sentences, tags: Sequence[Sequence[str]] | None, chunks: Sequence[Sequence[str]]
) -> Scores:
    """Accuracy of tags and F1 of chunks."""
    pairs = [
        a == b
        for gold, found in zip(data.tags, tags or data.tags, strict=True)
        for a, b in zip(gold, found, strict=True)
    ]
    return Scores(sum(pairs) / len(pairs), span_report(data.chunks, chunks, "BIO").overall.f1)


class Contender:
    """Trained on sentences; asked for the scores on others."""

    def __init__(self, l2: float, n_threads: int | None) -> None:
        self.settings: dict[str, Any] = {"optimizer": OPTIMIZER, "l2": l2, "n_threads": n_threads}

    def fit(self, data: Sentences) -> None:
        """Train."""
        raise NotImplementedError

    def scores(self, data: Sentences) -> Scores:
        """Predict and compare."""
        raise NotImplementedError


class Factorial(Contender):
    """One graph."""

    template = staticmethod(factorial)

    def fit(self, data: Sentences) -> None:
        """Train on both kinds of labels."""
        outputs = [
            {("tag", i): tag for i, tag in enumerate(tags)}
            | {("chunk", i): chunk for i, chunk in enumerate(chunks)}
            for tags, chunks in zip(data.tags, data.chunks, strict=True)
        ]
        self.model = GraphCRF(self.template, **self.settings).fit(data.words, outputs)

    def scores(self, data: Sentences) -> Scores:
        """Both kinds of labels together."""
        found = self.model.predict(data.words)
        tags = [[str(y["tag", i]) for i in range(len(x))] for x, y in zip(data.words, found, strict=True)]
        chunks = [[str(y["chunk", i]) for i in range(len(x))] for x, y in zip(data.words, found, strict=True)]
        return evaluate(data, tags, chunks)


class WiderFactorial(Factorial):
    """One graph, whose chunks see more tags."""

    template = staticmethod(wider_factorial)


class Pipeline(Contender):
    """One chain after the other."""

    def fit(self, data: Sentences) -> None:
        """Train the chunks on gold tags."""
        self.tagger = CRF(**self.settings).fit([chain_features(x) for x in data.words], data.tags)
        rows = [chain_features(x, tags) for x, tags in zip(data.words, data.tags, strict=True)]
        self.chunker = CRF(**self.settings).fit(rows, data.chunks)

    def scores(self, data: Sentences) -> Scores:
        """Chunks by predicted tags."""
        tags = self.tagger.predict([chain_features(x) for x in data.words])
        rows = [chain_features(x, some) for x, some in zip(data.words, tags, strict=True)]
        return evaluate(data, tags, self.chunker.predict(rows))


class ChunksAlone(Contender):
    """A chain of chunks."""

    def fit(self, data: Sentences) -> None:
        """Train on chunks."""
        self.chunker = CRF(**self.settings).fit([chain_features(x) for x in data.words], data.chunks)

    def scores(self, data: Sentences) -> Scores:
        """No tags: their accuracy is 1 by definition and not shown."""
        return evaluate(data, None, self.chunker.predict([chain_features(x) for x in data.words]))


CONTENDERS: dict[str, type[Contender]] = {
    "factorial": Factorial,
    "wider factorial": WiderFactorial,
    "tags then chunks": Pipeline,
    "chunks alone": ChunksAlone,
}


class Tried(NamedTuple):
    """A trained model with its penalty, what it scores on held-out sentences, and the seconds of its training."""

    contender: Contender
    l2: float
    held_out: Scores
    seconds: float


def attempt(name: str, l2: float, n_threads: int | None, train: Sentences, held_out: Sentences) -> Tried:
    """Train one contender with one penalty."""
    contender = CONTENDERS[name](l2, n_threads)
    begin = time.process_time()
    contender.fit(train)
    seconds = time.process_time() - begin
    return Tried(contender, l2, contender.scores(held_out), seconds)


def attempts(name: str, n_threads: int | None, jobs: int, *data: Sentences) -> list[Tried]:
    """Every penalty, `jobs` of them at a time."""
    if jobs == 1:
        return [attempt(name, l2, n_threads, *data) for l2 in STRENGTHS]
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        return [
            one.result() for one in [pool.submit(attempt, name, l2, n_threads, *data) for l2 in STRENGTHS]
        ]


def main(arguments: Iterable[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--model", action="append", choices=list(CONTENDERS), help="only this one")
    parser.add_argument(
        "--test", action="store_true", help="also ask the test file, with the penalty that was chosen"
    )
    parser.add_argument("--threads", type=int, help="of each training run")
    parser.add_argument("--jobs", type=int, default=1, help="training runs at a time, each a process")
    given = parser.parse_args(None if arguments is None else list(arguments))
    train = read("train")
    held_out = train.part(len(train.words) - HELD_OUT, len(train.words))
    test = read("test") if given.test else None
    print(
        f"{'sentences':>9} {'model':18} {'l2':>5} {'held out: tags':>15} {'NP F1':>7} {'CPU s':>7}"
        + "   test" * bool(test)
    )
    for size in given.sizes:
        for name in given.model or CONTENDERS:
            tried = attempts(name, given.threads, given.jobs, train.part(0, size), held_out)
            best, l2, scores, seconds = max(tried, key=lambda one: one.held_out.chunks + one.held_out.tags)
            line = f"{size:9} {name:18} {l2:5} {scores.tags:15.2%} {scores.chunks:7.2%} {seconds:7.1f}"
            if test is not None:
                asked = best.scores(test)
                line += f"   {asked.tags:.2%} {asked.chunks:.2%}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
