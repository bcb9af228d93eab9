"""How fast lexicons are built, opened and matched, beside a dict of their entries; how long Brown clusters take.

    python -m benchmarks.lexicons                      5 million entries of one to four words
    python -m benchmarks.lexicons --part clusters      Brown clusters of 10 million words, 1,000 classes
    python -m benchmarks.lexicons --quick              both, on little data

Entries and text are made up by random numbers: words by Zipf's law, classes of words by a Markov chain. CPU seconds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.machine import machine
from crfkit import Lexicon, _core
from crfkit.arrays import Int32s

SENTENCE = 25  # words
SYLLABLES = (
    "ba",
    "ke",
    "li",
    "mo",
    "nu",
    "ra",
    "si",
    "to",
    "vu",
    "za",
    "pe",
    "gri",
    "stan",
    "dor",
    "mel",
    "ch",
)


def make_entries(n: int, random: np.random.Generator) -> list[str]:
    """n different entries of one to four words."""
    n_words = max(n // 12, 10)
    pieces = random.integers(0, len(SYLLABLES), size=(n_words, 4))
    words = ["".join(SYLLABLES[k] for k in row).title() for row in pieces.tolist()]
    found: dict[str, None] = {}
    while len(found) < n:
        lengths = random.choice([1, 2, 3, 4], size=n, p=[0.1, 0.5, 0.3, 0.1])
        chosen = random.integers(0, n_words, size=(n, 4))
        for length, row in zip(lengths.tolist(), chosen.tolist(), strict=True):
            found[" ".join([words[k] for k in row[:length]])] = None
            if len(found) == n:
                break
    return list(found)


def plain_matches(entries: set[str], words: Sequence[str], longest: int = 4) -> list[tuple[int, int]]:
    """Longest matches from left to right, by a set of entries."""
    found, i = [], 0
    while i < len(words):
        ends = range(min(i + longest, len(words)), i, -1)
        end = next((end for end in ends if " ".join(words[i:end]) in entries), None)
        if end is not None:
            found.append((i, end))
        i = i + 1 if end is None else end
    return found


def measure_lexicon(n_entries: int, n_words: int) -> list[str]:
    """Figures of a lexicon, one a line."""
    random = np.random.default_rng(1)
    entries = make_entries(n_entries, random)
    text: list[str] = []
    while len(text) < n_words:  # half of it entries, half words that no entry has
        text += entries[int(random.integers(len(entries)))].split()
        text += [f"x{k}" for k in random.integers(0, 10**6, size=2).tolist()]
    sentences = [text[i : i + SENTENCE] for i in range(0, n_words, SENTENCE)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "entries.lexicon"
        began = process_time()
        Lexicon.build(entries, path)
        built = process_time() - began
        size = path.stat().st_size
        opened = []
        for _ in range(5):
            began = perf_counter()
            lexicon = Lexicon.load(path)
            opened.append(perf_counter() - began)
        for sentence in sentences[: len(sentences) // 10]:
            lexicon.states(sentence)
        began = process_time()
        for sentence in sentences:
            lexicon.states(sentence)
        looked_up = process_time() - began
        known = set(entries)
        agree = all(
            [match[:2] for match in lexicon.match(sentence)] == plain_matches(known, sentence)
            for sentence in sentences
        )
    return [
        f"entries: {n_entries:,}; built in {built:.1f} CPU s; file {size / 1e6:.0f} MB",
        f"opened in {1e3 * min(opened):.2f} to {1e3 * max(opened):.2f} ms",
        f"matched: {1e9 * looked_up / n_words:.0f} ns a word, of {n_words:,} words",
        f"same matches as by a set of the entries: {agree}",
    ]


def make_text(n_tokens: int, n_words: int, random: np.random.Generator) -> tuple[Int32s, int]:
    """Tokens, numbered by falling frequency, and how many different ones there are."""
    n_states = min(200, n_words // 20)
    shares = 1 / (np.arange(1, n_words + 1) + 2.7) ** 1.05
    state_of = random.permutation(np.arange(n_words) % n_states)
    words = [np.flatnonzero(state_of == state) for state in range(n_states)]
    mass = np.array([shares[some].sum() for some in words])
    following = np.cumsum(random.dirichlet(0.05 + mass, size=n_states), axis=1)
    uniforms = random.random(n_tokens)
    states = np.empty(n_tokens, dtype=np.int64)
    state = 0
    for i in range(n_tokens):
        state = min(int(np.searchsorted(following[state], uniforms[i])), n_states - 1)
        states[i] = state
    tokens = np.empty(n_tokens, dtype=np.int64)
    for state, some in enumerate(words):
        at = np.flatnonzero(states == state)
        if len(at):
            within = np.cumsum(shares[some]) / mass[state]
            drawn = np.searchsorted(within, random.random(len(at)))
            tokens[at] = some[np.minimum(drawn, len(some) - 1)]
    _, inverse, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int32)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts), dtype=np.int32)
    return rank[inverse], len(counts)


def measure_clusters(n_tokens: int, n_words: int, n_classes: int) -> list[str]:
    """Figures of Brown clusters, one a line."""
    tokens, n_known = make_text(n_tokens, n_words, np.random.default_rng(1))
    ptr = np.append(np.arange(0, n_tokens, SENTENCE, dtype=np.int64), n_tokens)
    began = process_time()
    learner = _core.BrownClusters(tokens, ptr, n_known, n_classes)
    while learner.run(n_known // 20 + 1):
        pass
    seconds = process_time() - began
    return [f"{n_tokens:,} words, {n_known:,} different ones, {n_classes:,} classes: {seconds:.1f} CPU s"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("lexicon", "clusters"), default="lexicon")
    parser.add_argument("--entries", type=int, default=5_000_000)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--tokens", type=int, default=10_000_000)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(arguments)
    print(machine())
    if given.quick:
        lines = [*measure_lexicon(2_000, 2_000), *measure_clusters(2_000, 300, 20)]
    elif given.part == "lexicon":
        lines = measure_lexicon(given.entries, given.words)
    else:
        lines = measure_clusters(given.tokens, 400_000, 1_000)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
