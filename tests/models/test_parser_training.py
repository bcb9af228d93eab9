"""Long training runs of a parser: checkpoints, going on after a kill, warm starts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crfkit import CRF, LBFGS, AdaGrad, Checkpoint, Parser
from crfkit.errors import ArgumentError
from crfkit.models import CheckpointMismatchError
from tests.models.first_order import first_order
from tests.oracles.treebanks import random_treebank

TREES = random_treebank([1, 3, 5, 8, 4, 6] * 2, 0)
DEV = random_treebank([2, 7, 9, 4], 1)
OPTIMIZERS: dict[str, Any] = {
    "LBFGS": LBFGS(max_iterations=8, tolerance=0, change=0),
    "AdaGrad": AdaGrad(max_iterations=8, rate=0.1),
}
KILLED = """
import os, signal, sys
from crfkit import Checkpoint
from tests.models.first_order import first_order
from tests.models.test_parser_training import DEV, OPTIMIZERS, TREES

def stop(progress):
    if progress.iteration == 5:
        os.kill(os.getpid(), signal.SIGKILL)

first_order(OPTIMIZERS[sys.argv[1]], l2=0.1).fit(TREES, dev=DEV, checkpoint=Checkpoint(sys.argv[2], every=2), callback=stop)
"""


@pytest.mark.filterwarnings("ignore::crfkit.models.ConvergenceWarning")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_run_that_was_killed_goes_on_with_the_same_bits(name: str, tmp_path: Path) -> None:
    path = tmp_path / "killed"
    killed = subprocess.run([sys.executable, "-c", KILLED, name, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    seen: list[int] = []
    again = first_order(OPTIMIZERS[name], l2=0.1).fit(
        TREES,
        dev=DEV,
        checkpoint=Checkpoint(path, resume=True),
        callback=lambda progress: seen.append(progress.iteration),
    )
    whole = first_order(OPTIMIZERS[name], l2=0.1).fit(TREES, dev=DEV)
    assert seen[0] == 5
    assert again.weights_.tobytes() == whole.weights_.tobytes()
    assert again.n_iter_ == whole.n_iter_
    scores = [[record.dev_score for record in model.history_] for model in (again, whole)]
    assert scores[0] == scores[1]


def test_a_checkpoint_of_other_data_or_settings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c"
    settings: dict[str, Any] = {"optimizer": OPTIMIZERS["AdaGrad"], "l2": 0.1}
    first_order(**settings).fit(TREES, dev=DEV, checkpoint=Checkpoint(path, every=1))
    resume = Checkpoint(path, resume=True)
    for change, words in (
        ({"l2": 0.2}, "with l2 0.1, but it is 0.2 now"),
        ({"single_root": False}, "with single_root True, but it is False now"),
        ({"decode": "mbr"}, "with decode 'best', but it is 'mbr' now"),
        ({"optimizer": LBFGS()}, "with optimizer AdaGrad"),
    ):
        with pytest.raises(CheckpointMismatchError, match=words):
            first_order(**{**settings, **change}).fit(TREES, dev=DEV, checkpoint=resume)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "metric"):
        first_order(**settings).fit(TREES, dev=DEV, metric="uas", checkpoint=resume)
    [word, *others] = TREES[1].words
    changed = [TREES[0], type(TREES[1])([word._replace(lemma="other"), *others]), *TREES[2:]]
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "data"):
        first_order(**settings).fit(changed, dev=DEV, checkpoint=resume)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "data"):
        first_order(**settings).fit(TREES, np.full(len(TREES), 2.0), dev=DEV, checkpoint=resume)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "dev data"):
        first_order(**settings).fit(TREES, dev=[*DEV[:-1], TREES[3]], checkpoint=resume)
    with pytest.raises(CheckpointMismatchError, check=lambda error: error.name == "dev"):
        first_order(**settings).fit(TREES, checkpoint=resume)


@pytest.mark.filterwarnings("ignore::crfkit.models.ConvergenceWarning")
def test_a_warm_start_is_where_the_other_parser_ended(tmp_path: Path) -> None:
    first = first_order(LBFGS(), l2=0.1).fit(TREES)
    first.save(tmp_path / "m.parser")
    for start in (first, tmp_path / "m.parser", str(tmp_path / "m.parser")):
        parser = first_order(LBFGS(max_iterations=0), l2=0.1).fit(TREES, start=start)
        np.testing.assert_array_equal(parser.weights_, first.weights_)


@pytest.mark.filterwarnings("ignore::crfkit.models.ConvergenceWarning")
def test_weights_are_transferred_by_what_they_score() -> None:
    """Both parsers have some features and labels that the other one does not have."""
    old = first_order(LBFGS(max_iterations=5), l2=0.1).fit(TREES[:6])
    more = [
        type(sentence)(
            [word._replace(deprel="z" if word.deprel == "a" else word.deprel) for word in sentence.words]
        )
        for sentence in random_treebank([4, 6], 5)
    ]
    new = first_order(LBFGS(max_iterations=2), l2=0.1).fit([*TREES[3:9], *more])
    first = new._model.transfer_weights(old._model, old.weights_)
    expected = weights_by_name(old)
    found = weights_by_name(new, first)
    assert set(found) - set(expected)
    assert set(expected) - set(found)
    assert any(found.values())
    assert found == {name: expected.get(name, 0.0) for name in found}


def weights_by_name(parser: Parser, weights: Any = None) -> dict[tuple[Any, ...], float]:
    """Weights by the key of their feature, and the name of the label where they have one."""
    arc_map = parser._model.arc_map
    layout, values = arc_map.layout, (parser.weights_ if weights is None else weights).tolist()
    keys = layout.label_keys.repeat(np.diff(layout.pair_ptr)).tolist()
    labels = [arc_map.labels[i] for i in layout.pair_labels.tolist()]
    names = [*((key,) for key in layout.arc_keys.tolist()), *zip(keys, labels, strict=True)]
    return dict(zip(names, values, strict=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": 3}, "start"),
        ({"start": CRF()}, "start"),
        ({"checkpoint": "c"}, "checkpoint"),
        ({"checkpoint": Checkpoint("c", every=0)}, "every"),
    ],
)
def test_bad_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        first_order().fit(TREES, **options)
