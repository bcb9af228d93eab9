"""The first-order chain: labels y_1 … y_T, scored at each site and between neighbours.

    score(y) = start[y_1] + Σ_t states[t, y_t] + Σ_{t≥2} arcs[t, y_{t−1}, y_t] + end[y_T]
    p(y)     = exp(score(y)) / Z,    Z = Σ_y exp(score(y))

An empty sequence has exactly one output, the empty one, with score 0. Letters: T sites, L labels.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crfkit.structures.structure import Evidence, Int32s

Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """Sequences of labels in which neighbours are linked.

    `start` and `end` say whether the arc into the first label and the arc out of the last one have scores of
    their own.

    >>> Chain(end=False)
    Chain(start=True, end=False)
    """

    start: bool = True
    end: bool = True

    def bind(self, labels: Sequence[Hashable], outputs: Iterable[npt.ArrayLike]) -> Chain:
        """The chain itself: with all labels and all arcs allowed, training leaves nothing open."""
        if len(labels) == 0:
            raise ValueError("A chain needs at least one label, got none.")
        return self

    def compile(self, n_sites: int, evidence: Evidence | None = None, fired: object = None) -> ChainTrellis:
        """All label sequences of this length that the evidence allows."""
        if fired is not None:
            raise ValueError(f"A chain has no parts that an input could switch on, got fired = {fired!r}.")
        if n_sites < 0:
            raise ValueError(f"n_sites is {n_sites}, expected 0 or more.")
        if evidence is None:
            return _plain(self, n_sites)
        if evidence.n_sites != n_sites:
            raise ValueError(f"The evidence speaks of {evidence.n_sites} sites, the input has {n_sites}.")
        return ChainTrellis(self, n_sites, evidence)


@dataclass(frozen=True, eq=False)
class ChainTrellis:
    """The outputs of a chain: L^T sequences, less what the evidence excludes. Arcs are never written out."""

    structure: Chain
    n_sites: int
    evidence: Evidence | None = None

    @property
    def key(self) -> Hashable:
        """Equal keys mean the same outputs."""
        return (self.structure, self.n_sites, None if self.evidence is None else self.evidence.key)


@lru_cache(maxsize=4096)
def _plain(structure: Chain, n_sites: int) -> ChainTrellis:
    """The one trellis that all unrestricted inputs of this length share."""
    return ChainTrellis(structure, n_sites)


@dataclass(frozen=True, eq=False)
class ChainScores:
    """The scores of the parts of a chain. What is None scores 0; −inf forbids a part.

    Arrays are checked and kept as read-only float64; the caller's own are never changed.

    >>> scores = ChainScores(states=[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], arcs=[[0.5, 0.0], [0.0, 0.5]])
    >>> scores.n_sites, scores.n_labels
    (3, 2)
    """

    states: Float64s  # [T, L] label b at site t
    arcs: Float64s | None = (
        None  # [L, L] for every pair of neighbours, or [T − 1, L, L] pair by pair: (before, after)
    )
    start: Float64s | None = None  # [L] the first label is b
    end: Float64s | None = None  # [L] the last label is b

    def __post_init__(self) -> None:
        """Convert and refuse what cannot be scores."""
        states = _scores("states", self.states)
        if states.ndim != 2 or states.shape[1] == 0:
            raise ValueError(f"ChainScores.states: expected [T, L] with L ≥ 1, got {_shape(states)}.")
        n_sites, n_labels = states.shape
        arcs = None if self.arcs is None else _scores("arcs", self.arcs)
        square, by_pair = (n_labels, n_labels), (max(n_sites - 1, 0), n_labels, n_labels)
        if arcs is not None and arcs.shape not in (square, by_pair):
            raise ValueError(
                f"ChainScores.arcs: expected [L, L] = {list(square)} or [T − 1, L, L] = {list(by_pair)}, "
                f"to go with states of shape {_shape(states)}, got {_shape(arcs)}."
            )
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "arcs", arcs)
        for name in ("start", "end"):
            given = getattr(self, name)
            values = None if given is None else _scores(name, given)
            if values is not None and values.shape != (n_labels,):
                raise ValueError(
                    f"ChainScores.{name}: expected [L] = [{n_labels}], to go with states of shape "
                    f"{_shape(states)}, got {_shape(values)}."
                )
            object.__setattr__(self, name, values)

    @property
    def n_sites(self) -> int:
        """T."""
        return int(self.states.shape[0])

    @property
    def n_labels(self) -> int:
        """L."""
        return int(self.states.shape[1])

    def check(self, structure: Chain) -> None:
        """Refuse scores for parts that this structure does not have."""
        if not isinstance(structure, Chain):
            raise ValueError(f"ChainScores go with a Chain, got {type(structure).__name__}.")
        for name in ("start", "end"):
            if getattr(self, name) is not None and not getattr(structure, name):
                raise ValueError(f"ChainScores.{name} was given, but Chain({name}=False) has no {name} arcs.")


class ChainMarginals(NamedTuple):
    """∇ log Z with respect to the scores, part by part: the probability that an output has the part.

    The same shapes carry other numbers per part: the counts of one output, or ∇² log Z · direction.
    """

    states: Float64s  # [T, L]         P(y_t = b)
    arcs: Float64s  # [max(T − 1, 0), L, L]   P(y_t = a, y_{t+1} = b)
    start: Float64s  # [L]             P(y_1 = b); 0 for an empty sequence or a chain without start arcs
    end: Float64s  # [L]               P(y_T = b); 0 for an empty sequence or a chain without end arcs


class Best(NamedTuple):
    """An output and its score: argmax_y score(y), or one of the k best."""

    output: Int32s  # [T] label ids
    score: float  # before normalising: log p(output) = score − log Z


def _scores(name: str, values: npt.ArrayLike) -> Float64s:
    """`values` as a read-only float64 array in C order, without NaN and +inf."""
    try:
        given = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"ChainScores.{name}: expected an array of numbers, got rows of different length."
        ) from error
    if given.dtype.kind not in "fiub":
        raise ValueError(f"ChainScores.{name}: expected an array of numbers, got {given.dtype}.")
    array = np.array(given, dtype=np.float64, order="C")  # a copy: what was checked stays as it is
    if not np.all(array < np.inf):  # NaN compares false
        site = tuple(int(i) for i in np.argwhere(~(array < np.inf))[0])
        what = "NaN" if np.isnan(array[site]) else "+inf"
        raise ValueError(
            f"ChainScores.{name}{list(site)} is {what}, expected a finite number, or −inf to forbid."
        )
    array.flags.writeable = False
    return array


def _shape(array: Float64s) -> str:
    """The shape as it is written in messages: [3, 2]."""
    return str(list(array.shape))
