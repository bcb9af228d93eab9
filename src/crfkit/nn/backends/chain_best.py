"""The best label sequence of each sequence of a batch, by whichever path is fastest on its device."""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.nn.backends import core as chain_core
from crfkit.nn.backends import decode as chain_paths
from crfkit.nn.backends.chain_value import kernels_for
from crfkit.nn.problem.chain import (
    ChainProblem,
    alive_sites,
    site_arcs,
    site_states,
    to_positions,
    working_dtype,
)


def best(problem: ChainProblem) -> Tensor:
    """The labels of the best label sequence [B, T] by position; −1 at positions that are off."""
    with torch.no_grad():
        kernels = kernels_for(problem)
        if hasattr(kernels, "best"):
            return kernels.best(problem)
        if chain_core.answers(problem):
            return chain_core.best(problem)
        dtype = working_dtype(problem.emissions.dtype)
        states, arcs = site_states(problem, dtype), site_arcs(problem, dtype)
        return to_positions(problem, chain_paths.best(states, arcs, alive_sites(problem)))
