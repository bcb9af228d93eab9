"""Sums over the label sequences of a batch of chains in plain PyTorch, on any device.

Messages are kept in exp space: at each token the largest score is subtracted before exp, and the message is divided
by its sum, so that the loop over tokens is matrix products. With U_i = exp(emissions_i − max_i), W = exp(transitions
− maximum):

    forward_i  = (forward_{i−1} W) ∘ U_i / mass_i,     mass_i the sum of the numerator
    pushed_i   = U_i ∘ backward_i / mass_i,            backward_{i−1} = W pushed_i,      backward_{n−1} = 1
    P(y_i) = forward_i ∘ backward_i                    P(y_{i−1}, y_i) = forward_{i−1} W pushed_i
    log Z  = Σ_i (max_i + log mass_i) + (n − 1) maximum  in float64

With forbidden or widely spread transitions, a message may underflow that a later token makes likely again: such
problems are solved in log space, in float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from crfkit.nn.backends import core
from crfkit.nn.backends.base import Expectations, MarginalBackend, is_safe
from crfkit.nn.backends.decode import transitions_from, viterbi
from crfkit.nn.problem.chain import (
    ChainProblem,
    compact,
    to_positions,
    token_emissions,
    token_mask,
    token_transitions,
    transitions_to_positions,
    working_dtype,
)


class TorchBackend(MarginalBackend):
    """Forward–backward and Viterbi in plain PyTorch."""

    name = "torch"

    def log_partition(self, problem: ChainProblem) -> Tensor:
        """log Z [B], in exp space where that is safe."""
        return _messages(problem).log_partition()

    def expectations(self, problem: ChainProblem, weights: Tensor | None = None) -> Expectations:
        """log Z and the marginals, in exp space where that is safe."""
        messages = _messages(problem)
        emissions = to_positions(problem, messages.emissions())
        transitions = messages.transitions(weights)
        if problem.transitions.ndim == 4:
            transitions = transitions_to_positions(problem, transitions)
        return Expectations(messages.log_partition(), emissions, transitions)

    def argmax(self, problem: ChainProblem) -> Tensor:
        """Viterbi decoding; by the core where it answers, which is faster with any number of labels."""
        if core.answers(problem):
            return core.CORE.argmax(problem)
        dtype = working_dtype(problem.emissions.dtype)
        emissions, transitions = token_emissions(problem, dtype), token_transitions(problem, dtype)
        return to_positions(problem, viterbi(emissions, transitions, token_mask(problem)))


TORCH = TorchBackend()


def _messages(problem: ChainProblem) -> _ScaledMessages | _LogMessages:
    """The messages of a problem, in exp space where that is safe."""
    return (_ScaledMessages if is_safe(problem.transitions) else _LogMessages)(problem)


def differentiable_log_partition(problem: ChainProblem) -> Tensor:
    """log Z [B] through operations that PyTorch differentiates as often as it likes; in float64."""
    emissions, transitions = compact(problem)
    if emissions.shape[1] == 0:
        return emissions.sum((1, 2))
    through = _by_products if is_safe(transitions.detach()) else _by_logarithms
    return through(emissions, transitions, token_mask(problem))


def _by_products(emissions: Tensor, transitions: Tensor, is_token: Tensor) -> Tensor:
    """log Z [B] of emissions [B, T, L] and transitions that all exist, in exp space; is_token [B, T]."""
    B, T, L = emissions.shape
    maxima = finite(emissions.detach().amax(2))  # [B, T]
    maximum = _maximum(transitions.detach())
    weights = torch.exp(transitions - maximum)
    total = emissions.new_zeros(B)
    message = emissions.new_full((B, 1, L), 1.0)
    for i in range(T):
        pushed = message @ transitions_from(weights, i - 1) if i else message
        if i and transitions.ndim == 4:
            total = total + torch.where(is_token[:, i], maximum[:, i - 1, 0, 0], 0.0)
        elif i:
            total = total + torch.where(is_token[:, i], maximum.reshape(-1), 0.0)
        new = pushed * torch.exp(emissions[:, i] - maxima[:, i, None])[:, None]
        mass = new.sum((1, 2))
        scale = maxima[:, i] + _log(mass)
        total = total + torch.where(is_token[:, i], scale, 0.0)
        divisor = torch.where(mass == 0, 1.0, mass)
        message = torch.where(is_token[:, i, None, None], new / divisor[:, None, None], message)
    return total


def _by_logarithms(emissions: Tensor, transitions: Tensor, is_token: Tensor) -> Tensor:
    """The same in log space, for any transitions: B · T · L² numbers are kept for the gradient."""
    last = _log_forward(emissions, transitions, is_token)[-1]
    return torch.where(is_token[:, 0], log_sum(last), 0.0)


def _log_forward(emissions: Tensor, transitions: Tensor, is_token: Tensor) -> list[Tensor]:
    """The logarithms of the forward messages, T × [B, L]; in the padding, those of the last token."""
    messages = list(emissions[:, :1].unbind(1))
    for i in range(1, emissions.shape[1]):
        reached = log_sum(messages[-1][:, :, None] + transitions_from(transitions, i - 1))
        messages.append(torch.where(is_token[:, i, None], reached + emissions[:, i], messages[-1]))
    return messages


def log_sum(values: Tensor) -> Tensor:
    """log Σ exp over axis 1; the gradient of what is −inf is 0, also where everything is."""
    maximum = finite(values.detach().amax(1))
    return maximum + _log(torch.exp(values - maximum[:, None]).sum(1))


def _log(values: Tensor) -> Tensor:
    """The logarithm, whose gradient at 0 is 0."""
    nothing = values == 0
    return torch.where(nothing, -torch.inf, torch.log(torch.where(nothing, 1.0, values)))


def finite(values: Tensor) -> Tensor:
    """−inf replaced by 0: a maximum that may be subtracted."""
    return torch.where(torch.isinf(values), torch.zeros_like(values), values)


def _maximum(transitions: Tensor) -> Tensor:
    """The largest score of each table of transitions [L, L], with its axes."""
    if transitions.numel() == 0:
        return transitions.new_zeros(*transitions.shape[:-2], 1, 1)
    return transitions.amax((-2, -1), keepdim=True)


class _ScaledMessages:
    """The messages in exp space."""

    def __init__(self, problem: ChainProblem) -> None:
        self.problem = problem
        dtype = working_dtype(problem.emissions.dtype)
        emissions = token_emissions(problem, dtype).transpose(0, 1).contiguous()  # [T, B, L]
        self.is_token = token_mask(problem).T[:, :, None]  # [T, B, 1]
        transitions = token_transitions(problem, dtype)
        self.maximum = _maximum(transitions)
        self.weights = torch.exp(transitions - self.maximum)
        self.maxima = finite(emissions.amax(2, keepdim=True))  # [T, B, 1]
        self.exp_emissions = torch.exp(emissions - self.maxima)  # U [T, B, L]
        self.forward, self.mass = self._forward()

    def _push(self, message: Tensor, i: int, out: Tensor) -> Tensor:
        """message [B, L] through the transitions out of token i."""
        transitions = transitions_from(self.weights, i)
        if transitions.ndim == 2:
            return torch.mm(message, transitions, out=out)
        torch.bmm(message[:, None], transitions, out=out[:, None])
        return out

    def _pull(self, message: Tensor, i: int, out: Tensor) -> Tensor:
        """message [B, L] back through the transitions out of token i."""
        transitions = transitions_from(self.weights, i)
        if transitions.ndim == 2:
            return torch.mm(message, transitions.T, out=out)
        torch.bmm(transitions, message[:, :, None], out=out[:, :, None])
        return out

    def _forward(self) -> tuple[Tensor, Tensor]:
        """The forward messages [T, B, L] and their sums before they were divided by them [T, B, 1]."""
        forward = self.exp_emissions.clone()
        mass = forward.new_ones((*forward.shape[:2], 1))
        smallest = torch.finfo(forward.dtype).tiny
        before = None
        for i, (new, emissions, total) in enumerate(zip(forward, self.exp_emissions, mass, strict=True)):
            if before is not None:
                self._push(before, i - 1, new).mul_(emissions)
            torch.sum(new, 1, keepdim=True, out=total).clamp_min_(smallest)
            before = new.div_(total)
        return forward, torch.where(mass <= smallest, 0.0, mass)  # NaN stays

    def log_partition(self) -> Tensor:
        scale = self.maxima.double() + torch.log(self.mass.double())
        total = torch.where(self.is_token, scale, 0.0).sum((0, 2))  # [B]
        if self.weights.ndim == 4:
            return total + torch.where(self.is_token[1:, :, 0].T, self.maximum[:, :, 0, 0].double(), 0.0).sum(
                1
            )
        n_transitions = (self.is_token.sum((0, 2)) - 1).clamp_min(0)
        return total + n_transitions * self.maximum.double().reshape(-1)

    def _backward(self) -> Tensor:
        """The backward messages [T, B, L]; fills in `pushed`."""
        backward = torch.ones_like(self.exp_emissions)
        inverse = torch.where(self.is_token & (self.mass > 0), 1.0 / self.mass, 0.0)
        # [T, B, L], 0 in the padding; those of token 0 are not used
        self.pushed = self.exp_emissions * inverse
        off = None if self.problem.lengths is None else (~self.is_token).to(backward.dtype).unbind()
        messages, pushed = backward.unbind(), self.pushed.unbind()
        for i in range(len(messages) - 1, 0, -1):
            self._pull(pushed[i].mul_(messages[i]), i - 1, messages[i - 1])
            if off is not None:
                messages[i - 1].add_(off[i])  # 1 at the last token of a sequence
        return backward

    def emissions(self) -> Tensor:
        if len(self.exp_emissions) == 0:
            self.pushed = self.exp_emissions
            return self.exp_emissions.transpose(0, 1)
        marginals = self._backward().mul_(self.forward)
        if self.problem.lengths is not None:
            marginals = torch.where(self.is_token, marginals, 0.0)
        return marginals.transpose(0, 1).contiguous()

    def transitions(self, weights: Tensor | None) -> Tensor:
        """After `emissions`."""
        left, right = self.forward[:-1], self.pushed[1:]  # [T − 1, B, L]
        if weights is not None:
            right = right * weights.to(right.dtype)[:, None]
        if self.weights.ndim == 4:
            outer = torch.einsum("tba,tbc->btac", left, right)
        elif self.weights.ndim == 3:
            outer = torch.einsum("tba,tbc->bac", left, right)
        else:
            L = left.shape[2]
            outer = left.reshape(-1, L).T @ right.reshape(-1, L)
        return outer * self.weights


class _LogMessages:
    """The messages in log space, in float64: exact with forbidden transitions, and for scores of any size."""

    def __init__(self, problem: ChainProblem) -> None:
        self.problem, self.dtype = problem, working_dtype(problem.emissions.dtype)
        self.emissions_ = token_emissions(problem, torch.float64)  # [B, T, L]
        self.transitions_ = token_transitions(problem, torch.float64)
        self.is_token = token_mask(problem)  # [B, T]
        self.lengths = self.is_token.sum(1)
        self.forward = _log_forward(self.emissions_, self.transitions_, self.is_token)  # T × [B, L]

    def log_partition(self) -> Tensor:
        if not self.forward:
            return self.emissions_.new_zeros(len(self.emissions_))
        return torch.where(self.lengths > 0, torch.logsumexp(self.forward[-1], 1), 0.0)

    def _backward(self) -> list[Tensor]:
        """T × [B, L], last token first."""
        T = len(self.forward)
        backward = [torch.zeros_like(self.forward[0])] if T else []
        for i in range(T - 1, 0, -1):
            pushed = self.emissions_[:, i] + backward[-1]
            earlier = torch.logsumexp(transitions_from(self.transitions_, i - 1) + pushed[:, None, :], 2)
            backward.append(torch.where(self.is_token[:, i, None], earlier, backward[-1]))
        return backward

    def emissions(self) -> Tensor:
        self.backward = self._backward()[::-1]
        self.total = self.log_partition()
        self.possible = self.is_token & (self.total != -torch.inf)[:, None]  # [B, T]
        if not self.forward:
            return self.emissions_.to(self.dtype)
        logs = (
            torch.stack(self.forward, 1) + torch.stack(self.backward, 1) - finite(self.total)[:, None, None]
        )
        return torch.where(self.possible[:, :, None], torch.exp(logs), 0.0).to(self.dtype)

    def transitions(self, weights: Tensor | None) -> Tensor:
        """After `emissions`."""
        sums = torch.zeros_like(self.transitions_)
        for i in range(1, len(self.forward)):
            transitions = transitions_from(self.transitions_, i - 1)
            pushed = self.emissions_[:, i] + self.backward[i] - finite(self.total)[:, None]
            marginals = torch.exp(self.forward[i - 1][:, :, None] + transitions + pushed[:, None, :])
            marginals = torch.where(self.possible[:, i, None, None], marginals, 0.0)
            if weights is not None:
                marginals = marginals * weights[:, None, None]
            if sums.ndim == 4:
                sums[:, i - 1] = marginals
            else:
                sums += marginals.sum(0) if sums.ndim == 2 else marginals
        return sums.to(self.dtype)
