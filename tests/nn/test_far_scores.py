"""Chains whose scores are large or far apart: the same answers with a gradient as without, and every digit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainDistribution
from tests.oracles.chain_batches import KINDS, batch

SCORES = ("emissions", "transitions", "start", "end")


def scaled(kind: str, factor: float) -> dict[str, Any]:
    """The arguments of a batch, with its scores times a factor."""
    tensors = batch(31, **KINDS[kind]).tensors()
    for name in SCORES:
        if tensors[name] is not None:
            tensors[name] = (factor * tensors[name].detach()).requires_grad_()
    return tensors


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [1.0, 1e4])
def test_answers_with_a_gradient_are_those_without(kind: str, factor: float) -> None:
    tensors = scaled(kind, factor)
    found = ChainDistribution(**tensors)
    with torch.no_grad():
        plain = ChainDistribution(**tensors)
        other = ChainDistribution(**{**tensors, "emissions": 0.5 * tensors["emissions"]})
        expected = [plain.marginals(), plain.transition_marginals(), plain.entropy(), plain.kl(other)]
    answers = [found.marginals(), found.transition_marginals(), found.entropy(), found.kl(other)]
    for answer, value in zip(answers, expected, strict=True):
        torch.testing.assert_close(answer.detach(), value, rtol=1e-9, atol=1e-12 * factor)
    for answer, value in zip(answers[:2], expected[:2], strict=True):
        assert ((answer == 0) | (value > 0)).all()  # what is impossible has 0 exactly
    wanted = [tensors[name] for name in SCORES if tensors[name] is not None]
    total = sum(answer.where(torch.isfinite(answer), 0.0).sum() for answer in answers)
    assert all(torch.isfinite(g).all() for g in torch.autograd.grad(total, wanted, materialize_grads=True))


@pytest.mark.parametrize("far", [40.0, torch.inf])
@pytest.mark.parametrize("transitions", ["shared", "by sequence", "by position"])
def test_second_gradients_where_transitions_are_far_or_none(transitions: str, far: float) -> None:
    tensors = batch(32, shape=(2, 3, 2), arcs=transitions).tensors()
    given = [tensors[name].detach().requires_grad_() for name in SCORES]
    apart = torch.tensor([[0.0, -far], [0.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [False, True, True]])

    def values(emissions: Any, transitions: Any, start: Any, end: Any) -> Any:
        distribution = ChainDistribution(emissions, transitions + apart, start, end, mask=mask)
        return distribution.log_partition(), distribution.entropy(), distribution.topk(3)[0][:, :2]

    assert torch.autograd.gradcheck(values, given)
    assert torch.autograd.gradgradcheck(lambda *scores: values(*scores)[0], given, fast_mode=True)


def test_scores_of_the_k_best_lead_back_to_all_scores() -> None:
    """In float32 as well, where nothing has to be converted."""
    given = [torch.randn(shape, requires_grad=True) for shape in ((2, 4, 3), (3, 3), (3,), (3,))]
    distribution = ChainDistribution(*given)
    scores, labels = distribution.topk(2)
    by_topk = torch.autograd.grad(scores.sum(), given)
    total = sum(distribution.score(labels[:, k]).sum() for k in range(2))
    for found, expected in zip(by_topk, torch.autograd.grad(total, given), strict=True):
        torch.testing.assert_close(found, expected)


def test_samples_and_k_best_of_large_scores_keep_their_digits() -> None:
    """1e5 more at every token changes no probability; a sum of 200 of them in float32 would be a multiple of 2."""
    rng = torch.Generator().manual_seed(0)
    emissions = (
        torch.randint(-200, 200, (1, 200, 3), generator=rng) / 128 + 1e5
    )  # which float32 holds exactly
    found, exact = ChainDistribution(emissions), ChainDistribution(emissions.double())
    drawn = found.sample(2000, generator=rng)
    frequencies = torch.nn.functional.one_hot(drawn, 3).double().mean(0)
    np.testing.assert_allclose(frequencies, exact.marginals(), atol=0.06, rtol=0)
    assert torch.equal(found.topk(20)[1], exact.topk(20)[1])
