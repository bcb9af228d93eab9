"""The backend for a problem: Triton kernels on an NVIDIA GPU, the C++ core on a CPU, else plain PyTorch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

import torch

from crfkit.nn.backends import (
    core,
    core_elimination,
    core_segments,
    core_trees,
    segments,
    torch_chain,
    torch_elimination,
    torch_messages,
)
from crfkit.nn.backends.base import Backend
from crfkit.nn.backends.torch_elimination import GraphExpectations
from crfkit.nn.backends.torch_messages import MessageOptions
from crfkit.nn.backends.torch_projective import EISNER
from crfkit.nn.backends.torch_tree import DETERMINANT
from crfkit.nn.backends.tree import TreeBackend
from crfkit.nn.problem.bigram_tiles import tiles_for
from crfkit.nn.problem.chain import ChainProblem, constrain_ends, explicit
from crfkit.nn.problem.factor_graph import GraphProblem
from crfkit.nn.problem.segments import SegmentProblem
from crfkit.nn.problem.tree import TreeProblem

Chosen: TypeAlias = "tuple[Backend, ChainProblem]"
Beliefs: TypeAlias = Callable[[GraphProblem, MessageOptions], tuple[GraphExpectations, torch.Tensor]]


def choose(problem: ChainProblem, lists: bool = False) -> Chosen:
    """The backend for a problem, and the problem as it takes it: −inf for what a table of bigrams forbids, or the table.

    With `lists`, tiles of the allowed bigrams are made for the table where they pay, and stay with it.
    """
    if problem.emissions.is_cuda and triton_is_there():
        dense, wide, positional, _ = _kernels()
        if problem.bigrams is not None:
            if dense.suits(problem) and dense.has_total(problem):
                return dense, problem
            chosen = choose_lists(problem) if lists else None
            if chosen is not None:
                return chosen
            problem = explicit(problem)
        for backend in (dense, wide, positional):
            if backend.suits(problem):
                return backend, problem
    problem = explicit(problem)
    return (core.CORE if core.suits(problem) else torch_chain.TORCH), problem


def choose_lists(problem: ChainProblem) -> Chosen | None:
    """The backend over lists of bigrams, if there are lists for the problem's table and kernels for its scores."""
    table = problem.bigrams
    if table is None or not problem.emissions.is_cuda or not triton_is_there():
        return None
    if (
        problem.transitions.ndim > 2
        or problem.emissions.dtype == torch.float64
        or problem.emissions.numel() == 0
    ):
        return None
    tiles = tiles_for(table)
    if tiles is None:
        return None
    start, end = constrain_ends(table, problem.transitions, problem.start, problem.end)
    return _kernels()[3](tiles), problem._replace(start=start, end=end)


def choose_tree(problem: TreeProblem) -> TreeBackend:
    """The backend for a batch of trees."""
    if problem.scores.is_cuda and triton_is_there():
        backend = _tree_kernels()
        if backend.suits(problem):
            return backend
    in_memory = problem.scores.device.type == "cpu" and core.core_is_there()
    return core_trees.CORE if in_memory else DETERMINANT


def choose_projective(problem: TreeProblem) -> TreeBackend:
    """The backend for a batch of projective trees."""
    if problem.scores.is_cuda and triton_is_there():
        backend = _projective_kernels()
        if backend.suits(problem):
            return cast(TreeBackend, backend)
    in_memory = problem.scores.device.type == "cpu" and core.core_is_there()
    return core_trees.PROJECTIVE_CORE if in_memory else EISNER


def choose_segments(problem: SegmentProblem) -> segments.SegmentBackend:
    """The backend for a batch of semi-Markov chains."""
    if problem.emissions.is_cuda and triton_is_there() and _segment_kernels().suits(problem):
        return cast(segments.SegmentBackend, _segment_kernels())
    return core_segments.CORE if core_segments.CORE.suits(problem) else segments.TORCH


def choose_elimination(problem: GraphProblem) -> Callable[[GraphProblem], torch.Tensor]:
    """log Z of a batch of factor graphs, exactly: by the core where scores are in memory."""
    return (
        core_elimination.log_partition if core_elimination.suits(problem) else torch_elimination.log_partition
    )


def exact_expectations(problem: GraphProblem, differentiated: bool) -> GraphExpectations:
    """log Z and probabilities, exactly, with a graph where they are differentiated."""
    if not differentiated and core_elimination.suits(problem):
        return core_elimination.expectations(problem)
    return torch_elimination.expectations(problem, differentiated)


def choose_beliefs(problem: GraphProblem) -> Beliefs:
    """Belief propagation for a batch of factor graphs: kernels where no table has more than two variables."""
    if problem.scores.is_cuda and triton_is_there() and _message_kernels().suits(problem):
        return cast(Beliefs, _message_kernels().beliefs)
    return torch_messages.beliefs


@cache
def triton_is_there() -> bool:
    """Whether kernels can be compiled here."""
    return importlib.util.find_spec("triton") is not None


@cache
def _kernels() -> tuple[Any, ...]:
    """The backends with kernels, and the class of that for lists of bigrams."""
    from crfkit.nn.triton.dense.backend import DenseBackend
    from crfkit.nn.triton.positional.backend import PositionalBackend
    from crfkit.nn.triton.sparse.backend import SparseBackend
    from crfkit.nn.triton.wide.backend import WideBackend

    return DenseBackend(), WideBackend(), PositionalBackend(), SparseBackend


@cache
def _tree_kernels() -> Any:
    """The backend with kernels for trees."""
    from crfkit.nn.triton.trees.backend import KernelTreeBackend

    return KernelTreeBackend()


@cache
def _projective_kernels() -> Any:
    """The backend with kernels for projective trees."""
    from crfkit.nn.triton.projective.backend import EisnerKernels

    return EisnerKernels()


@cache
def _segment_kernels() -> Any:
    """The backend with kernels for semi-Markov chains."""
    from crfkit.nn.triton.segments.backend import SegmentKernels

    return SegmentKernels()


@cache
def _message_kernels() -> Any:
    """The backend with kernels for belief propagation."""
    from crfkit.nn.triton.messages.backend import MessageKernels

    return MessageKernels()
