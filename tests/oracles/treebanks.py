"""Small treebanks for the parser's tests, drawn at random."""

from __future__ import annotations

import numpy as np

from crfkit.data import Sentence, Word
from crfkit.features import WordVectors

FORMS = ["ab", "abc", "dé", "x", "yz"]
TAGS = ["NOUN", "VERB", "PUNCT", "CCONJ", "ADP"]
FEATS = ["_", "Case=Nom", "Case=Acc|Number=Sing", "Number=Plur"]
LABELS = ["a", "b:x", "c"]
# Of some forms; whole numbers, so that scores at weights 1, 8, 64, … show them as digits.
VECTORS = WordVectors.build({"ab": [1, 0, 3], "abc": [2, 5, 1], "dé": [0, 4, 1], "other": [1, 1, 1]})


def random_tree(n_words: int, random: np.random.Generator, *, single_root: bool) -> list[int]:
    """Heads of a tree: words in random order, each below one that came before."""
    order = (random.permutation(n_words) + 1).tolist()
    heads = [0] * n_words
    for i, word in enumerate(order[1:], start=1):
        above = order[int(random.integers(i))]
        heads[word - 1] = 0 if not single_root and random.random() < 0.2 else above
    return heads


def random_sentence(
    n_words: int, random: np.random.Generator, *, single_root: bool = True, unknown: float = 0.0
) -> Sentence:
    """A sentence with a tree, of which a share of heads and labels is unknown."""
    words = []
    for head in random_tree(n_words, random, single_root=single_root):
        form, tag = str(random.choice(FORMS)), str(random.choice(TAGS))
        words.append(
            Word(
                form,
                form[:2],
                tag,
                "_" if random.random() < 0.3 else tag[:2],
                str(random.choice(FEATS)),
                None if random.random() < unknown else head,
                "_" if random.random() < unknown else str(random.choice(LABELS)),
                "_",
                "_",
            )
        )
    return Sentence(words)


def random_treebank(
    lengths: list[int], seed: int, *, single_root: bool = True, unknown: float = 0.0
) -> list[Sentence]:
    """Sentences of these lengths; the first has every label and a whole tree."""
    random = np.random.default_rng(seed)
    sentences = [random_sentence(n, random, single_root=single_root, unknown=unknown) for n in lengths]
    whole = random_sentence(len(LABELS), random, single_root=single_root)
    words = [word._replace(deprel=label) for word, label in zip(whole.words, LABELS, strict=True)]
    return [Sentence(words), *sentences]
