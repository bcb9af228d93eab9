"""Training sequences that the bigrams exclude, left out as they are read: `Chain(unseen="skip")` on files and iterators."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from crfkit.arrays import Int32s
from crfkit.models.settings import CRFSettings
from crfkit.structures import OBSERVED, Chain

_AT_ONCE = 1000  # sequences


class BigramFilter:
    """Counts sequences, and leaves out those that the bigrams of a chain exclude.

    A sequence that is labelled at every position is excluded whatever labels the others have. One with unknown labels is
    kept here: whether it is excluded depends on the labels of all data.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._ids: dict[Any, int] = {}  # of the labels met so far
        self.n_read = self.n_skipped = 0

    @classmethod
    def find(cls, settings: CRFSettings) -> "BigramFilter | None":
        """The one that a model needs; None where no sequence is left out."""
        if not settings.kind.adds_to_chain:
            return None
        chain = settings.chain
        skips = chain.unseen == "skip" and chain.bigrams is not None and chain.bigrams != OBSERVED
        return cls(chain) if skips else None

    def __call__(self, pairs: Iterable[Any]) -> Iterator[Any]:
        """The pairs (x, y) that are left; what is no pair is left too, for others to refuse."""
        remaining = iter(pairs)
        while chunk := list(islice(remaining, _AT_ONCE)):
            chunk = [_read_labels(pair) for pair in chunk]
            complete = [(n, ids) for n, pair in enumerate(chunk) if (ids := self._number(pair)) is not None]
            excluded = set()
            if complete:
                bound = self._chain.bind(tuple(self._ids), [])
                outside = bound.outside([ids for _, ids in complete])
                excluded = {complete[found.sequence][0] for found in outside}
            self.n_read += len(chunk)
            self.n_skipped += len(excluded)
            yield from (pair for n, pair in enumerate(chunk) if n not in excluded)

    def _number(self, pair: Any) -> Int32s | None:
        """The ids of the labels of a sequence; None where some are unknown, or no labels."""
        labels = pair[1] if isinstance(pair, tuple | list) and len(pair) == 2 else None
        if not isinstance(labels, Sequence | np.ndarray) or isinstance(labels, str):
            return None
        try:
            if any(label is None or isinstance(label, set | frozenset) for label in labels):
                return None
            ids = [self._ids.setdefault(label, len(self._ids)) for label in labels]
        except TypeError:  # not hashable
            return None
        return np.array(ids, np.int32) if self._ids else None


def _read_labels(pair: Any) -> Any:
    """The pair with labels that can be read again."""
    is_read_once = isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[1], Iterator)
    return (pair[0], list(pair[1])) if is_read_once else pair
