"""New input, encoded, and what answers questions about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.inference import LatticeTagger, Tagger
from crfkit.models.chain_model import ChainModel
from crfkit.models.constraints import check_possible
from crfkit.structures import Evidence

Int64s = npt.NDArray[np.int64]


class Question(NamedTuple):
    """Encoded input and what answers questions about it."""

    model: ChainModel
    tagger: Tagger | LatticeTagger
    design: Any  # the input as the native core reads it
    ptr: Int64s  # [N + 1] the sites of sequence n are ptr[n]:ptr[n + 1]
    allowed: Evidence | None  # the labels that each site may have; None: all
    n_threads: int

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Where the native core finds that a sequence has no possible labelling, say why."""
        try:
            yield
        except ValueError:
            check_possible(self.model.chain, self.ptr, self.allowed)
            raise
