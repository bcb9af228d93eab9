"""The first-order chain: labels y_1 … y_T with emission scores and transition scores.

    score(y) = start[y_1] + Σ_t emissions[t, y_t] + Σ_{t≥2} transitions[t, y_{t−1}, y_t] + end[y_T]
    p(y)     = exp(score(y)) / Z,    Z = Σ_y exp(score(y))

An empty sequence has exactly one output, the empty one, with score 0; with bigrams only where these have (START, END).
Letters: T positions, L labels.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crfkit.arrays import Bools, Float64s
from crfkit.errors import ArgumentError, ImpossibleLabelsError, LabelError, ShapeError, UnsupportedError
from crfkit.structures.annotation import Outside, observe_bigrams, outside
from crfkit.structures.bigrams import END, START, Bigrams
from crfkit.structures.schemes import SCHEMES
from crfkit.structures.score_arrays import numeric, refuse_unusable
from crfkit.structures.structure import AllowedLabels
from crfkit.structures.support import Support, support_of

OBSERVED = "observed"
"""`Chain(bigrams=OBSERVED)`: the bigrams of the training data."""
UNSEEN = ("error", "extend", "skip", "soft")
"""What training may do with a sequence that the bigrams exclude."""
MOST_LISTED = 5  # number of training outputs that a message lists


class SequenceStructure(Protocol):
    """A structure of a `CRF`: a chain, and whatever it adds to that."""

    @property
    def chain(self) -> "Chain":
        """Which transitions exist, and which of them have weights."""

    @property
    def bigrams(self) -> Bigrams | str | None:
        """Which neighbours exist; None: all."""


@dataclass(frozen=True, repr=False)
class Chain:
    """Label sequences in which adjacent labels are linked.

    `start` and `end` say whether the transition into the first label and the one out of the last label have
    scores.

    `bigrams` gives the allowed transitions, including START and END (None: all): a `Bigrams`, "observed" (those of the
    training outputs), or a scheme of span labels ("bio", "iob1", "iobes", "bilou", "bmes"). `unseen` decides
    about training outputs with other pairs: "error" raises an error (default), "extend" adds their pairs to the set, "skip"
    leaves these outputs out, and "soft" allows all pairs, of which only those in the set have weights.

    >>> Chain(end=False)
    Chain(start=True, end=False)
    >>> chain = Chain(bigrams="bio").bind(["B", "I", "O"], [])
    >>> chain.bigrams.allows(["O", "I"])
    False
    >>> chain.possible_labels(2, 3)[0]  # I cannot begin
    array([ True, False,  True])
    """

    start: bool = True
    end: bool = True
    bigrams: Bigrams | str | None = None
    unseen: str = "error"
    labels: tuple[Hashable, ...] | None = field(default=None, init=False)  # of the ids, once they are bound

    def __post_init__(self) -> None:
        """Check the arguments."""
        bigrams = self.bigrams
        named = isinstance(bigrams, str) and (bigrams == OBSERVED or bigrams.lower() in SCHEMES)
        if not (bigrams is None or named or isinstance(bigrams, Bigrams)):
            raise ArgumentError(
                f"Chain.bigrams is {bigrams!r}, expected None, Bigrams(…), {OBSERVED!r} or one of {', '.join(SCHEMES)}."
            )
        if self.unseen not in UNSEEN:
            raise ArgumentError(f"Chain.unseen is {self.unseen!r}, expected one of {', '.join(UNSEEN)}.")

    def __repr__(self) -> str:
        constraint = "" if self.bigrams is None else f", bigrams={self.bigrams!r}, unseen={self.unseen!r}"
        return f"Chain(start={self.start}, end={self.end}{constraint})"

    @property
    def chain(self) -> "Chain":
        """Itself: other structures of a `CRF` have a chain beside what is their own."""
        return self

    @property
    def constrained(self) -> bool:
        """Whether some transitions are forbidden."""
        return self.bigrams is not None and self.unseen != "soft"

    def bind(
        self,
        labels: Sequence[Hashable],
        outputs: Iterable[npt.ArrayLike | AllowedLabels],
        *,
        possible: Iterable[npt.ArrayLike | AllowedLabels] | None = None,
        also: Bigrams | None = None,
    ) -> "Chain":
        """The chain with its bigrams fixed as a `Bigrams` of these labels, whose ids are their indices.

        An output is its label ids, −1 where the label is unknown, or the `AllowedLabels` of its possible labels. Pairs with
        labels that are not listed are dropped. A chain without bigrams is returned as it is.

        `possible` are the outputs restricted further, for example by allowed labels: observed pairs are counted in
        `outputs`, and outputs outside the bigrams are found in `possible`. `also` are pairs to allow in any case: those of
        a model that is trained further.
        """
        known = tuple(labels)
        if len(known) == 0:
            raise ArgumentError("A chain needs at least one label, got none.")
        if self.bigrams is None:
            return self
        if START in known or END in known:
            raise LabelError("START and END mark the ends of a sequence, expected labels.")
        if len(set(known)) != len(known):
            raise ArgumentError("The labels of a chain must be distinct.")
        given = list(outputs)
        bigrams = self.bigrams
        if isinstance(bigrams, str):
            bigrams = Bigrams() if bigrams == OBSERVED else Bigrams.scheme(bigrams, known)
        if self.bigrams == OBSERVED or self.unseen == "extend":
            bigrams |= observe_bigrams(known, given)
        if also is not None:
            bigrams |= also
        inside = Bigrams.from_ids(known, *bigrams.ids(known))
        bound = replace(self, bigrams=inside)
        object.__setattr__(bound, "labels", known)
        if given and self.unseen in ("error", "extend"):
            _refuse(bound.outside(given if possible is None else possible), len(given))
        return bound

    def outside(self, outputs: Iterable[npt.ArrayLike | AllowedLabels]) -> list[Outside]:
        """The first pair outside the bigrams of each output that they exclude; outputs as in `bind`."""
        if not self.constrained:
            return []
        return outside(self.support(), list(outputs))

    def of_ids(self, n_labels: int) -> "Chain":
        """The chain for L labels: itself once it is bound; before that, its bigrams must be pairs of ids from 0 to L − 1."""
        if self.labels is not None:
            if len(self.labels) != n_labels:
                raise ShapeError(
                    f"{self!r} is bound to {len(self.labels)} labels, the scores have {n_labels}."
                )
            return self
        if isinstance(self.bigrams, Bigrams):
            strange = set(self.bigrams.labels) - set(range(n_labels))
            if strange:
                raise LabelError(
                    f"{self!r} is not bound, and its label {min(map(repr, strange))} is no id from 0 to {n_labels - 1}: "
                    "call bind(labels, outputs) first."
                )
            return self.bind(range(n_labels), [])
        if self.bigrams is not None:
            self.support()
        return self

    def support(self) -> Support:
        """The tables of a bound chain with bigrams."""
        if not isinstance(self.bigrams, Bigrams) or self.labels is None:
            raise ArgumentError(f"{self!r} is not bound to labels yet: call bind(labels, outputs) first.")
        return support_of(self.bigrams, self.labels)

    def possible_labels(self, n_positions: int, n_labels: int, allowed: AllowedLabels | None = None) -> Bools:
        """The labels that some output has at each position, [T, L]: r_i of `crfkit.structures.support`.

        If bigrams and allowed labels exclude every output, raises a `NoOutputError` that names the length and what is
        missing.
        """
        if n_positions < 0:
            raise ArgumentError(f"n_positions is {n_positions}, expected 0 or more.")
        if allowed is not None and allowed.n_positions != n_positions:
            raise ShapeError(
                f"The allowed labels are of {allowed.n_positions} positions, the input has {n_positions}."
            )
        mask = None if allowed is None else allowed.mask(n_labels)
        if self.constrained:
            return self.support().positions(n_positions, mask)
        return np.ones((n_positions, n_labels), dtype=np.bool_) if mask is None else mask


def _refuse(offenders: Sequence[Outside], n_outputs: int) -> None:
    """Raise an error that lists training outputs outside the bigrams, if there are any."""
    if offenders:
        first = "; ".join(map(str, offenders[:MOST_LISTED])) + "; …" * (len(offenders) > MOST_LISTED)
        raise ImpossibleLabelsError(
            f"{len(offenders):,} of {n_outputs:,} training sequences lie outside the bigrams: {first} "
            "(unseen: 'extend' adds their pairs, 'skip' leaves them out, 'soft' allows all pairs)."
        )


@dataclass(frozen=True, eq=False)
class ChainScores:
    """The scores of the parts of a chain. What is None scores 0; −inf forbids a part.

    Arrays are checked and kept as read-only float64; the caller's own are never changed.

    >>> scores = ChainScores(emissions=[[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], transitions=[[0.5, 0.0], [0.0, 0.5]])
    >>> scores.n_positions, scores.n_labels
    (3, 2)
    """

    emissions: Float64s  # [T, L] label b at position t
    transitions: Float64s | None = (
        None  # [L, L] for every pair of neighbours, or [T − 1, L, L] pair by pair: (before, after)
    )
    start: Float64s | None = None  # [L] the first label is b
    end: Float64s | None = None  # [L] the last label is b

    def __post_init__(self) -> None:
        """Convert and check the arrays."""
        emissions = _scores("emissions", self.emissions)
        if emissions.ndim != 2 or emissions.shape[1] == 0:
            raise ShapeError(f"ChainScores.emissions: expected [T, L] with L ≥ 1, got {_shape(emissions)}.")
        n_positions, n_labels = emissions.shape
        transitions = None if self.transitions is None else _scores("transitions", self.transitions)
        square, by_pair = (n_labels, n_labels), (max(n_positions - 1, 0), n_labels, n_labels)
        if transitions is not None and transitions.shape not in (square, by_pair):
            raise ShapeError(
                f"ChainScores.transitions: expected [L, L] = {list(square)} or [T − 1, L, L] = {list(by_pair)}, "
                f"to go with emissions of shape {_shape(emissions)}, got {_shape(transitions)}."
            )
        object.__setattr__(self, "emissions", emissions)
        object.__setattr__(self, "transitions", transitions)
        for name in ("start", "end"):
            given = getattr(self, name)
            values = None if given is None else _scores(name, given)
            if values is not None and values.shape != (n_labels,):
                raise ShapeError(
                    f"ChainScores.{name}: expected [L] = [{n_labels}], to go with emissions of shape "
                    f"{_shape(emissions)}, got {_shape(values)}."
                )
            object.__setattr__(self, name, values)

    @property
    def n_positions(self) -> int:
        """T."""
        return int(self.emissions.shape[0])

    @property
    def n_labels(self) -> int:
        """L."""
        return int(self.emissions.shape[1])

    def check(self, structure: Chain) -> None:
        """Raise an error for scores of parts that this structure does not have."""
        if not isinstance(structure, Chain):
            raise ArgumentError(f"ChainScores go with a Chain, got {type(structure).__name__}.")
        for name in ("start", "end"):
            if getattr(self, name) is not None and not getattr(structure, name):
                raise UnsupportedError(
                    f"ChainScores.{name} was given, but Chain({name}=False) has no {name} transitions."
                )


class ChainMarginals(NamedTuple):
    """∇ log Z with respect to the scores, part by part: the probability that an output has the part.

    The same shapes hold other numbers per part: the counts of one output, or ∇² log Z · direction.
    """

    emissions: Float64s  # [T, L]         P(y_t = b)
    transitions: Float64s  # [max(T − 1, 0), L, L]   P(y_t = a, y_{t+1} = b)
    start: (
        Float64s  # [L]             P(y_1 = b); 0 for an empty sequence or a chain without start transitions
    )
    end: Float64s  # [L]               P(y_T = b); 0 for an empty sequence or a chain without end transitions


class ScoredOutput(NamedTuple):
    """An output and its score: argmax_y score(y), or one of the k best."""

    output: Any  # label ids [T]; of a factor graph an `Assignment`
    score: float  # before normalising: log p(output) = score − log Z


def _scores(name: str, values: npt.ArrayLike) -> Float64s:
    """`values` as a read-only float64 array in C order, without NaN and +inf."""
    where = f"ChainScores.{name}"
    array = np.array(
        numeric(values, where), dtype=np.float64, order="C"
    )  # a copy: what was checked stays as it is
    refuse_unusable(array, where)
    array.flags.writeable = False
    return array


def _shape(array: Float64s) -> str:
    """The shape as it is written in messages: [3, 2]."""
    return str(list(array.shape))
