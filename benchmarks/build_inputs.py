"""The input of `benchmarks.two_builds`, as plain Python objects: from corpora, or drawn where a corpus is absent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from benchmarks import letters
from benchmarks.corpora import corpus_path, find_corpus
from benchmarks.tasks import TASKS, load, tag_features
from crfkit.data import read_text

Input = dict[str, Any]
Random = np.random.Generator


def words_and_labels(n: int, n_labels: int, random: Random) -> tuple[list[list[str]], list[list[str]]]:
    """Drawn sentences: a label has few successors, and words of its own beside those that all share."""
    after = random.integers(0, n_labels, (n_labels, 6))
    X, y = [], []
    for _ in range(n):
        label, x, labels = int(random.integers(n_labels)), [], []
        for _ in range(int(random.integers(5, 40))):
            label = int(after[label, random.integers(6)])
            rank = int(random.zipf(1.3)) % 400
            x.append(f"{'abcdefgh'[rank % 8]}{rank}{label if rank % 3 else ''}")
            labels.append(f"{'nvadprtx'[label % 8]}{label:03d}")
        X.append(x)
        y.append(labels)
    return X, y


def drawn(n: int, n_labels: int, seed: int) -> Input:
    """Drawn sentences with the features of a word and its neighbours."""
    words, y = words_and_labels(n + n // 4, n_labels, np.random.default_rng(seed))
    X = [tag_features([(word,) for word in sentence]) for sentence in words]
    return {"X": X[:n], "y": y[:n], "X_new": X[n:], "words": words}


def conll(task: str, n: int, n_labels: int) -> Input:
    """The first n sentences of CoNLL-2000."""
    if find_corpus("conll2000", "train.txt") is None or find_corpus("conll2000", "test.txt") is None:
        return drawn(n, n_labels, n_labels)
    X, y = load(TASKS[task], "train", n / 8936)
    return {"X": X, "y": y, "X_new": load(TASKS[task], "test", min(1.0, n / 4 / 2012))[0]}


def conllu(corpus: str, file: str, n: int) -> Iterator[list[list[str]]]:
    """The first n sentences of a treebank, as rows of columns."""
    blocks = read_text(corpus_path(corpus, file)).split("\n\n")
    for block in islice(blocks, n):
        rows = [line.split("\t") for line in block.splitlines() if line and not line.startswith("#")]
        yield [row for row in rows if row[0].isdigit()]


def greek(n: int, *, allowed: bool) -> Input:
    """Ancient Greek with its positional tags; with `allowed`, the tags that each word was seen with."""
    if find_corpus("ancient_greek_perseus", "agdt-train.conllu") is None:
        data = drawn(n, 300, 3)
        words, data["y"] = data["words"][:n], data["y"]
    else:
        rows = [r for r in conllu("ancient_greek_perseus", "agdt-train.conllu", n) if r]
        words, y = [[row[1] for row in r] for r in rows], [[row[4] for row in r] for r in rows]
        X = [tag_features([(word,) for word in sentence]) for sentence in words]
        data = {"X": X, "y": y, "X_new": X[: n // 4]}
    if allowed:
        seen = defaultdict(set)
        for x, labels in zip(words, data["y"], strict=True):
            for word, label in zip(x, labels, strict=True):
                seen[word].add(label)
        data["allowed"] = [[sorted(seen[word]) for word in x] for x in words]
    return data


def handwriting(n: int, iterations: int) -> Input:
    """OCR letters: the black pixels of each."""
    if find_corpus("letters", "letter.data") is None:
        data = drawn(n, 26, 5)
        return {**data, "iterations": iterations}
    found = [
        ([["bias", *(f"p{i}" for i in row.nonzero()[0].tolist())] for row in word.pixels], list(word.letters))
        for word in letters.words()[: n + n // 4]
    ]
    X, y = [x for x, _ in found], [labels for _, labels in found]
    return {"X": X[:n], "y": y[:n], "X_new": X[n:], "iterations": iterations}


def trees(n: int) -> Input:
    """English sentences with their trees."""
    if find_corpus("ud_english_ewt", "en_ewt-ud-train.conllu") is not None:
        sentences = [rows for rows in conllu("ud_english_ewt", "en_ewt-ud-train.conllu", n) if rows]
    else:
        random = np.random.default_rng(7)
        sentences = []
        for words, labels in zip(*words_and_labels(n, 12, random), strict=True):
            heads = [0, *(int(random.integers(max(0, i - 3), i)) + 1 for i in range(1, len(words)))]
            sentences.append(
                [
                    [
                        str(i + 1),
                        word,
                        word,
                        label,
                        label,
                        "_",
                        str(head),
                        label[0] if head else "root",
                        "_",
                        "_",
                    ]
                    for i, (word, label, head) in enumerate(zip(words, labels, heads, strict=True))
                ]
            )
    return {"conllu": "".join("\n".join(map("\t".join, rows)) + "\n\n" for rows in sentences)}


def plain_words(n: int) -> Input:
    """Sentences of words, for feature functions."""
    words, y = words_and_labels(n, 8, np.random.default_rng(9))
    return {"X": words, "y": y, "iterations": 15}


def scores(n: int, times: int) -> Input:
    """Chains of drawn scores."""
    random = np.random.default_rng(11)
    return {
        "emissions": random.normal(size=(n, 30, 24)),
        "transitions": random.normal(size=(24, 24)),
        "times": times,
    }


# name → (input of the share `part`)
INPUTS: dict[str, Callable[[float], Input]] = {
    "chunks": lambda part: conll("chunk", int(4000 * part), 22),
    "few chunks": lambda part: conll("chunk", int(1000 * part), 22),
    "tags": lambda part: conll("tag", int(1000 * part), 44),
    "greek": lambda part: greek(int(1000 * part), allowed=False),
    "allowed greek": lambda part: greek(int(2000 * part), allowed=True),
    "letters": lambda part: handwriting(int(4000 * part), 20),
    "few letters": lambda part: handwriting(int(800 * part), 20),
    "trees": lambda part: trees(int(200 * part)),
    "words": lambda part: plain_words(int(600 * part)),
    "scores": lambda part: scores(int(400 * part), 100),
}
