"""A batch of factor graphs of one shape: what the graph fixes, and the scores of each element of the batch.

Letters: B elements; V variables and F tables, those included that write factors which are no tables (`FactorTables`); L
values of the largest variable; N scores of all tables together.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from crfkit.arrays import Float64s, Int64s
from crfkit.errors import ArgumentError, ShapeError, SizeLimitError
from crfkit.nn.problem.chain import working_dtype
from crfkit.nn.problem.checks import check_scores
from crfkit.nn.problem.message_plan import MessagePlan
from crfkit.structures import FactorGraph, FactorTables

Scope = tuple[int, ...]


class Clique(NamedTuple):
    """All tables with the first variable of `scope` at the time when it is summed out."""

    scope: Scope  # in the order in which they are summed out
    tables: list[int]  # of the graph: 0 … F − 1; the message of clique i: F + i


@dataclass(frozen=True, eq=False)
class GraphShape:
    """Variables and tables without scores that a network gives; made once for a graph."""

    n_variables: int  # of the graph: the first ones; the rest are added
    cardinalities: tuple[int, ...]  # [V]
    scopes: tuple[Scope, ...]  # [F]
    table_ptr: tuple[int, ...]  # [F + 1]
    places: tuple[
        Int64s, ...
    ]  # of the scores of each factor that has some, among N; −1: one that nothing has
    fixed: Float64s  # [N] the graph's own scores

    @cached_property
    def is_given(self) -> bool:
        """Whether the factors' scores, one after the other, are those of all tables."""
        places = np.concatenate([np.zeros(0, np.int64), *(p.reshape(-1) for p in self.places)])
        return np.array_equal(places, np.arange(len(self.fixed)))

    def sizes(self, scope: Scope) -> tuple[int, ...]:
        """The cardinalities of some variables."""
        return tuple(self.cardinalities[v] for v in scope)

    @cached_property
    def message_plan(self) -> MessagePlan:
        """For belief propagation."""
        return MessagePlan.of(self.cardinalities, self.scopes, self.table_ptr)

    @cached_property
    def junction_tree(self) -> Any:
        """The core's plan of exact inference, for tables of which nothing is known."""
        from crfkit.inference import junction_tree  # the core, which is loaded when it is needed

        return junction_tree(self.cardinalities, self.scopes)

    @cached_property
    def cliques(self) -> list[Clique]:
        """In the order in which variables are summed out, one for each variable. SizeLimitError if they are too large.

        The order is that of the core, for tables of which nothing is known: a variable is summed out with the last clique
        of the plan that has it.
        """
        from crfkit.inference import plan  # the core, which is loaded when it is needed

        zeros = (np.zeros(self.sizes(scope)) for scope in self.scopes)
        found = plan(FactorGraph.from_arrays(self.cardinalities, self.scopes, zeros))
        if self.scopes and not found.fits:
            raise SizeLimitError(
                f"Exact inference: width {found.width}, the largest clique has {found.largest_entries:.3g} configurations, "
                'which do not fit into memory; expected a smaller graph, or method="belief_propagation".'
            )
        last = [-1] * len(self.cardinalities)
        for number, names in enumerate(found.cliques):
            for name in names:
                last[int(name)] = number
        order = sorted(range(len(last)), key=last.__getitem__)
        rank = {v: place for place, v in enumerate(order)}
        waiting: list[list[int]] = [[] for _ in order]
        scopes = list(self.scopes)
        for table, scope in enumerate(scopes):
            if scope:
                waiting[min(scope, key=rank.__getitem__)].append(table)
        cliques: list[Clique] = []
        for v in order:
            inside = {v}.union(*(scopes[table] for table in waiting[v]))
            clique = Clique(tuple(sorted(inside, key=rank.__getitem__)), waiting[v])
            if len(clique.scope) > 1:
                waiting[clique.scope[1]].append(len(scopes))
            scopes.append(clique.scope[1:])
            cliques.append(clique)
        return cliques


class GraphProblem(NamedTuple):
    """The scores of a batch."""

    shape: GraphShape
    scores: Tensor  # [B, N] of all tables, one after the other
    allowed: Tensor | None = (
        None  # [B, V, L] 0, or −inf for a value that is excluded; None: all values are allowed
    )

    def table(self, number: int) -> Tensor:
        """[B, values of each variable]."""
        begin, end = self.shape.table_ptr[number : number + 2]
        return self.scores[:, begin:end].unflatten(1, self.shape.sizes(self.shape.scopes[number]) or (1,))


_SHAPES: WeakKeyDictionary[FactorTables, GraphShape] = (
    WeakKeyDictionary()
)  # as long as a graph has these tables


def shape_of(graph: FactorGraph) -> GraphShape:
    """The shape of a graph, the same object as long as the graph does not change."""
    tables = graph.tables
    if tables not in _SHAPES:
        ptr, scopes = tables.scope_ptr.tolist(), tables.scopes.tolist()
        _SHAPES[tables] = GraphShape(
            tables.n_variables,
            tuple(tables.cardinalities.tolist()),
            tuple(tuple(scopes[a:b]) for a, b in itertools.pairwise(ptr)),
            tuple(tables.table_ptr.tolist()),
            tuple(p for p, factor in zip(tables.places, graph.factors, strict=True) if factor.scores.size),
            tables.scores,
        )
    return _SHAPES[tables]


def read_problem(graph: Any, scores: Any) -> GraphProblem:
    """Check the scores [B, …] of the factors and put them where the tables have them."""
    if not isinstance(graph, FactorGraph):
        raise ArgumentError(f"graph: got {type(graph).__name__}, expected a crfkit.FactorGraph.")
    shape = shape_of(graph)
    if isinstance(scores, Tensor) or not isinstance(scores, Sequence):
        raise ShapeError(
            f"scores: got {type(scores).__name__}, expected a list of tensors, one for each factor."
        )
    if len(scores) != len(shape.places) or not shape.places:
        raise ShapeError(
            f"scores: got {len(scores)} tensors, expected one for each factor that has scores "
            f"({max(1, len(shape.places))}{'' if shape.places else ' or more; the graph has none'})."
        )
    for number, (given, places) in enumerate(zip(scores, shape.places, strict=True)):
        check_scores(f"scores[{number}]", given, scores[0].device if number else None)
        B = len(scores[0]) if scores[0].ndim else "B"
        if given.shape != (B, *places.shape):
            raise ShapeError(
                f"scores[{number}]: got shape {list(given.shape)}, expected [{', '.join(map(str, (B, *places.shape)))}]."
            )
    dtype = working_dtype(reduce(torch.promote_types, (given.dtype for given in scores)))
    flat = torch.cat([given.flatten(1) if given.ndim > 1 else given[:, None] for given in scores], 1).to(
        dtype
    )
    if not shape.is_given:
        places = np.concatenate([p.reshape(-1) for p in shape.places])
        kept = torch.from_numpy(np.flatnonzero(places >= 0)).to(flat.device)
        fixed = torch.from_numpy(shape.fixed.copy()).to(flat).repeat(len(flat), 1)
        flat = fixed.index_copy(1, torch.from_numpy(places[places >= 0]).to(flat.device), flat[:, kept])
    return GraphProblem(shape, flat)


def check_memory(problem: GraphProblem, limit: float | None) -> None:
    """Raise an error where the tables of all cliques, about three times with their gradients, need more bytes."""
    shape, scores = problem.shape, problem.scores
    if limit is None:
        limit = _default_limit(scores.device)
    sizes = [math.prod(map(float, shape.sizes(clique.scope))) for clique in shape.cliques]
    needed = 3.0 * max(1, len(scores)) * sum(sizes) * scores.element_size()
    if needed > limit:
        widest = max(len(clique.scope) for clique in shape.cliques) - 1
        raise SizeLimitError(
            f"Exact inference: width {widest}, the largest clique has {max(sizes):.3g} configurations; a batch of "
            f"{len(scores)} needs about {needed / 1e9:.3g} GB, expected at most {limit / 1e9:.3g} GB (memory_limit). "
            'Expected a smaller batch or graph, or method="belief_propagation".'
        )


def _default_limit(device: torch.device) -> float:
    """Half of the memory of the device."""
    if device.type == "cuda":
        return 0.5 * torch.cuda.mem_get_info(device)[1]
    from crfkit.inference import default_memory_limit

    return default_memory_limit()
