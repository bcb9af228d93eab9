"""The distribution over the projective trees of a batch of sentences, in the manner of torch.distributions."""

import torch
from torch import Tensor

from crfkit.errors import ShapeError
from crfkit.nn.backends import choice
from crfkit.nn.backends.torch_projective import differentiable_log_partition
from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.dependency_trees import DependencyTrees, read_trees
from crfkit.nn.distribution import break_graph
from crfkit.nn.problem.checks import check_scores
from crfkit.nn.problem.tree import TreeProblem, siblings_of


class ProjectiveTreeDistribution(DependencyTrees):
    """p(y) = exp(score(y)) / Z over the projective trees y of each of B sentences; score(y) = Σ_m scores[y_m, m].

    A tree is projective if no two of its arcs cross.

    `scores` [B, n + 1, n + 1] by head and dependent, where 0 is the root, which stands before the first word; the diagonal
    and column 0 are ignored, and −inf forbids an arc. Where the score of an arc is NaN, so are log Z and all marginals of
    its sentence. `lengths` [B] are the words of each sentence (None: n). With `single_root` exactly one word has the root
    as its head, else one or more.

    `siblings` [B, n + 1, n + 1, n + 1] are scores of a second order, added for each word m: [y_m, s, m], where s is the next
    dependent of y_m between y_m and m, and [y_m, y_m, m] where there is none.

    >>> trees = ProjectiveTreeDistribution(torch.zeros(1, 4, 4))  # of the 9 trees over 3 words with one root, 7
    >>> trees.log_partition().exp().round()
    tensor([7.])
    """

    def __init__(
        self,
        scores: Tensor,
        *,
        siblings: Tensor | None = None,
        lengths: Tensor | None = None,
        single_root: bool = True,
    ) -> None:
        problem = read_trees(scores, lengths, single_root)
        if siblings is not None:
            check_scores("siblings", siblings, scores.device)
            expected = (*scores.shape, scores.shape[-1])
            if siblings.shape != expected:
                raise ShapeError(
                    f"siblings: got shape {list(siblings.shape)}, expected [B, n + 1, n + 1, n + 1] = {list(expected)}."
                )
            problem = problem._replace(siblings=siblings)
        super().__init__(problem)

    def sibling_marginals(self) -> Tensor:
        """The probability of every pair of adjacent siblings [B, n + 1, n + 1, n + 1] as `siblings`; differentiable."""
        if self._problem.siblings is None:
            size = self._problem.scores.shape
            siblings = self._problem.scores.new_zeros((*size, size[-1]))
            return ProjectiveTreeDistribution._of(
                self._problem._replace(siblings=siblings)
            ).sibling_marginals()
        if self._differentiated:
            return self._moments()[2].to(self._dtype)
        return break_graph(self._marginals)(self._dtype)[2]

    @classmethod
    def _of(cls, problem: TreeProblem) -> "ProjectiveTreeDistribution":
        """The distribution of a problem that was checked."""
        found = cls.__new__(cls)
        DependencyTrees.__init__(found, problem)
        return found

    def _choose(self) -> TreeBackend:
        return choice.choose_projective(self._problem)

    @staticmethod
    def _differentiable_log_partition(problem: TreeProblem, backend: TreeBackend) -> Tensor:
        return differentiable_log_partition(problem)

    def _part_scores(self) -> tuple[Tensor, ...]:
        if self._problem.siblings is None:
            return super()._part_scores()
        pairs = self._problem.siblings.double().masked_fill(~siblings_of(self._problem), -torch.inf)
        return (*super()._part_scores(), pairs)

    def _check_same_outputs(self, other: DependencyTrees) -> None:
        super()._check_same_outputs(other)
        if len(self._scores) != len(other._scores):
            raise ShapeError("kl: expected scores of siblings of both distributions, or of neither.")
