"""`python -m benchmarks.text_kinds`: what it is worth that training sentences of the kind to be tagged count more.

Training files of `benchmarks.morphology` that join kinds of text, of which one is like the text to be tagged: prose in
Ancient Greek, the treebank of the test file in Polish and German. Each kind has a number, how often its sentences count
(`sample_weight`). Tested on a development file, or on a part of the training file in one piece; no test file is asked.
``--quick`` is a smoke test.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from benchmarks.corpora import corpus_path
from crfkit import CRF
from crfkit.data import Sentence, read_conllu

QUICK = 60  # sentences of each run of one kind
ID = "# sent_id = "

Weights = Mapping[str, float]  # how often a sentence counts, by its kind
EQUAL: Weights = {}


class Mixture(NamedTuple):
    """A training file of several kinds of text, the last of which is like the text to be tagged."""

    folder: str
    train: str
    tag: str  # the column that is predicted
    kinds: Mapping[str, tuple[str, ...]]  # how ids of their sentences begin
    weights: Weights  # that were chosen on held-out text
    others: tuple[Weights, ...] = ()  # that were tried
    dev: str | None = None  # None: a part of the sentences of the last kind is held out
    held_out: float = 0.0  # the last ones of them, this share

    def kind(self, sentence: Sentence) -> str:
        """The kind of a sentence, by its id."""
        return next(kind for kind, begins in self.kinds.items() if sentence_id(sentence).startswith(begins))

    def weigh(self, sentences: Sequence[Sentence], weights: Weights) -> list[float]:
        """How often each sentence counts: once where nothing is said of its kind."""
        return [weights.get(self.kind(sentence), 1.0) for sentence in sentences]


class Outcome(NamedTuple):
    """Percent of right labels, of all words, of words of the training data and of others; CPU seconds of training."""

    accuracy: float
    known: float
    unknown: float
    cpu: float


def sentence_id(sentence: Sentence) -> str:
    """The id in the comments of a sentence; "" where there is none."""
    return next((line.removeprefix(ID) for line in sentence.comments if line.startswith(ID)), "")


MIXTURES = {
    "grc": Mixture(
        "ancient_greek_perseus",
        "agdt-train.conllu",
        "xpos",
        {"epic": ("tlg0012.", "tlg0013.", "tlg0020."), "drama": ("tlg0011.", "tlg0085."), "prose": ("",)},
        {"epic": 0.5, "drama": 1.0, "prose": 2.0},
        ({"epic": 0.5, "drama": 0.5, "prose": 1.0},),
        dev="grc_perseus-ud-dev.conllu",
    ),
    "pl": Mixture(
        "ud_polish",
        "pl_mixed-train.conllu",
        "xpos",
        {"PUD": ("n", "w"), "LFG": ("test-", *(f"dev-{n}" for n in range(1, 10))), "PDB": ("dev-s",)},
        {"PUD": 0.5, "LFG": 0.5, "PDB": 2.0},
        held_out=0.25,
    ),
    "de": Mixture(
        "ud_german",
        "de_mixed-train.conllu",
        "feats",
        {"PUD": ("n", "w"), "LIT": ("lyceum", "bluethenstaub", "athenaeum"), "GSD": ("dev-s",)},
        {"PUD": 0.5, "LIT": 0.5, "GSD": 2.0},
        held_out=0.5,
    ),
}


def read_mixture(mixture: Mixture, limit: int | None = None) -> tuple[list[Sentence], list[Sentence]]:
    """The sentences that are learned from, so many of each run of one kind, and those that are held out."""
    sentences = list(read_conllu(corpus_path(mixture.folder, mixture.train)))
    if mixture.dev is not None:
        held_out = list(read_conllu(corpus_path(mixture.folder, mixture.dev)))
    else:
        alike = [
            n for n, sentence in enumerate(sentences) if mixture.kind(sentence) == list(mixture.kinds)[-1]
        ]
        last = alike[len(alike) - int(mixture.held_out * len(alike)) :]
        held_out = [sentences[n] for n in last]
        sentences = [sentence for n, sentence in enumerate(sentences) if n not in set(last)]
    if limit is None:
        return sentences, held_out
    runs = groupby(sentences, mixture.kind)
    return [sentence for _, run in runs for sentence in islice(run, limit)], held_out[:limit]


def measure(mixture: Mixture, weights: Weights, limit: int | None = None, seed: int = 0) -> Outcome:
    """The preset, with sentences that count so often."""
    training, held_out = read_mixture(mixture, limit)
    X, y = _words(training, mixture.tag)
    crf: CRF[str] = CRF(features="morphology", n_threads=1).set_params(optimizer__random_state=seed)
    start = time.process_time()
    crf.fit(X, y, mixture.weigh(training, weights))
    cpu = time.process_time() - start
    known = {word.lower() for words in X for word in words}
    forms, gold = _words(held_out, mixture.tag)
    right: dict[bool, list[bool]] = {True: [], False: []}  # by whether the word is known
    for words, labels, found in zip(forms, gold, crf.predict(forms), strict=True):
        for word, one, other in zip(words, labels, found, strict=True):
            right[word.lower() in known].append(one == other)
    return Outcome(_percent(right[True] + right[False]), _percent(right[True]), _percent(right[False]), cpu)


def _words(sentences: Sequence[Sentence], tag: str) -> tuple[list[list[str]], list[list[str]]]:
    """The words and the tags of sentences."""
    return (
        [[word.form for word in sentence.words] for sentence in sentences],
        [[getattr(word, tag) for word in sentence.words] for sentence in sentences],
    )


def _percent(right: Sequence[bool]) -> float:
    return 100 * sum(right) / max(len(right), 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.text_kinds", description="sentences of the kind to be tagged count more"
    )
    parser.add_argument(
        "--corpus", action="append", choices=list(MIXTURES), help="one of them (may be repeated)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the optimizer")
    parser.add_argument("--quick", action="store_true", help="a smoke test on a few sentences")
    given = parser.parse_args(arguments)
    print("| | weights | all words | known | unknown | CPU s |\n|---|---|---:|---:|---:|---:|")
    for name in given.corpus or MIXTURES:
        mixture = MIXTURES[name]
        for weights in (EQUAL, *mixture.others, mixture.weights):
            found = measure(mixture, weights, QUICK if given.quick else None, given.seed)
            shown = ", ".join(f"{kind} {weight:g}" for kind, weight in weights.items()) or "equal"
            scores = f"{found.accuracy:.2f} | {found.known:.2f} | {found.unknown:.2f}"
            print(f"| {name} | {shown} | {scores} | {found.cpu:.0f} |", flush=True)


if __name__ == "__main__":
    main()
