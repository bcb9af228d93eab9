"""The CPU backend: chains through the C++ core, which is imported when it is first needed."""

import importlib.util
from functools import cache
from typing import Any

import torch
from torch import Tensor

from crfkit.nn.backends.base import Expectations, MarginalBackend, is_safe
from crfkit.nn.problem.chain import (
    ChainProblem,
    to_positions,
    token_emissions,
    token_mask,
    token_transitions,
    working_dtype,
)

FEW_LABELS = 96  # with more, PyTorch's products of whole batches are faster


@cache
def core_is_there() -> bool:
    """Whether the native core was built."""
    return importlib.util.find_spec("crfkit._core") is not None


def answers(problem: ChainProblem) -> bool:
    """Whether the core answers for this problem."""
    return problem.emissions.device.type == "cpu" and problem.transitions.ndim < 4 and core_is_there()


def suits(problem: ChainProblem) -> bool:
    """Whether the core answers for this problem, and adds up faster than PyTorch."""
    return answers(problem) and (problem.shape[2] <= FEW_LABELS or not is_safe(problem.transitions))


class CoreBackend(MarginalBackend):
    """Forward–backward and Viterbi of `crfkit.inference.ChainBatch`."""

    name = "core"

    def log_partition(self, problem: ChainProblem) -> Tensor:
        """log Z [B]; NaN where a score is."""
        log_z = torch.from_numpy(batch_of(problem).log_partition())
        undefined = _undefined(problem)
        return log_z if undefined is None else log_z.masked_fill(undefined, torch.nan)

    def expectations(self, problem: ChainProblem, weights: Tensor | None = None) -> Expectations:
        """log Z and the marginals; NaN where a score is."""
        found = batch_of(problem).expectations(None if weights is None else weights.numpy())
        log_z, emissions, transitions = map(torch.from_numpy, found)
        emissions = to_positions(problem, emissions)
        undefined = _undefined(problem)
        if undefined is None:
            return Expectations(log_z, emissions, transitions)
        rows = undefined.any() if transitions.ndim == 2 else undefined[:, None, None]
        return Expectations(
            log_z.masked_fill(undefined, torch.nan),
            emissions.masked_fill(undefined[:, None, None], torch.nan),
            transitions.masked_fill(rows, torch.nan),
        )

    def argmax(self, problem: ChainProblem) -> Tensor:
        """Viterbi decoding."""
        return to_positions(problem, torch.from_numpy(batch_of(problem).decode()))


CORE = CoreBackend()


def has_undefined(problem: ChainProblem) -> bool:
    """Whether a sequence has a score that is not a number."""
    undefined = _undefined(problem)
    return undefined is not None and bool(undefined.any())


def _undefined(problem: ChainProblem) -> Tensor | None:
    """Which sequences have a score that is not a number, [B]; None where all scores are numbers.

    The core takes such a score for −inf, and a network that has gone wrong would not be noticed.
    """
    total = sum(float(part.detach().sum()) for part in problem[:4] if part is not None)
    if total == total:
        return None
    parts = token_emissions(problem, torch.float64).isnan(), token_transitions(problem, torch.float64).isnan()
    found = parts[0].flatten(1).any(1), parts[1].flatten(-2).any(-1)  # [B], and [] or [B]
    return (found[0] | found[1]) & (token_mask(problem).sum(1) > 0)


def batch_of(problem: ChainProblem, dtype: torch.dtype | None = None) -> Any:
    """The problem as arrays of the core, in the working precision or `dtype`; memory is shared where that is possible."""
    from crfkit.inference import ChainBatch

    dtype = dtype or working_dtype(problem.emissions.dtype)
    emissions = problem.emissions.detach()
    if problem.positions is not None:
        emissions = emissions.gather(1, problem.positions[:, :, None].expand(problem.shape))
    scores: list[Any] = [  # [B, T, L], [L, L] or [B, L, L], [L], [L]
        None if part is None else part.detach().to(dtype).numpy()
        for part in (emissions, problem.transitions, problem.start, problem.end)
    ]
    lengths = None if problem.lengths is None else problem.lengths.numpy()
    return ChainBatch(*scores, lengths=lengths, n_threads=torch.get_num_threads(), copy=False)
