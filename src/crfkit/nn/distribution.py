"""The base of the distributions over structured outputs, in the manner of torch.distributions."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self, TypeVar

import torch
from torch import Tensor

from crfkit.errors import ArgumentError
from crfkit.nn.problem.chain import working_dtype

Result = TypeVar("Result")


class Distribution(ABC):
    """p(y) = exp(score(y)) / Z over the outputs y of each of B inputs; score(y) is the sum of the scores of y's parts.

    Subclasses say what the parts are, and how log Z, the probabilities of parts, and single outputs are computed.
    """

    @abstractmethod
    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no output is possible, 0 for an empty input."""

    @abstractmethod
    def marginals(self) -> Tensor:
        """The probabilities of labels at positions, or of arcs."""

    @abstractmethod
    def argmax(self) -> Tensor:
        """The best output of each input."""

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """The scores [B, k] of the k best outputs, best first, and their labels or heads [B, k, …].

        All are distinct. Where fewer exist, the score is −inf and the labels or heads are −1.
        """
        if k < 1:
            raise ArgumentError(f"topk: k is {k}, expected 1 or more.")
        scores, outputs = self._k_best(k)
        return scores.to(self._dtype), outputs

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:
        """n independent outputs of each input, labels or heads [n, B, …]; −1 at masked positions and if none is possible."""
        if n < 0:
            raise ArgumentError(f"sample: n is {n}, expected 0 or more.")
        with torch.no_grad():
            return self._sample(n, generator)

    def entropy(self) -> Tensor:
        """−Σ_y p(y) log p(y) [B], in nats."""
        log_z, *probabilities = self._moments()
        # −log p(y) = log Z − score(y), and the expected score is a sum over parts
        return torch.relu(log_z - expected_score(probabilities, self._part_scores())).to(self._dtype)

    def kl(self, other: Self) -> Tensor:
        """Σ_y p(y) (log p(y) − log q(y)) [B] for a distribution q over the same outputs; inf where q(y) = 0 < p(y)."""
        self._check_same_outputs(other)
        log_z, *probabilities = self._moments()
        mine, theirs = (expected_score(probabilities, one._part_scores()) for one in (self, other))
        return torch.relu((mine - log_z) - (theirs - other._log_partition_in_double())).to(self._dtype)

    @property
    @abstractmethod
    def _scores(self) -> tuple[Tensor, ...]:
        """The scores that answers are differentiated by."""

    @property
    def _dtype(self) -> torch.dtype:
        return working_dtype(self._scores[0].dtype)

    @property
    def _differentiated(self) -> bool:
        """Whether answers have to be differentiable."""
        return torch.is_grad_enabled() and any(part.requires_grad for part in self._scores)

    @abstractmethod
    def _k_best(self, k: int) -> tuple[Tensor, Tensor]: ...

    @abstractmethod
    def _sample(self, n: int, generator: torch.Generator | None) -> Tensor: ...

    @abstractmethod
    def _moments(self) -> tuple[Tensor, ...]:
        """log Z [B] and the probabilities of all parts in float64, with a graph where a gradient is wanted."""

    @abstractmethod
    def _part_scores(self) -> tuple[Tensor, ...]:
        """The scores of the same parts, in float64."""

    @abstractmethod
    def _log_partition_in_double(self) -> Tensor:
        """log Z [B] in float64, differentiable."""

    @abstractmethod
    def _check_same_outputs(self, other: Self) -> None:
        """Raise an error for a distribution over other outputs."""


def expected_score(probabilities: list[Tensor], scores: tuple[Tensor, ...]) -> Tensor:
    """The expected score [B]: probabilities times scores of parts; −inf where something probable scores −inf."""
    total = torch.zeros((), dtype=torch.float64, device=scores[0].device)
    impossible = torch.zeros((), dtype=torch.bool, device=scores[0].device)
    for probability, score in zip(probabilities, scores, strict=True):
        never = torch.isinf(score)
        total = total + (probability * score.masked_fill(never, 0.0)).flatten(1).sum(1)
        impossible = impossible | ((probability > 0) & never).flatten(1).any(1)
    return torch.where(impossible, -torch.inf, total)


def break_graph(function: Callable[..., Result]) -> Callable[..., Result]:
    """A function that breaks the graph of a compiled program: kernels and the core need addresses, graphs their own."""
    return torch.compiler.disable(function) if torch.compiler.is_compiling() else function
