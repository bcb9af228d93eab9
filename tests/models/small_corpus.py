"""A small corpus to train on, in which no label is certain."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit import LBFGS

Sequences = list[list[Any]]

WORDS = {"N": ["dog", "cat", "house"], "V": ["runs", "sees", "eats"], "D": ["the", "a"]}
EXACT = LBFGS(max_iterations=2000, tolerance=1e-9, change=0.0)


def corpus(n: int = 40, seed: int = 0) -> tuple[Sequences, Sequences]:
    """Sentences D N V D N with words left out and now and then a wrong word."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = [label for label in "DNVDN" if random.random() < 0.9]
        noisy = [label if random.random() < 0.9 else random.choice(list("DNV")) for label in labels]
        X.append([[f"w={random.choice(WORDS[label])}", "bias"] for label in noisy])
        y.append(labels)
    return X, y
