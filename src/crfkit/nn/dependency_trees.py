"""The base of the distributions over the dependency trees of a batch of sentences."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from crfkit.errors import ArgumentError, ShapeError
from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.backends.tree import TreeBackend, scores_of
from crfkit.nn.distribution import Distribution, break_graph
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.checks import check_device, check_integers, check_scores, read_lengths
from crfkit.nn.problem.tree import TreeProblem, arcs_of, word_counts


class DependencyTrees(Distribution):
    """p(y) = exp(score(y)) / Z over dependency trees y of each of B sentences.

    Subclasses say which trees: by a backend, and by log Z as PyTorch differentiates it.
    """

    def __init__(self, problem: TreeProblem) -> None:
        self._problem = problem
        self._choice: TreeBackend | None = None

    @abstractmethod
    def _choose(self) -> TreeBackend:
        """The backend for the problem."""

    @staticmethod
    @abstractmethod
    def _differentiable_log_partition(problem: TreeProblem, backend: TreeBackend) -> Tensor:
        """log Z [B] in float64 with a graph that PyTorch differentiates as often as it likes."""

    @property
    def _backend(self) -> TreeBackend:
        """The backend, chosen once."""
        if self._choice is None:
            self._choice = self._choose()
        return self._choice

    @property
    def _scores(self) -> tuple[Tensor, ...]:
        return self._problem.parts

    @property
    def lengths(self) -> Tensor:
        """The number of words of each sentence, [B]."""
        return word_counts(self._problem)

    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no tree exists, 0 for an empty sentence, NaN where the score of an arc is not a number."""
        return break_graph(self._log_partition)(self._problem)

    def _log_partition(self, problem: TreeProblem) -> Tensor:
        """log Z [B] of this problem with other scores, differentiable."""
        if torch.is_grad_enabled() and any(part.requires_grad for part in problem.parts):
            return _TreeValue.apply(*problem, self._backend, self._differentiable_log_partition)
        return self._backend.log_partition(problem, working_dtype(problem.scores.dtype))

    def log_prob(self, heads: Tensor) -> Tensor:
        """log p(heads) [B], or the logarithm of what all trees that agree with the known heads have together.

        `heads` [B, n] are those of words 1 … n, 0 for the root, negative (such as −100) where unknown. −inf for heads
        that are no tree of the distribution, NaN where no tree exists at all.
        """
        B, size = self._problem.scores.shape[:2]
        check_integers("heads", heads, (B, size - 1), "integers")
        check_device("heads", heads, self._problem.scores.device)
        heads = torch.nn.functional.pad(heads.long(), (1, 0), value=NOTHING)  # [B, n + 1]
        place = torch.arange(size, device=heads.device)
        allowed = (place[:, None] == heads[:, None, :]) | (heads < 0)[:, None, :]  # [B, n + 1, n + 1]
        within = self._problem._replace(scores=self._problem.scores.masked_fill(~allowed, -torch.inf))
        return break_graph(self._log_partition)(within) - self.log_partition()

    def marginals(self) -> Tensor:
        """The probability of every arc [B, n + 1, n + 1]; differentiable where a gradient is wanted."""
        if self._differentiated:
            return self._moments()[1].to(self._dtype)
        return break_graph(self._marginals)(self._dtype)[1]

    @torch.no_grad()
    def _marginals(self, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
        """log Z [B] and the probability of every part, without a graph."""
        return self._backend.marginals(self._problem, dtype)

    def arc_marginals(self) -> Tensor:
        """The same as `marginals`."""
        return self.marginals()

    def argmax(self) -> Tensor:
        """The heads of the best tree [B, n]; −1 beyond the end of a sentence, and where no tree exists."""
        return break_graph(self._argmax)()

    @torch.no_grad()
    def _argmax(self) -> Tensor:
        return self._backend.argmax(self._problem)

    def _k_best(self, k: int) -> tuple[Tensor, Tensor]:
        problem = self._problem
        with torch.no_grad():
            scores, heads = self._backend.k_best(problem, k)
        if self._differentiated:
            same = scores_of(_in_double(problem), heads)
            scores = torch.where(torch.isinf(scores), scores, same)
        return scores, heads

    def _sample(self, n: int, generator: torch.Generator | None) -> Tensor:
        return self._backend.sample(self._problem, n, generator)

    def _moments(self) -> tuple[Tensor, ...]:
        return break_graph(self._differentiable_moments)()

    def _differentiable_moments(self) -> tuple[Tensor, ...]:
        found = self._marginals()
        if not self._differentiated:
            return found
        parts = [part if part.requires_grad else part.detach().requires_grad_() for part in self._scores]
        problem = self._problem._replace(**dict(zip(("scores", "siblings"), parts, strict=False)))
        value = self._differentiable_log_partition(problem, self._backend)
        slopes = torch.autograd.grad(value.sum(), parts, create_graph=True)
        return tuple(
            _with_graph_of(exact, same.double()) for exact, same in zip(found, (value, *slopes), strict=True)
        )

    def _part_scores(self) -> tuple[Tensor, ...]:
        return (self._problem.scores.double().masked_fill(~arcs_of(self._problem), -torch.inf),)

    def _log_partition_in_double(self) -> Tensor:
        return break_graph(self._log_partition)(_in_double(self._problem))

    def _check_same_outputs(self, other: "DependencyTrees") -> None:
        if type(other) is not type(self):
            raise ArgumentError(f"kl: got {type(other).__name__}, expected {type(self).__name__}.")
        mine, theirs = list(self._problem.scores.shape), list(other._problem.scores.shape)
        if mine != theirs:
            raise ShapeError(f"kl: the other distribution has shape {theirs}, expected {mine}.")
        if not torch.equal(other.lengths, self.lengths):
            raise ShapeError(
                "kl: the sentences of the other distribution have other lengths, expected the same."
            )


class _TreeValue(torch.autograd.Function):
    """log Z, whose gradient is the marginals."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        lengths: Tensor | None,
        single_root: bool,
        siblings: Tensor | None,
        backend: TreeBackend,
        differentiable: Any,
    ) -> Tensor:
        problem = TreeProblem(scores, lengths, single_root, siblings)
        log_z, *found = backend.marginals(problem, working_dtype(scores.dtype))
        ctx.save_for_backward(scores, lengths, siblings, *found)
        ctx.single_root, ctx.backend, ctx.differentiable = single_root, backend, differentiable
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        scores, lengths, siblings, *found = ctx.saved_tensors
        problem = TreeProblem(scores, lengths, ctx.single_root, siblings)
        if torch.is_grad_enabled():
            value = ctx.differentiable(problem, ctx.backend)
            wanted = [part for part in problem.parts if part.requires_grad]
            given = iter(torch.autograd.grad(value, wanted, gradient.double(), create_graph=True))
            slopes = [next(given) if part.requires_grad else None for part in problem.parts]
        else:
            slopes = [
                (slope * gradient.view(-1, *[1] * (slope.ndim - 1))).to(part.dtype) if needed else None
                for slope, part, needed in zip(
                    found, problem.parts, (ctx.needs_input_grad[0], ctx.needs_input_grad[3]), strict=False
                )
            ]
        return slopes[0], None, None, None if siblings is None else slopes[1], None, None


def read_trees(scores: Tensor, lengths: Tensor | None, single_root: bool) -> TreeProblem:
    """The problem of the scores of arcs, after checks."""
    check_scores("scores", scores)
    if scores.ndim != 3 or scores.shape[1] != scores.shape[2]:
        raise ShapeError(
            f"scores: got {scores.dtype} with shape {list(scores.shape)}, expected numbers [B, n + 1, n + 1]."
        )
    if scores.shape[1] == 0:
        raise ArgumentError("scores: got no root, expected [B, n + 1, n + 1].")
    B, size = scores.shape[:2]
    if lengths is not None:
        lengths = read_lengths(lengths, B, size - 1, scores.device)
    return TreeProblem(scores, lengths, single_root)


def _in_double(problem: TreeProblem) -> TreeProblem:
    """The same problem with scores in float64."""
    siblings = None if problem.siblings is None else problem.siblings.double()
    return problem._replace(scores=problem.scores.double(), siblings=siblings)


def _with_graph_of(exact: Tensor, same: Tensor) -> Tensor:
    """Numbers with the derivatives of others that are the same but for rounding."""
    return exact + (same - same.detach()).nan_to_num(0.0, 0.0, 0.0)
