"""Dev scores during training are those of the labels that `predict` gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, Chain, Checkpoint
from crfkit.models import CheckpointMismatchError

Data = tuple[list[list[str]], list[list[str]]]


def draw(seed: int, n: int) -> Data:
    """Sentences of few words, of which some are names, often of another length than the words tell."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = random.integers(0, 6, random.integers(3, 12))
        labels: list[str] = []
        for word in words:
            inside = bool(labels) and labels[-1] != "O" and random.random() < 0.5
            begins = random.random() < word / 8
            labels.append(
                f"I-{labels[-1][2:]}" if inside else f"B-{'AB'[random.integers(2)]}" if begins else "O"
            )
        X.append([f"w{word}" for word in words])
        y.append(labels)
    return X, y


def features(X: list[list[str]]) -> list[list[list[str]]]:
    return [[[word] for word in words] for words in X]


@pytest.mark.parametrize("bigrams", [None, "bio"])
@pytest.mark.parametrize("decode", ["viterbi", "spans", "auto"])
def test_the_dev_score_is_that_of_predict(decode: str, bigrams: str | None) -> None:
    (X, y), (dev_X, dev_y) = draw(1, 60), draw(2, 60)
    dev = features(dev_X), dev_y
    settings: dict[str, Any] = {"structure": Chain(bigrams=bigrams), "optimizer": LBFGS(max_iterations=8)}
    crf = CRF(decode=decode, **settings).fit(features(X), y, dev=dev)
    found = [record.dev_score for record in crf.history_ if record.iteration == crf.n_iter_]
    assert found == [crf.score(*dev)] == [crf.score(*dev, decode=crf.decode_)]
    other = "spans" if decode == "viterbi" else "viterbi"
    assert crf.score(*dev, decode=other) != found[0]  # the test can tell them apart


def test_a_checkpoint_of_another_decoding_is_refused_where_it_chose_weights(tmp_path: Path) -> None:
    (X, y), (dev_X, dev_y) = draw(1, 20), draw(2, 20)
    for dev in (None, (features(dev_X), dev_y)):
        path = tmp_path / f"run{dev is None}"
        first = CRF(decode="spans", optimizer=LBFGS(max_iterations=3))
        first.fit(features(X), y, dev=dev, checkpoint=Checkpoint(path, every=1))
        second = CRF(decode="viterbi", optimizer=LBFGS(max_iterations=4))
        again = Checkpoint(path, every=1, resume=True)
        if dev is None:
            second.fit(features(X), y, checkpoint=again)
        else:
            with pytest.raises(CheckpointMismatchError) as caught:
                second.fit(features(X), y, dev=dev, checkpoint=again)
            assert caught.value.name == "decode"
        same = CRF(decode="auto", optimizer=LBFGS(max_iterations=4))
        same.fit(features(X), y, dev=dev, checkpoint=again)
