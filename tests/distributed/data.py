"""Random training data, and the losses of slices of it."""

from __future__ import annotations

import numpy as np

Sequences = list[list[list[str]]]


def random_data(n_sequences: int = 60, seed: int = 0) -> tuple[Sequences, list[list[str]]]:
    """Sequences of up to 12 positions with three features each, and labels that depend on them, with noise."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for length in random.integers(1, 13, n_sequences).tolist():
        words = random.integers(0, 40, length).tolist()
        X.append([["bias", f"w={word}", f"end={word % 7}"] for word in words])
        noise = random.integers(0, 2, length).tolist()
        y.append([("B-X", "I-X", "O")[(word + flip) % 3] for word, flip in zip(words, noise, strict=True)])
    return X, y
