"""Belief propagation on a GPU, for graphs of single variables and pairs: one launch for each iteration.

The iterates, and where they stop, are those of plain PyTorch (`backends/torch_messages.py`). The host asks only now and then
whether all elements of a batch are converged; what is, does not change any more.
"""

from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from crfkit.nn.backends import torch_messages
from crfkit.nn.backends.torch_elimination import GraphExpectations
from crfkit.nn.backends.torch_messages import MessageOptions
from crfkit.nn.problem.factor_graph import GraphProblem, GraphShape
from crfkit.nn.triton.launch import Launch, on_its_device
from crfkit.nn.triton.messages.kernels import (
    BASE,
    MESSAGE_0,
    N_FACTS,
    SIZE_0,
    VARIABLE_0,
    table_kernel,
    update_kernel,
    variable_kernel,
)

MOST_VALUES = 64  # of a variable
MOST_TABLES = 64  # of a variable: a message reads all others to it
ITERATIONS = 16  # between two questions of the host
BLOCK = 1024  # entries of the tables of a program, about, where variables have more than 8 values
BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


class _Arrays(NamedTuple):
    """What the kernels know of a graph, on a device."""

    tables: Tensor  # [facts, F]
    incoming: Tensor  # [V, most messages to a variable]
    cardinalities: Tensor  # [V]
    initial: Tensor  # [E, L] in float64: messages before the first iteration


_ARRAYS: WeakKeyDictionary[GraphShape, dict[torch.device, _Arrays]] = WeakKeyDictionary()


class MessageKernels:
    """Bethe's log Z and beliefs."""

    name = "triton"

    def suits(self, problem: GraphProblem) -> bool:
        """Whether there are kernels for this problem."""
        return problem.scores.is_cuda and self.suits_shape(problem)

    def suits_shape(self, problem: GraphProblem) -> bool:
        """The same, on any device."""
        shape, scores = problem.shape, problem.scores
        B, E = len(scores), len(shape.message_plan.variable)
        L, most = max(shape.cardinalities, default=1), shape.message_plan.incoming.shape[1]
        sizes = max(B, 8) * max(len(shape.scopes), len(shape.cardinalities)), scores.shape[1], E * L
        return (
            B > 0 and E > 0 and L <= MOST_VALUES and most <= MOST_TABLES and max(sizes) < 2**31
            and all(len(group.sizes) <= 2 for group in shape.message_plan.groups)
        )  # fmt: skip

    def beliefs(self, problem: GraphProblem, options: MessageOptions) -> tuple[GraphExpectations, Tensor]:
        """Bethe's log Z, the beliefs, and whether the messages are converged [B]; differentiable."""
        shape, scores, allowed = problem
        if torch.is_grad_enabled() and scores.requires_grad:
            *found, converged = _Beliefs.apply(self, scores, allowed, shape, options)
            return GraphExpectations(*found), converged
        return self.run((scores, allowed), shape, options)

    @on_its_device
    def run(
        self, given: tuple[Tensor, Tensor | None], shape: GraphShape, options: MessageOptions
    ) -> tuple[GraphExpectations, Tensor]:
        """The same for scores and `allowed`, without a graph."""
        scores, allowed = given[0].contiguous(), None if given[1] is None else given[1].contiguous()
        arrays, settings = _arrays_of(shape, scores.device), _settings(options, scores.dtype, scores.device)
        B, F, (E, L), V = len(scores), len(shape.scopes), arrays.initial.shape, len(shape.cardinalities)
        messages = scores.new_empty((B, 2, E, L))
        messages[:, 0] = arrays.initial
        state = torch.zeros((4, B), dtype=BITS[scores.dtype], device=scores.device)
        padded, most = max(2, 1 << (L - 1).bit_length()), arrays.incoming.shape[1]
        block, n_warps = _block(padded)
        kind = (scores.dtype, allowed is None, padded, most)
        pointers = (scores, allowed, arrays.tables, arrays.incoming, messages, state, settings)
        sizes, constants = (B, scores.shape[1], F, V, E, L), (block, padded, most)
        grid = (B * -(-F // block), 1, 1)
        update, damped, made = _launch(update_kernel, n_warps), options.damping > 0, 0
        while made < options.max_iterations:
            update(grid, (kind, damped), pointers, (*sizes, made), (*constants, damped))
            made += 1
            if options.tolerance and made % ITERATIONS == 0 and _is_done(state, made, options, scores.dtype):
                break
        values, entries = scores.new_empty((B, V, L)), torch.empty_like(scores)
        terms = scores.new_empty((B, V + F))
        converged = torch.empty(B, dtype=torch.int8, device=scores.device)
        rows = max(16, 256 // padded)
        _launch(variable_kernel, 4)(
            (B * -(-V // rows), 1, 1),
            kind,
            (allowed, arrays.cardinalities, *pointers[3:], values, terms, converged),
            (B, *sizes[2:], made),
            (rows, padded, most),
        )
        _launch(table_kernel, n_warps)(grid, kind, (*pointers, entries, terms), (*sizes, made), constants)
        log_z = terms.sum(1)
        possible = (log_z != -torch.inf).to(scores.dtype)
        values *= possible[:, None, None]
        entries *= possible[:, None]
        return GraphExpectations(log_z, values, entries), converged.view(torch.bool)


class _Beliefs(torch.autograd.Function):
    """Beliefs by kernels. Of log Z at a fixed point they are the gradient; else plain PyTorch makes the iterations again."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, ...]:
        backend, scores, allowed, ctx.shape, ctx.options = given
        found, converged = backend.run((scores, allowed), ctx.shape, ctx.options)
        ctx.save_for_backward(scores, allowed, found.log_partition, found.scores, converged)
        ctx.mark_non_differentiable(converged)
        ctx.set_materialize_grads(False)
        return *found, converged

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> tuple[Tensor | None, ...]:
        scores, allowed, log_z, entries, converged = ctx.saved_tensors
        of_log_z, *others = upstream[:3]
        again = torch.is_grad_enabled()
        only_log_z = of_log_z is not None and all(part is None for part in others)
        if only_log_z and not again and ctx.options.tolerance and bool(converged.all()):
            slope = torch.where(torch.isfinite(log_z), of_log_z, 0.0)[:, None] * entries
            return None, slope, None, None, None
        with torch.enable_grad():
            leaf = scores if again else scores.detach().requires_grad_()
            found, _ = torch_messages.beliefs(GraphProblem(ctx.shape, leaf, allowed), ctx.options)
            wanted = [
                (part, slope) for part, slope in zip(found, upstream, strict=False) if slope is not None
            ]
            outputs, slopes = zip(*wanted, strict=True)
            [slope] = torch.autograd.grad(outputs, [leaf], slopes, create_graph=again)
        return None, slope, None, None, None


def _is_done(state: Tensor, made: int, options: MessageOptions, real: torch.dtype) -> bool:
    """Whether all elements are converged after so many iterations: waits for the device."""
    here = state.cpu()
    change, stopped = here[(made - 1) % 3].view(real), here[3] > 0
    return bool((stopped | (change <= options.tolerance)).all())


def _arrays_of(shape: GraphShape, device: torch.device) -> _Arrays:
    """Made once for a graph and a device."""
    by_device = _ARRAYS.setdefault(shape, {})
    if device not in by_device:
        plan = shape.message_plan
        facts = [np.zeros((N_FACTS.value, 0), np.int64)]
        for group in plan.groups:
            G, n = len(group.places), len(group.sizes)
            part = np.zeros((N_FACTS.value, G), np.int64)
            part[BASE.value] = group.places[:, 0]
            for axis in range(2):
                numbers = group.first + axis * G + np.arange(G) if axis < n else np.full(G, -1)
                part[SIZE_0.value + axis] = group.sizes[axis] if axis < n else 1
                part[MESSAGE_0.value + axis] = numbers
                part[VARIABLE_0.value + axis] = plan.variable[numbers] if axis < n else 0
            facts.append(part)
        counts = np.array(shape.cardinalities)
        initial = np.where(
            np.arange(counts.max()) < counts[:, None], -np.log(counts)[:, None], -np.inf
        )  # [V, L]
        tables, incoming, sizes = (
            torch.from_numpy(np.ascontiguousarray(part.astype(np.int32))).to(device)
            for part in (np.concatenate(facts, 1), plan.incoming, counts)
        )
        by_device[device] = _Arrays(
            tables, incoming, sizes, torch.from_numpy(initial[plan.variable]).to(device)
        )
    return by_device[device]


@cache
def _settings(options: MessageOptions, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Tolerance and logarithms of the shares of old and new messages."""
    log_old = float(np.log(options.damping)) if options.damping else -np.inf
    return torch.tensor(
        [options.tolerance, log_old, float(np.log1p(-options.damping))], dtype=dtype, device=device
    )


@cache
def _launch(kernel: Any, n_warps: int) -> Launch:
    """One for each kernel."""
    return Launch(kernel, n_warps)


def _block(padded: int) -> tuple[int, int]:
    """Tables of a program, and its warps: few values need one warp, which has nothing to wait for."""
    return (64 // padded, 1) if padded <= 8 else (max(1, BLOCK // padded**2), 4)
