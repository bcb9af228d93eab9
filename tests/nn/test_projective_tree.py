"""`crfkit.nn.ProjectiveTreeDistribution` against all projective trees, listed one by one, with the core and without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crfkit.errors import ArgumentError, ShapeError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ProjectiveTreeDistribution, TreeDistribution
from crfkit.nn.backends import core
from tests.oracles.projective_instances import ProjectiveOracle

LENGTHS = [4, 0, 1, 2, 4]
SIZE = 5  # nodes, with the root
TOLERANCE: dict[str, Any] = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(params=["core", "torch"], autouse=True)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With the core, and as where it was not built."""
    if request.param == "torch":
        monkeypatch.setattr(core, "core_is_there", lambda: False)
    return request.param


@pytest.fixture(params=[True, False], ids=["single root", "any roots"])
def single_root(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=[1, 2], ids=["first order", "second order"])
def order(request: pytest.FixtureRequest) -> Any:
    return request.param


class Batch:
    """Five sentences of up to 4 words; in the last one arcs, and of the second order siblings, are forbidden."""

    def __init__(self, order: int, single_root: bool, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.scores = 2 * rng.standard_normal((5, SIZE, SIZE))
        self.scores[4, 1, 2] = self.scores[4, 0, 1] = -np.inf
        self.siblings = None if order == 1 else rng.standard_normal((5, SIZE, SIZE, SIZE))
        if self.siblings is not None:
            self.siblings[4, 3, 3, 2] = self.siblings[4, 2, 3, 4] = -np.inf
        self.single_root = single_root

    def oracles(self) -> list[ProjectiveOracle]:
        """All trees of each sentence."""
        found = []
        for b, n in enumerate(LENGTHS):
            inside = slice(n + 1)
            pairs = None if self.siblings is None else self.siblings[b, inside, inside, inside]
            found.append(ProjectiveOracle(self.scores[b, inside, inside], pairs, self.single_root))
        return found

    def distribution(self, dtype: Any = torch.float64, gradient: bool = False) -> ProjectiveTreeDistribution:
        """The same as tensors."""
        scores = torch.tensor(self.scores, dtype=dtype, requires_grad=gradient)
        siblings = None
        if self.siblings is not None:
            siblings = torch.tensor(self.siblings, dtype=dtype, requires_grad=gradient)
        return ProjectiveTreeDistribution(
            scores, siblings=siblings, lengths=torch.tensor(LENGTHS), single_root=self.single_root
        )


@pytest.fixture
def batch(order: int, single_root: bool) -> Batch:
    return Batch(order, single_root)


def by_arc(numbers: Any, b: int) -> Any:
    """Those of the arcs of sentence b among the numbers of all its parts, with zeros beyond its end."""
    size = LENGTHS[b] + 1
    return np.pad(numbers[: size**2].reshape(2 * [size]), (0, SIZE - size))


def by_pair(numbers: Any, b: int) -> Any:
    """Those of its pairs of siblings."""
    size = LENGTHS[b] + 1
    return np.pad(numbers[size**2 :].reshape(3 * [size]), (0, SIZE - size))


def test_log_partition_marginals_and_entropy(batch: Batch) -> None:
    trees = batch.distribution()
    log_z, marginals, entropy = trees.log_partition(), trees.marginals(), trees.entropy()
    pairs = trees.sibling_marginals()
    for b, oracle in enumerate(batch.oracles()):
        np.testing.assert_allclose(log_z[b], oracle.log_partition, **TOLERANCE)
        np.testing.assert_allclose(marginals[b], by_arc(oracle.marginals, b), **TOLERANCE)
        np.testing.assert_allclose(entropy[b], oracle.entropy, **TOLERANCE)
        if batch.siblings is not None:
            np.testing.assert_allclose(pairs[b], by_pair(oracle.marginals, b), **TOLERANCE)


def test_siblings_without_scores_have_probabilities(single_root: bool) -> None:
    """Those of scores 0, which change nothing."""
    batch = Batch(1, single_root)
    expected = batch.distribution()
    batch.siblings = np.zeros((5, SIZE, SIZE, SIZE))
    found = batch.distribution()
    np.testing.assert_allclose(found.log_partition(), expected.log_partition(), **TOLERANCE)
    np.testing.assert_allclose(found.marginals(), expected.marginals(), **TOLERANCE)
    pairs = expected.sibling_marginals()
    for b, oracle in enumerate(batch.oracles()):
        np.testing.assert_allclose(pairs[b], by_pair(oracle.marginals, b), **TOLERANCE)
    np.testing.assert_allclose(
        pairs.sum(2), expected.marginals(), **TOLERANCE
    )  # an arc has one inner sibling


def test_best_trees(order: int, single_root: bool) -> None:
    for seed in range(8):
        batch = Batch(order, single_root, seed)
        best = batch.distribution().argmax().numpy()
        for b, oracle in enumerate(batch.oracles()):
            assert tuple(best[b, : LENGTHS[b]].tolist()) in oracle.best_outputs(1e-9)
            assert (best[b, LENGTHS[b] :] == -1).all()


def test_the_k_best_trees_in_order(batch: Batch) -> None:
    """All of them where there are fewer."""
    k = 8
    found, heads = batch.distribution().topk(k)
    for b, oracle in enumerate(batch.oracles()):
        count, n = min(k, len(oracle.outputs)), LENGTHS[b]
        trees = [tuple(y) for y in heads[b, :count, :n].tolist()]
        assert len(set(trees)) == count
        np.testing.assert_allclose(found[b, :count], [oracle.score(y) for y in trees], **TOLERANCE)
        np.testing.assert_allclose(
            found[b, :count], [score for score, _ in oracle.k_best[:count]], **TOLERANCE
        )
        assert (found[b, count:] == -torch.inf).all()
        assert (heads[b, count:] == -1).all()
        assert (heads[b, :, n:] == -1).all()


def test_scores_of_the_k_best_lead_back_to_the_parts(batch: Batch) -> None:
    trees = batch.distribution(gradient=True)
    found, _ = trees.topk(1)
    gradients = torch.autograd.grad(found.sum(), trees._scores)
    for b, oracle in enumerate(batch.oracles()):
        counts = oracle.counts[int(np.argmax(oracle.scores))]
        np.testing.assert_array_equal(gradients[0][b], by_arc(counts, b))
        if batch.siblings is not None:
            np.testing.assert_array_equal(gradients[1][b], by_pair(counts, b))


def test_log_probabilities_of_known_and_of_some_heads(batch: Batch) -> None:
    heads = torch.full((5, SIZE - 1), -100)
    whole, half = np.zeros(5), np.zeros(5)
    for b, oracle in enumerate(batch.oracles()):
        chosen = oracle.outputs[-1]
        heads[b, : LENGTHS[b]] = torch.tensor(chosen, dtype=torch.int64)
        whole[b] = oracle.log_probability(chosen)
        agree = [y[:1] == chosen[:1] for y in oracle.outputs]
        half[b] = np.log(oracle.probabilities[agree].sum())
    trees = batch.distribution()
    np.testing.assert_allclose(trees.log_prob(heads), whole, **TOLERANCE)
    heads[:, 1:] = -100
    np.testing.assert_allclose(trees.log_prob(heads), half, **TOLERANCE)


def test_heads_with_crossing_arcs_have_no_probability() -> None:
    crossing = torch.tensor([[0, 4, 1, 1]])  # 4 → 2 crosses 1 → 3
    scores = torch.zeros(1, 5, 5)
    assert TreeDistribution(scores).log_prob(crossing) > -torch.inf
    assert ProjectiveTreeDistribution(scores).log_prob(crossing) == -torch.inf


def test_gradients_and_second_gradients_by_differences(order: int, single_root: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    parts = [
        torch.randn(*shape, dtype=torch.float64, generator=rng).requires_grad_()
        for shape in ((2, 4, 4), (2, 4, 4, 4))[:order]
    ]

    def answers(scores: Any, siblings: Any = None) -> Any:
        trees = ProjectiveTreeDistribution(
            scores, siblings=siblings, lengths=torch.tensor([3, 2]), single_root=single_root
        )
        return trees.log_partition(), trees.entropy()

    assert torch.autograd.gradcheck(answers, parts, fast_mode=order == 2)
    assert torch.autograd.gradgradcheck(lambda *given: answers(*given)[0], parts, fast_mode=True)


@pytest.mark.parametrize("which", ["scores", "siblings"])
def test_gradients_by_one_part_alone(which: str) -> None:
    """The other is given and stays as it is."""
    batch = Batch(2, True)
    assert batch.siblings is not None
    given = {"scores": torch.tensor(batch.scores[:4]), "siblings": torch.tensor(batch.siblings[:4])}
    given[which].requires_grad_()
    trees = ProjectiveTreeDistribution(**given, lengths=torch.tensor(LENGTHS[:4]))
    [slope] = torch.autograd.grad(trees.log_partition().sum(), [given[which]])
    exact = trees.marginals() if which == "scores" else trees.sibling_marginals()
    torch.testing.assert_close(slope, exact.detach())
    assert torch.isfinite(torch.autograd.grad(trees.entropy().sum(), [given[which]])[0]).all()


def test_sentences_without_a_tree(order: int, single_root: bool) -> None:
    batch = Batch(order, single_root)
    batch.scores[0, 0] = -np.inf
    trees = batch.distribution(gradient=True)
    value = trees.log_partition()
    assert value[0] == -torch.inf
    assert (trees.argmax()[0] == -1).all()
    assert (trees.sample(2)[:, 0] == -1).all()
    assert (trees.marginals()[0] == 0).all()
    total = value[1:].sum() + trees.marginals().square().sum()
    for gradient in torch.autograd.grad(total, trees._scores):
        assert torch.isfinite(gradient).all()


def test_one_word_and_none(order: int, single_root: bool) -> None:
    for size, expected in ((1, 0.0), (2, 1.5)):
        siblings = torch.full((1, size, size, size), 0.5) if order == 2 else None
        trees = ProjectiveTreeDistribution(
            torch.full((1, size, size), 1.5 if order == 1 else 1.0),
            siblings=siblings,
            single_root=single_root,
        )
        assert trees.log_partition().tolist() == [expected]
        assert trees.argmax().tolist() == [[0] * (size - 1)]
        assert trees.entropy().tolist() == [0.0]
        assert trees.topk(2)[0].tolist() == [[expected, -torch.inf]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_less_precise_scores(dtype: Any, batch: Batch) -> None:
    found = batch.distribution(dtype)
    batch.scores = torch.tensor(batch.scores, dtype=dtype).double().numpy()
    if batch.siblings is not None:
        batch.siblings = torch.tensor(batch.siblings, dtype=dtype).double().numpy()
    exact = batch.distribution()
    assert found.log_partition().dtype == torch.float32
    np.testing.assert_allclose(found.log_partition(), exact.log_partition(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.marginals(), exact.marginals(), atol=1e-6)


def test_divergence(order: int, single_root: bool) -> None:
    one, two = Batch(order, single_root), Batch(order, single_root, 1)
    two.scores[4, 1, 2] = two.scores[4, 0, 1] = 0.0
    if two.siblings is not None:
        two.siblings = np.where(np.isinf(two.siblings), 0.0, two.siblings)
    p, q = one.distribution(), two.distribution()
    expected = np.zeros(5)
    for b, (mine, theirs) in enumerate(zip(one.oracles(), two.oracles(), strict=True)):
        log_q = np.array([theirs.log_probability(y) for y in mine.outputs])
        expected[b] = (mine.probabilities * (np.log(mine.probabilities) - log_q)).sum()
    np.testing.assert_allclose(p.kl(q), expected, **TOLERANCE)
    np.testing.assert_allclose(p.kl(p), np.zeros(5), atol=1e-12)
    assert q.kl(p)[4] == np.inf


def test_frequencies_of_samples_approach_the_marginals(batch: Batch) -> None:
    trees = batch.distribution()
    drawn = trees.sample(300, generator=torch.Generator().manual_seed(0))
    arcs = torch.nn.functional.one_hot(drawn.clamp_min(0), SIZE) * (drawn >= 0)[..., None]
    np.testing.assert_allclose(arcs.double().mean(0).mT, trees.marginals()[:, :, 1:], atol=0.1)
    for b, oracle in enumerate(batch.oracles()):
        assert {tuple(y) for y in drawn[:, b, : LENGTHS[b]].tolist()} <= set(oracle.outputs)


def test_scores_of_any_spread(order: int, single_root: bool) -> None:
    batch = Batch(order, single_root)
    batch.scores *= 1e4
    trees = batch.distribution(gradient=True)
    assert torch.isfinite(trees.entropy()).all()
    for b, oracle in enumerate(batch.oracles()):
        np.testing.assert_allclose(
            trees.log_partition()[b].detach(), oracle.log_partition, rtol=1e-12, atol=1e-9
        )
        np.testing.assert_allclose(trees.marginals()[b].detach(), by_arc(oracle.marginals, b), atol=1e-9)


def test_spanning_trees_of_two_words_are_projective(single_root: bool) -> None:
    scores = torch.randn(3, 3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    spanning, projective = (
        kind(scores, single_root=single_root) for kind in (TreeDistribution, ProjectiveTreeDistribution)
    )
    torch.testing.assert_close(spanning.log_partition(), projective.log_partition())
    torch.testing.assert_close(spanning.marginals(), projective.marginals())


def test_scores_that_are_no_numbers(order: int, single_root: bool) -> None:
    """They make the sums of their sentence NaN, and no other; where there is no arc, they mean nothing."""
    batch = Batch(order, single_root)
    expected = batch.distribution()
    for part in (batch.scores, batch.siblings):
        if part is not None:
            part[:, 1, ..., 1] = part[1] = part[:, :, ..., 0] = np.nan
    found = batch.distribution()
    torch.testing.assert_close(found.log_partition(), expected.log_partition())
    torch.testing.assert_close(found.marginals(), expected.marginals())
    torch.testing.assert_close(found.entropy(), expected.entropy())
    batch.scores[0, 1, 2] = np.nan
    found = batch.distribution()
    undefined = torch.tensor([True, False, False, False, False])
    assert torch.equal(found.log_partition().isnan(), undefined)
    assert torch.equal(found.marginals().flatten(1).isnan().any(1), undefined)
    assert (found.argmax()[0] == -1).all()


def test_what_does_not_fit_is_refused_with_a_message() -> None:
    scores = torch.zeros(2, 3, 3)
    for given, complaint in (
        ({"siblings": torch.zeros(2, 3, 3)}, r"siblings: got shape \[2, 3, 3\]"),
        ({"siblings": torch.zeros(2, 3, 3, 3).long()}, "siblings: got torch.int64"),
        ({"lengths": torch.tensor([3, 1])}, "lengths: there is a length 3, expected 0 to 2"),
    ):
        with pytest.raises(ValueError, match=complaint):
            ProjectiveTreeDistribution(scores, **given)
    with pytest.raises(ShapeError, match="scores"):
        ProjectiveTreeDistribution(torch.zeros(2, 3))
    trees = ProjectiveTreeDistribution(scores)
    with pytest.raises(ShapeError, match="heads"):
        trees.log_prob(torch.zeros(2, 3))
    with pytest.raises(ArgumentError, match="got TreeDistribution, expected ProjectiveTreeDistribution"):
        trees.kl(TreeDistribution(scores))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="siblings of both"):
        trees.kl(ProjectiveTreeDistribution(scores, siblings=torch.zeros(2, 3, 3, 3)))
