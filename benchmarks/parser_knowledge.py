"""`python -m benchmarks.parser_knowledge`: parsers of UD English EWT with word clusters and word vectors, on its dev file.

The clusters are the English ones of spacy-lookups-data. The vectors are learned from the words of the training file: the
singular value decomposition of positive pointwise mutual information (Levy and others 2015) of words and their neighbours,
by place; of all of its words, also where trees are learned from every N-th sentence. No test file is read.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.corpora import corpus_path
from benchmarks.knowledge import package_clusters
from crfkit import Parser, WordVectors
from crfkit.data import Sentence, read_conllu
from crfkit.evaluation import evaluate_trees

FOLDER, TRAIN, DEV = "ud_english_ewt", "en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu"
WINDOW = 2  # neighbours on each side
VARIANTS = {
    "neither": (),
    "clusters": ("clusters",),
    "vectors": ("vectors",),
    "both": ("clusters", "vectors"),
}


def pairs_of(sentences: Sequence[Sequence[int]], n_words: int) -> Iterator[tuple[int, int, float]]:
    """Numbers of a word and of a neighbour with its place, and how much the pair counts; words below 0 are rare ones."""
    for words in sentences:
        padded = [n_words, *words, n_words + 1]
        for i, word in enumerate(words, start=1):
            for step in range(-WINDOW, WINDOW + 1):
                if step and word >= 0 and 0 <= i + step < len(padded) and padded[i + step] >= 0:
                    yield word, padded[i + step] + (n_words + 2) * (step + WINDOW), 1 / abs(step)


def learn_vectors(sentences: Sequence[Sentence], size: int, min_count: int = 2) -> WordVectors:
    """Vectors of length 1 of the words that occur `min_count` times, upper and lower case alike."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import svds

    texts = [[word.form.casefold() for word in sentence.words] for sentence in sentences]
    counted = Counter(form for text in texts for form in text)
    number = {form: i for i, form in enumerate(form for form, n in counted.most_common() if n >= min_count)}
    seen = list(pairs_of([[number.get(form, -1) for form in text] for text in texts], len(number)))
    rows, columns, counts = (np.array(some) for some in zip(*seen, strict=True))
    shape = len(number), (len(number) + 2) * (2 * WINDOW + 1)
    table = csr_matrix((counts, (rows, columns)), shape=shape).tocoo()
    of_words = np.bincount(table.row, table.data, shape[0])
    of_neighbours = np.bincount(table.col, table.data, shape[1]) ** 0.75
    information = np.log(table.data / of_words[table.row] / of_neighbours[table.col] * of_neighbours.sum())
    known = information > 0
    positive = csr_matrix((information[known], (table.row[known], table.col[known])), shape=shape)
    left, values, _ = svds(positive, k=size, random_state=0)
    found = left * np.sqrt(values)
    found /= np.linalg.norm(found, axis=1, keepdims=True) + 1e-12
    return WordVectors.build(dict(zip(number, found, strict=True)), fold_case=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and evaluate the variants, and print a row for each."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.parser_knowledge", description=__doc__)
    options.add_argument("--variants", default=",".join(VARIANTS), help="some of them, separated by commas")
    options.add_argument("--size", type=int, default=50, help="numbers of a vector")
    options.add_argument(
        "--every", type=int, default=1, help="train on every N-th sentence of the training file"
    )
    options.add_argument("--limit", type=int, help="so many sentences of each file")
    given = options.parse_args(arguments)
    train, dev = (list(islice(read_conllu(corpus_path(FOLDER, name)), given.limit)) for name in (TRAIN, DEV))
    print("| | UAS | LAS | CLAS | training, CPU s | parsing, CPU s |\n|---|---:|---:|---:|---:|---:|")
    for variant in given.variants.split(","):
        kinds = VARIANTS[variant]
        settings: dict[str, Any] = {}
        if "clusters" in kinds:
            settings["clusters"] = package_clusters("en")
        if "vectors" in kinds:
            settings["vectors"] = learn_vectors(train, given.size)
        start = time.process_time()
        parser = Parser(n_threads=1, **settings).fit(train[:: given.every])
        trained = time.process_time()
        report = evaluate_trees(dev, parser.predict(dev))
        seconds = f"{trained - start:.0f} | {time.process_time() - trained:.1f}"
        print(
            f"| {variant} | {report.uas:.2%} | {report.las:.2%} | {report.clas:.2%} | {seconds} |", flush=True
        )


if __name__ == "__main__":
    main()
