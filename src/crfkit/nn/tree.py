"""The distribution over the dependency trees of a batch of sentences, in the manner of torch.distributions."""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.nn.backends import tree_decode as tree_outputs
from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.backends.torch_tree import differentiable_log_partition, log_partition, marginals
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.checks import check_device, check_integers, check_scores, checked_lengths
from crfkit.nn.problem.tree import TreeProblem, arcs_of, word_counts


class TreeDistribution:
    """p(y) = exp(score(y)) / Z over the spanning trees y of each of B sentences; score(y) = Σ_m scores[y_m, m].

    `scores` [B, n + 1, n + 1] by head and dependent, where 0 is the root; the diagonal and column 0 are ignored, and −inf
    forbids an arc. `lengths` [B] are the words of each sentence (None: n). With `single_root` exactly one word has the root
    as its head, else one or more.

    >>> trees = TreeDistribution(torch.zeros(1, 4, 4))  # 3² trees over 3 words, one root each
    >>> trees.log_partition().exp().round()
    tensor([9.])
    """

    def __init__(self, scores: Tensor, *, lengths: Tensor | None = None, single_root: bool = True) -> None:
        check_scores("scores", scores)
        if scores.ndim != 3 or scores.shape[1] != scores.shape[2]:
            raise ValueError(
                f"scores: got {scores.dtype} with shape {list(scores.shape)}, expected numbers [B, n + 1, n + 1]."
            )
        if scores.shape[1] == 0:
            raise ValueError("scores: got no root, expected [B, n + 1, n + 1].")
        B, size = scores.shape[:2]
        if lengths is not None:
            lengths = checked_lengths(lengths, B, size - 1, scores.device)
        self._problem = TreeProblem(scores, lengths, single_root)

    @property
    def lengths(self) -> Tensor:
        """The number of words of each sentence, [B]."""
        return word_counts(self._problem)

    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no tree exists, 0 for an empty sentence, NaN where the score of an arc is not a number."""
        return log_partition(self._problem)

    def log_prob(self, heads: Tensor) -> Tensor:
        """log p(heads) [B], or the logarithm of what all trees that agree with the known heads have together.

        `heads` [B, n] are those of words 1 … n, 0 for the root, negative (such as −100) where unknown. −inf for heads that
        are no tree, NaN where no tree exists at all.
        """
        B, size = self._problem.scores.shape[:2]
        check_integers("heads", heads, (B, size - 1), "integers")
        check_device("heads", heads, self._problem.scores.device)
        heads = torch.nn.functional.pad(heads.long(), (1, 0), value=NOTHING)  # [B, n + 1]
        place = torch.arange(size, device=heads.device)
        allowed = (place[:, None] == heads[:, None, :]) | (heads < 0)[:, None, :]  # [B, n + 1, n + 1]
        within = self._problem._replace(scores=self._problem.scores.masked_fill(~allowed, -torch.inf))
        return log_partition(within) - log_partition(self._problem)

    def marginals(self) -> Tensor:
        """The probability of every arc [B, n + 1, n + 1]; differentiable where a gradient is wanted."""
        problem = self._problem
        if torch.is_grad_enabled() and problem.scores.requires_grad:
            return self._moments()[1].to(self._dtype)
        if torch.compiler.is_compiling():
            return torch.compiler.disable(marginals)(problem, self._dtype)[1]
        return marginals(problem, self._dtype)[1]

    def arc_marginals(self) -> Tensor:
        """The same as `marginals`: the parts of a tree are its arcs."""
        return self.marginals()

    def argmax(self) -> Tensor:
        """The heads of the best tree [B, n]; −1 for words that are none, and where no tree exists."""
        return tree_outputs.best(self._problem)

    def topk(self, k: int) -> tuple[Tensor, Tensor]:
        """The scores [B, k] of the k best trees, best first, and their heads [B, k, n].

        All are distinct. Where fewer exist, the score is −inf and the heads are −1.
        """
        if k < 1:
            raise ValueError(f"topk: k is {k}, expected 1 or more.")
        problem = self._problem
        scores, heads = tree_outputs.k_best(problem, k)
        if torch.is_grad_enabled() and problem.scores.requires_grad:
            same = tree_outputs.scores_of(problem._replace(scores=problem.scores.double()), heads)
            scores = torch.where(torch.isinf(scores), scores, same)
        return scores.to(self._dtype), heads

    def sample(self, n: int = 1, *, generator: torch.Generator | None = None) -> Tensor:
        """n independent trees of each sentence, as heads [n, B, n_words]; −1 for words that are none."""
        if n < 0:
            raise ValueError(f"sample: n is {n}, expected 0 or more.")
        return tree_outputs.sample(self._problem, n, generator)

    def entropy(self) -> Tensor:
        """−Σ_y p(y) log p(y) [B], in nats."""
        log_z, by_arc = self._moments()
        return torch.relu(log_z - _expected(by_arc, self._problem)).to(self._dtype)

    def kl(self, other: TreeDistribution) -> Tensor:
        """Σ_y p(y) (log p(y) − log q(y)) [B] for a distribution q over the same words; inf where q(y) = 0 < p(y)."""
        if other._problem.scores.shape != self._problem.scores.shape:
            raise ValueError(
                f"kl: the other distribution has shape {list(other._problem.scores.shape)}, "
                f"expected {list(self._problem.scores.shape)}."
            )
        if not torch.equal(other.lengths, self.lengths):
            raise ValueError(
                "kl: the sentences of the other distribution have other lengths, expected the same."
            )
        log_z, by_arc = self._moments()
        log_q = log_partition(other._problem._replace(scores=other._problem.scores.double()))
        mine, theirs = _expected(by_arc, self._problem), _expected(by_arc, other._problem)
        return torch.relu((mine - log_z) - (theirs - log_q)).to(self._dtype)

    @property
    def _dtype(self) -> torch.dtype:
        return working_dtype(self._problem.scores.dtype)

    def _moments(self) -> tuple[Tensor, Tensor]:
        """log Z [B] and the probability of every arc in float64, with a graph where a gradient is wanted."""
        if torch.compiler.is_compiling():  # a graph inside a compiled one would not be seen
            return torch.compiler.disable(_moments)(self._problem)
        return _moments(self._problem)


def _moments(problem: TreeProblem) -> tuple[Tensor, Tensor]:
    """What `TreeDistribution._moments` gives."""
    log_z, by_arc = marginals(problem)
    if not (torch.is_grad_enabled() and problem.scores.requires_grad):
        return log_z, by_arc
    value = differentiable_log_partition(problem)
    [slope] = torch.autograd.grad(value.sum(), [problem.scores], create_graph=True)
    return _with_graph_of(log_z, value), _with_graph_of(by_arc, slope.double())


def _with_graph_of(exact: Tensor, same: Tensor) -> Tensor:
    """Numbers with the derivatives of others that are the same but for rounding."""
    return exact + (same - same.detach()).nan_to_num(0.0, 0.0, 0.0)


def _expected(by_arc: Tensor, problem: TreeProblem) -> Tensor:
    """The expected score [B]: probabilities times scores; −inf where something probable scores −inf."""
    scores = problem.scores.double().masked_fill(~arcs_of(problem), -torch.inf)
    never = torch.isinf(scores)
    total = (by_arc * scores.masked_fill(never, 0.0)).sum((1, 2))
    return torch.where(((by_arc > 0) & never).any(2).any(1), -torch.inf, total)
