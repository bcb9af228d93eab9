"""Training has the same bits for any number of threads, with data of many blocks, for every kind of evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain, Ngrams, Patterns, Segments

TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB0:%x[0,0]\nB"
MODELS: dict[str, dict[str, Any]] = {
    "rows": {"features": "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB"},
    "features of transitions": {"features": TEMPLATE},
    "lattices": {"features": TEMPLATE, "tag_dictionary": True},
    "facets": {"features": "U0:%x[0,0]\nB", "facets": lambda label: {"place": label[0], "type": label[1:]}},
    "few transitions": {"features": "U0:%x[0,0]\nB", "structure": Chain(bigrams="observed")},
    "segments": {"features": "U0:%x[0,0]\nB", "structure": Segments(max_length=4, scheme="bio")},
    "patterns": {"features": "U0:%x[0,0]\nB", "structure": Patterns([Ngrams(3)])},
}


def corpus(n: int = 900) -> tuple[list[list[str]], list[list[str]]]:
    """Words that say something of their labels; about 9,000 positions, so that there are many blocks."""
    random = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n):
        labels: list[str] = []
        while len(labels) < 6:
            kind = "AB"[random.integers(2)]
            labels += (
                [f"B-{kind}", f"I-{kind}"] if random.random() < 0.4 else ["O"] * int(random.integers(1, 6))
            )
        y.append(labels)
        X.append([f"{label}{random.integers(30)}"[random.integers(3) :] for label in labels])
    return X, y


@pytest.mark.parametrize("kind", MODELS)
def test_training_has_the_same_bits_for_any_number_of_threads(kind: str) -> None:
    X, y = corpus()

    def weights(n_threads: int) -> bytes:
        model = CRF(optimizer=LBFGS(max_iterations=4), n_threads=n_threads, **MODELS[kind])
        return model.fit(X, y).weights_.tobytes()

    assert weights(1) == weights(2) == weights(5)
