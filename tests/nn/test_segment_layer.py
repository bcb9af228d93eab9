"""`crfkit.nn.SegmentCRF`: the layer against its distribution, and training."""

from itertools import pairwise
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import SegmentCRF, SegmentDistribution


def layer_of(**options: Any) -> SegmentCRF:
    torch.manual_seed(0)
    return SegmentCRF(3, max_length=4, **options).double()


TAGS = torch.tensor([[0, 3, 1, 2, 5], [2, 5, 5, 0, 0]])
MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def test_reductions_and_layouts() -> None:
    layer, swapped = layer_of(), layer_of(batch_first=False)
    emissions = torch.randn(2, 5, 3, dtype=torch.float64)
    scores = (layer.transitions, layer.start_transitions, layer.end_transitions)
    expected = SegmentDistribution(emissions, layer.durations, *scores, mask=MASK).log_prob(TAGS)
    values = {
        "none": expected,
        "sum": expected.sum(),
        "mean": expected.mean(),
        "token_mean": expected.sum() / 8,
    }
    for reduction, value in values.items():
        torch.testing.assert_close(layer(emissions, TAGS, MASK, reduction=reduction), value)
        there = swapped(emissions.transpose(0, 1), TAGS.T, MASK.T, reduction=reduction)
        torch.testing.assert_close(there, value)
    assert torch.equal(swapped.decode(emissions.transpose(0, 1), MASK.T).T, layer.decode(emissions, MASK))


def test_bigrams_hold_in_training_and_in_decoding() -> None:
    layer = layer_of(bigrams=~torch.eye(3, dtype=torch.bool))
    emissions = torch.zeros(1, 6, 3, dtype=torch.float64)
    emissions[..., 0] = 5.0
    decoded = layer.decode(emissions)[0]
    labels = (decoded[decoded < 3]).tolist()
    assert all(a != b for a, b in pairwise(labels))
    assert layer(emissions, torch.tensor([[0, 3, 3, 0, 3, 3]]), complete=True) == -torch.inf
    layer(emissions, torch.tensor([[0, 3, 3, 1, 0, 3]])).backward()
    gradients = [parameter.grad for parameter in layer.parameters()]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert (layer.transitions.grad.diagonal() == 0).all()


@pytest.mark.parametrize("reduction", ["sum", "mean", "token_mean"])
@pytest.mark.parametrize("constrained", [False, True])
def test_loss_and_gradient_are_those_of_a_backward_pass(reduction: str, constrained: bool) -> None:
    layer, other = (layer_of(bigrams=~torch.eye(3).bool() if constrained else None) for _ in range(2))
    emissions = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    loss = -layer(emissions, TAGS, MASK, reduction=reduction)
    [expected] = torch.autograd.grad(loss, [emissions], retain_graph=True)
    loss.backward()
    for _ in range(2):  # gradients of the parameters are added
        found, gradient = other.loss_and_gradient(emissions, TAGS, MASK, reduction=reduction)
        torch.testing.assert_close(found, loss.detach())
        torch.testing.assert_close(gradient, expected)
    for mine, theirs in zip(other.parameters(), layer.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, 2 * theirs.grad)
    with pytest.raises(ValueError, match="expected one of sum, mean, token_mean"):
        layer.loss_and_gradient(emissions, TAGS, reduction="none")


def test_training_finds_the_segments() -> None:
    torch.manual_seed(1)
    layer = SegmentCRF(labels=["a", "b"], max_length=3)
    emissions = torch.randn(8, 12, 2)
    tags = torch.tensor([0, 2, 2, 1, 0, 2, 2, 1, 0, 2, 2, 1]).expand(8, 12)  # aaa b aaa b …
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=40)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = -layer(emissions, tags, reduction="mean") + 1e-3 * sum(
            (p**2).sum() for p in layer.parameters()
        )
        loss.backward()
        return loss

    optimizer.step(closure)
    assert (layer.decode(emissions) == tags).all()


def test_first_and_last_positions_score() -> None:
    layer = layer_of()
    emissions, first, last = (torch.randn(2, 5, 3, dtype=torch.float64) for _ in range(3))
    scores = (layer.transitions, layer.start_transitions, layer.end_transitions)
    expected = SegmentDistribution(emissions, layer.durations, *scores, first=first, last=last)
    torch.testing.assert_close(
        layer(emissions, TAGS, first=first, last=last, reduction="none"), expected.log_prob(TAGS)
    )
    assert torch.equal(layer.decode(emissions, first=first, last=last), expected.argmax())


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"max_length": 2}, "n_labels or the names"),
        ({"n_labels": 0, "max_length": 2}, "n_labels is 0"),
        ({"n_labels": 2, "max_length": 0}, "max_length is 0"),
        ({"n_labels": 2, "max_length": 2, "labels": ["a"]}, "names of 1 labels"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_message(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        SegmentCRF(**options)


def test_calls_that_do_not_fit_are_refused_with_a_message() -> None:
    layer = layer_of()
    with pytest.raises(ValueError, match="reduction: got 'median'"):
        layer(torch.zeros(2, 5, 3), TAGS, reduction="median")
    with pytest.raises(ValueError, match="the layer's 3 labels"):
        layer.decode(torch.zeros(2, 5, 4))
    with pytest.raises(ValueError, match="batch and positions are swapped"):
        layer(torch.zeros(2, 5, 3), TAGS.T)
    assert repr(layer) == "SegmentCRF(n_labels=3, max_length=4)"
