"""Single assignments of a batch of factor graphs by the C++ core, in memory, one element of the batch after the other."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from crfkit.nn.backends.decode import NOTHING
from crfkit.nn.backends.torch_messages import MessageOptions
from crfkit.nn.problem.factor_graph import GraphProblem
from crfkit.structures import FactorGraph, NoOutputError


def k_best(problem: GraphProblem, k: int) -> tuple[Tensor, Tensor]:
    """The scores [B, k] of the k best assignments in float64, and their values [B, k, V]; −inf and −1 where fewer exist."""
    from crfkit import inference  # and with it the core, which is loaded when it is needed

    B, V = len(problem.scores), problem.shape.n_variables
    scores, values = np.full((B, k), -np.inf), np.full((B, k, V), NOTHING)
    for b, graph in enumerate(_graphs(problem)):
        for place, found in enumerate(inference.k_best(graph, k=k)):
            scores[b, place], values[b, place] = found.score, np.asarray(found.output)[:V]
    device = problem.scores.device
    return torch.from_numpy(scores).to(device), torch.from_numpy(values).to(device)


def max_product(problem: GraphProblem, options: MessageOptions) -> Tensor:
    """An assignment with a high score [B, V]; −1 where none is found."""
    from crfkit import inference

    V = problem.shape.n_variables
    values = np.full((len(problem.scores), V), NOTHING)
    for b, graph in enumerate(_graphs(problem)):
        try:
            found = inference.max_product(
                graph, damping=options.damping, max_iterations=options.max_iterations
            ).output
        except NoOutputError:
            continue
        if found is not None:
            values[b] = found.ids[:V]
    return torch.from_numpy(values).to(problem.scores.device)


def _graphs(problem: GraphProblem) -> Iterator[FactorGraph]:
    """Each element as a graph of tables, those of added variables included."""
    shape = problem.shape
    for scores in problem.scores.detach().double().cpu().numpy():
        tables = np.split(scores, shape.table_ptr[1:-1])
        shaped = (part.reshape(shape.sizes(scope)) for part, scope in zip(tables, shape.scopes, strict=True))
        yield FactorGraph.from_arrays(shape.cardinalities, shape.scopes, shaped)
