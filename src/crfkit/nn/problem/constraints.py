"""Which neighbours exist: sets of bigrams as tables that forbid transitions."""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crfkit.errors import ArgumentError, ShapeError
from crfkit.structures import Bigrams, Chain

BigramsLike: TypeAlias = "Bigrams | str | Tensor | npt.NDArray[np.bool_] | None"


def bigram_table(
    bigrams: BigramsLike, n_labels: int, labels: Sequence[Hashable] | None, device: torch.device | None = None
) -> Tensor | None:
    """The bigrams as bools [L + 1, L + 1]: [before, after], with START as the last row and END as the last column.

    `bigrams` is a scheme of span labels ("bio", "iobes", …) or a `Bigrams` of these `labels` (None: of the ids
    0 … L − 1), or bools [L, L] or [L + 1, L + 1].
    """
    if bigrams is None:
        return None
    bigrams = torch.from_numpy(bigrams) if isinstance(bigrams, np.ndarray) else bigrams
    if isinstance(bigrams, Tensor):
        square = bigrams.ndim == 2 and bigrams.shape[0] == bigrams.shape[1]
        fits = square and (len(bigrams) == n_labels or len(bigrams) == n_labels + 1)
        if bigrams.dtype != torch.bool or not fits:
            raise ShapeError(
                f"bigrams: got {bigrams.dtype} with shape {list(bigrams.shape)}, expected bools "
                f"[{n_labels}, {n_labels}] or [{n_labels + 1}, {n_labels + 1}]."
            )
        if len(bigrams) == n_labels + 1:
            return bigrams.to(device)
        table = torch.ones((n_labels + 1, n_labels + 1), dtype=torch.bool, device=bigrams.device)
        table[: len(bigrams), : len(bigrams)] = bigrams
        return table.to(device)
    if labels is not None and len(labels) != n_labels:
        raise ShapeError(f"labels: got {len(labels)} of them, the scores have {n_labels}.")
    if isinstance(bigrams, str) and labels is None:
        raise ArgumentError(f"bigrams={bigrams!r} needs names: pass labels=[…], the name of each label.")
    if bigrams == "observed":
        raise ArgumentError(
            'bigrams="observed": pass Bigrams.observed(y), with the label sequences of the data.'
        )
    names = range(n_labels) if labels is None else labels
    chain = Chain(bigrams=bigrams).bind(names, [])
    return torch.from_numpy(chain.support().exists.copy()).to(device)
