"""Loopy belief propagation on a batch of factor graphs of one shape, in plain PyTorch: log space, any device.

All messages are updated at once. ν_{i→f} goes from a variable to a table, m_{f→i} back:

    ν_{i→f}(x) = Σ_{g≠f} m_{g→i}(x)        m_{f→i}(x) = log Σ_{x_f: x_i = x} exp(score_f(x_f) + Σ_{j≠i} ν_{j→f}(x_j))
    log Z ≈ Σ_f log Σ exp(score_f + Σ_j ν_{j→f}) + Σ_i log Σ exp(Σ_f m_{f→i}) − Σ_{f,i} log Σ exp(ν_{i→f} + m_{f→i})

which is Bethe's approximation: exact without cycles, and stationary in the messages at a fixed point, so that its gradient
there is the beliefs (Yedidia, Freeman and Weiss 2005). The iterations are unrolled: PyTorch differentiates each of them.

Tables with the same sizes are one group [B, G, sizes] and are updated together. Sums that leave one message out subtract it;
−inf is counted apart, since −inf less −inf is not a number. E is the number of messages, one for a variable of a table.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crfkit.nn.backends.torch_chain import finite, log_sum
from crfkit.nn.backends.torch_elimination import GraphExpectations
from crfkit.nn.problem.factor_graph import GraphProblem
from crfkit.nn.problem.message_plan import Group


class MessageOptions(NamedTuple):
    """How long messages are updated, and how."""

    damping: float  # the share of the old message that is kept
    tolerance: float  # on the largest change of exp(message), which sums to 1; 0: all iterations are made
    max_iterations: int


class _Messages:
    """The messages [B, E, L] of a batch, −inf beyond the values of a variable."""

    def __init__(self, problem: GraphProblem) -> None:
        shape, scores = problem.shape, problem.scores
        self.plan, self.size = shape.message_plan, max(shape.cardinalities, default=1)
        self.variable, self.incoming = (
            torch.from_numpy(part).to(scores.device) for part in (self.plan.variable, self.plan.incoming)
        )
        counts = torch.tensor(shape.cardinalities, device=scores.device)
        exists = torch.arange(self.size, device=scores.device) < counts[:, None]  # [V, L]
        self.own = torch.where(exists, scores.new_zeros(()), -torch.inf).expand(len(scores), -1, -1)
        self.tables = [
            scores[:, torch.from_numpy(group.places).to(scores.device)].unflatten(2, group.sizes or (1,))
            for group in self.plan.groups
        ]
        self.now = _normalised(self.own[:, self.variable])
        if problem.allowed is not None:
            self.own = self.own + problem.allowed

    def totals(self) -> tuple[Tensor, Tensor]:
        """Of all messages to each variable [B, V, L]: the sum of those that are finite, and how many are −inf."""
        messages = torch.nn.functional.pad(self.now, (0, 0, 0, 1))[:, self.incoming]  # [B, V, most, L]
        sums = finite(messages).sum(2) + finite(self.own)
        return sums, torch.isinf(messages).sum(2) + torch.isinf(self.own)

    def from_variables(self) -> Tensor:
        """ν [B, E, L]: the totals without the message that comes back."""
        sums, missing = self.totals()
        others = missing[:, self.variable] - torch.isinf(self.now).long()
        return torch.where(others > 0, -torch.inf, sums[:, self.variable] - finite(self.now))

    def rows(self, group: Group, messages: Tensor) -> list[Tensor]:
        """The messages of a group, one tensor [B, G, …] for each axis, along this axis of its tables."""
        G, n = len(group.places), len(group.sizes)
        parts = []
        for axis, size in enumerate(group.sizes):
            begin = group.first + axis * G
            parts.append(
                messages[:, begin : begin + G, :size].reshape(-1, G, *[1] * axis, size, *[1] * (n - axis - 1))
            )
        return parts

    def fresh(self) -> Tensor:
        """What the tables answer [B, E, L], each message with the sum 1."""
        sent = self.from_variables()
        answers = [sent[:, :0]]
        for group, table in zip(self.plan.groups, self.tables, strict=True):
            rows = self.rows(group, sent)
            for axis, size in enumerate(group.sizes):
                joint = table
                for other, row in enumerate(rows):
                    joint = joint if other == axis else joint + row
                shape = (len(sent), math.prod(group.sizes) // size, len(group.places), size)
                answer = log_sum(joint.movedim((1, 2 + axis), (-2, -1)).reshape(shape))
                answers.append(torch.nn.functional.pad(answer, (0, self.size - size), value=-torch.inf))
        return _normalised(torch.cat(answers, 1))

    def run(self, options: MessageOptions) -> Tensor:
        """Update until the tolerance is reached; whether it is, [B]. What is converged does not change any more."""
        done = torch.zeros(len(self.now), dtype=torch.bool, device=self.now.device)
        for _ in range(options.max_iterations):
            fresh = self.fresh()
            change = (fresh.detach().exp() - self.now.detach().exp()).abs().flatten(1)
            residual = torch.nn.functional.pad(change, (0, 1)).amax(1)  # [B]; 0 without messages
            if options.damping:
                both = torch.stack(
                    [self.now + np.log(options.damping), fresh + np.log1p(-options.damping)], 1
                )
                fresh = torch.where(
                    torch.isinf(fresh), -torch.inf, log_sum(both)
                )  # the impossible remains so
            done = done | (residual <= options.tolerance)
            self.now = torch.where(done[:, None, None], self.now, fresh)
            if options.tolerance and bool(done.all()):
                break
        return done

    def beliefs(self) -> GraphExpectations:
        """Bethe's log Z and the probabilities of values and entries; 0 where messages exclude every assignment."""
        sums, missing = self.totals()
        sent = self.from_variables()
        joints = [sent[:, :0, 0]]  # of each group [B, G · entries]
        terms = [-_log_total(sent + self.now)]  # [B, E]
        for group, table in zip(self.plan.groups, self.tables, strict=True):
            joint = sum(self.rows(group, sent), start=table).flatten(2)
            total = _log_total(joint)
            joints.append(torch.exp(joint - finite(total)[:, :, None]).flatten(1))
            terms.append(total)
        of_values = torch.where(missing > 0, -torch.inf, sums)
        total = _log_total(of_values)
        log_terms = torch.cat([*terms, total], 1)
        possible = ~torch.isinf(log_terms).any(1)
        log_z = torch.where(possible, finite(log_terms).sum(1), -torch.inf)
        of_values = torch.exp(of_values - finite(total)[:, :, None]) * possible[:, None, None]
        order = torch.from_numpy(self.plan.order).to(sent.device)
        return GraphExpectations(log_z, of_values, torch.cat(joints, 1)[:, order] * possible[:, None])


def beliefs(problem: GraphProblem, options: MessageOptions) -> tuple[GraphExpectations, Tensor]:
    """Bethe's log Z, the beliefs, and whether the messages are converged [B]; differentiable."""
    messages = _Messages(problem)
    converged = messages.run(options)
    return messages.beliefs(), converged


def _log_total(messages: Tensor) -> Tensor:
    """log Σ exp over the last axis of [B, E, L]."""
    return log_sum(messages.movedim(2, 1))


def _normalised(messages: Tensor) -> Tensor:
    """Each message [B, E, L] with the sum 1, or −inf where it is that for every value."""
    return messages - finite(_log_total(messages))[:, :, None]
