"""`python -m benchmarks.word_labels`: what the labels of words at other positions are worth as features of `morphology`.

Each word gets two more columns: the labels that it has elsewhere, and the most frequent of them. Those of training sentences
come from the other folds (jackknife), so that known, rare and unknown words look as they do in new text. Unknown words
have the labels of the tag dictionary with related forms; where these are many, the most frequent ones of their ending. The
features are the columns at the positions −2 … 2, with ``--few`` both at 0 and the most frequent label at ±1.
The texts are those of `benchmarks.ablation`; no test file is asked.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from benchmarks.ablation import CORPORA, QUICK, read_data
from crfkit import CRF, TagDictionary
from crfkit.evaluation import accuracy
from crfkit.features import PRESETS, Template

TEXTS = [
    "la-last",
    "la-first",
    "de-lit",
    "pl-lfg",
    "pl-pdb",
    "herodotus",
    "sophocles",
    "grc-xpos",
    "en-email",
]
ALL = [name for name, corpus in CORPORA.items() if corpus.preset == "morphology"]
FOLDS, BLOCK = 8, 5  # sentences that stay together in a fold
RARE = 10  # words of fewer positions say what labels endings have
LONGEST, ENOUGH = 5, 5  # characters of an ending, and positions that it must have
MANY, KEPT = 8, 4  # labels of an unknown word beyond which only the most frequent ones of its ending are kept
LINES = "".join(
    f"{name}[{i}]=%x[{i},{c}]\n" for c, name in ((1, "labels"), (2, "label")) for i in range(-2, 3)
)
FEW = "labels=%x[0,1]\n" + "".join(f"label[{i}]=%x[{i},2]\n" for i in (-1, 0, 1))

Words = Sequence[str]
Row = tuple[str, str, str]


class WordLabels:
    """The labels of words in some sentences."""

    def __init__(self, X: Sequence[Words], y: Sequence[Words]) -> None:
        self.dictionary = TagDictionary.from_data(X, y, related=2)
        self.seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for word, label in zip(chain.from_iterable(X), chain.from_iterable(y), strict=True):
            self.seen[word.lower()][label] += 1
        self.endings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for word, counts in self.seen.items():
            if counts.total() < RARE:
                for n in range(min(LONGEST, len(word)) + 1):
                    self.endings[word[len(word) - n :]].update(counts)
        self._known: dict[str, tuple[str, str]] = {}

    def of_word(self, word: str) -> tuple[str, str]:
        """Its labels, and the most frequent one."""
        lower = word.lower()
        if lower not in self._known:
            labels, likely = self._find(lower)
            self._known[lower] = ";".join(sorted(labels)), likely
        return self._known[lower]

    def _find(self, word: str) -> tuple[list[str], str]:
        if word in self.seen:
            counts = self.seen[word]
            return list(counts), max(counts, key=lambda label: (counts[label], label))
        allowed = [str(label) for label in self.dictionary.allowed_labels(word)]
        n = min(LONGEST, len(word))
        while n and self.endings.get(word[len(word) - n :], Counter()).total() < ENOUGH:
            n -= 1
        of_ending = self.endings[word[len(word) - n :]]
        likely = max(allowed, key=lambda label: (of_ending[label], label))
        many = len(allowed) > MANY
        return [label for label, _ in of_ending.most_common(KEPT)] if many else allowed, likely

    def rows(self, words: Words) -> list[Row]:
        """The words of a sentence with their columns."""
        return [(word, *self.of_word(word)) for word in words]


class Outcome(NamedTuple):
    """Percent of right labels, and the CPU seconds of training without the columns themselves."""

    accuracy: float
    cpu: float


def training_rows(X: Sequence[Words], y: Sequence[Words]) -> list[list[Row]]:
    """The sentences with columns that the other folds give."""
    fold = [n // BLOCK % FOLDS for n in range(len(X))]
    rows: dict[int, list[Row]] = {}
    for k in sorted(set(fold)):
        others = [n for n in range(len(X)) if fold[n] != k] or list(range(len(X)))
        found = WordLabels([X[n] for n in others], [y[n] for n in others])
        rows |= {n: found.rows(X[n]) for n in range(len(X)) if fold[n] == k}
    return [rows[n] for n in range(len(X))]


def measure(name: str, limit: int | None = None, lines: str = LINES) -> tuple[Outcome, Outcome]:
    """The preset, and the preset with the labels of words."""
    data = read_data(CORPORA[name], limit)
    found = []
    for with_labels in (False, True):
        given = CRF(features="morphology").get_params(deep=False)
        X, held_out = data.X, data.held_out
        text = PRESETS["morphology"]
        if with_labels:
            labels = WordLabels(data.X, data.y)
            X, held_out = training_rows(data.X, data.y), [labels.rows(words) for words in held_out]
            text += lines
        crf = CRF(**given | {"features": Template.parse(text), "n_threads": 1})
        start = time.process_time()
        crf.fit(X, data.y)
        cpu = time.process_time() - start
        found.append(Outcome(100 * accuracy(data.right, crf.predict(held_out)), cpu))
    return found[0], found[1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.word_labels", description="labels of words at other positions as features"
    )
    parser.add_argument("--corpus", action="append", choices=ALL, help="one of them (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    parser.add_argument("--few", action="store_true", help="four features of labels in place of ten")
    given = parser.parse_args(arguments)
    print("| | the preset | with labels of words | CPU s | CPU s |\n|---|---:|---:|---:|---:|")
    for name in given.corpus or TEXTS:
        before, after = measure(name, QUICK if given.quick else None, FEW if given.few else LINES)
        scores = f"{before.accuracy:.2f} | {after.accuracy:.2f}"
        print(f"| `{name}` | {scores} | {before.cpu:.1f} | {after.cpu:.1f} |", flush=True)


if __name__ == "__main__":
    main()
