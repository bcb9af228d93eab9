"""`ChainCRF.loss_and_gradient`: what a backward pass gives, without one."""

from __future__ import annotations

from typing import Any

import pytest

from crfkit.errors import ArgumentError, ShapeError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from crfkit.nn import ChainCRF
from crfkit.nn.backends.core import CORE
from tests.nn.program_cases import FORMS, arguments, layer_of

REDUCTIONS = ("sum", "mean", "token_mean")


def by_backward(layer: Any, given: dict[str, Any], reduction: str) -> list[Any]:
    """The loss and its gradient by emissions and parameters, from PyTorch's graph."""
    emissions = given["emissions"].clone().requires_grad_()
    layer.zero_grad()
    loss = -layer(**{**given, "emissions": emissions}, reduction=reduction)
    loss.backward()
    return [loss.detach(), emissions.grad, *(parameter.grad.clone() for parameter in layer.parameters())]


def directly(layer: Any, given: dict[str, Any], reduction: str) -> list[Any]:
    """The same, without a graph."""
    layer.zero_grad()
    loss, gradient = layer.loss_and_gradient(**given, reduction=reduction)
    return [loss, gradient, *(parameter.grad for parameter in layer.parameters())]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(3, 6), (2, 1), (2, 0)])
def test_a_backward_pass_gives_the_same(form: str, reduction: str, shape: tuple[int, int]) -> None:
    if shape[1] < 2 and form in ("unknown", "mask", "bio"):
        pytest.skip("these forms turn off a second position")
    layer, given = layer_of(form), arguments(form, shape)
    for found, expected in zip(
        directly(layer, given, reduction), by_backward(layer, given, reduction), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    layer = layer_of("mask").double()
    given = arguments("mask", (3, 6))
    given["emissions"] = given["emissions"].double()
    _, gradient, *by_parameter = directly(layer, given, "mean")
    rng = torch.Generator().manual_seed(2)

    def loss(step: float, way: list[Any]) -> Any:
        with torch.no_grad():
            for part, direction in zip([given["emissions"], *layer.parameters()], way, strict=True):
                part += step * direction
        return layer.loss_and_gradient(**given, reduction="mean")[0]

    parts = [gradient, *(part.clone() for part in by_parameter)]
    way = [torch.randn(part.shape, generator=rng, dtype=torch.float64) for part in parts]
    slope = (loss(1e-5, way) - loss(-2e-5, way)) / 2e-5
    expected = sum((part * direction).sum() for part, direction in zip(parts, way, strict=True))
    torch.testing.assert_close(slope, expected, rtol=1e-7, atol=1e-9)


def test_tags_that_the_bigrams_exclude() -> None:
    """The loss is inf, the gradient finite, and 0 where a bigram does not exist."""
    layer, given = layer_of("bio"), arguments("bio", (3, 6))
    given.pop("mask")
    given["tags"][:] = torch.tensor([0, 2, 0, 0, 0, 0])  # I-PER after O
    for found, expected in zip(directly(layer, given, "sum"), by_backward(layer, given, "sum"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert layer.transitions.grad[0, 2] == 0


def test_gradients_add_up_and_reach_the_network() -> None:
    torch.manual_seed(0)
    network, layer = torch.nn.Linear(4, 3), ChainCRF(3)
    x, tags = torch.randn(2, 5, 4), torch.randint(0, 3, (2, 5))
    parameters = [*network.parameters(), *layer.parameters()]
    for _ in range(2):
        (-layer(network(x), tags)).backward()
    expected = [parameter.grad.clone() for parameter in parameters]
    network.zero_grad()
    layer.zero_grad()
    for _ in range(2):
        emissions = network(x)
        emissions.backward(layer.loss_and_gradient(emissions, tags)[1])
    for parameter, sum_of_both in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, sum_of_both, rtol=1e-5, atol=1e-6)


def test_frozen_parameters_have_no_gradient() -> None:
    layer = ChainCRF(3)
    layer.transitions.requires_grad_(False)
    layer.loss_and_gradient(torch.randn(2, 5, 3), torch.zeros(2, 5, dtype=torch.int64))
    assert layer.transitions.grad is None
    assert layer.start_transitions.grad is not None


def test_half_precision() -> None:
    layer, given = layer_of("plain"), arguments("plain", (3, 6))
    given["emissions"] = given["emissions"].bfloat16()
    found, expected = directly(layer, given, "mean"), by_backward(layer, given, "mean")
    assert found[1].dtype == torch.bfloat16
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


def test_what_is_refused() -> None:
    layer, emissions = ChainCRF(3), torch.zeros(2, 5, 3)
    tags = torch.zeros(2, 5, dtype=torch.int64)
    with pytest.raises(ArgumentError, match="reduction"):
        layer.loss_and_gradient(emissions, tags, reduction="none")
    with pytest.raises(ShapeError, match="tags"):
        layer.loss_and_gradient(emissions, tags[:, :4])


def test_scores_that_are_minus_infinity_of_their_own() -> None:
    """Where tags have such an emission, and bigrams forbid something else."""
    layer, given = layer_of("bio"), arguments("bio", (3, 6))
    given.pop("mask")
    given["tags"][:] = 0
    given["emissions"][0, 1, 0] = -torch.inf
    for found, expected in zip(directly(layer, given, "sum"), by_backward(layer, given, "sum"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_a_compiled_program_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels see it as it is, and no table that none of them has lists of."""
    layer, given = layer_of("bio"), arguments("bio", (3, 6))
    expected = directly(layer, given, "sum")
    tables, usual = [], CORE.total

    def watched(problem: Any, *given: Any) -> Any:
        assert not torch.compiler.is_compiling()
        tables.append(problem.bigrams)
        return usual(problem, *given)

    monkeypatch.setattr(CORE, "total", watched)
    layer.zero_grad()
    loss, gradient = torch.compile(layer.loss_and_gradient, backend="eager")(**given)
    found = [loss, gradient, *(parameter.grad for parameter in layer.parameters())]
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert tables == [None]
