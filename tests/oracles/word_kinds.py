"""Sentences whose trees depend on the kind of their words, of which some are in no training set."""

from __future__ import annotations

from crfkit.data import Sentence, Word

ANIMALS = [f"animal{i}" for i in range(8)]
TIMES = [f"time{i}" for i in range(8)]


def sentence(first: str, second: str) -> Sentence:
    """Animals are subjects of the verb; a time before an animal hangs on that."""
    label = {"a": "nsubj", "t": "obl"}
    words = [
        Word(first, upos="X", head=2 if first[0] == "t" else 3, deprel=label[first[0]]),
        Word(second, upos="X", head=3, deprel=label[second[0]]),
        Word("sleeps", upos="V", head=0, deprel="root"),
    ]
    return Sentence(words)


SEEN = [sentence(a, t) for a in ANIMALS[:6] for t in TIMES[:6]] + [
    sentence(t, a) for a in ANIMALS[:6] for t in TIMES[:6]
]
NEW = [sentence(ANIMALS[6], TIMES[7]), sentence(TIMES[6], ANIMALS[7])]


def trees(sentences: list[Sentence]) -> list[list[tuple[int | None, str]]]:
    """Head and relation of each word."""
    return [[(word.head, word.deprel) for word in one.words] for one in sentences]
