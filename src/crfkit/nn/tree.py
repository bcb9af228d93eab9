"""The distribution over the dependency trees of a batch of sentences, in the manner of torch.distributions."""

from typing import Any

import torch
from torch import Tensor

from crfkit.errors import ArgumentError, ShapeError
from crfkit.nn.backends import choice
from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.backends.torch_tree import differentiable_log_partition
from crfkit.nn.backends.tree import TreeBackend, scores_of
from crfkit.nn.distribution import Distribution, break_graph
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.checks import check_device, check_integers, check_scores, read_lengths
from crfkit.nn.problem.tree import TreeProblem, arcs_of, word_counts


class TreeDistribution(Distribution):
    """p(y) = exp(score(y)) / Z over the spanning trees y of each of B sentences; score(y) = Σ_m scores[y_m, m].

    `scores` [B, n + 1, n + 1] by head and dependent, where 0 is the root; the diagonal and column 0 are ignored, and
    −inf forbids an arc. `lengths` [B] are the words of each sentence (None: n). With `single_root` exactly one word
    has the root as its head, else one or more.

    >>> trees = TreeDistribution(torch.zeros(1, 4, 4))  # 3² trees over 3 words, one root each
    >>> trees.log_partition().exp().round()
    tensor([9.])
    """

    def __init__(self, scores: Tensor, *, lengths: Tensor | None = None, single_root: bool = True) -> None:
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
        self._problem = TreeProblem(scores, lengths, single_root)
        self._choice: TreeBackend | None = None

    @property
    def _backend(self) -> TreeBackend:
        """The backend, chosen once."""
        if self._choice is None:
            self._choice = choice.choose_tree(self._problem)
        return self._choice

    @property
    def _scores(self) -> tuple[Tensor, ...]:
        return (self._problem.scores,)

    @property
    def lengths(self) -> Tensor:
        """The number of words of each sentence, [B]."""
        return word_counts(self._problem)

    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no tree exists, 0 for an empty sentence, NaN where the score of an arc is not a number."""
        return break_graph(self._log_partition)(self._problem)

    def _log_partition(self, problem: TreeProblem) -> Tensor:
        """log Z [B] of this problem with other scores, differentiable."""
        if torch.is_grad_enabled() and problem.scores.requires_grad:
            return _TreeValue.apply(*problem, self._backend)
        return self._backend.log_partition(problem, working_dtype(problem.scores.dtype))

    def log_prob(self, heads: Tensor) -> Tensor:
        """log p(heads) [B], or the logarithm of what all trees that agree with the known heads have together.

        `heads` [B, n] are those of words 1 … n, 0 for the root, negative (such as −100) where unknown. −inf for heads
        that are no tree, NaN where no tree exists at all.
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
    def _marginals(self, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        """log Z [B] and the probability of every arc, without a graph."""
        return self._backend.marginals(self._problem, dtype)

    def arc_marginals(self) -> Tensor:
        """The same as `marginals`: the parts of a tree are its arcs."""
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
            same = scores_of(problem._replace(scores=problem.scores.double()), heads)
            scores = torch.where(torch.isinf(scores), scores, same)
        return scores, heads

    def _sample(self, n: int, generator: torch.Generator | None) -> Tensor:
        return self._backend.sample(self._problem, n, generator)

    def _moments(self) -> tuple[Tensor, ...]:
        return break_graph(self._differentiable_moments)()

    def _differentiable_moments(self) -> tuple[Tensor, ...]:
        log_z, by_arc = self._marginals()
        if not self._differentiated:
            return log_z, by_arc
        value = differentiable_log_partition(self._problem, self._backend)
        [slope] = torch.autograd.grad(value.sum(), [self._problem.scores], create_graph=True)
        return _with_graph_of(log_z, value), _with_graph_of(by_arc, slope.double())

    def _part_scores(self) -> tuple[Tensor, ...]:
        return (self._problem.scores.double().masked_fill(~arcs_of(self._problem), -torch.inf),)

    def _log_partition_in_double(self) -> Tensor:
        return break_graph(self._log_partition)(self._problem._replace(scores=self._problem.scores.double()))

    def _check_same_outputs(self, other: "TreeDistribution") -> None:
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
        ctx: Any, scores: Tensor, lengths: Tensor | None, single_root: bool, backend: TreeBackend
    ) -> Tensor:
        problem = TreeProblem(scores, lengths, single_root)
        log_z, found = backend.marginals(problem, working_dtype(scores.dtype))
        ctx.save_for_backward(scores, lengths, found)
        ctx.single_root, ctx.backend = single_root, backend
        return log_z

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        scores, lengths, found = ctx.saved_tensors
        if torch.is_grad_enabled():
            value = differentiable_log_partition(TreeProblem(scores, lengths, ctx.single_root), ctx.backend)
            [found] = torch.autograd.grad(value, [scores], gradient.double(), create_graph=True)
            return found, None, None, None
        return (found * gradient.view(-1, 1, 1)).to(scores.dtype), None, None, None


def _with_graph_of(exact: Tensor, same: Tensor) -> Tensor:
    """Numbers with the derivatives of others that are the same but for rounding."""
    return exact + (same - same.detach()).nan_to_num(0.0, 0.0, 0.0)
