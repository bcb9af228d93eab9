"""`crfkit.nn.TreeDistribution` against brute force, with the native core and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.errors import ArgumentError, ShapeError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import TreeDistribution
from crfkit.nn.backends import core
from tests.oracles.oracle import TreeOracle

LENGTHS = [3, 0, 1, 2, 3]
TOLERANCE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(params=["core", "determinant"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With the core, and as where it was not built."""
    if request.param == "determinant":
        monkeypatch.setattr(core, "core_is_there", lambda: False)
    return request.param


@pytest.fixture(params=[True, False], ids=["single root", "any roots"])
def single_root(request: pytest.FixtureRequest) -> Any:
    return request.param


def scores(seed: int = 0) -> Any:
    """Five sentences of up to 3 words; in the last one, arcs are forbidden."""
    given = 2 * np.random.default_rng(seed).standard_normal((5, 4, 4))
    given[4, 1, 2] = given[4, 0, 1] = -np.inf
    return given


def oracles(given: Any, single_root: bool) -> list[TreeOracle]:
    return [TreeOracle(given[b, : n + 1, : n + 1], single_root) for b, n in enumerate(LENGTHS)]


def distribution(given: Any, single_root: bool, dtype: Any = torch.float64) -> TreeDistribution:
    return TreeDistribution(
        torch.tensor(given, dtype=dtype), lengths=torch.tensor(LENGTHS), single_root=single_root
    )


def test_log_partition_marginals_and_entropy(single_root: bool) -> None:
    given = scores()
    trees = distribution(given, single_root)
    log_z, marginals, entropy = trees.log_partition(), trees.marginals(), trees.entropy()
    for b, oracle in enumerate(oracles(given, single_root)):
        size = LENGTHS[b] + 1
        np.testing.assert_allclose(log_z[b], oracle.log_partition, **TOLERANCE)
        expected = np.zeros((4, 4))
        expected[:size, :size] = oracle.marginals.reshape(size, size)
        np.testing.assert_allclose(marginals[b], expected, **TOLERANCE)
        np.testing.assert_allclose(entropy[b], oracle.entropy, **TOLERANCE)


def test_best_trees(single_root: bool) -> None:
    for seed in range(20):
        given = scores(seed)
        best = distribution(given, single_root).argmax().numpy()
        for b, oracle in enumerate(oracles(given, single_root)):
            assert tuple(best[b, : LENGTHS[b]].tolist()) in oracle.best_outputs(1e-9)
            assert (best[b, LENGTHS[b] :] == -1).all()


def test_scores_of_the_k_best_lead_back_to_the_arcs(single_root: bool) -> None:
    """Trees that do not exist have the score −inf, as without a gradient."""
    given = torch.tensor(scores()).requires_grad_()
    trees = TreeDistribution(given, lengths=torch.tensor(LENGTHS), single_root=single_root)
    found, heads = trees.topk(3)
    with torch.no_grad():
        torch.testing.assert_close(found.detach(), trees.topk(3)[0])
    [gradient] = torch.autograd.grad(found.nan_to_num(neginf=0.0).sum(), [given])
    counts = (
        torch.nn.functional.one_hot(heads.clamp_min(0), 4) * (heads >= 0)[..., None]
    )  # [B, k, words, heads]
    torch.testing.assert_close(gradient[:, :, 1:], counts.sum(1).mT.double())
    assert (gradient[:, :, 0] == 0).all()


def test_log_probabilities_of_known_and_of_some_heads(single_root: bool) -> None:
    given = scores()
    heads = torch.full((5, 3), -100)
    whole, half = np.zeros(5), np.zeros(5)
    for b, oracle in enumerate(oracles(given, single_root)):
        chosen = oracle.outputs[-1]
        heads[b, : LENGTHS[b]] = torch.tensor(chosen, dtype=torch.int64)
        whole[b] = oracle.log_probability(chosen)
        agree = [y[:1] == chosen[:1] for y in oracle.outputs]
        half[b] = np.log(oracle.probabilities[agree].sum())
    np.testing.assert_allclose(distribution(given, single_root).log_prob(heads), whole, **TOLERANCE)
    heads[:, 1:] = -100
    np.testing.assert_allclose(distribution(given, single_root).log_prob(heads), half, **TOLERANCE)


def test_gradients_and_second_gradients_by_differences(single_root: bool) -> None:
    given = torch.randn(
        2, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()

    def answers(scores: Any) -> Any:
        trees = TreeDistribution(scores, lengths=torch.tensor([3, 2]), single_root=single_root)
        return trees.log_partition(), trees.entropy()

    assert torch.autograd.gradcheck(answers, [given])
    assert torch.autograd.gradgradcheck(lambda scores: answers(scores)[0], [given], fast_mode=True)


def test_sentences_without_a_tree(single_root: bool) -> None:
    given = torch.zeros(2, 3, 3)
    given[0, 0] = -torch.inf
    trees = TreeDistribution(given.requires_grad_(), single_root=single_root)
    value = trees.log_partition()
    assert value[0] == -torch.inf
    value[1].backward()
    assert torch.isfinite(given.grad).all()


@pytest.mark.parametrize("given", ["no words", "no tree", "far apart", "rather far"])
def test_answers_with_a_gradient_where_a_determinant_has_none(
    given: str, single_root: bool, path: str
) -> None:
    """The same as without one, and finite derivatives."""
    if given == "rather far" and path == "determinant":
        pytest.skip("without the core nothing tells how many digits are left")
    scores = torch.zeros(2, 1 if given == "no words" else 4, 1 if given == "no words" else 4)
    if given == "no tree":
        scores[0, 0] = -torch.inf
    elif given == "far apart":
        scores = 1e4 * torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(1))
        scores[0, 0, 2:] = -torch.inf
    elif given == "rather far":  # few digits are left, and few are too few
        scores = 100 * torch.randn(200, 5, 5, generator=torch.Generator().manual_seed(2))
    scores.requires_grad_()
    trees = TreeDistribution(scores, single_root=single_root)
    with torch.no_grad():
        expected = [trees.log_partition(), trees.marginals(), trees.entropy()]
    found = [trees.log_partition(), trees.marginals(), trees.entropy()]
    for mine, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(mine.detach(), plain, atol=1e-4, rtol=1e-5)
    [gradient] = torch.autograd.grad(found[0].nan_to_num(neginf=0.0).sum(), [scores], create_graph=True)
    total = sum((part**2).sum() for part in (gradient, *found[1:]))
    [second] = torch.autograd.grad(total, [scores])
    assert torch.isfinite(second).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_less_precise_scores(dtype: Any, single_root: bool) -> None:
    given = scores()
    found = distribution(given, single_root, dtype)
    exact = distribution(torch.tensor(given, dtype=dtype).double().numpy(), single_root)
    assert found.log_partition().dtype == torch.float32
    np.testing.assert_allclose(found.log_partition(), exact.log_partition(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.marginals(), exact.marginals(), atol=1e-6)


def test_the_k_best_trees_are_all_trees_in_order(single_root: bool) -> None:
    given = scores()
    found, heads = distribution(given, single_root).topk(20)  # there are at most 16
    assert found.shape == (5, 20)
    for b, oracle in enumerate(oracles(given, single_root)):
        size, count = LENGTHS[b] + 1, len(oracle.outputs)
        trees = [tuple(y) for y in heads[b, :, : size - 1].tolist()]
        assert sorted(trees[:count]) == sorted(map(tuple, oracle.outputs))
        expected = [given[b, list(y), range(1, size)].sum() for y in trees[:count]]
        np.testing.assert_allclose(found[b, :count], expected, **TOLERANCE)
        assert (found[b, :count].diff() <= 1e-12).all()
        assert (found[b, count:] == -torch.inf).all()
        assert (heads[b, count:] == -1).all()
        assert (heads[b, :, size - 1 :] == -1).all()


def test_the_k_best_trees_of_longer_sentences(single_root: bool) -> None:
    from crfkit.inference import TreeBatch
    from crfkit.structures import SpanningTree

    given = np.random.default_rng(0).standard_normal((2, 9, 9))
    found, _ = TreeDistribution(torch.tensor(given), single_root=single_root).topk(5)
    exact = TreeBatch(SpanningTree(single_root), given, [8, 8]).k_best(5)
    np.testing.assert_allclose(found, [[tree.score for tree in trees] for trees in exact], **TOLERANCE)


def test_divergence(single_root: bool) -> None:
    given, other = scores(), scores(1)
    other[4, 1, 2] = 0.0
    p, q = distribution(given, single_root), distribution(other, single_root)
    expected = np.zeros(5)
    for b, (mine, theirs) in enumerate(
        zip(oracles(given, single_root), oracles(other, single_root), strict=True)
    ):
        log_q = np.array([theirs.log_probability(y) for y in mine.outputs])
        expected[b] = (mine.probabilities * (np.log(mine.probabilities) - log_q)).sum()
    np.testing.assert_allclose(p.kl(q), expected, **TOLERANCE)
    np.testing.assert_allclose(p.kl(p), np.zeros(5), atol=1e-12)
    assert q.kl(p)[4] == np.inf


def test_values_with_a_graph_are_the_same(single_root: bool) -> None:
    given = 60 * torch.randn(3, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    alone = TreeDistribution(given, single_root=single_root)
    graph = TreeDistribution(given.clone().requires_grad_(), single_root=single_root)
    assert graph.marginals().requires_grad
    np.testing.assert_array_equal(graph.marginals().detach(), alone.arc_marginals())
    np.testing.assert_array_equal(graph.entropy().detach(), alone.entropy())


def test_frequencies_of_samples_approach_the_marginals(single_root: bool) -> None:
    trees = distribution(scores(), single_root)
    drawn = trees.sample(3000, generator=torch.Generator().manual_seed(0))
    arcs = (
        torch.nn.functional.one_hot(drawn.clamp_min(0), 4) * (drawn >= 0)[..., None]
    )  # [n, B, words, heads]
    np.testing.assert_allclose(arcs.double().mean(0).mT, trees.marginals()[:, :, 1:], atol=0.05)


@pytest.mark.parametrize(
    ("given", "lengths", "complaint"),
    [
        (torch.zeros(2, 3), None, r"scores: got torch.float32 with shape \[2, 3\]"),
        (torch.zeros(2, 0, 0), None, "scores: got no root"),
        (torch.zeros(2, 3, 3), torch.zeros(3).long(), r"lengths: got torch.int64 with shape \[3\]"),
        ([[[0.0]]], None, "scores: got list, expected a tensor"),
        (torch.zeros(2, 3, 3).long(), None, "scores: got torch.int64"),
        (torch.zeros(2, 3, 3), torch.tensor([3, 1]), "lengths: there is a length 3, expected 0 to 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_message(given: Any, lengths: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        TreeDistribution(given, lengths=lengths)
    with pytest.raises(ShapeError, match="heads"):
        TreeDistribution(torch.zeros(2, 3, 3)).log_prob(torch.zeros(2, 3))
    trees = TreeDistribution(torch.zeros(2, 3, 3))
    with pytest.raises(ArgumentError, match="heads"):
        trees.log_prob(torch.zeros(2, 2, device="meta").long())
    with pytest.raises(ArgumentError, match="n"):
        trees.sample(-1)
    with pytest.raises(ShapeError):
        trees.kl(TreeDistribution(torch.zeros(2, 3, 3), lengths=torch.tensor([2, 1])))
    with pytest.raises(ArgumentError, match="k"):
        TreeDistribution(torch.zeros(2, 3, 3)).topk(0)
    with pytest.raises(ShapeError, match="kl"):
        TreeDistribution(torch.zeros(1, 4, 4)).kl(TreeDistribution(torch.zeros(2, 3, 3)))


@pytest.mark.parametrize("lengths", [None, [3, 3, 1]])
def test_scores_that_are_no_numbers(lengths: Any, single_root: bool) -> None:
    """They make the sums of their sentence NaN, and no other; where there is no arc, they mean nothing."""
    given = torch.from_numpy(scores()[:3])
    broken = given.clone()
    broken[0, 1, 2] = broken[2, 2, 3] = torch.nan
    lengths = None if lengths is None else torch.tensor(lengths)
    expected = TreeDistribution(given, lengths=lengths, single_root=single_root)
    found = TreeDistribution(broken, lengths=lengths, single_root=single_root)
    undefined = torch.tensor([True, False, lengths is None])
    assert torch.equal(found.log_partition().isnan(), undefined)
    heads = torch.tensor([[0, 1, 1]] * 3)
    assert torch.equal(found.log_prob(heads).isnan(), undefined)
    torch.testing.assert_close(found.log_partition()[~undefined], expected.log_partition()[~undefined])
    assert torch.equal(found.marginals().flatten(1).isnan().any(1), undefined)
    torch.testing.assert_close(found.marginals()[~undefined], expected.marginals()[~undefined])
