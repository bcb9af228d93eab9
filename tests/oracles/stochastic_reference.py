"""Stochastic descent written out plainly: dense vectors, penalties on all weights at every step, brute-force gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests.oracles.restricted import Problem

Float64s = npt.NDArray[np.float64]
Loss = Callable[[int, Float64s], tuple[float, Float64s]]  # of a sequence at weights [D]: value, gradient [D]


class Averaged(NamedTuple):
    """What a pass of SGD gives."""

    loss: float
    weights: Float64s
    total: Float64s  # the sum of the weights after each step


def soft(x: Float64s, a: Float64s | float) -> Float64s:
    return np.sign(x) * np.maximum(np.abs(x) - a, 0.0)


def enumerated(problem: Problem) -> Loss:
    """Losses and gradients of single sequences, by listing all label sequences; these are listed once."""
    listed: dict[tuple[int, bool], Float64s] = {}

    def counts(n: int, *, gold: bool) -> Float64s:
        if (n, gold) not in listed:
            paths = problem.label_sequences(n)
            if gold:
                positions = range(problem.ptr[n], problem.ptr[n + 1])
                paths = [
                    y for y in paths if all(b in problem.gold[t] for t, b in zip(positions, y, strict=True))
                ]
            listed[n, gold] = np.array([problem.counts(n, y) for y in paths])
        return listed[n, gold]

    def loss(n: int, w: Float64s) -> tuple[float, Float64s]:
        value, gradient = 0.0, np.zeros(len(w))
        for sign, gold in ((1.0, False), (-1.0, True)):
            phi = counts(n, gold=gold)
            scores = phi @ w
            log_z = np.logaddexp.reduce(scores)
            value += sign * float(log_z)
            gradient += sign * (np.exp(scores - log_z) @ phi)
        weight = problem.sample_weight[n]
        return weight * value, weight * gradient

    return loss


def _mix(z: int) -> int:
    """SplitMix64 in whole numbers of 64 bits."""
    top = (1 << 64) - 1
    z = (z + 0x9E3779B97F4A7C15) & top
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & top
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & top
    return z ^ (z >> 31)


def factors(features: npt.NDArray[np.int32], n: int, rate: float, seed: int) -> Float64s:
    """What dropout makes of each weight [D] for sequence n: 0, or 1 / (1 − rate); 1 for weights of no feature."""

    def factor(f: int) -> float:
        if f < 0:
            return 1.0
        drawn = (_mix((_mix(seed + n) + f) % 2**64) >> 11) / 2**53
        return 0.0 if drawn < rate else 1.0 / (1.0 - rate)

    return np.array([factor(int(f)) for f in features])


def dropped(loss: Loss, features: npt.NDArray[np.int32], rate: float, seed: int) -> Loss:
    """The loss of sequences that are seen without some of their features."""

    def noisy(n: int, w: Float64s) -> tuple[float, Float64s]:
        factor = factors(features, n, rate, seed)
        value, gradient = loss(n, w * factor)
        return value, gradient * factor

    return noisy


def batches(order: npt.NDArray[np.int32], batch: int) -> list[npt.NDArray[np.int32]]:
    return [order[k : k + batch] for k in range(0, len(order), batch)]


def sgd(
    loss: Loss,
    n: int,
    w: Float64s,
    order: npt.NDArray[np.int32],
    rates: Float64s,
    *,
    l1: Float64s | float,
    l2: Float64s | float,
    batch: int,
) -> Averaged:
    total, value = np.zeros(len(w)), 0.0
    for sequences, rate in zip(batches(order, batch), rates, strict=True):
        met = [loss(int(i), w) for i in sequences]
        value += sum(v for v, _ in met)
        share = rate * len(sequences) / n
        w = soft(w - rate * np.sum([g for _, g in met], axis=0), share * l1) / (1 + share * l2)
        total += w
    return Averaged(value, w, total)


def adagrad(
    loss: Loss,
    n: int,
    w: Float64s,
    orders: list[npt.NDArray[np.int32]],
    rate: float,
    *,
    l1: Float64s | float,
    l2: Float64s | float,
    batch: int,
) -> tuple[list[float], Float64s]:
    """The leader of all steps: w minimises Σ g·w + Σ ½ σ |w − w_s|² + the penalties so far, each σ by how √G grew."""
    squares, passes = np.ones(len(w)), 0.0
    gradients, pulls, centres = np.zeros(len(w)), np.sqrt(squares) / rate, np.sqrt(squares) / rate * w
    losses = []
    for order in orders:
        losses.append(0.0)
        for sequences in batches(order, batch):
            met = [loss(int(i), w) for i in sequences]
            losses[-1] += sum(v for v, _ in met)
            g = np.sum([g for _, g in met], axis=0)
            pull = (np.sqrt(squares + g**2) - np.sqrt(squares)) / rate
            squares = squares + g**2
            gradients, pulls, centres = gradients + g, pulls + pull, centres + pull * w
            passes += len(sequences) / n
            w = soft(centres - gradients, l1 * passes) / (pulls + l2 * passes)
    return losses, w


class SAGReference:
    """The stochastic average gradient with gradients [N, D] kept as they are."""

    def __init__(self, loss: Loss, n: int, w: Float64s, l2: Float64s | float) -> None:
        self.loss, self.n, self.w, self.l2 = loss, n, w, l2
        self.gradients = np.zeros((n, len(w)))
        self.lipschitz, self.losses = np.zeros(n), np.zeros(n)
        self.pause, self.streak = np.zeros(n), np.zeros(n)

    def drawn(self, half: float, uniform: float) -> int:
        if half < 0.5 or not self.lipschitz.any():
            return min(self.n - 1, int(uniform * self.n))
        return int(np.searchsorted(np.cumsum(self.lipschitz), uniform * self.lipschitz.sum(), side="right"))

    def step(self, i: int) -> None:
        value, gradient = self.loss(i, self.w)
        seen = self.lipschitz > 0
        if not seen[i]:
            self.lipschitz[i] = self.lipschitz[seen].mean() if seen.any() else 1.0
        self.gradients[i], self.losses[i] = gradient, value
        self.search(i, value, gradient)
        seen = self.lipschitz > 0
        strongest = np.max(self.l2) / self.n
        rate = 0.5 / (self.lipschitz.max() + strongest) + 0.5 / (self.lipschitz[seen].mean() + strongest)
        self.w = (1 - rate * self.l2 / self.n) * self.w - rate / seen.sum() * self.gradients.sum(axis=0)

    def search(self, i: int, value: float, gradient: Float64s) -> None:
        if self.pause[i] > 0:
            self.pause[i] -= 1
            return
        slope = gradient @ gradient
        if slope <= 1e-8:
            return
        self.lipschitz[i] *= 0.9
        doublings = 0
        while (
            self.loss(i, self.w - gradient / self.lipschitz[i])[0] > value - 0.5 * slope / self.lipschitz[i]
        ):
            self.lipschitz[i] *= 2
            doublings += 1
        self.streak[i] = min(self.streak[i] + 1, 10) if doublings == 0 else 0
        self.pause[i] = 2 ** self.streak[i] - 1
