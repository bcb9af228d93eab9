"""`python -m benchmarks.ocr`: the OCR experiment of sparse higher-order CRFs (Qian and others 2009).

Handwritten words, letter by letter. Small: train on one fold of ten and test on the other nine; large: the other way
round; the figures are means over the ten folds, of letters and of whole words that are right. Penalties, one for pixels
and one for arcs and patterns, are chosen on the training part alone, by cross-validation inside it.

The data has 55 different words, and all of them are in every fold: what is learned from training labels amounts to a
lexicon of the test set.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import crfkit
from benchmarks import letters
from benchmarks.corpora import corpus_path
from benchmarks.machine import machine
from benchmarks.measure import PROJECT
from benchmarks.reranking import Reranker
from crfkit.data import read_text
from crfkit.evaluation import accuracy

RESULTS = PROJECT / "benchmarks" / "results"
N_FOLDS = 10
TABLE_1 = dict(enumerate((45, 236, 216, 94, 81, 38, 20, 15), start=1))  # affixes by length
PENALTIES = [
    {"default": pixels, "arcs": rest, "patterns": rest} for pixels in (1.0, 3.0) for rest in (0.1, 0.3)
]
WIDE_PENALTIES = [
    {"default": pixels, "arcs": rest, "patterns": rest}
    for pixels in (0.3, 1.0, 3.0)
    for rest in (0.03, 0.1, 0.3)
]
INNER = 3  # parts of the training fold, each the test part of the others once

Words = list[letters.Word]
Positions = list[list[list[str]]]


@dataclass(frozen=True)
class Model:
    """What is learned beside pixels: the structure."""

    name: str
    patterns: tuple[Any, ...] = ()
    published: str = ""

    def structure(self) -> crfkit.Chain | crfkit.Patterns:
        """A chain, or one with patterns."""
        return crfkit.Patterns(list(self.patterns)) if self.patterns else crfkit.Chain()


@dataclass(frozen=True)
class Score:
    """How right a model is, and what its training took."""

    letters: float
    words: float
    seconds: float  # CPU, of one training: trellises included, the choice of penalties not


def inputs(words: Words) -> tuple[Positions, list[list[str]]]:
    """Features and labels of words: the pixels that are black, and a bias."""
    X = [[["bias", *(f"p{i}" for i in row.nonzero()[0].tolist())] for row in word.pixels] for word in words]
    return X, [list(word.letters) for word in words]


def dictionary(aligned: bool) -> tuple[str, ...]:
    """The 745 affixes of a word list, as patterns; aligned: prefixes are those of words without their first letter."""
    lines = read_text(corpus_path("wordlist", "american-english")).split()
    listed = [word for word in lines if word.isascii() and word.isalpha() and word.islower()]
    found: list[str] = []
    for length, most in TABLE_1.items():
        counts = Counter[str]()
        for word in listed:
            first = word[1:] if aligned else word
            if len(first) >= length:
                counts["^" + " ".join(first[:length])] += 1
            if len(word) >= length:
                counts[" ".join(word[-length:]) + "$"] += 1
        found += [pattern for pattern, _ in counts.most_common(most)]
    return tuple(found)


def models() -> dict[str, Model]:
    """The rows of the table."""
    return {
        "chain": Model("pixels and pairs of letters", published="80.92"),
        "affixes": Model("and 745 affixes of a word list", dictionary(aligned=False), "88.52"),
        "aligned": Model("the same, aligned with the dropped first letter", dictionary(aligned=True)),
        "learned": Model("and all affixes of the training words", (crfkit.Affixes(8),)),
    }


def fit(model: Model, words: Words, l2: dict[str, float]) -> tuple[crfkit.CRF, float]:
    """A model and the CPU seconds of its training."""
    X, y = inputs(words)
    if not model.patterns:
        l2 = {name: strength for name, strength in l2.items() if name != "patterns"}
    crf = crfkit.CRF(structure=model.structure(), optimizer=crfkit.LBFGS(memory=30), l2=l2, n_threads=1)
    start = time.process_time()
    crf.fit(X, y)
    return crf, time.process_time() - start


def chosen(model: Model, words: Words) -> dict[str, float]:
    """The penalties with the highest accuracy in a cross-validation among these words."""
    return _best(model, words, PENALTIES, INNER, range(INNER))


def chosen_on_ninth(model: Model, words: Words) -> dict[str, float]:
    """The penalties with the highest accuracy on one ninth of these words, when the others are learned from."""
    return _best(model, words, WIDE_PENALTIES, N_FOLDS - 1, [0])


def _best(
    model: Model, words: Words, penalties: Sequence[dict[str, float]], n_parts: int, parts: Sequence[int]
) -> dict[str, float]:
    """The first of the penalties that are best on these parts of the words."""
    scores = []
    for l2 in penalties:
        right = 0.0
        for part in parts:
            crf, _ = fit(model, [w for i, w in enumerate(words) if i % n_parts != part], l2)
            X, y = inputs(words[part::n_parts])
            right += accuracy(y, crf.predict(X))
        scores.append(right)
    return penalties[int(np.argmax(scores))]


def score(model: Model, train: Words, test: Words, l2: dict[str, float]) -> tuple[Score, crfkit.CRF]:
    """Train, and count what is right on the test part."""
    crf, seconds = fit(model, train, l2)
    X, y = inputs(test)
    predicted = crf.predict(X)
    whole = float(np.mean([a == b for a, b in zip(y, predicted, strict=True)]))
    return Score(accuracy(y, predicted), whole, seconds), crf


def split(words: Words, fold: int, *, large: bool) -> tuple[Words, Words]:
    """Training and test part."""
    one = [word for word in words if word.fold == fold]
    nine = [word for word in words if word.fold != fold]
    return (nine, one) if large else (one, nine)


def cross_validated(model: Model, words: Words, folds: Sequence[int], *, large: bool) -> list[Score]:
    """The scores of all folds. Large training parts choose their penalties on a ninth of them."""
    found = []
    for fold in folds:
        train, test = split(words, fold, large=large)
        l2 = chosen_on_ninth(model, train) if large else chosen(model, train)
        found.append(score(model, train, test, l2)[0])
        print(f"{model.name}, fold {fold}, l2 {l2}: {found[-1]}", file=sys.stderr, flush=True)
    return found


def reranked(base: Model, words: Words, folds: Sequence[int], n: int) -> list[Score]:
    """The chain's n best, ordered anew by an averaged perceptron over the same affixes.

    The lists that it learns from come out of chains that did not see their words.
    """
    chain, found = models()["chain"], []
    for fold in folds:
        train, test = split(words, fold, large=False)
        l2 = chosen(chain, train)
        start = time.process_time()
        lists = []
        for part in range(INNER):
            crf, _ = fit(chain, [w for i, w in enumerate(train) if i % INNER != part], l2)
            X, y = inputs(train[part::INNER])
            lists += list(zip(crf.predict_nbest(X, n), y, strict=True))
        reranker = Reranker([str(pattern) for pattern in base.patterns]).fit(lists)
        seconds = time.process_time() - start
        crf, _ = fit(chain, train, l2)
        X, y = inputs(test)
        predicted = [reranker.best(candidates) for candidates in crf.predict_nbest(X, n)]
        whole = float(np.mean([a == b for a, b in zip(y, predicted, strict=True)]))
        found.append(Score(accuracy(y, predicted), whole, seconds))
        print(f"{n}-best, fold {fold}: {found[-1]}", file=sys.stderr, flush=True)
    return found


def row(name: str, scores: Sequence[Score], published: str = "") -> str:
    """A line of the table."""
    means = [float(np.mean([getattr(s, key) for s in scores])) for key in ("letters", "words", "seconds")]
    return f"| {name} | {100 * means[0]:.2f} | {100 * means[1]:.2f} | {means[2]:.2f} | {len(scores)} | {published} |"


def small_table(words: Words, folds: Sequence[int], n_best: int) -> str:
    """Table 2: train on one fold, test on nine."""
    rows = [
        "| train on one fold, test on nine | letters, % | words, % | CPU s | folds | published, letters |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    found = {}
    for key, model in models().items():
        found[key] = cross_validated(model, words, folds, large=False)
        rows.append(row(model.name, found[key], model.published))
    rows.insert(
        3,
        row(
            f"{n_best}-best of the chain, ordered anew",
            reranked(models()["affixes"], words, folds, n_best),
            "78.9",
        ),
    )
    times = {key: float(np.mean([s.seconds for s in scores])) for key, scores in found.items()}
    rows += [
        "",
        f"Training with the affixes takes {times['affixes'] / times['chain']:.2f} times as long as the chain.",
    ]
    return "\n".join(rows)


def large_table(words: Words, folds: Sequence[int]) -> str:
    """Train on nine folds, test on one."""
    rows = [
        "| train on nine folds, test on one | letters, % | words, % | CPU s | folds | published, letters |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for key, published in (("chain", "86 to 87"), ("learned", "about 98")):
        model = models()[key]
        rows.append(row(model.name, cross_validated(model, words, folds, large=True), published))
    return "\n".join(rows)


def by_length(words: Words, folds: Sequence[int]) -> str:
    """Figure 6: letters that are right, by the length of the longest affix."""
    rows = ["| longest affix | letters, % | |", "| ---: | ---: | --- |"]
    whole = models()["affixes"]
    for longest in range(len(TABLE_1) + 1):
        kept = tuple(p for p in whole.patterns if len(str(p).strip("^$").split()) <= longest)
        model = replace(whole, name=f"affixes up to {longest}", patterns=kept)
        mean = float(np.mean([s.letters for s in cross_validated(model, words, folds, large=False)]))
        rows.append(f"| {longest} | {100 * mean:.2f} | {'█' * round(4 * (100 * mean - 78))} |")
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that are asked for and write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ocr", description=__doc__)
    parser.add_argument("--part", action="append", choices=("small", "large", "lengths"), help="default: all")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="only the first ones")
    parser.add_argument("--n-best", type=int, default=100)
    options = parser.parse_args(arguments)
    words, folds = letters.words(), range(options.folds)
    asked = options.part or ("small", "large", "lengths")
    found = machine()
    parts = [
        f"OCR letters, {len(words):,} words ({len({w.letters for w in words})} different ones), "
        f"{found['processor']}, one thread."
    ]
    if "small" in asked:
        parts.append(small_table(words, folds, options.n_best))
    if "large" in asked:
        parts.append(large_table(words, folds))
    if "lengths" in asked:
        parts.append(by_length(words, folds))
    report = "\n\n".join(parts) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "ocr.md").write_text(report)
    print(report)


if __name__ == "__main__":
    main()
