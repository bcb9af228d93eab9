"""A structure of one's own: a second-order chain as a path graph gets every question.

    score(y) = Σ_t emissions[t, y_t] + Σ_{t ≥ 2} triples[y_{t−2}, y_{t−1}, y_t]

A node is the pair of the last two labels, so that an arc knows three.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest

from crfkit import inference
from crfkit.structures import PathGraph
from tests.oracles.oracle import Enumeration, Floats, Output


class SecondOrderChain:
    """The graph of T positions and L labels, and the part that each of its arcs stands for."""

    def __init__(self, emissions: Floats, triples: Floats) -> None:
        T, L = emissions.shape
        self.oracle = enumerate_outputs(emissions, triples)
        nodes: dict[tuple[int, ...], int] = {(): 0}  # history (t, labels before, last) → node
        arcs: list[tuple[int, int]] = []
        scores, self.labels = [], []
        level: list[tuple[int, ...]] = [()]  # histories: at most two labels
        for t in range(T):
            reached = {(t, *(*history[1:], b)[-2:]) for history in level for b in range(L)}
            nodes |= {history: len(nodes) + i for i, history in enumerate(sorted(reached))}
            for history, b in itertools.product(level, range(L)):
                before = history[1:]
                arcs.append((nodes[history], nodes[t, *(*before, b)[-2:]]))
                scores.append(emissions[t, b] + (triples[*before, b] if len(before) == 2 else 0.0))
                self.labels.append(b)
            level = sorted(reached)
        arcs += [(nodes[history], len(nodes)) for history in level]  # into END
        self.scores = np.array([*scores, *[0.0] * len(level)])
        self.graph = PathGraph(len(nodes) + 1, [a for a, _ in arcs], [b for _, b in arcs])
        self.n_positions = T

    def output(self, path: npt.NDArray[np.int32]) -> Output:
        """The labels of a path."""
        return tuple(self.labels[arc] for arc in path[: self.n_positions])

    def label_marginals(self, of_arcs: Floats, L: int) -> Floats:
        """Numbers of arcs, summed by position and label [T, L]."""
        out, levels = np.zeros((self.n_positions, L)), {0: -1}
        for arc, (source, target) in enumerate(zip(self.graph.sources, self.graph.targets, strict=True)):
            levels[int(target)] = levels[int(source)] + 1
            if arc < len(self.labels):
                out[levels[int(target)], self.labels[arc]] += of_arcs[arc]
        return out


def enumerate_outputs(emissions: Floats, triples: Floats) -> Enumeration:
    """Every label sequence; its parts are emissions [T, L], then triples [L, L, L], which may occur twice."""
    T, L = emissions.shape
    numbers = np.arange(L**3).reshape(L, L, L) + T * L

    def outputs() -> itertools.chain[tuple[Output, list[int]]]:
        return itertools.chain(
            (y, [t * L + b for t, b in enumerate(y)] + [int(numbers[y[t - 2 : t + 1]]) for t in range(2, T)])
            for y in itertools.product(range(L), repeat=T)
        )

    return Enumeration(outputs(), np.concatenate([emissions.ravel(), triples.ravel()]))


@pytest.mark.parametrize(("T", "L"), [(1, 3), (2, 3), (5, 3), (4, 4)])
def test_second_order_chain(T: int, L: int) -> None:
    random = np.random.default_rng([T, L])
    emissions, triples = random.normal(size=(T, L)), random.normal(size=(L, L, L))
    triples[0, 1, 2] = -math.inf  # a triple of labels that does not exist
    chain = SecondOrderChain(emissions, triples)
    asked, oracle = (chain.graph, chain.scores), chain.oracle

    assert inference.log_partition(*asked) == pytest.approx(oracle.log_partition, rel=1e-12)
    probs = inference.marginals(*asked)
    expected = oracle.marginals[: T * L].reshape(T, L)
    np.testing.assert_allclose(chain.label_marginals(probs, L), expected, rtol=0, atol=1e-12)
    assert inference.entropy(*asked) == pytest.approx(oracle.entropy, rel=1e-11)

    direction, moves = np.zeros(T * L + L**3), random.normal(size=(T, L))
    direction[: T * L] = moves.ravel()
    by_arc = np.zeros(len(chain.scores))
    for path in inference.k_best(*asked, len(oracle.outputs) + 1):
        by_arc[path.output[:T]] = moves[np.arange(T), chain.output(path.output)]
    changes = chain.label_marginals(inference.hessian_vector(*asked, by_arc), L)
    expected = oracle.hessian_vector(direction)[: T * L].reshape(T, L)
    np.testing.assert_allclose(changes, expected, rtol=0, atol=1e-12)

    best = inference.decode(*asked)
    assert chain.output(best.output) in oracle.best_outputs(1e-12)
    found = inference.k_best(*asked, len(oracle.outputs) + 1)
    assert [chain.output(path.output) for path in found] == [y for _, y in oracle.k_best]
    for path in found[:5]:
        assert path.score == pytest.approx(oracle.score(chain.output(path.output)), rel=1e-12)
        assert inference.score(*asked, path.output) == pytest.approx(path.score, rel=1e-12)
        log_p = inference.log_probability(*asked, path.output)
        assert log_p == pytest.approx(oracle.log_probability(chain.output(path.output)), abs=1e-12)
        assert inference.parts(chain.graph, path.output) @ np.nan_to_num(chain.scores) == pytest.approx(
            path.score
        )

    drawn = [chain.output(path) for path in inference.sample(*asked, 2000, random_state=1)]
    seen = np.array([drawn.count(y) / 2000 for y in oracle.outputs])
    p = oracle.probabilities
    assert sum(seen) == pytest.approx(1.0)
    assert np.all(np.abs(seen - p) <= 5.0 * np.sqrt(p * (1 - p) / 2000) + 5.0 / 2000)
