"""A part of the training data to train on, and another that is held out.

Neighbours of training sentences are too much like them, so pieces of many sequences are held out. Files often join texts of
several kinds, so the pieces come from all over the data: the last fifth of each fifth.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from crfkit.counts import MOST
from crfkit.errors import ArgumentError
from crfkit.features import SampledDataset, least_count, sample_part
from crfkit.models.chain_model import ChainModel
from crfkit.models.training.crf_task import CRFTask, here
from crfkit.models.training.held_out import HeldOut
from crfkit.models.training.stored_task import StoredTask
from crfkit.models.training.training_set import Examples, check_labels_given
from crfkit.optimizers import AUTO

TRAINED, HELD_OUT = 2000, 1000  # sequences at most
FEWEST = 10  # sequences
PIECES = 5  # that are held out
SHORTEST = 10  # sequences of a piece; where it would have fewer, there is one piece, at the end
_SHARE = 5  # one of so many sequences may be held out


class Split(NamedTuple):
    """A task on some of the sequences, and others."""

    task: CRFTask | StoredTask
    n_trained: int
    held_out: Callable[[ChainModel, int], HeldOut]  # as a model sees them, with so many threads
    n_held_out: int


def hold_out(task: CRFTask | StoredTask, dev: Any) -> Split:
    """Sequences from all over the training data, and held-out ones: those of the dev set, or some in pieces."""
    if dev is not None:
        dev = tuple(None if column is None else list(column)[:HELD_OUT] for column in dev)
        dev = dev if dev[1] else None  # without sequences there is nothing to measure
    return _split_stored(task, dev) if isinstance(task, StoredTask) else _split_lists(task, dev)


def _choose(n: int, dev: Any) -> tuple[list[int], list[int]]:
    """Which of n sequences are trained on, and which are held out."""
    if n < FEWEST:
        raise ArgumentError(
            f"l2 is 'auto', which needs at least {FEWEST} sequences, got {n}; expected a number"
        )
    held_out = [] if dev is not None else _pieces(n, min(max(n // _SHARE, 1), HELD_OUT))
    others = np.setdiff1d(np.arange(n), held_out)
    n_trained = min(len(others), TRAINED)
    return others[np.arange(n_trained) * len(others) // n_trained].tolist(), held_out


def _pieces(n: int, n_held_out: int) -> list[int]:
    """The last sequences of equal parts of all n, `n_held_out` in all or a few less."""
    n_pieces = PIECES if n_held_out >= PIECES * SHORTEST else 1
    size = n_held_out // n_pieces
    ends = [n * (k + 1) // n_pieces for k in range(n_pieces)]
    return [i for end in ends for i in range(end - size, end)]


def _split_lists(task: CRFTask, dev: Any) -> Split:
    check_labels_given(task.examples.y)
    columns: tuple[Any, ...] = task.examples
    given = Examples(*(None if column is None else list(column) for column in columns))
    n = len(given.y)
    if len(given.X) != n:  # training refuses them
        return Split(task, n, partial(_encode, (given.X, given.y)), n)
    trained, others = _choose(n, dev)
    part = Examples(*(_some(column, trained) for column in given))
    if dev is None:
        dev = tuple(_some(column, others) for column in (given.X, given.y, given.allowed))
    own = replace(task, examples=part, costs=None, shard_size=MOST)  # one shard
    return Split(own, len(trained), partial(_encode, dev), len(dev[1]))


def _split_stored(task: StoredTask, dev: Any) -> Split:
    """The same for an encoded data set: these sequences alone are in memory, and one shard."""
    stored = task.dataset
    trained, others = _choose(stored.n_sequences, dev)
    part = sample_part(stored, np.array(trained))
    asked = task.settings.min_count
    if asked != AUTO:
        asked = stored.settings["min_count"]
    sample = SampledDataset(stored, part, least_count(asked, part.metadata["n_positions"]))
    if dev is not None:
        held_out, n_held_out = partial(_encode, dev), len(dev[1])
    else:
        held_out, n_held_out = partial(_open, sample_part(stored, np.array(others))), len(others)
    return Split(StoredTask(task.settings, sample, here), len(trained), held_out, n_held_out)


def _encode(dev: Any, model: ChainModel, n_threads: int) -> HeldOut:
    return HeldOut.encode(model, dev, n_threads)


def _open(part: Any, model: ChainModel, n_threads: int) -> HeldOut:
    return HeldOut.open(model, part, n_threads)


def _some(column: Any, which: Sequence[int]) -> Any:
    return None if column is None else [column[i] for i in which]
