"""Fingerprints of training and dev data as a model sees them, for a checkpoint to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crfkit.arrays import Float64s
from crfkit.data import InputError, Sentence
from crfkit.models.chain_model import ChainModel
from crfkit.models.potentials import TrainingData
from crfkit.models.training.annotations import checked_lists
from crfkit.models.training.fingerprint import Fingerprint, NoFingerprintError


def of_training_set(model: ChainModel, data: TrainingData, sample_weight: Float64s | None) -> str:
    """The training data of a chain, and what they call for."""
    potentials = model.potentials
    names = (
        potentials.encoder.vocabulary.to_bytes(),
        potentials.encoder.arc_vocabulary.to_bytes(),
        model.labels.classes,
        list(potentials.output_names),
    )
    dataset = replace(data.dataset, inputs=None)
    digest = Fingerprint()
    try:
        for thing in (dataset, data.annotation, sample_weight, names, potentials.feature_map):
            digest.add(thing)
        for thing in potentials.compared(data):
            digest.add(thing)
    except NoFingerprintError as error:
        raise InputError(
            f"the training data have {error}, which cannot be compared with that of another run"
        ) from None
    return digest.hexdigest()


def of_held_out(model: ChainModel, X: Any, y: Any, allowed: Any = None) -> str:
    """A dev set as a chain sees it, with its labels."""
    dataset = model.encode(X, allowed)
    digest = Fingerprint().add(replace(dataset, inputs=None))
    for thing in model.potentials.compared_input(dataset):
        digest.add(thing)
    numbers: dict[Any, int] = {}  # entries of y by their first occurrence
    for labels in checked_lists(y, dataset.sequence_ptr, "dev "):
        entries = [frozenset(entry) if isinstance(entry, set) else entry for entry in labels]
        digest.add(np.array([numbers.setdefault(entry, len(numbers)) for entry in entries], dtype=np.int64))
    return digest.add(list(numbers)).hexdigest()


def of_sentences(sentences: Sequence[Sentence], sample_weight: Float64s | None = None) -> str:
    """Words with their heads and labels."""
    digest = Fingerprint().add(sample_weight)
    for sentence in sentences:
        digest.add([str(part) for word in sentence.words for part in word])
    return digest.hexdigest()
