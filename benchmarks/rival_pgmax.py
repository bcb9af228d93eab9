"""Factor graphs as PGMax's, whose belief propagation JAX compiles for a CPU or a GPU.

PGMax has no test of convergence: it makes a given number of iterations, in single precision.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from crfkit import FactorGraph

LOWEST_SCORE = -1e4  # stands for −inf in PGMax, which has no zero probabilities
Array = np.ndarray[Any, Any]


class PgmaxGraph(NamedTuple):
    """PGMax's inferer, its variables, and the scores of single variables."""

    inferer: Any
    group: Any
    own: Array  # [V, L] sums of the tables of single variables

    def arrays(self, own: Array | None = None) -> Any:
        """PGMax's arrays at the start, for other scores of single variables if they are given."""
        return self.inferer.init(evidence_updates={self.group: self.own if own is None else own})

    def compile(self, iterations: int, damping: float, *, batch: bool = False) -> Callable[[Any], Any]:
        """A function from arrays, or from a batch of them, to the marginals of all variables [V, L]."""
        import jax
        from pgmax import infer

        def run(arrays: Any) -> Any:
            after = self.inferer.run(arrays, num_iters=iterations, damping=damping, temperature=1.0)
            return infer.get_marginals(self.inferer.get_beliefs(after))[self.group]

        compiled: Callable[[Any], Any] = jax.jit(jax.vmap(run) if batch else run)
        return compiled


def build(graph: FactorGraph) -> PgmaxGraph:
    """A graph of tables for PGMax."""
    import jax.extend.backend

    if not hasattr(jax.lib, "xla_bridge"):  # which PGMax 0.6.1 asks for, and newer versions of JAX lack
        jax.lib.xla_bridge = types.SimpleNamespace(get_backend=jax.extend.backend.get_backend)
    from pgmax import fgraph, fgroup, infer, vgroup

    counts = np.array([len(variable) for variable in graph.variables])
    group = vgroup.NDVarArray(num_states=counts, shape=counts.shape)
    model = fgraph.FactorGraph(variable_groups=[group])
    own = np.zeros((len(counts), counts.max()))
    by_shape: dict[tuple[int, ...], list[tuple[tuple[int, ...], Any]]] = {}
    for factor in graph.factors:  # tables, all of them
        scope, table = factor.variables, np.maximum(factor.scores, LOWEST_SCORE)
        if len(scope) == 1:
            own[scope[0], : len(table)] += table
        elif scope:
            by_shape.setdefault(table.shape, []).append((scope, table))
    for shape, some in by_shape.items():
        scopes = [[group[v] for v in scope] for scope, _ in some]
        scores = np.stack([table for _, table in some])
        if len(shape) == 2:
            model.add_factors(
                fgroup.PairwiseFactorGroup(variables_for_factors=scopes, log_potential_matrix=scores)
            )
        else:
            configurations = np.array(list(np.ndindex(*shape)), dtype=int)
            model.add_factors(
                fgroup.EnumFactorGroup(
                    variables_for_factors=scopes,
                    factor_configs=configurations,
                    log_potentials=scores.reshape(len(some), -1),
                )
            )
    return PgmaxGraph(infer.build_inferer(model.bp_state, backend="bp"), group, own)
