"""The distribution over the assignments of a batch of factor graphs, in the manner of torch.distributions."""

from collections.abc import Sequence
from typing import Literal, Self

import torch
from torch import Tensor

from crfkit.errors import ArgumentError, LabelError, ShapeError, UnsupportedError
from crfkit.nn.backends import choice, core_graphs, torch_elimination
from crfkit.nn.backends.torch_elimination import GraphExpectations
from crfkit.nn.backends.torch_messages import MessageOptions
from crfkit.nn.distribution import Distribution, break_graph, expected_score
from crfkit.nn.problem.checks import check_device, check_integers
from crfkit.nn.problem.factor_graph import GraphProblem, check_memory, read_problem
from crfkit.structures import FactorGraph


class FactorGraphDistribution(Distribution):
    """p(y) = exp(score(y)) / Z over the assignments y of B factor graphs of one shape; score(y) = Σ_f scores_f[y_f].

    `graph` gives the variables and factors. `scores` has a tensor [B, …] for each factor that has scores (`equal` has
    none), in the order of `graph.factors`; the rest of the shape is that of the factor's own scores, which it replaces.
    −inf excludes a configuration. Outputs are value ids [B, V] in the order of `graph.variables`.

    method="exact": by variable elimination. `memory_limit` in bytes is that of the tables of the batch; the default is half
    of the memory of the device. What does not fit raises SizeLimitError.

    method="belief_propagation": approximate (Bethe), exact if the graph has no cycles. All messages are updated at once, at
    most `max_iterations` times, until the largest change of a message is at most `tolerance` (0: all iterations are made);
    `damping` keeps that share of the old message. Gradients are those of what was computed, iteration by iteration. On a
    GPU, where no table has more than two variables, that of log Z is the beliefs if all elements have reached the tolerance.

    >>> graph = FactorGraph.from_arrays([2, 2], [(0, 1)], [[[0.0, 0.0], [0.0, 0.0]]])
    >>> graphs = FactorGraphDistribution(graph, [torch.zeros(3, 2, 2)])
    >>> graphs.log_partition().exp().round()
    tensor([4., 4., 4.])
    """

    def __init__(
        self,
        graph: FactorGraph,
        scores: Sequence[Tensor],
        *,
        method: Literal["exact", "belief_propagation"] = "exact",
        memory_limit: float | None = None,
        damping: float = 0.0,
        tolerance: float = 1e-6,
        max_iterations: int = 100,
    ) -> None:
        self._problem = break_graph(read_problem)(graph, scores)
        self._graph, self._given = graph, tuple(scores)
        self._converged: Tensor | None = None
        self._options: MessageOptions | None = None  # None: exact
        if method == "exact":
            break_graph(check_memory)(self._problem, memory_limit)
        else:
            self._options = _read_options(method, damping, tolerance, max_iterations)

    @property
    def _scores(self) -> tuple[Tensor, ...]:
        return self._given

    @property
    def _dtype(self) -> torch.dtype:
        return self._problem.scores.dtype

    def log_partition(self) -> Tensor:
        """log Z [B]; −inf where no assignment is possible."""
        return break_graph(self._log_partition)(self._problem)

    def _log_partition(self, problem: GraphProblem) -> Tensor:
        if self._options is not None:
            return self._beliefs(problem)[0]
        return choice.choose_elimination(problem)(problem)

    def _beliefs(self, problem: GraphProblem) -> GraphExpectations:
        """By belief propagation."""
        assert self._options is not None
        found, converged = choice.choose_beliefs(problem)(problem, self._options)
        if problem.allowed is None:
            self._converged = converged
        return found

    @property
    def converged(self) -> Tensor:
        """Whether belief propagation has reached the tolerance [B]; exact inference always has."""
        if self._options is None:
            return torch.ones(len(self._problem.scores), dtype=torch.bool, device=self._problem.scores.device)
        if self._converged is None:
            with torch.no_grad():
                break_graph(self._beliefs)(self._problem)
        assert self._converged is not None
        return self._converged

    def log_prob(self, outputs: Tensor) -> Tensor:
        """log p(outputs) [B], or the logarithm of what all assignments that agree with the known values have together.

        `outputs` [B, V] are value ids, negative (such as −100) where unknown. NaN where no assignment is possible at all.
        """
        return break_graph(self._log_prob)(outputs)

    def _log_prob(self, outputs: Tensor) -> Tensor:
        shape, scores = self._problem.shape, self._problem.scores
        check_integers("outputs", outputs, (len(scores), shape.n_variables), "integers")
        check_device("outputs", outputs, scores.device)
        self._check_values(outputs)
        return self._log_sum_within(outputs) - self.log_partition()

    def _log_sum_within(self, outputs: Tensor) -> Tensor:
        """log Σ exp(score(y)) [B] over the assignments y that agree with the known values."""
        shape, scores = self._problem.shape, self._problem.scores
        n_added = len(shape.cardinalities) - shape.n_variables
        if n_added == 0 and bool((outputs >= 0).all()):
            return self._score(outputs)
        known = torch.nn.functional.pad(outputs, (0, n_added), value=-1)[:, :, None]
        values = torch.arange(max(shape.cardinalities, default=1), device=scores.device)
        excluded = (known >= 0) & (known != values)  # [B, V, L]
        allowed = torch.zeros(excluded.shape, dtype=scores.dtype, device=scores.device)
        return self._log_partition(self._problem._replace(allowed=allowed.masked_fill(excluded, -torch.inf)))

    def _score(self, outputs: Tensor) -> Tensor:
        """score(y) [B] of known values of all variables, none of which is added."""
        shape, scores = self._problem.shape, self._problem.scores
        places = []
        for scope, begin in zip(shape.scopes, shape.table_ptr, strict=False):
            place = torch.zeros_like(outputs[:, 0] if shape.n_variables else scores[:, 0], dtype=torch.int64)
            for v in scope:
                place = place * shape.cardinalities[v] + outputs[:, v]
            places.append(place + begin)
        return scores.gather(1, torch.stack(places, 1)).sum(1)

    def _check_values(self, outputs: Tensor) -> None:
        sizes = torch.tensor([len(variable) for variable in self._graph.variables], device=outputs.device)
        wrong = (outputs >= sizes).nonzero()
        if len(wrong):
            b, v = wrong[0].tolist()
            raise LabelError(
                f"outputs[{b}], variable {self._graph.variables[v].name!r}: got the value id {int(outputs[b, v])}, "
                f"expected 0 … {int(sizes[v]) - 1}, or a negative number where it is unknown."
            )

    def marginals(self) -> Tensor:
        """The probability of each value of each variable [B, V, L], 0 beyond the values of a variable; differentiable."""
        shape = self._problem.shape
        own = shape.cardinalities[: shape.n_variables]
        return self._expectations(self._problem).values[:, : len(own), : max(own, default=0)]

    def factor_marginals(self) -> list[Tensor]:
        """For each of the given scores, the probability of what it scores [B, …]; differentiable."""
        found = self._expectations(self._problem).scores
        parts = []
        for places in self._problem.shape.places:
            at = torch.as_tensor(places, device=found.device)
            parts.append(found[:, at.clamp_min(0)] * (at >= 0))
        return parts

    def _expectations(self, problem: GraphProblem) -> GraphExpectations:
        if self._options is None:
            return break_graph(choice.exact_expectations)(problem, self._differentiated)
        return break_graph(self._beliefs)(problem)

    def entropy(self) -> Tensor:
        """−Σ_y p(y) log p(y) [B], in nats; by belief propagation Bethe's, which may be negative."""
        if self._options is None:
            return super().entropy()
        log_z, by_score = self._moments()
        return (log_z - expected_score([by_score], self._part_scores())).to(self._dtype)

    def kl(self, other: Self) -> Tensor:
        """Σ_y p(y) (log p(y) − log q(y)) [B] for a distribution q over the same outputs; inf where q(y) = 0 < p(y)."""
        for one in (self, other):
            one._check_exact("kl")
        return super().kl(other)

    def argmax(self) -> Tensor:
        """The best assignment [B, V]; −1 where none is possible.

        With method="belief_propagation", by max-product in the core: the best if the graph has no cycles.
        """
        if self._options is None:
            return break_graph(torch_elimination.argmax)(self._problem)
        return break_graph(core_graphs.max_product)(self._problem, self._options)

    def _k_best(self, k: int) -> tuple[Tensor, Tensor]:
        self._check_exact("topk")
        return break_graph(self._k_best_in_memory)(k)

    def _k_best_in_memory(self, k: int) -> tuple[Tensor, Tensor]:
        """By the core; scores lead back to the factors where a gradient is wanted."""
        scores, values = core_graphs.k_best(self._problem, k)
        if self._differentiated:
            same = [self._log_sum_within(values[:, place].clamp_min(0)).double() for place in range(k)]
            scores = torch.where(torch.isinf(scores), scores, torch.stack(same, 1))
        return scores, values

    def _sample(self, n: int, generator: torch.Generator | None) -> Tensor:
        self._check_exact("sample")
        return break_graph(torch_elimination.sample)(self._in_double, n, generator)

    def _check_exact(self, question: str) -> None:
        if self._options is not None:
            raise UnsupportedError(f'{question}: got method="belief_propagation", expected method="exact".')

    @property
    def _in_double(self) -> GraphProblem:
        return self._problem._replace(scores=self._problem.scores.double())

    def _moments(self) -> tuple[Tensor, ...]:
        found = self._expectations(self._in_double)
        return found.log_partition, found.scores

    def _part_scores(self) -> tuple[Tensor, ...]:
        return (self._in_double.scores,)

    def _log_partition_in_double(self) -> Tensor:
        return break_graph(self._log_partition)(self._in_double)

    def _check_same_outputs(self, other: "FactorGraphDistribution") -> None:
        mine, theirs = self._problem, other._problem
        same = (mine.shape.cardinalities, mine.shape.scopes) == (
            theirs.shape.cardinalities,
            theirs.shape.scopes,
        )
        if not same or mine.scores.shape != theirs.scores.shape:
            raise ShapeError(
                f"kl: the other distribution has a batch of {len(theirs.scores)} of {other._graph!r}, expected "
                f"{len(mine.scores)} of {self._graph!r} with the same shape."
            )


def _read_options(method: str, damping: float, tolerance: float, max_iterations: int) -> MessageOptions:
    """Check the arguments of belief propagation."""
    if method != "belief_propagation":
        raise ArgumentError(f"method is {method!r}, expected 'exact' or 'belief_propagation'.")
    if not 0 <= damping < 1:
        raise ArgumentError(f"damping is {damping}, expected 0 ≤ damping < 1.")
    if not tolerance >= 0:
        raise ArgumentError(f"tolerance is {tolerance}, expected 0 or more.")
    if not isinstance(max_iterations, int) or isinstance(max_iterations, bool) or max_iterations < 1:
        raise ArgumentError(f"max_iterations is {max_iterations!r}, expected a whole number of at least 1.")
    return MessageOptions(damping, tolerance, max_iterations)
