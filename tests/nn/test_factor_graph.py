"""`crfkit.nn.FactorGraphDistribution` by exact inference, against brute force and `crfkit.inference`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import crfkit
from crfkit import FactorGraph, inference
from crfkit.errors import ArgumentError, LabelError, ShapeError, SizeLimitError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import FactorGraphDistribution
from crfkit.nn.backends import core_elimination, torch_elimination
from crfkit.nn.problem.factor_graph import read_problem
from tests.nn.graph_batches import GraphBatch, draw_batch, mixed_graph
from tests.oracles.factor_graphs import SHAPES

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}


def check_variables(found: Any, expected: list[Any], tolerance: float) -> None:
    """Probabilities [V, L] of one element, 0 beyond the values of a variable."""
    for v, numbers in enumerate(expected):
        np.testing.assert_allclose(found[v, : len(numbers)], numbers, rtol=0, atol=tolerance)
        assert (found[v, len(numbers) :] == 0).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_those_of_enumeration(shape: str, dtype: Any) -> None:
    tolerance = TOLERANCE[dtype]
    for seed in range(3):
        batch = draw_batch(seed, shape, impossible=0.2 * (seed % 2))
        graphs = batch.distribution(dtype)
        log_z, values, factors = graphs.log_partition(), graphs.marginals(), graphs.factor_marginals()
        entropy = graphs.entropy()
        assert log_z.dtype == values.dtype == entropy.dtype == dtype
        for b, oracle in enumerate(batch.oracles):
            np.testing.assert_allclose(log_z[b], oracle.log_partition, rtol=tolerance, atol=tolerance)
            if oracle.log_partition == -np.inf:
                assert not values[b].any()
                continue
            np.testing.assert_allclose(entropy[b], oracle.entropy, rtol=0, atol=tolerance)
            check_variables(values[b], oracle.of_variables, tolerance)
            for found, expected in zip(factors, oracle.of_factors(oracle.marginals), strict=True):
                np.testing.assert_allclose(found[b], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES)
def test_single_assignments_are_those_of_enumeration(shape: str) -> None:
    for seed in range(3):
        batch = draw_batch(seed, shape, impossible=0.2 * (seed % 2))
        graphs = batch.distribution()
        best, (scores, outputs) = graphs.argmax(), graphs.topk(3)
        oracles = batch.oracles
        some = [oracle.outputs[-1] if oracle.outputs else (0,) * len(batch.counts) for oracle in oracles]
        chosen = torch.tensor(some)
        partial = chosen.clone()
        partial[:, 1:] = -100
        whole, part = graphs.log_prob(chosen), graphs.log_prob(partial)
        for b, oracle in enumerate(oracles):
            ranked = np.sort(oracle.scores)[::-1]
            if not oracle.outputs:
                assert (best[b] == -1).all()
                assert (outputs[b] == -1).all()
                continue
            assert oracle.scores[oracle.outputs.index(tuple(best[b].tolist()))] == pytest.approx(ranked[0])
            np.testing.assert_allclose(scores[b, : len(ranked)], ranked[:3], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(whole[b], oracle.log_probability(oracle.outputs[-1]), atol=1e-10)
            agree = [y[0] == oracle.outputs[-1][0] for y in oracle.outputs]
            np.testing.assert_allclose(part[b], np.log(oracle.probabilities[agree].sum()), atol=1e-10)


def test_samples_have_the_frequencies_of_the_marginals() -> None:
    batch = draw_batch(3, "loop", impossible=0.1)
    graphs = batch.distribution()
    draws = graphs.sample(4_000, generator=torch.Generator().manual_seed(0))
    assert draws.shape == (4_000, 3, len(batch.counts))
    possible = torch.isfinite(graphs.log_partition())
    shares = torch.nn.functional.one_hot(draws.clamp_min(0), max(batch.counts)).double().mean(0)
    torch.testing.assert_close(shares[possible], graphs.marginals()[possible], rtol=0, atol=0.04)
    assert (draws[:, ~possible] == -1).all()


def test_factors_that_are_no_tables() -> None:
    """Lists, counts and equality, with scores of their own, as `crfkit.inference` has them."""
    graph, given = mixed_graph(2)
    graphs = FactorGraphDistribution(graph, [torch.tensor(part) for part in given])
    outputs = torch.zeros(2, len(graph.variables), dtype=torch.int64)
    draws, best = graphs.sample(4), graphs.argmax()
    for b in range(2):
        own = [part[b] for part in given]
        scores = [own.pop(0) if factor.scores.size else factor.scores for factor in graph.factors]
        np.testing.assert_allclose(
            graphs.log_partition()[b], inference.log_partition(graph, scores), rtol=1e-12
        )
        np.testing.assert_allclose(graphs.entropy()[b], inference.entropy(graph, scores), rtol=1e-10)
        expected = inference.marginals(graph, scores)
        check_variables(graphs.marginals()[b], [expected[v.name] for v in graph.variables], 1e-12)
        parts = [
            part for part, factor in zip(expected.factors, graph.factors, strict=True) if factor.scores.size
        ]
        for found, part in zip(graphs.factor_marginals(), parts, strict=True):
            np.testing.assert_allclose(found[b], part, rtol=0, atol=1e-12)
        assert best[b].tolist() == inference.decode(graph, scores).output.ids.tolist()
        outputs[b] = draws[0, b]
        value = inference.log_probability(graph, scores, output=outputs[b].numpy())
        np.testing.assert_allclose(graphs.log_prob(outputs)[b], value, rtol=1e-10)


def test_gradients_of_log_partition_are_the_marginals() -> None:
    batch = draw_batch(1, "grid", impossible=0.1)
    graphs = batch.distribution(requires_grad=True)
    log_z = graphs.log_partition()
    found = torch.autograd.grad(log_z[torch.isfinite(log_z)].sum(), graphs._given)
    for slope, probability in zip(found, graphs.factor_marginals(), strict=True):
        torch.testing.assert_close(slope, probability.detach(), rtol=0, atol=1e-12)


def test_gradients_and_second_gradients_by_differences() -> None:
    batch = draw_batch(2, "loop")
    outputs = torch.tensor([[-1] + [0] * (len(batch.counts) - 1)] * 3)
    scores = batch.tensors(torch.float64, requires_grad=True)

    def answers(*scores: Any) -> Any:
        graphs = FactorGraphDistribution(batch.graph, scores)
        return (
            graphs.log_partition(),
            graphs.entropy(),
            graphs.marginals()[:, 0],
            graphs.topk(2)[0],
            graphs.log_prob(outputs),
        )

    assert torch.autograd.gradcheck(answers, scores, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda *scores: answers(*scores)[0], scores, fast_mode=True)


def test_impossible_elements_have_finite_gradients() -> None:
    batch = draw_batch(0, "tree")
    batch.scores[0][1] = -np.inf
    graphs = batch.distribution(requires_grad=True)
    log_z = graphs.log_partition()
    assert log_z[1] == -torch.inf
    assert graphs.sample(2)[:, 1].eq(-1).all()
    (log_z + graphs.entropy())[[0, 2]].sum().backward()
    graphs.log_prob(graphs.argmax().clamp_min(0))[[0, 2]].sum().backward()
    assert all(torch.isfinite(part.grad).all() for part in graphs._given)


def test_divergence() -> None:
    one, other = (draw_batch(4, "loop", scale=scale) for scale in (1.0, 0.5))
    found = one.distribution().kl(other.distribution())
    for b, (p, q) in enumerate(zip(one.oracles, other.oracles, strict=True)):
        log_q = [q.log_probability(y) for y in q.outputs]
        expected = sum(a * (np.log(a) - c) for a, c in zip(p.probabilities, log_q, strict=True))
        np.testing.assert_allclose(found[b], expected, rtol=1e-9)
    with pytest.raises(ShapeError, match="kl"):
        one.distribution().kl(draw_batch(4, "grid").distribution())


@pytest.mark.parametrize("method", ["exact", "belief_propagation"])
@pytest.mark.parametrize("B", [0, 1])
def test_batches_of_none_and_one(B: int, method: Any) -> None:
    batch = draw_batch(5, "tree", B=B)
    graphs = FactorGraphDistribution(
        batch.graph, batch.tensors(torch.float64, requires_grad=True), method=method
    )
    V = len(batch.counts)
    assert graphs.log_partition().shape == graphs.entropy().shape == graphs.converged.shape == (B,)
    assert graphs.marginals().shape == (B, V, max(batch.counts))
    assert graphs.argmax().shape == (B, V)
    assert graphs.log_prob(torch.zeros(B, V, dtype=torch.int64)).shape == (B,)
    if method == "exact":
        assert graphs.sample(2).shape == (2, B, V)
        assert graphs.topk(2)[1].shape == (B, 2, V)


def test_half_precision_is_summed_in_float32() -> None:
    batch = draw_batch(6, "loop")
    graphs = batch.distribution(torch.bfloat16)
    exact = FactorGraphDistribution(batch.graph, [part.double() for part in graphs._given])
    assert graphs.log_partition().dtype == torch.float32
    torch.testing.assert_close(graphs.log_partition().double(), exact.log_partition(), rtol=1e-5, atol=1e-5)


def test_bad_arguments() -> None:
    graph, zeros = GraphBatch([2, 3], [(0, 1)], [np.zeros((1, 2, 3))]).graph, torch.zeros(1, 2, 3)
    for scores, message in (
        (zeros, "list of tensors"),
        ([], "got 0 tensors"),
        ([zeros.long()], "floating-point"),
        ([torch.zeros(2, 3)], r"scores\[0\].*shape \[2, 3\], expected \[2, 2, 3\]"),
    ):
        with pytest.raises(ShapeError, match=message):
            FactorGraphDistribution(graph, scores)
    with pytest.raises(ArgumentError, match="expected a crfkit"):
        FactorGraphDistribution([], [zeros])  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="the graph has none"):
        FactorGraphDistribution(crfkit.FactorGraph(), [])
    graphs = FactorGraphDistribution(graph, [zeros])
    with pytest.raises(ShapeError, match="outputs"):
        graphs.log_prob(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(LabelError, match=r"outputs\[0\], variable '0': got the value id 2, expected 0 … 1"):
        graphs.log_prob(torch.tensor([[2, 0]]))


def test_what_does_not_fit_is_an_error_that_says_the_size() -> None:
    n = 30
    pairs: list[tuple[int, ...]] = [(u, v) for v in range(n) for u in range(v)]
    whole = GraphBatch([4] * n, pairs, [np.zeros((1, 4, 4))] * len(pairs))
    with pytest.raises(SizeLimitError, match=f"width {n - 1}"):
        whole.distribution()
    small = draw_batch(0, "grid")
    with pytest.raises(
        SizeLimitError, match=r"width \d, the largest clique has .* batch of 3 .*memory_limit"
    ):
        FactorGraphDistribution(small.graph, small.tensors(torch.float64), memory_limit=100)


def with_count() -> FactorGraph:
    """A cycle of four variables, of which two have the value 1."""
    graph = FactorGraph.from_arrays(
        [2, 3, 2, 2],
        [(0, 1), (1, 2), (2, 3), (0, 3)],
        [np.zeros((2, 3)), np.zeros((3, 2))] + [np.zeros((2, 2))] * 2,
    )
    graph.count(range(4), np.zeros(5))
    return graph


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_core_and_plain_pytorch_agree(dtype: Any) -> None:
    graph = with_count()
    generator = torch.Generator().manual_seed(0)
    given = [
        torch.randn(3, *factor.scores.shape, generator=generator, dtype=dtype) for factor in graph.factors
    ]
    given[0][1] = -torch.inf  # no assignment is possible
    given[1][2, 0, 1] = -torch.inf
    problem = read_problem(graph, given)
    assert core_elimination.suits(problem)
    results = []
    for log_partition in (core_elimination.log_partition, torch_elimination.log_partition):
        scores = problem.scores.clone().requires_grad_()
        log_z = log_partition(problem._replace(scores=scores))
        weights = torch.tensor([1.0, 0.0, 2.0], dtype=dtype)
        (gradient,) = torch.autograd.grad((torch.where(log_z.isinf(), 0.0, log_z) * weights).sum(), scores)
        results.append((log_z.detach(), gradient))
    near = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    torch.testing.assert_close(results[0], results[1], **near)
    found = core_elimination.expectations(problem)
    others = torch_elimination.expectations(problem, False)
    torch.testing.assert_close(found.values, others.values, **near)
    torch.testing.assert_close(found.scores, others.scores, **near)


def test_second_derivatives_by_the_core() -> None:
    graph = with_count()
    generator = torch.Generator().manual_seed(1)
    given = [
        torch.randn(2, *factor.scores.shape, generator=generator, dtype=torch.float64)
        for factor in graph.factors
    ]
    problem = read_problem(graph, given)
    finite = problem.scores > -torch.inf

    def log_z(scores: Any) -> Any:
        return core_elimination.log_partition(
            problem._replace(scores=torch.where(finite, scores, -torch.inf))
        )

    start = torch.where(finite, problem.scores, 0.0).requires_grad_()
    assert torch.autograd.gradcheck(log_z, start)
    assert torch.autograd.gradgradcheck(log_z, start)


def test_scores_that_the_core_does_not_take() -> None:
    graph = with_count()
    given = [torch.zeros(1, *factor.scores.shape) for factor in graph.factors]
    given[0][0, 0, 0] = torch.nan
    assert not core_elimination.suits(read_problem(graph, given))
    assert FactorGraphDistribution(graph, given).log_partition().isnan().all()
