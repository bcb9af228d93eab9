"""All projective trees of a sentence, listed one by one, with the scores of their arcs and of their adjacent siblings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.oracles.oracle import Enumeration, all_lead_to_the_root


class ProjectiveOracle(Enumeration):
    """Every choice of heads in which each word leads up to the root and no two arcs cross, the root standing first.

    An output is the heads. Parts are the arcs [T + 1, T + 1] of `scores`, then the pairs of siblings [T + 1, T + 1, T + 1]
    of `siblings` by head, inner sibling and dependent; the innermost dependent on a side has its head in place of a sibling.
    """

    def __init__(self, scores: Any, single_root: bool, siblings: Any = None) -> None:
        self.size = len(scores)
        flat = scores.ravel() if siblings is None else np.concatenate([scores.ravel(), siblings.ravel()])
        super().__init__(self._trees(scores > -np.inf, single_root, siblings is not None), flat)

    def _trees(self, exists: Any, single_root: bool, pairs: bool) -> Iterator[tuple[Any, list[int]]]:
        size = self.size
        choices = [[h for h in range(size) if h != word and exists[h, word]] for word in range(1, size)]
        for heads in itertools.product(*choices):
            if not all_lead_to_the_root(list(heads)) or (single_root and heads.count(0) > 1):
                continue
            arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads, 1)]
            if any(a < c < b < d for (a, b), (c, d) in itertools.permutations(arcs, 2)):
                continue
            parts = [h * size + m for m, h in enumerate(heads, 1)]
            if pairs:
                parts += [size**2 + (h * size + s) * size + m for h, s, m in adjacent_siblings(heads)]
            yield heads, parts

    def by_arc(self, numbers: Any) -> Any:
        """The numbers of the arcs among those of all parts, [T + 1, T + 1]."""
        return numbers[: self.size**2].reshape(self.size, self.size)

    def by_pair(self, numbers: Any) -> Any:
        """The numbers of the pairs of siblings, [T + 1, T + 1, T + 1]."""
        return numbers[self.size**2 :].reshape(3 * (self.size,))


def adjacent_siblings(heads: Any) -> list[tuple[int, int, int]]:
    """(head, inner sibling, dependent) of every word; the head itself where there is no inner sibling."""
    found = []
    for head in range(len(heads) + 1):
        words = [m for m, h in enumerate(heads, 1) if h == head]
        for side in ([m for m in words if m > head], [m for m in reversed(words) if m < head]):
            found += [(head, inner, m) for inner, m in zip([head, *side], side, strict=False)]
    return found
