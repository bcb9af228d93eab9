"""Best spanning trees without the native core: Chu–Liu–Edmonds in plain Python over NumPy rows.

With exactly one word below the root, every word is tried as that one only where the best tree has several: the tree with
the root's other arcs removed is sought for each, and the best is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def best_tree(scores: Floats, single_root: bool) -> Ints | None:
    """The heads [n] of the best tree of one sentence, scores [n + 1, n + 1]; None where there is none."""
    n = len(scores) - 1
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    heads = _arborescence(scores)
    if heads is None or not single_root or np.count_nonzero(heads[1:] == 0) == 1:
        return None if heads is None else heads[1:]
    best, top = None, -np.inf
    for word in range(1, n + 1):
        below = scores.copy()
        below[0, 1:] = -np.inf
        below[0, word] = scores[0, word]
        heads = _arborescence(below)
        if heads is not None:
            total = below[heads[1:], np.arange(1, n + 1)].sum()
            if total > top:
                best, top = heads[1:], total
    return best


def _arborescence(scores: Floats) -> Ints | None:
    """The heads [m] of the best arborescence from node 0 (whose own entry means nothing), or None."""
    heads = scores.argmax(0)
    heads[0] = 0
    nodes = np.arange(len(scores))
    if (scores[heads, nodes][1:] == -np.inf).any():
        return None
    cycle = _cycle(heads)
    if cycle is None:
        return heads
    inside = np.zeros(len(scores), dtype=np.bool_)
    inside[cycle] = True
    outer = np.flatnonzero(~inside)  # node 0 stays first
    gain = scores[:, cycle] - scores[heads[cycle], cycle]  # what is lost when an arc of the cycle is replaced
    merged = np.full((len(outer) + 1, len(outer) + 1), -np.inf)
    merged[:-1, :-1] = scores[np.ix_(outer, outer)]
    entry, leaving = gain[outer].argmax(1), scores[np.ix_(cycle, outer)].argmax(0)
    merged[:-1, -1] = gain[outer].max(1)
    merged[-1, :-1] = scores[np.ix_(cycle, outer)].max(0)
    found: Any = _arborescence(merged)
    if found is None:
        return None
    answer = heads.copy()
    for place, node in enumerate(outer[1:], start=1):
        head = found[place]
        answer[node] = cycle[leaving[place]] if head == len(outer) else outer[head]
    into = found[-1]
    answer[cycle[entry[into]]] = outer[into]
    return np.asarray(answer)


def _cycle(heads: Ints) -> Ints | None:
    """The nodes of a cycle among these heads, or None."""
    colour = np.zeros(len(heads), dtype=np.int64)
    colour[0] = -1
    for start in range(1, len(heads)):
        node = start
        while colour[node] == 0:
            colour[node] = start
            node = int(heads[node])
        if colour[node] == start:
            cycle, at = [node], int(heads[node])
            while at != node:
                cycle.append(at)
                at = int(heads[at])
            return np.array(cycle)
        colour[colour == start] = -1
    return None
