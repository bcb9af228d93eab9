"""`crfkit.nn.FactorGraphDistribution` by belief propagation: exact on trees, on loops the core's fixed points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit import FactorGraph, inference
from crfkit.errors import ArgumentError, UnsupportedError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import FactorGraphDistribution
from tests.nn.graph_batches import draw_batch, mixed_graph

BP: dict[str, Any] = {"method": "belief_propagation"}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("shape", ["tree", "disconnected", "clique", "single"])
def test_trees_are_exact(shape: str, dtype: Any, tolerance: float) -> None:
    for seed in range(3):
        batch = draw_batch(seed, shape, impossible=0.25 * (seed % 2))
        graphs = batch.distribution(dtype, **BP, tolerance=1e-12 if dtype == torch.float64 else 1e-6)
        exact = batch.distribution(torch.float64)
        log_z, expected = graphs.log_partition().double(), exact.log_partition()
        torch.testing.assert_close(log_z, expected, rtol=tolerance, atol=tolerance)
        assert graphs.converged.all()
        for one, other in zip(
            [graphs.marginals(), *graphs.factor_marginals()],
            [exact.marginals(), *exact.factor_marginals()],
            strict=True,
        ):
            torch.testing.assert_close(one.double(), other, rtol=0, atol=tolerance)
        possible = torch.isfinite(expected)
        torch.testing.assert_close(
            graphs.entropy().double()[possible], exact.entropy()[possible], rtol=0, atol=tolerance
        )
        best = graphs.argmax()
        torch.testing.assert_close(
            exact.log_prob(best.clamp_min(0))[possible], exact.log_prob(exact.argmax().clamp_min(0))[possible]
        )
        assert (best[~possible] == -1).all()


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("shape", ["loop", "grid", "random"])
def test_loops_have_the_fixed_point_of_the_core(shape: str, damping: float) -> None:
    for seed in range(2):
        batch = draw_batch(seed, shape, impossible=0.1 * seed)
        graphs = batch.distribution(**BP, tolerance=1e-13, damping=damping, max_iterations=500)
        log_z, values, factors = graphs.log_partition(), graphs.marginals(), graphs.factor_marginals()
        for b in range(3):
            counts, tables = batch.element(b)
            graph = FactorGraph.from_arrays(counts, [scope for scope, _ in tables], [t for _, t in tables])
            if inference.log_partition(graph) == -np.inf:
                continue
            expected = inference.belief_propagation(graph, tolerance=1e-13)
            assert bool(graphs.converged[b]) == expected.converged is True
            np.testing.assert_allclose(log_z[b], expected.log_partition, rtol=1e-10, atol=1e-10)
            for v, count in enumerate(counts):
                np.testing.assert_allclose(values[b, v, :count], expected.marginals[str(v)], atol=1e-10)
            for found, part in zip(factors, expected.marginals.factors, strict=True):
                np.testing.assert_allclose(found[b], part, atol=1e-10)


def test_factors_that_are_no_tables() -> None:
    """A whole assignment leaves no sum to approximate: its score is exact, log Z is Bethe's."""
    graph, given = mixed_graph(2)
    scores = [torch.tensor(part) for part in given]
    graphs = FactorGraphDistribution(graph, scores, **BP, max_iterations=15)
    exact = FactorGraphDistribution(graph, scores)
    best = exact.argmax()
    found, expected = (one.log_prob(best) + one.log_partition() for one in (graphs, exact))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_the_gradient_at_a_fixed_point_is_the_beliefs() -> None:
    batch = draw_batch(1, "grid", impossible=0.05)
    graphs = batch.distribution(requires_grad=True, **BP, tolerance=1e-14, max_iterations=300)
    log_z = graphs.log_partition()
    assert torch.isfinite(log_z).all()
    found = torch.autograd.grad(log_z.sum(), graphs._given)
    for slope, belief in zip(found, graphs.factor_marginals(), strict=True):
        torch.testing.assert_close(slope, belief.detach(), rtol=0, atol=1e-8)


def test_gradients_of_a_few_iterations_by_differences() -> None:
    batch = draw_batch(2, "loop")
    outputs = torch.tensor([[-1] + [0] * (len(batch.counts) - 1)] * 3)

    def answers(*scores: Any) -> Any:
        graphs = FactorGraphDistribution(
            batch.graph, scores, **BP, tolerance=0, max_iterations=3, damping=0.2
        )
        assert not graphs.converged.any()
        return graphs.log_partition(), graphs.entropy(), graphs.marginals()[:, 0], graphs.log_prob(outputs)

    scores = batch.tensors(torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(answers, scores, fast_mode=True)


def test_elements_do_not_depend_on_each_other() -> None:
    """One converges, the other does not; it stays as it is while the other goes on."""
    counts, pairs = [2] * 4, [(u, v) for v in range(4) for u in range(v)]
    attracted = torch.tensor([[0.4, -0.2], [0.0, 0.3]], dtype=torch.float64)
    repelled = torch.tensor([[-1.0, 1.0], [1.0, -1.2]], dtype=torch.float64)
    graph = FactorGraph.from_arrays(counts, pairs, [np.zeros((2, 2))] * len(pairs))
    options = {**BP, "max_iterations": 50, "tolerance": 1e-3}
    both = FactorGraphDistribution(graph, [torch.stack([attracted, repelled])] * len(pairs), **options)
    assert both.converged.tolist() == [True, False]
    for b, scores in enumerate([attracted, repelled]):
        alone = FactorGraphDistribution(graph, [scores[None]] * len(pairs), **options)
        torch.testing.assert_close(alone.log_partition()[0], both.log_partition()[b])
        torch.testing.assert_close(alone.marginals()[0], both.marginals()[b])


def test_impossible_elements_have_finite_gradients() -> None:
    batch = draw_batch(0, "tree")
    batch.scores[0][1] = -np.inf
    graphs = batch.distribution(requires_grad=True, **BP, damping=0.1)
    log_z = graphs.log_partition()
    assert log_z[1] == -torch.inf
    assert not graphs.marginals()[1].any()
    (log_z + graphs.entropy())[[0, 2]].sum().backward()
    assert all(torch.isfinite(part.grad).all() for part in graphs._given)


def test_bad_arguments() -> None:
    batch = draw_batch(0, "tree")
    wrong: tuple[dict[str, Any], ...] = (
        {"damping": 1.0},
        {"tolerance": -1.0},
        {"max_iterations": 0},
        {"max_iterations": 40.0},
    )
    for options in wrong:
        with pytest.raises(ArgumentError, match=next(iter(options))):
            batch.distribution(**BP, **options)
    with pytest.raises(ArgumentError, match="method is 'other'"):
        batch.distribution(method="other")
    graphs = batch.distribution(**BP)
    for question in (lambda: graphs.sample(1), lambda: graphs.topk(1), lambda: graphs.kl(graphs)):
        with pytest.raises(UnsupportedError, match=r"expected method=.exact"):
            question()
