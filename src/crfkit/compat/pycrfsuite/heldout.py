"""Evaluation on held-out instances, in the lines of CRFsuite's log."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from crfkit.compat.pycrfsuite.instances import Examples
from crfkit.features import FeatureMap
from crfkit.inference import Answerer, ChainPotentials


class HeldOut:
    """Held-out instances, ready to be labelled again and again."""

    def __init__(
        self, examples: Examples, feature_map: FeatureMap, labels: list[str], n_threads: int
    ) -> None:
        self._gold = examples.annotation.labels  # [T]
        self._ptr = examples.dataset.sequence_ptr
        self._map = feature_map
        self._labels = labels
        self._n_threads = n_threads
        self._design = feature_map.design(examples.dataset, n_threads)

    def report(self, weights: npt.NDArray[np.float64]) -> Iterator[str]:
        """The lines of the log for weights [D]."""
        found = Answerer(ChainPotentials(self._map.layout, weights)).decode(self._design, self._n_threads)
        n, right = len(self._labels), found == self._gold
        match, model, ref = (
            np.bincount(labels, minlength=n).tolist() for labels in (self._gold[right], found, self._gold)
        )
        shares = []
        yield "Performance by label (#match, #model, #ref) (precision, recall, F1):\n"
        for i, label in enumerate(self._labels):
            shares.append(_shares(match[i], model[i], ref[i]))
            shown = ", ".join(f"{share:.4f}" for share in shares[-1]) if ref[i] else "******, ******, ******"
            yield f"    {label}: ({match[i]}, {model[i]}, {ref[i]}) ({shown})\n"
        means = ", ".join(f"{sum(column) / n:.6f}" for column in zip(*shares, strict=True))
        yield f"Macro-average precision, recall, F1: ({means})\n"
        yield f"Item accuracy: {_share(int(right.sum()), len(right))}\n"
        wrong = np.concatenate([np.zeros(1, np.int64), np.cumsum(~right)])
        whole = wrong[self._ptr[1:]] == wrong[self._ptr[:-1]]
        yield f"Instance accuracy: {_share(int(whole.sum()), len(whole))}\n"


def _shares(match: int, model: int, ref: int) -> tuple[float, float, float]:
    """Precision, recall and F1; 0 for a label that does not occur."""
    if match == 0:
        return 0.0, 0.0, 0.0
    precision, recall = match / model, match / ref
    return precision, recall, 2 * precision * recall / (precision + recall)


def _share(part: int, whole: int) -> str:
    return f"{part} / {whole} ({part / max(whole, 1):.4f})"
