"""The distribution over the spanning trees of a batch of sentences, in the manner of torch.distributions."""

from torch import Tensor

from crfkit.nn.backends import choice
from crfkit.nn.backends.torch_tree import differentiable_log_partition
from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.dependency_trees import DependencyTrees, read_trees
from crfkit.nn.problem.tree import TreeProblem


class TreeDistribution(DependencyTrees):
    """p(y) = exp(score(y)) / Z over the spanning trees y of each of B sentences; score(y) = Σ_m scores[y_m, m].

    `scores` [B, n + 1, n + 1] by head and dependent, where 0 is the root; the diagonal and column 0 are ignored, and
    −inf forbids an arc. `lengths` [B] are the words of each sentence (None: n). With `single_root` exactly one word
    has the root as its head, else one or more.

    >>> import torch
    >>> trees = TreeDistribution(torch.zeros(1, 4, 4))  # 3² trees over 3 words, one root each
    >>> trees.log_partition().exp().round()
    tensor([9.])
    """

    def __init__(self, scores: Tensor, *, lengths: Tensor | None = None, single_root: bool = True) -> None:
        super().__init__(read_trees(scores, lengths, single_root))

    def _choose(self) -> TreeBackend:
        return choice.choose_tree(self._problem)

    @staticmethod
    def _differentiable_log_partition(problem: TreeProblem, backend: TreeBackend) -> Tensor:
        return differentiable_log_partition(problem, backend)
