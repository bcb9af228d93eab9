"""The interface of a backend: one implementation of the sums over label sequences and of Viterbi decoding."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from crfkit.nn.problem.chain import ChainProblem, in_working_precision, working_dtype
from crfkit.nn.problem.gold_score import add_path, path_score, sums_at_ends

Gradient: TypeAlias = (
    "Sequence[Any]"  # tensors by emissions, transitions, start and end; None where these are absent
)
SAFE_SPREAD = 30.0  # of the transitions: exp space loses nothing that matters in float32


class Expectations(NamedTuple):
    """log Z [B] in float64, P(y) at each position [B, T, L], and Σ_b weight_b Σ_i P(y_{i−1}, y_i) as the transitions."""

    log_partition: Tensor
    emissions: Tensor
    transitions: Tensor


class Backend(ABC):
    """Values, gradients and best label sequences of the problems that it suits. `choice.choose` selects it.

    The value of a sequence is score(tags) − log Z, or log Z where the tags are None.
    """

    name: str
    uses_up_kept = False  # `gradient` overwrites what `value` kept
    masks_gradient = False  # gradients by what a table of bigrams forbids are 0 already

    @abstractmethod
    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The values [B], or their sum []; with `keep`, also what `gradient` needs."""

    @abstractmethod
    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """Σ_b upstream_b ∇ value_b, from what `value` kept; `upstream` is [B], [], or None for 1."""

    @abstractmethod
    def argmax(self, problem: ChainProblem) -> Tensor:
        """The best label sequence [B, T] by position; −1 at masked positions, and where none is possible."""

    def has_total(self, problem: ChainProblem) -> bool:
        """Whether `total` is faster than `value` and `gradient`, and its result can be rescaled by `scale`."""
        return False

    def total(self, problem: ChainProblem, tags: Tensor | None, share: int = 1) -> tuple[Tensor, Gradient]:
        """Σ_b value_b / share, [], and its gradient."""
        value, kept = self.value(problem, tags, True, total=True)
        upstream = None if share == 1 else value.new_full((), 1 / share)
        found = cast_like(problem, self.gradient(problem, tags, upstream, kept))
        return value if upstream is None else value * upstream, found

    def scale(self, gradient: Gradient, upstream: Tensor) -> None:
        """Multiply the gradient of `total` in place by a number [] on the device."""
        raise NotImplementedError

    def expectations(self, problem: ChainProblem) -> Expectations:
        """log Z and the marginals, which are its gradient."""
        # in the working precision, so that they are not rounded; transitions by position may be views, and stay as they are
        if problem.transitions.ndim < 4:
            problem = in_working_precision(problem)
        log_z, kept = self.value(problem, None, True)
        emissions, transitions, *_ = self.gradient(problem, None, None, kept)
        return Expectations(log_z.double(), emissions, transitions)


class MarginalBackend(Backend):
    """A backend whose gradients are made of marginals: what `value` keeps are these."""

    @abstractmethod
    def log_partition(self, problem: ChainProblem) -> Tensor:
        """log Z [B] in float64; −inf where no label sequence is possible, 0 for an empty sequence."""

    @abstractmethod
    def expectations(self, problem: ChainProblem, weights: Tensor | None = None) -> Expectations:
        """log Z and the marginals; those of transitions are weighted by `weights` [B] (None: 1) before they are summed."""

    def value(
        self, problem: ChainProblem, tags: Tensor | None, keep: bool, *, total: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The values from log Z in float64."""
        kept: tuple[Tensor, ...] = ()
        if keep:
            value, *kept = self.expectations(problem)  # type: ignore[assignment]
        else:
            value = self.log_partition(problem)
        if tags is not None:
            value = path_score(problem, tags) - value
        return (value.sum() if total else value).to(working_dtype(problem.emissions.dtype)), tuple(kept)

    def gradient(
        self, problem: ChainProblem, tags: Tensor | None, upstream: Tensor | None, kept: Sequence[Tensor]
    ) -> Gradient:
        """Σ_b upstream_b (parts of the tags − marginals), or Σ_b upstream_b marginals without tags."""
        emissions, transitions = kept
        upstream = emissions.new_ones(()) if upstream is None else upstream
        weights = upstream.expand(len(problem.emissions))
        sign = 1.0 if tags is None else -1.0
        if problem.transitions.ndim > 2:
            d_transitions = transitions * (sign * weights).reshape(-1, *[1] * (transitions.ndim - 1))
        elif len(weights) and not bool((weights == weights[0]).all()):  # sums over sequences, weighted anew
            d_transitions = sign * self.expectations(problem, weights).transitions
        else:
            d_transitions = transitions * (sign * weights[:1].sum())
        d_emissions = emissions * (sign * weights)[:, None, None]
        if tags is not None:
            d_emissions, d_transitions = d_emissions.contiguous(), d_transitions.contiguous()
            add_path(problem, tags, weights, d_emissions, d_transitions)
        return cast_like(problem, (d_emissions, d_transitions, *sums_at_ends(problem, d_emissions)))


def cast_like(problem: ChainProblem, gradient: Gradient) -> Gradient:
    """A gradient in the precisions of the scores."""
    return [
        part if part is None or score is None or part.dtype == score.dtype else part.to(score.dtype)
        for score, part in zip(problem, gradient, strict=False)
    ]


def is_safe(transitions: Tensor) -> bool:
    """Whether all transitions exist and none lies so far below the others that exp space could lose it."""
    if transitions.numel() == 0:
        return True
    low, high = torch.aminmax(transitions)
    return bool(high - low <= SAFE_SPREAD)  # NaN, of −inf − (−inf), is not
