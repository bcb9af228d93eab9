"""How likely held-out data is under a trained model."""

from typing import Any

import numpy as np

from crfkit.models.chain_model import ChainModel
from crfkit.models.training.train import Trained


def log_likelihood(trained: Trained[ChainModel], dev: Any, n_threads: int) -> float:
    """log p of the labels of held-out data (X, y) or (X, y, allowed), summed over its sequences.

    Labels that the model does not know are taken for unknown (of a set, the others count), and sequences left out that its
    constraints exclude.
    """
    model, (X, y, allowed) = trained.model, (*dev, None)[:3]
    dataset, known = model.encode(X, allowed), set(model.labels.classes)
    gold = [[_known_part(entry, known) for entry in labels] for labels in y]
    annotation = model.labels.encode(gold, np.diff(dataset.sequence_ptr))
    answerer, design = model.answerer(trained.weights), model.design(dataset, n_threads)
    of_gold = answerer.log_partitions(design, annotation.labels, annotation.sets, n_threads)
    possible = np.isfinite(of_gold)  # the same ones for all weights
    of_all = answerer.log_partitions(design, n_threads=n_threads)
    return float(np.sum(of_gold[possible] - of_all[possible]))


def _known_part(entry: Any, known: set[Any]) -> Any:
    """What an entry of y says by the labels that are known; None where it names no other."""
    if isinstance(entry, set | frozenset):
        return set(entry & known) or None
    return entry if entry in known else None
