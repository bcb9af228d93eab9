"""Brown clusters of a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from crfkit import _core
from crfkit.arrays import Int32s, Int64s, offsets
from crfkit.counts import check_count
from crfkit.errors import ArgumentError, EmptyDataError
from crfkit.features.knowledge.clusters import ClusteredWord, Clusters, sort_by_path
from crfkit.features.wording import describe_value

_AT_ONCE = 64  # merges between two reports


def learn_clusters(
    sentences: Iterable[Sequence[str]],
    n_classes: int = 1000,
    *,
    min_count: int = 1,
    fold_case: bool = False,
    callback: Callable[[int, int], object] | None = None,
) -> Clusters:
    """Brown clusters of the words of sentences (Brown et al. 1992), for `%cluster` macros: `n_classes` paths.

    Each of the most frequent `n_classes` words is a class at first. Then, one by one, the next word becomes a class, and the
    two classes are merged whose merging loses least of the average mutual information of neighbouring words that have a
    class. At last the classes are merged into a binary tree: a class has the path from its root. Merges are exact, and the
    same whenever the text is. Words that occur less than `min_count` times have no class, and separate what is beside them.
    `callback(done, all)` is called after some merges, with how many are done.

    >>> text = "the cat sleeps\\nthe dog sleeps\\nthe cat runs\\nthe dog runs"
    >>> clusters = learn_clusters([line.split() for line in text.splitlines()], 2)
    >>> clusters["cat"] == clusters["dog"], clusters["cat"] == clusters["runs"]
    (True, False)
    """
    check_count("min_count", min_count)
    n_classes = check_count("n_classes", n_classes)
    words, counts, tokens, ptr = number_words(sentences, min_count, fold_case=fold_case)
    if not words:
        raise EmptyDataError(f"the sentences have no word that occurs {min_count} times")
    learner = _core.BrownClusters(tokens, ptr, len(words), n_classes)
    done = 0
    while learner.run(_AT_ONCE):
        done += _AT_ONCE
        if callback is not None:
            callback(done, learner.n_merges)
    found = tree_paths(learner.merges().tolist(), len(words), n_classes)
    paths = [
        path or "0" for path in found
    ]  # a single class is the root: its path is empty, which no text file holds
    clustered = [ClusteredWord(*row) for row in zip(words, paths, counts, strict=True)]
    return Clusters.build(sort_by_path(clustered), fold_case=fold_case)  # as a text file of them has them


def number_words(
    sentences: Iterable[Sequence[str]], min_count: int, *, fold_case: bool
) -> tuple[list[str], list[int], Int32s, Int64s]:
    """The words by falling frequency, their counts, and the text in numbers: tokens, and where sentences begin.

    Words of one frequency come in the order of their first occurrence.
    """
    seen: Counter[str] = Counter()
    text: list[list[str]] = []
    if not isinstance(sentences, Iterable):
        raise ArgumentError(f"sentences is {describe_value(sentences)}, expected lists of words")
    for sentence in sentences:
        if isinstance(sentence, str) or not isinstance(sentence, Iterable):
            raise ArgumentError(f"a sentence is {describe_value(sentence)}, expected a list of words")
        words = list(sentence)
        for word in words:
            if not isinstance(word, str):
                raise ArgumentError(f"a sentence has {describe_value(word)}, expected words that are strings")
        text.append([word.casefold() for word in words] if fold_case else words)
        seen.update(text[-1])
    kept = [(word, count) for word, count in seen.most_common() if count >= min_count]
    ids = {word: id for id, (word, _) in enumerate(kept)}
    tokens = np.array([ids.get(word, -1) for sentence in text for word in sentence], dtype=np.int32)
    ptr = offsets([len(sentence) for sentence in text])
    if len(kept) < len(seen):  # a rare word ends a piece of text
        rare = np.flatnonzero(tokens < 0)
        ptr = np.unique(np.concatenate([ptr, rare, rare + 1]))
        ptr = ptr - np.searchsorted(rare, ptr)
        tokens = tokens[tokens >= 0]
    return [word for word, _ in kept], [count for _, count in kept], tokens, ptr


def tree_paths(merges: Sequence[Sequence[int]], n_words: int, n_classes: int) -> list[str]:
    """The path of each word: its class in the tree that the last merges make of the classes.

    A class is known by its first word. Where two classes are merged, 0 leads to the one that stays.
    """
    n_tree = min(n_classes, n_words) - 1
    classes = list(range(n_words))  # the class that a word, or a class, has joined
    for kept, gone in merges[: len(merges) - n_tree]:
        classes[gone] = kept
    paths = {0: ""}
    for kept, gone in reversed(merges[len(merges) - n_tree :]):
        paths[kept], paths[gone] = f"{paths[kept]}0", f"{paths[kept]}1"
    for word in range(n_words):  # a class that is joined comes before: its first word is more frequent
        classes[word] = classes[classes[word]]
    return [paths[class_] for class_ in classes]
