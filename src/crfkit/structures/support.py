"""The labels that each position can have when only the bigrams of a set B are allowed.

With P_i the labels that are allowed at position i (all, when nothing is known), and START and END no
labels of a position:

    t_i = after(t_{i−1}) ∩ P_i,   t_{−1} = {START}          reachable from the start
    q_i = before(q_{i+1}) ∩ P_i,  q_T = {END}               from which the end is reachable
    r_i = t_i ∩ q_i                                         the labels that some possible output has at position i

Folding P into both recursions makes r_i exact: all r_i are empty, or none is.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Int32s
from crfkit.errors import NoOutputError
from crfkit.structures.bigrams import Bigrams

Bytes = npt.NDArray[np.uint8]

_SHOWN = 5  # labels named in a message


class Support:
    """The transitions of B between L labels as a table, and the label sets they lead to; thread-safe."""

    def __init__(self, bigrams: Bigrams, labels: Sequence[Hashable]) -> None:
        self.labels = tuple(labels)
        n_labels = len(self.labels)
        self.exists = np.zeros((n_labels + 1, n_labels + 1), dtype=np.bool_)  # [before, after]; L: START, END
        self.exists[bigrams.ids(self.labels)] = True
        self.exists.flags.writeable = False
        inner = self.exists[:-1, :-1]
        self._forward = _Reach(self.exists[-1, :-1], np.packbits(inner, axis=1))
        self._backward = _Reach(self.exists[:-1, -1], np.packbits(inner.T, axis=1))

    def positions(self, n_positions: int, allowed: Bools | None = None) -> Bools:
        """r_i as bools [T, L]; NoOutputError, which names what is missing, if no output exists."""
        if allowed is None:
            t, q = self._forward.sets(n_positions), self._backward.sets(n_positions)[::-1]
        else:
            t, q = self._forward.within(allowed), self._backward.within(allowed[::-1])[::-1]
        r = t & q  # [T, L]
        if (n_positions == 0 and not self.exists[-1, -1]) or (n_positions and not r[0].any()):
            what = "" if allowed is None or n_positions == 0 else " with the labels allowed at its positions"
            raise NoOutputError(
                f"No label sequence of length {n_positions}{what} is possible: {self._missing(t, allowed is not None)}."
            )
        return r

    def _missing(self, t: Bools, restricted: bool) -> str:
        """Why no path through the sets t [T, L] reaches the end: what is missing in the bigrams."""
        if len(t) == 0:
            return "(START, END) is not in the bigrams"
        if not self.exists[-1, :-1].any():
            return "no label may begin a sequence"
        if not self.exists[:-1, -1].any():
            return "no label may end a sequence"
        if len(t) == 1 and not restricted:
            return "no label may both begin and end a sequence"
        at = self._dead_end(t)
        if at == 0:
            return "no label allowed at position 0 may begin a sequence"
        before = f"{self._name_states(t[at - 1])} at position {at - 1}" if at else ""
        if at == len(t):
            return f"{before} may not end a sequence"
        return f"nothing {'allowed' if restricted else 'possible'} at position {at} may follow {before}"

    def dead_end(self, allowed: Bools) -> int | None:
        """The first position that no path through allowed labels [T, L] reaches (T: END); None when one reaches END."""
        return self._dead_end(self._forward.within(allowed))

    def _dead_end(self, t: Bools) -> int | None:
        dead = np.flatnonzero(~t.any(axis=1))
        if len(dead):
            return int(dead[0])
        ends = self.exists[-1, -1] if len(t) == 0 else (t[-1] & self.exists[:-1, -1]).any()
        return None if ends else len(t)

    def _name_states(self, states: Bools) -> str:
        ids = np.flatnonzero(states)
        more = f" and {len(ids) - _SHOWN} more labels" if len(ids) > _SHOWN else ""
        return ", ".join(str(self.labels[i]) for i in ids[:_SHOWN]) + more

    def path(self, output: Int32s) -> Int32s:
        """An output [T] between START and END: ids [T + 2] for the rows and columns of `exists`."""
        ends = np.array([len(self.labels)], dtype=np.int32)
        return np.concatenate([ends, output, ends])

    def first_break(self, output: Int32s) -> int | None:
        """The first position where an output is outside the bigrams (T: at END); None if there is none."""
        path = self.path(output)
        arcs = self.exists[path[:-1], path[1:]]  # [T + 1]
        return None if arcs.all() else int(arcs.argmin())


class _Reach:
    """sets[0] is given, sets[i] = the labels that sets[i − 1] leads to; cached, and extended on demand."""

    def __init__(self, first: Bools, rows: Bytes) -> None:
        self._rows = rows  # [L, ⌈L / 8⌉] as bits: what each label leads to
        # Up to the first fixed point, and whether it was reached. Replaced, never changed, so that threads need no
        # lock: a child that another thread forks could inherit it locked.
        self._known: tuple[list[Bools], bool] = ([first], False)

    def sets(self, n: int) -> Bools:
        """The first n sets, [n, L]."""
        sets, closed = self._known
        if len(sets) < n and not closed:
            sets = list(sets)
            while len(sets) < n and not closed:
                following = self._step(sets[-1])
                closed = np.array_equal(following, sets[-1])
                if not closed:
                    sets.append(following)
            self._known = sets, closed
        found = np.array(sets[: max(n, 1)])
        return found[np.minimum(np.arange(n), len(found) - 1)]

    def within(self, allowed: Bools) -> Bools:
        """The sets that lead through allowed labels only, [n, L]."""
        found = np.zeros_like(allowed)
        for i, possible in enumerate(allowed):
            found[i] = (self._step(found[i - 1]) if i else self._known[0][0]) & possible
        return found

    def _step(self, states: Bools) -> Bools:
        union: Bytes = np.bitwise_or.reduce(self._rows[states], axis=0)  # [⌈L / 8⌉]
        return np.unpackbits(union, count=len(states)).astype(np.bool_)


@lru_cache(maxsize=64)
def support_of(bigrams: Bigrams, labels: tuple[Hashable, ...]) -> Support:
    """The support that all chains with these bigrams and labels share."""
    return Support(bigrams, labels)
